/* A bcryptprimitives.dll for old Wine, with the only function that Rust's std calls. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
    return RtlGenRandom(bytes, (ULONG)size);
}
