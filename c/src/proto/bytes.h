/* Encoded bytes that know how to free themselves. */
#ifndef SB_PROTO_BYTES_H
#define SB_PROTO_BYTES_H

#include "context/context.h"

/* `size` bytes, 0 is fine, aligned to 64; the context is retained. */
sb_status sb__bytes_alloc(sb_context *context, size_t size, void **out, sb_error *err);

#endif
