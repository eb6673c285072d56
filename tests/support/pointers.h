/* Functions that make a call, assert its success and return its pointer. */
#ifndef SB_TESTS_POINTERS_H
#define SB_TESTS_POINTERS_H

#include "mem_calls.h"
#include "support.h"

/* The functions whose names end with _ON pass `stream` to the call. */
static inline void *mem_pointer_on(sb_mem *mem, enum call call, sb_stream stream) {
    const struct call_arguments arguments = {.stream = stream};
    void *ptr = NULL;
    assert_ok(mem_call(mem, call, &arguments, &ptr, &err));
    return ptr;
}

static inline void *mem_pointer(sb_mem *mem, enum call call) {
    return mem_pointer_on(mem, call, NULL);
}

static inline void *blob_pointer_on(sb_blob *blob, sb_part part, enum call call, sb_stream stream) {
    void *ptr = NULL;
    assert_ok(blob_call(blob, part, call, stream, &ptr, &err));
    return ptr;
}

static inline void *blob_pointer(sb_blob *blob, sb_part part, enum call call) {
    return blob_pointer_on(blob, part, call, NULL);
}

#endif
