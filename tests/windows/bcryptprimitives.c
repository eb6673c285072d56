/* The only function of bcryptprimitives.dll, which old wine lacks, that Rust's library calls. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
    return RtlGenRandom(bytes, (ULONG)size);
}
