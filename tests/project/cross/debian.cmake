# Cross compiles by Debian's compiler for ${triplet}; qemu-user runs the programs. The folder
# SYNCBLOB_SYSROOT has the packages of that architecture, whose libraries are in folders
# ${packages}.
if(NOT packages)
  set(packages ${triplet})
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(SYNCBLOB_CXX ${triplet}-g++ CACHE FILEPATH "For scripts, which do not run here")
set(CMAKE_LIBRARY_ARCHITECTURE ${packages})

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYNCBLOB_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${SYNCBLOB_SYSROOT} /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SYNCBLOB_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${SYNCBLOB_SYSROOT}/usr/lib/${packages}/pkgconfig:${SYNCBLOB_SYSROOT}/usr/share/pkgconfig)

# The dependencies of the sysroot's libraries are in the same folder.
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath-link,${SYNCBLOB_SYSROOT}/usr/lib/${packages})
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${CMAKE_EXE_LINKER_FLAGS_INIT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR};-L;${SYNCBLOB_SYSROOT})
