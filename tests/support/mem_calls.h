/* The calls on a memory, or on a blob's memory, as data, so that tests can loop over all calls. */
#ifndef SB_TESTS_MEM_CALLS_H
#define SB_TESTS_MEM_CALLS_H

#include <stdbool.h>
#include <syncblob/blob.h>
#include <syncblob/mem.h>

/* The order must not change: inputs of the fuzz target for memories contain these numbers. */
enum call {
    CPU_DATA,
    MUTABLE_CPU,
    OVERWRITE_CPU,
    GPU_DATA,
    GPU_DATA_ON,
    MUTABLE_GPU,
    MUTABLE_GPU_ON,
    OVERWRITE_GPU,
    OVERWRITE_GPU_ON,
    SET_CPU,
    SET_GPU,
    ASYNC_PUSH,
    ASYNC_PULL,
    PREFETCH_CPU,
    PREFETCH_GPU,
    EVICT_CPU,
    EVICT_GPU,
    CLEAR,
    SYNCHRONIZE,
    CALLS,
    POINTER_CALLS = SET_CPU /* the calls before SET_CPU return a pointer, and work on blobs, too */
};

enum purpose { READ, WRITE, OVERWRITE, SET, MOVE, EVICT, WIPE, WAIT };

struct call_kind {
    const char *name;
    enum purpose purpose;
    int32_t side;       /* the side on which the call works (CLEAR: the head's side) */
    bool queued;        /* takes a stream */
    bool gives_pointer; /* returns a pointer: every READ, WRITE and OVERWRITE except a prefetch */
};

extern const struct call_kind call_kinds[CALLS];

/* Returns whether the call always fails without a device. */
bool call_is_about_device(enum call call);

/* Only SET_* calls use the members from `ptr` to `user`. */
struct call_arguments {
    sb_stream stream;
    void *ptr;
    size_t bytes;
    uint32_t flags;
    sb_deleter deleter;
    void *user;
};

sb_status mem_call(sb_mem *mem, enum call call, const struct call_arguments *a, void **out,
                   sb_error *err);

sb_status blob_call(sb_blob *blob, sb_part part, enum call call, sb_stream stream, void **out,
                    sb_error *err);

#endif
