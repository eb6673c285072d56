#include "load.h"

#include <stdio.h>
#include <string.h>

#define ENTRY "syncblob_backend" /* const sb_backend *syncblob_backend(void) */

typedef const sb_backend *(*entry)(void);

#ifdef _WIN32

#include <windows.h>

static void *open_library(const char *path, char *reason, size_t capacity) {
    void *library = (void *)LoadLibraryA(path);
    if (!library)
        (void)snprintf(reason, capacity, "%s: error %lu of Windows", path, GetLastError());
    return library;
}

static entry find_entry(void *library) {
    entry found = NULL;
    const FARPROC address = GetProcAddress((HMODULE)library, ENTRY);
    memcpy(&found, &address, sizeof found);
    return found;
}

#else

#include <dlfcn.h>

static void *open_library(const char *path, char *reason, size_t capacity) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        (void)snprintf(reason, capacity, "%s", dlerror());
    return library;
}

static entry find_entry(void *library) {
    entry found = NULL;
    void *address = dlsym(library, ENTRY);
    memcpy(&found, &address, sizeof found);
    return found;
}

#endif

const sb_backend *load_backend(const char *path, char *reason, size_t capacity) {
    void *library = open_library(path, reason, capacity);
    if (!library)
        return NULL;
    const entry find = find_entry(library);
    const sb_backend *table = find ? find() : NULL;
    if (!table)
        (void)snprintf(reason, capacity, "%s: %s", path,
                       find ? ENTRY " returned NULL" : "there is no function " ENTRY);
    return table;
}
