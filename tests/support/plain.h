/* A backend that a test passes to the library. The backend's device memory is host memory. */
#ifndef SB_TESTS_PLAIN_H
#define SB_TESTS_PLAIN_H

#include "support.h"

#include <syncblob/backend.h>

#include <stdatomic.h>

#define SLOT_EVENT   (void *device, void *event, sb_error *err)
#define SLOT_QUERY   (void *device, void *event, int32_t *out_done, sb_error *err)
#define SLOT_STREAM  (void *device, sb_stream stream, sb_error *err)
#define SLOT_ORDER   (void *device, sb_stream stream, void *event, sb_error *err)
#define SLOT_RECORD  (void *device, sb_stream stream, void **out, sb_error *err)
#define SLOT_POINTER (void *device, const void *ptr, size_t bytes, sb_error *err)
#define SLOT_OPEN    (void *user, int32_t ordinal, void **out, sb_error *err)
#define SLOT_ALLOC   (void *device, size_t bytes, sb_stream stream, void **out, sb_error *err)
#define SLOT_FREE    (void *device, void *ptr, size_t bytes, sb_stream stream)
#define SLOT_ZERO    (void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err)
#define SLOT_MOVE                                                                                  \
    (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err)
#define SLOT_AXPY                                                                                  \
    (void *device, sb_dtype dtype, int64_t count, double alpha, const void *x, void *y,            \
     sb_stream stream, sb_error *err)
#define SLOT_SUM                                                                                   \
    (void *device, sb_dtype dtype, int64_t count, const void *x, double *out, sb_stream stream,    \
     sb_error *err)
#define SLOT_SCALE                                                                                 \
    (void *device, sb_dtype dtype, int64_t count, double alpha, void *x, sb_stream stream,         \
     sb_error *err)

/* A device without streams, events, pinned memory or arithmetic. The relaxed atomics do not
   synchronise threads. */
struct plain {
    _Atomic int opened, closed;
    _Atomic int live;        /* blocks that are allocated */
    _Atomic int self_copies; /* copies whose source equals the destination */
    _Atomic int32_t ordinal;
    int trims, afters;
    sb_status status; /* returned by a test's slots `scale` and `upload` */
    sb_status after;  /* returned by a test's slot `after_default` */
};

void plain_free(void *device, void *ptr, size_t bytes, sb_stream stream);
/* Returns the backend, which opens "plain:N" for any N. */
sb_backend plain_backend(struct plain *plain);
sb_status create_with_backend(const sb_backend *table, const char *device, sb_context **out,
                              sb_error *err);
/* Creates a context, asserts that its device has the name `device`, and releases the context. */
sb_status try_device(const sb_backend *table, const char *device, sb_error *err);

#endif
