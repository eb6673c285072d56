/* Where encoded bytes go: memory, a callback, which is ours for a file, or nowhere, which counts
   them. */
#ifndef SB_WIRE_SINK_H
#define SB_WIRE_SINK_H

#include "wire/wire.h"

/* A callback, with small pieces gathered. */
struct sb__outlet {
    sb_sink to;
    size_t used;
    unsigned char buffer[SB__WINDOW_BYTES];
};

struct sb__sink {
    uint64_t written;
    unsigned char *memory;
    size_t capacity; /* what does not fit is counted, but not stored */
    struct sb__outlet *outlet;
    struct sb__progress *progress; /* NULL: nobody asked */
    sb_status status;              /* of the first failure, after which nothing is written */
    sb_error *err;                 /* where that was reported, may be NULL */
};

/* A caller's struct as one of ours. INVALID_ARGUMENT (no write), UNSUPPORTED, ABI_MISMATCH. */
sb_status sb__sink_adopt(sb_sink *out, const sb_sink *theirs, sb_error *err);

struct sb__sink sb__sink_count(void);
struct sb__sink sb__sink_memory(void *memory, size_t capacity);
struct sb__sink sb__sink_outlet(struct sb__outlet *outlet, const sb_sink *to);

/* Whether bytes are only counted. */
bool sb__sink_counts(const struct sb__sink *sink);
void sb__sink_bytes(struct sb__sink *sink, const void *bytes, size_t size);
void sb__sink_varint(struct sb__sink *sink, uint64_t value);
/* Tag and length of a field that holds `size` bytes. */
size_t sb__prefix_size(uint32_t field, uint64_t size);
void sb__sink_prefix(struct sb__sink *sink, uint32_t field, uint64_t size);
/* Bytes [begin, end) of a source as they are; a count does not read them. Fails as the source and
   as the sink has. */
sb_status sb__sink_span(struct sb__sink *sink, const struct sb__source *source, uint32_t begin,
                        uint32_t end, sb_error *err);
/* Writes what was gathered; the first failure of the sink, as sb__callback_failed gives it. */
sb_status sb__sink_end(struct sb__sink *sink);

#endif
