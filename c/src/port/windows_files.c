/* Windows: reads files, and replaces a file by renaming the open temporary file. Other programs may
   write, rename and remove files that the library has open, as on other systems. */
#include "port/files.h" /* IWYU pragma: keep */

#ifdef _WIN32

#define _CRT_RAND_S /* for rand_s, the system's random numbers */

#include "port/random.h"
#include "port/windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ATTEMPTS 100
#define SHARE_ALL     (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
#define MOST_BYTES    ((size_t)1 << 30) /* the maximum of one read or write call */

static HANDLE handle_of(sb__file file) {
    return (HANDLE)file;
}

static int last_error(void) {
    return (int)GetLastError();
}

/* --- other programs --------------------------------------------------------------------- */

#define ATTEMPTS 48

/* Waits for other writers and virus scanners, which open a file for short times. Waits up to 7
   milliseconds per call, and 168 in total. Returns false when the attempts are used up. The waits
   differ in length, to find the gaps between repeated writes. */
static bool wait_for_others(DWORD *attempts) {
    if (++*attempts == ATTEMPTS)
        return false;
    Sleep(*attempts % 8);
    return true;
}

/* --- paths ------------------------------------------------------------------------------ */

/* Converts UTF-8 to UTF-16. */
static int widen(const char *path, wchar_t wide[SB__PATH_MAX]) {
    if (!*path)
        return ERROR_FILE_NOT_FOUND;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, SB__PATH_MAX) != 0)
        return 0;
    int error = last_error();
    return error == ERROR_INSUFFICIENT_BUFFER ? ERROR_FILENAME_EXCED_RANGE : error;
}

static int narrow(const wchar_t *wide, char path[SB__PATH_MAX]) {
    if (WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, path, SB__PATH_MAX, NULL,
                            NULL) != 0)
        return 0;
    int error = last_error();
    return error == ERROR_INSUFFICIENT_BUFFER ? ERROR_FILENAME_EXCED_RANGE : error;
}

int sb__whole_path(const char *path, wchar_t out[SB__PATH_MAX]) {
    static const wchar_t local[] = L"\\\\?\\", share[] = L"\\\\?\\UNC\\";
    wchar_t wide[SB__PATH_MAX];
    if (strncmp(path, "\\\\?\\", 4) == 0)
        return widen(path, out);
    int error = widen(path, wide);
    if (error)
        return error;
    DWORD length = GetFullPathNameW(wide, SB__PATH_MAX, out, NULL);
    if (length == 0)
        return last_error();
    if (length >= SB__PATH_MAX)
        return ERROR_FILENAME_EXCED_RANGE;
    if (length < MAX_PATH - 12 || wcsncmp(out, L"\\\\.\\", 4) == 0)
        return 0;
    const bool is_share = out[0] == L'\\' && out[1] == L'\\';
    const wchar_t *prefix = is_share ? share : local;
    const size_t skipped = is_share ? 2 : 0, before = wcslen(prefix);
    if (before + length - skipped >= SB__PATH_MAX)
        return ERROR_FILENAME_EXCED_RANGE;
    memmove(out + before, out + skipped, (length - skipped + 1) * sizeof *out);
    memcpy(out, prefix, before * sizeof *out);
    return 0;
}

/* --- reading ---------------------------------------------------------------------------- */

/* Opens a file. Also opens a folder, so that the caller can report that the path is a folder. */
static int open_wide(const wchar_t *path, DWORD access, HANDLE *out) {
    DWORD attempts = 0;
    int error;
    do {
        *out = CreateFileW(path, access, SHARE_ALL, NULL, OPEN_EXISTING,
                           FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS, NULL);
        error = *out == INVALID_HANDLE_VALUE ? last_error() : 0;
    } while (error == ERROR_SHARING_VIOLATION && wait_for_others(&attempts));
    return error;
}

int sb__file_open(const char *path, sb__file *out) {
    wchar_t wide[SB__PATH_MAX];
    HANDLE handle;
    int error = sb__whole_path(path, wide);
    if (!error)
        error = open_wide(wide, GENERIC_READ, &handle);
    if (!error)
        *out = (sb__file)handle;
    return error;
}

