# Installs the components Runtime, Development, Static and Licences; the command's folder installs
# Tools. Installed files refer to each other by relative paths, so that the prefix may be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/syncblob)

# The .pc file gives the prefix relative to the file's own folder, so that the prefix may be moved. If
# the library folder is absolute, the .pc file gives the absolute prefix.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(SYNCBLOB_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH SYNCBLOB_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" SYNCBLOB_PC_PREFIX "\${pcfiledir}/${SYNCBLOB_PC_PREFIX}")
endif()
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  set(SYNCBLOB_PC_${folder} "\${prefix}")
  cmake_path(APPEND SYNCBLOB_PC_${folder} ${CMAKE_INSTALL_${folder}}) # an absolute path is kept
endforeach()

# The static library links protobuf-c, with -L if the linker would not search protobuf-c's folder. The
# .pc file has no Requires for protobuf-c: where protobuf-c's .pc file is missing, pkg-config would then
# refuse the shared library, too.
set(SYNCBLOB_PC_PROTOBUF_C "")
if(SYNCBLOB_PROTOBUF_C)
  set(SYNCBLOB_PC_PROTOBUF_C " -lprotobuf-c")
  get_filename_component(folder ${SYNCBLOB_PROTOBUF_C_LIBRARY} DIRECTORY)
  if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    foreach(root IN LISTS CMAKE_SYSROOT CMAKE_FIND_ROOT_PATH)
      string(REGEX REPLACE "^${root}(/|$)" "/" folder "${folder}")
    endforeach()
    string(PREPEND SYNCBLOB_PC_PROTOBUF_C " -L${folder}")
  endif()
endif()

# The folder of the serial OpenBLAS precedes our library folder, which may also have the threaded
# OpenBLAS. With -static the linker uses the OpenBLAS that it finds first.
set(SYNCBLOB_PC_OPENBLAS "")
set(SYNCBLOB_PC_OPENBLAS_FOLDER "")
if(SYNCBLOB_OPENBLAS)
  set(SYNCBLOB_PC_OPENBLAS " -lopenblas")
endif()
if(SYNCBLOB_OPENBLAS_RUN_PATH)
  set(SYNCBLOB_PC_OPENBLAS_FOLDER "-L${SYNCBLOB_OPENBLAS_RUN_PATH} ")
endif()

# The system libraries that a program links in addition to the C library.
set(SYNCBLOB_PC_SYSTEM " -lm")
if(NOT WIN32)
  string(APPEND SYNCBLOB_PC_SYSTEM " -lpthread")
endif()
if(CMAKE_DL_LIBS)
  string(APPEND SYNCBLOB_PC_SYSTEM " -l${CMAKE_DL_LIBS}")
endif()
configure_file(syncblob.pc.in syncblob.pc @ONLY)

# Installs a library in the components `runtime` and `development`, with the targets file that
# find_package(syncblob COMPONENTS ...) reads. On Windows the DLL is RUNTIME, and its import library
# is ARCHIVE.
function(install_library target name runtime development)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT syncblob-${name}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${runtime}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
      COMPONENT ${runtime} NAMELINK_COMPONENT ${development}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${development})
  install(EXPORT syncblob-${name} FILE syncblob-${name}.cmake NAMESPACE syncblob::
          DESTINATION ${package_dir} COMPONENT ${development})
endfunction()

if(BUILD_SHARED_LIBS)
  install_library(syncblob shared Runtime Development)
endif()
if(PROJECT_IS_TOP_LEVEL OR NOT BUILD_SHARED_LIBS)
  install_library(${static_library} static Runtime Static)
endif()

install(DIRECTORY include/syncblob DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/syncblob.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT Development)

configure_package_config_file(cmake/syncblobConfig.cmake.in syncblobConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
set(compatible SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatible SameMinorVersion)
endif()
write_basic_package_version_file(syncblobConfigVersion.cmake COMPATIBILITY ${compatible})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/syncblobConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/syncblobConfigVersion.cmake
              cmake/FindSyncblobOpenBLAS.cmake cmake/FindSyncblobProtobufC.cmake
        DESTINATION ${package_dir} COMPONENT Development)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE-MIT ${PROJECT_SOURCE_DIR}/LICENSE-APACHE
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Licences)
