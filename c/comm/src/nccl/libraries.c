#include "libraries.h"

#include "../error.h"
#include "../port.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define REASON 160 /* capacity for the system's error text */

/* --- tables of functions --------------------------------------------------------------- */

/* A function's name, and the offset of its pointer in the table. */
struct entry {
    const char *symbol;
    size_t member;
};

#define DRIVER_ENTRY(result, symbol, parameters)                                                   \
    {#symbol, offsetof(struct sb__nccl_driver, symbol)},
#define NCCL_ENTRY(result, symbol, parameters) {#symbol, offsetof(struct sb__nccl, symbol)},

static const struct entry driver_entries[] = {SB__CUDA_FUNCTIONS(DRIVER_ENTRY)};
static const struct entry nccl_entries[] = {SB__NCCL_FUNCTIONS(NCCL_ENTRY)};

struct source {
    const char *name, *file, *version;
    const struct entry *entries;
    size_t num_entries, bytes;
};

static const struct source driver_source = {"the NVIDIA driver",
                                            SB__COMM_LIBRARY("libcuda.so.1", "nvcuda.dll"),
                                            "for CUDA 12.0",
                                            driver_entries,
                                            sizeof driver_entries / sizeof *driver_entries,
                                            sizeof(struct sb__nccl_driver)};
static const struct source nccl_source = {
    "NCCL",       SB__COMM_LIBRARY("libnccl.so.2", "nccl.dll"), "2.14",
    nccl_entries, sizeof nccl_entries / sizeof *nccl_entries,   sizeof(struct sb__nccl)};

static sb_status load(const struct source *source, void *table, sb_error *err) {
    char reason[REASON];
    void *library = sb__comm_library_open(source->file, reason, sizeof reason);
    if (!library)
        return sb__comm_fail(err, SB_ERR_UNSUPPORTED,
                             "this communicator needs %s (%.120s); install it, or name its folder "
                             "in " SB__COMM_LIBRARY_PATH,
                             source->name, reason);
    for (size_t i = 0; i < source->num_entries; i++) {
        void *address = sb__comm_library_symbol(library, source->entries[i].symbol);
        if (!address) {
            sb__comm_library_close(library);
            return sb__comm_fail(err, SB_ERR_UNSUPPORTED,
                                 "%s lacks %s; install version %s or later", source->name,
                                 source->entries[i].symbol, source->version);
        }
        memcpy((char *)table + source->entries[i].member, &address, sizeof address);
    }
    return SB_OK;
}

/* If several threads load a table at once, all use the table that is published first. No lock is
   used, because a forked child could inherit a locked lock. */
static sb_status open_table(const struct source *source, _Atomic(void *) *published,
                            const void **out, sb_error *err) {
    void *table = atomic_load(published);
    if (!table) {
        void *loaded = calloc(1, source->bytes);
        if (!loaded)
            return sb__comm_fail_memory(err);
        sb_status st = load(source, loaded, err);
        if (st != SB_OK) {
            free(loaded);
            return st;
        }
        if (atomic_compare_exchange_strong(published, &table, loaded))
            table = loaded;
        else
            free(loaded);
    }
    *out = table;
    return SB_OK;
}

sb_status sb__nccl_driver_open(const struct sb__nccl_driver **out, sb_error *err) {
    static _Atomic(void *) published;
    const void *table = NULL;
    sb_status st = open_table(&driver_source, &published, &table, err);
    *out = table;
    return st;
}

/* NCCL's threads end at a fork, so a forked child cannot use the library that its parent opened. */
static sb_status check_opener(sb_error *err) {
    static _Atomic int64_t opener;
    const int64_t process = sb__comm_process();
    int64_t first = 0;
    if (atomic_compare_exchange_strong(&opener, &first, process) || first == process)
        return SB_OK;
    return sb__comm_fail(err, SB_ERR_FORKED,
                         "NCCL was used before this process was forked; call exec in the child");
}

sb_status sb__nccl_open(const struct sb__nccl **out, sb_error *err) {
    static _Atomic(void *) published;
    const void *table = NULL;
    sb_status st = open_table(&nccl_source, &published, &table, err);
    *out = table;
    return st == SB_OK ? check_opener(err) : st;
}
