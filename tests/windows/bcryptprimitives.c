/* A bcryptprimitives.dll for old Wine, which has none: the only function that Rust's std needs. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
    return RtlGenRandom(bytes, (ULONG)size);
}
