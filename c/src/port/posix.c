/* Linux and macOS: threads, pages, maps of files, libraries. */
#include "port/files.h"

#if !defined(_WIN32) && !defined(__wasi__)

#include "port/posix.h"

#include "port/libraries.h"
#include "port/pages.h"
#include "port/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- threads ---------------------------------------------------------------------------- */

bool sb__recursive_mutex_init(sb__recursive_mutex *mutex) {
    pthread_mutexattr_t recursive;
    if (pthread_mutexattr_init(&recursive) != 0)
        return false;
    bool made = pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE) == 0 &&
                pthread_mutex_init(mutex, &recursive) == 0;
    (void)pthread_mutexattr_destroy(&recursive);
    return made;
}

int64_t sb__process(void) {
    return getpid();
}

/* --- pages ------------------------------------------------------------------------------ */

size_t sb__page_size(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Maps enough bytes for an aligned block, and unmaps the bytes before and after the block. */
void *sb__pages_map(size_t bytes, size_t alignment) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *base = mmap(NULL, bytes + alignment, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    const size_t before = (alignment - (uintptr_t)base % alignment) % alignment;
    char *pages = base + before;
    if (before)
        sb__pages_unmap(base, before);
    sb__pages_unmap(pages + bytes, alignment - before);
    sb__advise_large_pages(pages, bytes);
    return pages;
}

void *sb__pages_reserve(size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *base = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    return base;
}

void sb__pages_unmap(void *pages, size_t bytes) {
    (void)munmap(pages, bytes);
}

/* --- files ------------------------------------------------------------------------------ */

int sb__file_map(sb__file file, size_t bytes, const void **out) {
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, (int)file, 0);
    if (map == MAP_FAILED)
        return errno;
    *out = map;
    return 0;
}

void sb__file_unmap(const void *map, size_t bytes) {
    (void)munmap((void *)map, bytes);
}

/* --- libraries -------------------------------------------------------------------------- */

void *sb__library_open(const char *name, char *cause, size_t capacity) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        (void)snprintf(cause, capacity, "%s", dlerror());
    return library;
}

void *sb__library_open_file(const char *path, char *cause, size_t capacity) {
    char here[SB__PATH_MAX];
    if (!strchr(path, '/')) {                            /* otherwise dlopen searches folders */
        (void)snprintf(here, sizeof here, "./%s", path); /* a truncated path is too long to open */
        path = here;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    const char *reason = dlerror();
    const size_t length = strlen(path);
    if (strncmp(reason, path, length) == 0 && strncmp(reason + length, ": ", 2) == 0)
        reason += length + 2;
    (void)snprintf(cause, capacity, "%s", reason);
    return NULL;
}

void *sb__library_loaded(const char *name) {
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

void *sb__library_symbol(void *library, const char *name) {
    return dlsym(library, name);
}

void sb__library_close(void *library) {
    (void)dlclose(library);
}

#endif
