# Finds protobuf-c's library and defines the target syncblob::protobuf_c. The build uses the target,
# and so do programs that link the installed libsyncblob.a. Searches pkg-config's folders first.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(SYNCBLOB_PC_PROTOBUF_C QUIET libprotobuf-c)
endif()
find_library(SYNCBLOB_PROTOBUF_C_LIBRARY protobuf-c HINTS ${SYNCBLOB_PC_PROTOBUF_C_LIBRARY_DIRS})
find_path(SYNCBLOB_PROTOBUF_C_INCLUDE_DIR protobuf-c/protobuf-c.h
          HINTS ${SYNCBLOB_PC_PROTOBUF_C_INCLUDE_DIRS})
mark_as_advanced(SYNCBLOB_PROTOBUF_C_LIBRARY SYNCBLOB_PROTOBUF_C_INCLUDE_DIR)

set(SyncblobProtobufC_VERSION "")
if(SYNCBLOB_PROTOBUF_C_INCLUDE_DIR)
  file(STRINGS "${SYNCBLOB_PROTOBUF_C_INCLUDE_DIR}/protobuf-c/protobuf-c.h" SyncblobProtobufC_VERSION
       REGEX "^#define PROTOBUF_C_VERSION[ \t]")
  string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" SyncblobProtobufC_VERSION
         "${SyncblobProtobufC_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SyncblobProtobufC
  REQUIRED_VARS SYNCBLOB_PROTOBUF_C_LIBRARY SYNCBLOB_PROTOBUF_C_INCLUDE_DIR
  VERSION_VAR SyncblobProtobufC_VERSION
  REASON_FAILURE_MESSAGE
  "protobuf-c was not found: install libprotobuf-c-dev, or set SYNCBLOB_PROTOBUF_C_LIBRARY and \
SYNCBLOB_PROTOBUF_C_INCLUDE_DIR, or build syncblob without it: SYNCBLOB_PROTOBUF_C=OFF")

if(SyncblobProtobufC_FOUND AND NOT TARGET syncblob::protobuf_c)
  add_library(syncblob::protobuf_c UNKNOWN IMPORTED)
  set_target_properties(syncblob::protobuf_c PROPERTIES
    IMPORTED_LOCATION "${SYNCBLOB_PROTOBUF_C_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SYNCBLOB_PROTOBUF_C_INCLUDE_DIR}")
endif()
