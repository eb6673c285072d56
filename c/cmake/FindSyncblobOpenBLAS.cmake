# Finds OpenBLAS, preferably its serial build, and defines the target syncblob::openblas. The build
# uses the target, and so do programs that link the installed libsyncblob.a. Sets
# SYNCBLOB_OPENBLAS_RUN_PATH to the folder that a run path must contain, or to an empty string.

# Debian and Ubuntu install each build of OpenBLAS in a separate directory. Their alternatives system
# selects the build that /usr/lib/<triplet>/libopenblas.so refers to, by default the threaded build.
# The serial build is therefore searched for in its directory. On other systems "libopenblas" is the
# serial build (Fedora) or the only build.
find_library(SYNCBLOB_OPENBLAS_LIBRARY openblas
             PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
find_library(SYNCBLOB_OPENBLAS_LIBRARY openblas)
find_path(SYNCBLOB_OPENBLAS_INCLUDE_DIR cblas.h
          PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
find_path(SYNCBLOB_OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
mark_as_advanced(SYNCBLOB_OPENBLAS_LIBRARY SYNCBLOB_OPENBLAS_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SyncblobOpenBLAS
  REQUIRED_VARS SYNCBLOB_OPENBLAS_LIBRARY SYNCBLOB_OPENBLAS_INCLUDE_DIR
  REASON_FAILURE_MESSAGE
  "OpenBLAS was not found: install libopenblas-serial-dev, set SYNCBLOB_OPENBLAS_LIBRARY and \
SYNCBLOB_OPENBLAS_INCLUDE_DIR, or build syncblob without it: SYNCBLOB_OPENBLAS=OFF")
if(NOT SyncblobOpenBLAS_FOUND)
  return()
endif()

# Both builds of OpenBLAS have the SONAME libopenblas.so.0, so without a run path the loader would load
# the build that the alternatives system selects. If the library is outside the loader's default
# directories, the run path contains the library's directory.
get_filename_component(SYNCBLOB_OPENBLAS_DIR "${SYNCBLOB_OPENBLAS_LIBRARY}" DIRECTORY)
if(SYNCBLOB_OPENBLAS_DIR IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES
   OR SYNCBLOB_OPENBLAS_DIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  set(SYNCBLOB_OPENBLAS_RUN_PATH "")
else()
  set(SYNCBLOB_OPENBLAS_RUN_PATH "${SYNCBLOB_OPENBLAS_DIR}")
endif()
# Removes the sysroot: the run path is a path on the target machine.
foreach(root IN LISTS CMAKE_SYSROOT CMAKE_FIND_ROOT_PATH)
  string(REGEX REPLACE "^${root}(/|$)" "/" SYNCBLOB_OPENBLAS_RUN_PATH
         "${SYNCBLOB_OPENBLAS_RUN_PATH}")
endforeach()

if(NOT TARGET syncblob::openblas)
  add_library(syncblob::openblas UNKNOWN IMPORTED)
  set_target_properties(syncblob::openblas PROPERTIES
    IMPORTED_LOCATION "${SYNCBLOB_OPENBLAS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SYNCBLOB_OPENBLAS_INCLUDE_DIR}")
endif()
