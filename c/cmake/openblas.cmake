# Finds OpenBLAS, its serial build first, as the target syncblob_openblas; with
# SYNCBLOB_OPENBLAS=OFF that target is empty.
add_library(syncblob_openblas INTERFACE)
if(NOT SYNCBLOB_OPENBLAS)
  set(SYNCBLOB_OPENBLAS_RUN_PATH "")
  return()
endif()

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
if(NOT SYNCBLOB_OPENBLAS_LIBRARY OR NOT SYNCBLOB_OPENBLAS_INCLUDE_DIR)
  message(FATAL_ERROR "OpenBLAS was not found: install libopenblas-serial-dev, set "
                      "SYNCBLOB_OPENBLAS_LIBRARY and SYNCBLOB_OPENBLAS_INCLUDE_DIR, or do "
                      "without it: SYNCBLOB_OPENBLAS=OFF")
endif()

# Both builds carry the SONAME libopenblas.so.0, so at run time the loader
# would take the alternatives' choice again: a library that lies outside the
# loader's own directories is named by run path.
get_filename_component(SYNCBLOB_OPENBLAS_DIR "${SYNCBLOB_OPENBLAS_LIBRARY}" DIRECTORY)
if(SYNCBLOB_OPENBLAS_DIR IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
  set(SYNCBLOB_OPENBLAS_RUN_PATH "")
else()
  set(SYNCBLOB_OPENBLAS_RUN_PATH "${SYNCBLOB_OPENBLAS_DIR}")
endif()
message(STATUS "OpenBLAS: ${SYNCBLOB_OPENBLAS_LIBRARY}")

target_include_directories(syncblob_openblas SYSTEM INTERFACE "${SYNCBLOB_OPENBLAS_INCLUDE_DIR}")
target_link_libraries(syncblob_openblas INTERFACE "${SYNCBLOB_OPENBLAS_LIBRARY}")
