/* A backend of the caller's own: a device that is made of the host's memory. */
#ifndef SB_TESTS_PLAIN_H
#define SB_TESTS_PLAIN_H

#include "support.h"

#include <syncblob/backend.h>

/* A device without streams, events, pinned memory or arithmetic: plain heap. */
struct plain {
    int opened, closed;
    int live;        /* blocks that are allocated */
    int self_copies; /* of bytes to themselves */
    int32_t ordinal;
    sb_status open_status;
    int trims, afters;
    sb_status status; /* of scale and upload */
    sb_status after;  /* of after_default */
};

/* Two of its slots, for tables that have more. */
sb_status plain_alloc(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err);
void plain_free(void *device, void *ptr, size_t bytes, sb_stream stream);
/* Opens as "plain:N" for any N. */
sb_backend plain_backend(struct plain *plain);
/* A context on `device` of the table. */
sb_status create_with_backend(const sb_backend *table, const char *device, sb_context **out,
                              sb_error *err);

#endif
