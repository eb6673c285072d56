/* Windows: threads, pages, libraries, and error texts. Uses functions of Windows Vista and later,
   and no thread library. */
#include "port/threads.h" /* IWYU pragma: keep */

#ifdef _WIN32

#include "port/libraries.h"
#include "port/pages.h"
#include "port/text.h"
#include "port/windows.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

/* --- threads ---------------------------------------------------------------------------- */

_Static_assert(sizeof(sb__mutex) == sizeof(SRWLOCK), "the sizes differ");
_Static_assert(sizeof(sb__recursive_mutex) == sizeof(CRITICAL_SECTION), "the sizes differ");
_Static_assert(sizeof(sb__once) == sizeof(INIT_ONCE), "the sizes differ");

void sb__mutex_init(sb__mutex *mutex) {
    InitializeSRWLock((SRWLOCK *)mutex);
}

void sb__mutex_destroy(sb__mutex *mutex) {
    (void)mutex; /* the lock has no resources to free */
}

void sb__mutex_lock(sb__mutex *mutex) {
    AcquireSRWLockExclusive((SRWLOCK *)mutex);
}

bool sb__mutex_try_lock(sb__mutex *mutex) {
    return TryAcquireSRWLockExclusive((SRWLOCK *)mutex) != 0;
}

void sb__mutex_unlock(sb__mutex *mutex) {
    ReleaseSRWLockExclusive((SRWLOCK *)mutex);
}

bool sb__recursive_mutex_init(sb__recursive_mutex *mutex) {
    InitializeCriticalSection((CRITICAL_SECTION *)mutex);
    return true;
}

void sb__recursive_mutex_destroy(sb__recursive_mutex *mutex) {
    DeleteCriticalSection((CRITICAL_SECTION *)mutex);
}

void sb__recursive_mutex_lock(sb__recursive_mutex *mutex) {
    EnterCriticalSection((CRITICAL_SECTION *)mutex);
}

void sb__recursive_mutex_unlock(sb__recursive_mutex *mutex) {
    LeaveCriticalSection((CRITICAL_SECTION *)mutex);
}

uint64_t sb__now(void) {
    LARGE_INTEGER ticks, frequency;
    (void)QueryPerformanceFrequency(&frequency);
    (void)QueryPerformanceCounter(&ticks);
    const uint64_t seconds = (uint64_t)(ticks.QuadPart / frequency.QuadPart);
    const uint64_t rest = (uint64_t)(ticks.QuadPart % frequency.QuadPart);
    return seconds * 1000000000u + rest * 1000000000u / (uint64_t)frequency.QuadPart;
}

static BOOL CALLBACK run_it(INIT_ONCE *once, void *run, void **unused) {
    (void)once;
    (void)unused;
    (*(void (**)(void))run)();
    return TRUE;
}

void sb__run_once(sb__once *once, void (*run)(void)) {
    (void)InitOnceExecuteOnce((INIT_ONCE *)once, run_it, (void *)&run, NULL);
}

static DWORD number_index;

static void alloc_number_index(void) {
    number_index = TlsAlloc();
}

/* Uses TlsAlloc, because MinGW's thread-local variables need the compiler's DLL. */
int64_t sb__thread_number(void) {
    static _Atomic int64_t count;
    static sb__once once = SB__ONCE_INIT;
    sb__run_once(&once, alloc_number_index);
    intptr_t number = (intptr_t)TlsGetValue(number_index);
    if (!number) {
        number = (intptr_t)++count;
        (void)TlsSetValue(number_index, (void *)number);
    }
    return number;
}

int64_t sb__process(void) {
    return GetCurrentProcessId();
}

void sb__sleep_milliseconds(uint32_t milliseconds) {
    Sleep(milliseconds);
}

/* --- pages ------------------------------------------------------------------------------ */

#define PLACE_ATTEMPTS 100 /* retries, because another thread may map the range first */

