# Cross compiles for SYNCBLOB_ZIG_TARGET with zig, which has the headers and libraries of other systems.
# SYNCBLOB_ZIG is a folder with zig's tools. SYNCBLOB_SYSROOT is a folder with cmocka.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYNCBLOB_ZIG SYNCBLOB_ZIG_TARGET SYNCBLOB_SYSROOT)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR ${SYNCBLOB_ZIG_TARGET})
set(CMAKE_SYSTEM_NAME Linux)
if(SYNCBLOB_ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
endif()
set(CMAKE_C_COMPILER ${SYNCBLOB_ZIG}/cc-${SYNCBLOB_ZIG_TARGET})
foreach(tool IN ITEMS AR RANLIB)
  string(TOLOWER ${tool} command)
  set(CMAKE_${tool} ${SYNCBLOB_ZIG}/${command} CACHE FILEPATH "zig's")
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} ${SYNCBLOB_SYSROOT}/lib/pkgconfig) # no packages of this machine
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
