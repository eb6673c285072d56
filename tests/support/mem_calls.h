/* The calls of a memory, and of a blob's, as data and by number: for tests that go through them
   all. */
#ifndef SB_TESTS_MEM_CALLS_H
#define SB_TESTS_MEM_CALLS_H

#include <stdbool.h>
#include <syncblob/blob.h>
#include <syncblob/mem.h>

/* In the order in which the inputs of the fuzzer for memories count them. */
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
    POINTER_CALLS = SET_CPU /* those before it give a pointer; a blob has them, too */
};

enum purpose { READ, WRITE, OVERWRITE, SET, MOVE, EVICT, WIPE, WAIT };

struct call_kind {
    const char *name;
    enum purpose purpose;
    int32_t side;       /* that it is about; of CLEAR it is the head's */
    bool queued;        /* takes a stream */
    bool gives_pointer; /* READ, WRITE and OVERWRITE, but for prefetching */
};

extern const struct call_kind call_kinds[CALLS];

/* Whether the call is an error without a device, whatever the state. */
bool call_is_about_device(enum call call);

/* What a call is given; SET_* take `ptr` to `user`. */
struct call_arguments {
    sb_stream stream;
    void *ptr;
    size_t bytes;
    uint32_t flags;
    sb_deleter deleter;
    void *user;
};

/* `out` is for the calls that give a pointer. */
sb_status mem_call(sb_mem *mem, enum call call, const struct call_arguments *a, void **out,
                   sb_error *err);

/* One of the POINTER_CALLS, of the blob's data or diff. */
sb_status blob_call(sb_blob *blob, sb_part part, enum call call, sb_stream stream, void **out,
                    sb_error *err);

#endif
