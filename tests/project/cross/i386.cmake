set(CMAKE_SYSTEM_PROCESSOR i386)
set(triplet i686-linux-gnu)
set(packages i386-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-msse2 -mfpmath=sse") # without the x87's excess precision
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)

# The machine's processor runs the programs, without an emulator.
unset(CMAKE_CROSSCOMPILING_EMULATOR)
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT
       " -Wl,--dynamic-linker,${SYNCBLOB_SYSROOT}/lib/ld-linux.so.2"
       " -Wl,-rpath,${SYNCBLOB_SYSROOT}/lib/${packages}:${SYNCBLOB_SYSROOT}/usr/lib/${packages}")
