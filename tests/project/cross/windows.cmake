# Cross compiles for Windows on x86-64 with Debian's MinGW. wine runs the programs.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(triplet x86_64-w64-mingw32)
set(CMAKE_C_COMPILER ${triplet}-gcc-posix)
set(CMAKE_RC_COMPILER ${triplet}-windres)
set(SYNCBLOB_CXX ${triplet}-g++-posix CACHE FILEPATH "For scripts, which do not run here")

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYNCBLOB_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${SYNCBLOB_SYSROOT} /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} ${SYNCBLOB_SYSROOT}/lib/pkgconfig)

set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