size_t sb__page_size(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

/* Reserves a range to find an aligned address, releases the range, and maps the pages there.
   Windows cannot release a part of a reservation. Large pages would need a privilege. */
void *sb__pages_map(size_t bytes, size_t alignment) {
    for (int i = 0; i < PLACE_ATTEMPTS; i++) {
        char *place = VirtualAlloc(NULL, bytes + alignment, MEM_RESERVE, PAGE_NOACCESS);
        if (!place)
            return NULL;
        char *aligned = place + (alignment - (uintptr_t)place % alignment) % alignment;
        (void)VirtualFree(place, 0, MEM_RELEASE);
        void *pages = VirtualAlloc(aligned, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
        if (pages)
            return pages;
        if (GetLastError() != ERROR_INVALID_ADDRESS)
            return NULL;
    }
    return NULL;
}

void *sb__pages_reserve(size_t bytes) {
    return VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_NOACCESS);
}

void sb__pages_unmap(void *pages, size_t bytes) {
    (void)bytes;
    (void)VirtualFree(pages, 0, MEM_RELEASE);
}

void *sb__pages_filled(intptr_t *kept, int byte, size_t bytes) {
    void *pages = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    (void)kept;
    return pages ? memset(pages, byte, bytes) : NULL;
}

void sb__pages_drop(intptr_t kept) {
    (void)kept;
}

void *sb__aligned_alloc(size_t alignment, size_t bytes) {
    return _aligned_malloc(bytes, alignment);
}

void sb__aligned_free(void *block) {
    _aligned_free(block);
}

/* --- libraries -------------------------------------------------------------------------- */

void *sb__library_open(const char *name, char *cause, size_t capacity) {
    char buffer[96];
    HMODULE library = LoadLibraryA(name);
    if (!library)
        (void)snprintf(cause, capacity, "%s: %s", name,
                       sb__system_text((int)GetLastError(), buffer, sizeof buffer));
    return (void *)library;
}

/* To find the libraries that the opened library needs, Windows searches the folders of the opened
   library, of the program and of the system. Windows does not search PATH. */
void *sb__library_open_file(const char *path, char *cause, size_t capacity) {
    const DWORD flags = LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    wchar_t wide[SB__PATH_MAX];
    char buffer[96];
    int error = sb__whole_path(path, wide);
    HMODULE library = error ? NULL : LoadLibraryExW(wide, NULL, flags);
    if (!library && !error)
        error = (int)GetLastError();
    if (!library)
        (void)snprintf(cause, capacity, "%s", sb__system_text(error, buffer, sizeof buffer));
    return (void *)library;
}

void *sb__library_loaded(const char *name) {
    HMODULE library = NULL;
    return GetModuleHandleExA(0, name, &library) ? (void *)library : NULL;
}

void *sb__library_symbol(void *library, const char *name) {
    FARPROC function = GetProcAddress((HMODULE)library, name);
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

void sb__library_close(void *library) {
    (void)FreeLibrary((HMODULE)library);
}

/* --- texts ------------------------------------------------------------------------------ */

/* Replacements for texts of Windows. Most are texts of POSIX, so that all systems agree. */
static const struct {
    DWORD error;
    const char *text;
} texts[] = {
    {ERROR_FILE_NOT_FOUND, "No such file or directory"},
    {ERROR_PATH_NOT_FOUND, "No such file or directory"},
    {ERROR_MOD_NOT_FOUND, "The library, or a library that it needs, is missing"},
    {ERROR_BAD_EXE_FORMAT, "The file is not a library for this processor"},
    {ERROR_INVALID_NAME, "No file can have this name"},
    {ERROR_TOO_MANY_OPEN_FILES, "Too many open files"},
    {ERROR_ACCESS_DENIED, "Permission denied"},
    {ERROR_INVALID_HANDLE, "Bad file descriptor"},
    {ERROR_NOT_ENOUGH_MEMORY, "Cannot allocate memory"},
    {ERROR_OUTOFMEMORY, "Cannot allocate memory"},
    {ERROR_WRITE_PROTECT, "Read-only file system"},
    {ERROR_SHARING_VIOLATION, "A program has the file open and forbids the operation"},
    {ERROR_LOCK_VIOLATION, "Another program has locked the file"},
    {ERROR_HANDLE_DISK_FULL, "No space left on device"},
    {ERROR_DISK_FULL, "No space left on device"},
    {ERROR_FILE_EXISTS, "File exists"},
    {ERROR_ALREADY_EXISTS, "File exists"},
    {ERROR_INVALID_PARAMETER, "Invalid argument"},
    {SB__NOT_REGULAR, "Invalid argument"},
    {SB__IS_DIRECTORY, "Is a directory"},
    {ERROR_FILENAME_EXCED_RANGE, "File name too long"},
    {ERROR_FILE_TOO_LARGE, "File too large"},
    {ERROR_CANT_RESOLVE_FILENAME, "Too many levels of symbolic links"},
    {ERROR_NO_UNICODE_TRANSLATION, "The path is not UTF-8"},
    {ERROR_USER_MAPPED_FILE, "A program has mapped the file"},
};

/* Returns the text without the full stop and the line end. Returns the English text if Windows has
   that text. */
const char *sb__system_text(int error, char *buffer, size_t capacity) {
    const DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
    const DWORD english = MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == (DWORD)error)
            return texts[i].text;
    DWORD n = FormatMessageA(flags, NULL, (DWORD)error, english, buffer, (DWORD)capacity, NULL);
    while (n > 0 && strchr("\r\n. ", buffer[n - 1]))
        n--;
    buffer[n] = '\0';
    if (n == 0)
        (void)snprintf(buffer, capacity, "Error %d of Windows", error);
    return buffer;
}

#endif
