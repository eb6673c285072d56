# Cross compiles with Debian's compiler for SYNCBLOB_MACHINE: s390x, aarch64 or i386.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYNCBLOB_MACHINE SYNCBLOB_SYSROOT)
set(packages ${SYNCBLOB_MACHINE}-linux-gnu)
string(REPLACE i386 i686 triplet ${packages})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${SYNCBLOB_MACHINE})
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(SYNCBLOB_CXX ${triplet}-g++ CACHE FILEPATH "For scripts, which do not run here")
set(CMAKE_LIBRARY_ARCHITECTURE ${packages})

set(CMAKE_FIND_ROOT_PATH ${SYNCBLOB_SYSROOT} /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SYNCBLOB_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${SYNCBLOB_SYSROOT}/usr/lib/${packages}/pkgconfig:${SYNCBLOB_SYSROOT}/usr/share/pkgconfig)

# Without -rpath-link, the linker does not find the dependencies of the sysroot's libraries.
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath-link,${SYNCBLOB_SYSROOT}/usr/lib/${packages})
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${CMAKE_EXE_LINKER_FLAGS_INIT})
if(SYNCBLOB_MACHINE STREQUAL i386)
  set(CMAKE_C_FLAGS_INIT "-msse2 -mfpmath=sse") # the x87 computes with more bits than the type has
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT
         " -Wl,--dynamic-linker,${SYNCBLOB_SYSROOT}/lib/ld-linux.so.2"
         " -Wl,-rpath,${SYNCBLOB_SYSROOT}/lib/${packages}:${SYNCBLOB_SYSROOT}/usr/lib/${packages}")
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${SYNCBLOB_MACHINE};-L;${SYNCBLOB_SYSROOT})
endif()
