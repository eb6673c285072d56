/* The target of encoded bytes: memory, a callback (the caller's, or the library's for a file), or a
   counter of bytes. */
#ifndef SB_WIRE_SINK_H
#define SB_WIRE_SINK_H

#include "wire/wire.h"

#define SB__TWO_VARINTS 20 /* the largest size of two varints, in bytes */

/* A callback, with a buffer that collects small writes. */
struct sb__outlet {
    sb_sink to;
    size_t used;
    unsigned char buffer[SB__WINDOW_BYTES];
};

struct sb__sink {
    uint64_t written;
    unsigned char *memory;
    size_t capacity; /* bytes beyond the capacity are counted, but not stored */
    struct sb__outlet *outlet;
    struct sb__progress *progress; /* NULL if there is no callback */
    sb_status status;              /* the first failure, after which nothing is written */
    sb_error *err;                 /* [nullable] receives the first failure */
};

/* Copies the caller's struct. Fails with INVALID_ARGUMENT, UNSUPPORTED or ABI_MISMATCH. */
sb_status sb__sink_adopt(sb_sink *out, const sb_sink *theirs, sb_error *err);

struct sb__sink sb__sink_count(void);
struct sb__sink sb__sink_memory(void *memory, size_t capacity);
struct sb__sink sb__sink_outlet(struct sb__outlet *outlet, const sb_sink *to);

bool sb__sink_counts(const struct sb__sink *sink);
void sb__sink_bytes(struct sb__sink *sink, const void *bytes, size_t size);
/* Writes a varint of at most 10 bytes. Returns the number of bytes. */
size_t sb__put_varint(uint8_t *out, uint64_t value);
/* Returns the size of the tag and the length prefix of a field whose value has `size` bytes. */
size_t sb__prefix_size(uint32_t field, uint64_t size);
void sb__sink_prefix(struct sb__sink *sink, uint32_t field, uint64_t size);
/* Copies bytes [begin, end) of a source. A counter does not read the bytes. Fails if the source or
   the sink fails. */
sb_status sb__sink_span(struct sb__sink *sink, const struct sb__source *source, uint32_t begin,
                        uint32_t end, sb_error *err);
/* Writes the bytes that are still buffered. Returns the first failure of the sink, converted by
   sb__callback_failed. */
sb_status sb__sink_end(struct sb__sink *sink);

#endif
