/* Backends that the program registers, or loads from a shared library. */
#include "context/context.h"

#include "base/error.h"
#include "port/files.h"
#include "port/libraries.h"

#include <string.h>

#define MAX_BACKENDS 64

/* Entries are only appended, without a lock, since a forked child could inherit a locked lock. */
static _Atomic(const sb_backend *) registered[MAX_BACKENDS];

const sb_backend *sb__registered_backend(const char *name, size_t length) {
    for (size_t i = 0; i < MAX_BACKENDS; i++) {
        const sb_backend *backend = atomic_load(&registered[i]);
        if (!backend || sb__backend_is_named(backend, name, length))
            return backend;
    }
    return NULL;
}

static size_t num_registered(void) {
    size_t count = 0;
    while (count < MAX_BACKENDS && atomic_load(&registered[count]))
        count++;
    return count;
}

sb_status sb_backend_register(const sb_backend *backend, sb_error *err) {
    if (!backend)
        return sb__fail_null(err, "backend");
    sb_status st = sb__backend_check(backend, err);
    if (st != SB_OK)
        return st;
    for (size_t i = 0; i < MAX_BACKENDS; i++) {
        const sb_backend *other = NULL;
        if (atomic_compare_exchange_strong(&registered[i], &other, backend) || other == backend)
            return SB_OK;
        if (strcmp(other->name, backend->name) == 0)
            return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "another backend is named \"%s\"",
                            backend->name);
    }
    return sb__fail(err, SB_ERR_OVER_LIMIT, "the maximum of %d backends is reached", MAX_BACKENDS);
}

/* Calls the entry function of the library. `shown` is the escaped path. */
static sb_status call_entry(void *library, const char *shown, const sb_backend **out,
                            sb_error *err) {
    void *address = sb__library_symbol(library, SB_BACKEND_ENTRY);
    sb_backend_entry entry;
    if (!address)
        return sb__fail(err, SB_ERR_NOT_FOUND, "\"%s\" does not export " SB_BACKEND_ENTRY, shown);
    memcpy(&entry, &address, sizeof entry);
    *out = entry();
    return *out ? SB_OK
                : sb__fail(err, SB_ERR_UNSUPPORTED, SB_BACKEND_ENTRY " of \"%s\" returned NULL",
                           shown);
}

/* Fails with the system's error number if the file cannot be opened or is not regular. The dynamic
   loader returns no error number, and would block on a pipe. */
static sb_status check_file(const char *path, const char *shown, sb_error *err) {
    struct sb__file_info info;
    sb__file file;
    int error = sb__file_open(path, &file);
    if (!error) {
        error = sb__file_examine(file, &info);
        if (!error)
            error = info.misfit;
        sb__file_close(file);
    }
    return error ? sb__fail_io(err, error, "\"%s\" cannot be opened", shown) : SB_OK;
}

static sb_status open_library(const char *path, const char *shown, void **out, sb_error *err) {
    char story[160], reason[sizeof story];
    sb_status st = check_file(path, shown, err);
    if (st != SB_OK)
        return st;
    *out = sb__library_open_file(path, story, sizeof story);
    return *out ? SB_OK
                : sb__fail(err, SB_ERR_IO, "\"%s\" cannot be opened: %s", shown,
                           sb__escape_path(story, reason, sizeof reason));
}

sb_status sb_backend_load(const char *path, const sb_backend **out, sb_error *err) {
    const sb_backend *backend = NULL;
    void *library = NULL;
    char shown[96];
    if (!path)
        return sb__fail_null(err, "path");
    if (!SB__HAS_LIBRARIES)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "this system has no shared libraries");
    const size_t before = num_registered();
    sb_status st = open_library(path, sb__escape_path(path, shown, sizeof shown), &library, err);
    if (st != SB_OK)
        return st;
    st = call_entry(library, shown, &backend, err);
    if (st == SB_OK)
        st = sb_backend_register(backend, err);
    /* Keeps the library loaded if its entry function may have registered a table. */
    if (st != SB_OK && num_registered() == before)
        sb__library_close(library);
    if (st == SB_OK && out)
        *out = backend;
    return st;
}
