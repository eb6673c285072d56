/* Backends that the program registers, or loads from a shared library. */
#include "context/context.h"

#include "base/error.h"
#include "port/libraries.h"

#include <string.h>

#define MAX_BACKENDS 64

/* Filled from the front, never emptied. No lock: a forked child could inherit it locked. */
static _Atomic(const sb_backend *) registered[MAX_BACKENDS];

const sb_backend *sb__registered_backend(const char *name, size_t length) {
    for (size_t i = 0; i < MAX_BACKENDS; i++) {
        const sb_backend *backend = atomic_load(&registered[i]);
        if (!backend || sb__backend_is_named(backend, name, length))
            return backend;
    }
    return NULL;
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
    return sb__fail(err, SB_ERR_OVER_LIMIT, "%d backends are registered already", MAX_BACKENDS);
}

/* Calls the library's entry. `shown` is the path. */
static sb_status call_entry(void *library, const char *shown, const sb_backend **out,
                            sb_error *err) {
    void *address = sb__library_symbol(library, SB_BACKEND_ENTRY);
    sb_backend_entry *entry;
    if (!address)
        return sb__fail(err, SB_ERR_NOT_FOUND, "\"%s\" does not export " SB_BACKEND_ENTRY, shown);
    memcpy(&entry, &address, sizeof entry);
    *out = entry();
    return *out ? SB_OK
                : sb__fail(err, SB_ERR_UNSUPPORTED, SB_BACKEND_ENTRY " of \"%s\" returned NULL",
                           shown);
}

sb_status sb_backend_load(const char *path, const sb_backend **out, sb_error *err) {
    const sb_backend *backend;
    char shown[96], story[160], reason[sizeof story];
    if (!path)
        return sb__fail_null(err, "path");
    (void)sb__escape_path(path, shown, sizeof shown);
    void *library = sb__library_open_file(path, story, sizeof story);
    if (!library)
        return sb__fail(err, SB__HAS_LIBRARIES ? SB_ERR_IO : SB_ERR_UNSUPPORTED,
                        "\"%s\" cannot be opened: %s", shown,
                        sb__escape_path(story, reason, sizeof reason));
    sb_status st = call_entry(library, shown, &backend, err);
    if (st == SB_OK)
        st = sb_backend_register(backend, err);
    if (st != SB_OK)
        sb__library_close(library);
    else if (out)
        *out = backend;
    return st;
}
