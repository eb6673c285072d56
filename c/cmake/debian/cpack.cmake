# cpack reads this file once for each generator.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own summary
else()
  set(CPACK_PACKAGING_INSTALL_PREFIX "")
endif()