int sb__file_examine(sb__file file, struct sb__file_info *out) {
    BY_HANDLE_FILE_INFORMATION info;
    *out = (struct sb__file_info){.misfit = SB__NOT_REGULAR};
    SetLastError(NO_ERROR);
    DWORD type = GetFileType(handle_of(file));
    if (type == FILE_TYPE_UNKNOWN && GetLastError() != NO_ERROR)
        return last_error();
    if (type != FILE_TYPE_DISK)
        return 0;
    if (!GetFileInformationByHandle(handle_of(file), &info))
        return last_error();
    uint64_t time =
        (uint64_t)info.ftLastWriteTime.dwHighDateTime << 32 | info.ftLastWriteTime.dwLowDateTime;
    out->size = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    out->version = time * 0x9E3779B97F4A7C15 + out->size;
    out->names = info.nNumberOfLinks;
    out->misfit = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? SB__IS_DIRECTORY : 0;
    return 0;
}

int sb__file_read_at(sb__file file, uint64_t offset, void *to, size_t bytes, size_t *got) {
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
    DWORD n = 0;
    *got = 0;
    if (!ReadFile(handle_of(file), to, (DWORD)(bytes < MOST_BYTES ? bytes : MOST_BYTES), &n, &at))
        return GetLastError() == ERROR_HANDLE_EOF ? 0 : last_error();
    *got = n;
    return 0;
}

int sb__file_map(sb__file file, size_t bytes, const void **out) {
    HANDLE mapping = CreateFileMappingW(handle_of(file), NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping)
        return last_error();
    *out = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes);
    int error = *out ? 0 : last_error();
    (void)CloseHandle(mapping); /* the view keeps the mapping open */
    return error;
}

void sb__file_unmap(const void *map, size_t bytes) {
    (void)bytes;
    (void)UnmapViewOfFile(map);
}

void sb__file_close(sb__file file) {
    (void)CloseHandle(handle_of(file));
}

/* --- replacing: before ------------------------------------------------------------------ */

/* Checks that the old file can be replaced. Fails for a read-only file, as MoveFileEx does. */
static int check_old(HANDLE old, const char **what) {
    FILE_BASIC_INFO basic;
    struct sb__file_info info;
    int error = sb__file_examine((sb__file)old, &info);
    if (!error && info.misfit) {
        *what = "cannot be replaced: it is not a regular file";
        error = info.misfit;
    }
    if (!error && !GetFileInformationByHandleEx(old, FileBasicInfo, &basic, sizeof basic))
        error = last_error();
    if (!error && basic.FileAttributes & FILE_ATTRIBUTE_READONLY)
        error = ERROR_ACCESS_DENIED;
    return error;
}

