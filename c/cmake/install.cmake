# What is installed, and the files that say where it is.

# The .pc file lies in the prefix that it describes, so it names itself.
file(RELATIVE_PATH SYNCBLOB_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" SYNCBLOB_PC_TO_PREFIX "${SYNCBLOB_PC_TO_PREFIX}")
set(SYNCBLOB_PC_OPENBLAS "")
if(SYNCBLOB_OPENBLAS)
  set(SYNCBLOB_PC_OPENBLAS "-lopenblas")
endif()
if(SYNCBLOB_OPENBLAS_RUN_PATH)
  string(PREPEND SYNCBLOB_PC_OPENBLAS "-L${SYNCBLOB_OPENBLAS_RUN_PATH} ")
endif()
configure_file(syncblob.pc.in syncblob.pc @ONLY)

install(TARGETS syncblob LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                         ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/syncblob DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/syncblob.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
