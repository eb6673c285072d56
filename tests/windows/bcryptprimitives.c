/* For a wine without bcryptprimitives.dll: its only function that Rust's standard library calls. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
    return RtlGenRandom(bytes, (ULONG)size);
}