static bool is_link(const wchar_t *path) {
    const DWORD attributes = GetFileAttributesW(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

/* Opens the existing file, with links resolved; sets `*out` to INVALID_HANDLE_VALUE if the file
   does not exist. */
static int open_old(struct sb__replacement *to, const char *path, HANDLE *out, const char **what) {
    wchar_t wide[SB__PATH_MAX];
    int error = sb__whole_path(path, wide);
    if (!error)
        error = narrow(wide, to->path);
    if (error)
        return error;
    error = open_wide(wide, READ_CONTROL | FILE_READ_ATTRIBUTES, out);
    if (error)
        return error == ERROR_FILE_NOT_FOUND ? 0 : error;
    error = check_old(*out, what);
    if (!error && is_link(wide) &&
        GetFinalPathNameByHandleW(*out, wide, SB__PATH_MAX, 0) - 1 < SB__PATH_MAX - 1)
        error = narrow(wide, to->path);
    if (error)
        (void)CloseHandle(*out);
    return error;
}

/* Writes the path of `name` in the target's folder to `wide`. */
static int beside(const struct sb__replacement *to, const char *name, wchar_t wide[SB__PATH_MAX]) {
    char path[SB__PATH_MAX];
    int folder = (int)(to->name - to->path);
    int length = snprintf(path, sizeof path, "%.*s%s", folder, to->path, name);
    return length < (int)sizeof path ? sb__whole_path(path, wide) : ERROR_FILENAME_EXCED_RANGE;
}

bool sb__random_number(uint64_t *out) {
    unsigned int words[2];
    if (rand_s(&words[0]) != 0 || rand_s(&words[1]) != 0)
        return false;
    *out = (uint64_t)words[0] << 32 | words[1];
    return true;
}

/* Creates the temporary file with a handle that can rename and remove it. No other program can open
   the file until the rename. */
static int open_temporary(struct sb__replacement *to) {
    wchar_t wide[SB__PATH_MAX];
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        uint64_t name;
        if (!sb__random_number(&name))
            return ERROR_GEN_FAILURE;
        (void)snprintf(to->temporary, sizeof to->temporary, ".syncblob-%016llx.tmp",
                       (unsigned long long)name);
        int error = beside(to, to->temporary, wide);
        if (error)
            return error;
        HANDLE made = CreateFileW(wide, GENERIC_WRITE | DELETE | WRITE_DAC, 0, NULL, CREATE_NEW,
                                  FILE_ATTRIBUTE_NORMAL, NULL);
        to->file = (sb__file)made;
        if (made != INVALID_HANDLE_VALUE)
            return 0;
        if (GetLastError() != ERROR_FILE_EXISTS)
            return last_error();
    }
    return ERROR_FILE_EXISTS;
}

/* Copies the hidden and system attributes, if the file system has them. */
static void keep_attributes(HANDLE old, HANDLE made) {
    const DWORD kept = FILE_ATTRIBUTE_HIDDEN | FILE_ATTRIBUTE_SYSTEM;
    FILE_BASIC_INFO info;
    if (!GetFileInformationByHandleEx(old, FileBasicInfo, &info, sizeof info) ||
        !(info.FileAttributes & kept))
        return;
    info = (FILE_BASIC_INFO){.FileAttributes = (info.FileAttributes & kept) |
                                               FILE_ATTRIBUTE_ARCHIVE}; /* times of 0 leave the
                                                                           file's times unchanged */
    (void)SetFileInformationByHandle(made, FileBasicInfo, &info, sizeof info);
}

/* Copies the access list, if the file system has access lists. */
static int keep_permissions(HANDLE old, HANDLE made) {
    _Alignas(SECURITY_DESCRIPTOR) char list[4096];
    DWORD needed;
    if (!GetKernelObjectSecurity(old, DACL_SECURITY_INFORMATION, list, sizeof list, &needed))
        return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ERROR_INSUFFICIENT_BUFFER : 0;
    return SetKernelObjectSecurity(made, DACL_SECURITY_INFORMATION, list) ? 0 : last_error();
}

int sb__replacement_begin(struct sb__replacement *to, const char *path, const char **what) {
    HANDLE old = INVALID_HANDLE_VALUE;
    to->file = to->folder = (sb__file)INVALID_HANDLE_VALUE;
    (void)snprintf(to->shown, sizeof to->shown, "%.*s", (int)sizeof to->shown - 1, path);
    *what = "cannot be written";
    int error = open_old(to, path, &old, what);
    if (error)
        return error;
    to->name = strrchr(to->path, '\\') + 1;
    *what = "needs a temporary file in the same directory";
    error = open_temporary(to);
    if (!error && old != INVALID_HANDLE_VALUE) {
        *what = "has permissions that cannot be kept";
        keep_attributes(old, handle_of(to->file));
        error = keep_permissions(old, handle_of(to->file));
        if (error)
            sb__replacement_cancel(to);
    }
    if (old != INVALID_HANDLE_VALUE)
        (void)CloseHandle(old);
    return error;
}

/* --- replacing: after ------------------------------------------------------------------- */

int sb__replacement_write(struct sb__replacement *to, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    while (size > 0) {
        DWORD n = 0;
        if (!WriteFile(handle_of(to->file), from, (DWORD)(size < MOST_BYTES ? size : MOST_BYTES),
                       &n, NULL))
            return last_error();
        if (n == 0)
            return ERROR_WRITE_FAULT;
        from += n;
        size -= n;
    }
    return 0;
}

void sb__replacement_cancel(struct sb__replacement *to) {
    FILE_DISPOSITION_INFO end = {.DeleteFile = TRUE};
    wchar_t wide[SB__PATH_MAX];
    bool removed =
        SetFileInformationByHandle(handle_of(to->file), FileDispositionInfo, &end, sizeof end) != 0;
    (void)CloseHandle(handle_of(to->file));
    if (!removed && beside(to, to->temporary, wide) == 0)
        (void)DeleteFileW(wide);
}

/* Constants of Windows 10 that some headers lack, for a rename of an open file. With
   POSIX_SEMANTICS, programs that have the old file open can still use it, as on other systems. */
enum { RENAME_EX = 22, REPLACE_IF_EXISTS = 1, POSIX_SEMANTICS = 2 };

/* The system's FILE_RENAME_INFO, with room for the name. */
struct rename {
    DWORD flags;
    HANDLE folder;
    DWORD bytes;
    wchar_t name[SB__PATH_MAX];
};

_Static_assert(offsetof(struct rename, name) == offsetof(FILE_RENAME_INFO, FileName),
               "the system's struct begins as ours does");

/* Returns whether an error of a rename may mean that a program has the old file open. */
static bool is_in_use(int error) {
    return error == ERROR_SHARING_VIOLATION || error == ERROR_ACCESS_DENIED;
}

static int rename_to(HANDLE file, const wchar_t *target) {
    struct rename order = {.flags = REPLACE_IF_EXISTS | POSIX_SEMANTICS};
    const size_t bytes = wcslen(target) * sizeof *target;
    order.bytes = (DWORD)bytes;
    memcpy(order.name, target, bytes + sizeof *target);
    DWORD attempts = 0;
    int error;
    do
        error = SetFileInformationByHandle(file, (FILE_INFO_BY_HANDLE_CLASS)RENAME_EX, &order,
                                           sizeof order)
                    ? 0
                    : last_error();
    while (is_in_use(error) && wait_for_others(&attempts));
    return error;
}

/* Returns whether any program has the file open. */
static bool is_open(const wchar_t *path) {
    HANDLE handle = CreateFileW(path, DELETE, 0, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return GetLastError() == ERROR_SHARING_VIOLATION;
    (void)CloseHandle(handle);
    return false;
}

static int move(const wchar_t *from, const wchar_t *to) {
    const DWORD flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
    DWORD attempts = 0;
    int error;
    do
        error = MoveFileExW(from, to, flags) ? 0 : last_error();
    while (is_in_use(error) && wait_for_others(&attempts));
    return error;
}

/* Renames by name, for older systems and for file systems other than NTFS. The rename fails while a
   program has the old file open. */
static int rename_by_name(struct sb__replacement *to, const wchar_t *target) {
    wchar_t temporary[SB__PATH_MAX];
    int error = beside(to, to->temporary, temporary);
    (void)CloseHandle(handle_of(to->file));
    to->file = (sb__file)INVALID_HANDLE_VALUE;
    if (!error)
        error = move(temporary, target);
    if (!error)
        return 0;
    (void)DeleteFileW(temporary);
    return error == ERROR_ACCESS_DENIED && is_open(target) ? ERROR_SHARING_VIOLATION : error;
}

static bool is_not_known(int error) {
    return error == ERROR_INVALID_PARAMETER || error == ERROR_NOT_SUPPORTED ||
           error == ERROR_INVALID_FUNCTION || error == ERROR_CALL_NOT_IMPLEMENTED ||
           error == ERROR_INVALID_LEVEL;
}

int sb__replacement_commit(struct sb__replacement *to, bool *in_place) {
    wchar_t target[SB__PATH_MAX];
    int error = beside(to, to->name, target);
    *in_place = false;
    if (!error && !FlushFileBuffers(handle_of(to->file)))
        error = last_error();
    if (!error) {
        error = rename_to(handle_of(to->file), target);
        if (is_not_known(error))
            return rename_by_name(to, target);
    }
    if (error) {
        sb__replacement_cancel(to);
        return error;
    }
    *in_place = true;
    return CloseHandle(handle_of(to->file)) ? 0 : last_error();
}

#endif
