# Finds OpenBLAS, its serial build first, as the target syncblob::openblas, for the build and for
# programs that are linked with the installed libsyncblob.a. SYNCBLOB_OPENBLAS_RUN_PATH is the
# folder that a run path has to name, or empty.

# Debian and Ubuntu install each build into a directory of its own and let the
# alternatives system choose which one /usr/lib/<triplet>/libopenblas.so is;
# the threaded build has priority there. So the serial one is looked for by
# directory. Elsewhere "libopenblas" itself is the serial build (Fedora) or
# the only one.
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

# Both builds carry the SONAME libopenblas.so.0, so at run time the loader
# would take the alternatives' choice again: a library that lies outside the
# loader's own directories is named by run path.
get_filename_component(SYNCBLOB_OPENBLAS_DIR "${SYNCBLOB_OPENBLAS_LIBRARY}" DIRECTORY)
if(SYNCBLOB_OPENBLAS_DIR IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES
   OR SYNCBLOB_OPENBLAS_DIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  set(SYNCBLOB_OPENBLAS_RUN_PATH "")
else()
  set(SYNCBLOB_OPENBLAS_RUN_PATH "${SYNCBLOB_OPENBLAS_DIR}")
endif()
# As the machine sees it that the library is for.
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
