# Installs the files that every Debian package has in /usr/share/doc. They are in components
# debian_GROUP, which `cmake --install` omits.
find_program(SYNCBLOB_GZIP gzip)
if(NOT SYNCBLOB_GZIP)
  return() # packages are made only on machines with gzip
endif()
set(documents ${CMAKE_CURRENT_BINARY_DIR}/debian)
file(MAKE_DIRECTORY ${documents})

# Formats the licence's text as a field of debian/copyright: each line is indented, and an empty line is
# a dot.
file(READ ${PROJECT_SOURCE_DIR}/LICENSE-MIT SYNCBLOB_MIT_TEXT)
string(REGEX REPLACE "^.*\nCopyright[^\n]*\n+" "" SYNCBLOB_MIT_TEXT "${SYNCBLOB_MIT_TEXT}")
string(STRIP "${SYNCBLOB_MIT_TEXT}" SYNCBLOB_MIT_TEXT)
string(REPLACE "\n\n" "\n.\n" SYNCBLOB_MIT_TEXT "${SYNCBLOB_MIT_TEXT}")
string(REPLACE "\n" "\n " SYNCBLOB_MIT_TEXT "${SYNCBLOB_MIT_TEXT}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/copyright.in ${documents}/copyright @ONLY)

string(TIMESTAMP SYNCBLOB_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${CMAKE_CURRENT_LIST_DIR}/changelog.in ${documents}/changelog.Debian @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${documents}/changelog COPYONLY)
execute_process(COMMAND ${SYNCBLOB_GZIP} -9nkf changelog changelog.Debian
                WORKING_DIRECTORY ${documents} COMMAND_ERROR_IS_FATAL ANY)

function(install_debian_documents group package)
  install(FILES ${documents}/copyright ${documents}/changelog.gz ${documents}/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT debian_${group} EXCLUDE_FROM_ALL)
  if(SYNCBLOB_OPENBLAS_RUN_PATH AND group STREQUAL "library")
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/lintian-overrides.in
                   ${documents}/${package} @ONLY)
    install(FILES ${documents}/${package} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
            COMPONENT debian_${group} EXCLUDE_FROM_ALL)
  endif()
endfunction()
foreach(group IN ITEMS LIBRARY DEVELOPMENT TOOLS TESTING TESTING_DEVELOPMENT CONFORMANCE CONFORMANCE_DEVELOPMENT
        COMM COMM_DEVELOPMENT MPI MPI_DEVELOPMENT OPENCL OPENCL_DEVELOPMENT NET NET_DEVELOPMENT)
  if(CPACK_DEBIAN_${group}_PACKAGE_NAME)
    string(TOLOWER ${group} component)
    install_debian_documents(${component} ${CPACK_DEBIAN_${group}_PACKAGE_NAME})
  endif()
endforeach()
