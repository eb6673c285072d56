/* Where encoded bytes go: memory, a file, or nowhere, which counts them. */
#ifndef SB_FORMAT_SINK_H
#define SB_FORMAT_SINK_H

#include "format/file_write.h"
#include "format/source.h"

#include <protobuf-c/protobuf-c.h>

struct sb__sink {
    ProtobufCBuffer base; /* first: protobuf-c writes through it */
    uint64_t written;
    unsigned char *memory;
    size_t capacity; /* what does not fit is counted, but not stored */
    struct sb__file_write *file;
};

struct sb__sink sb__sink_count(void);
struct sb__sink sb__sink_memory(void *memory, size_t capacity);
struct sb__sink sb__sink_file(struct sb__file_write *file);

/* Whether bytes are only counted. */
bool sb__sink_counts(const struct sb__sink *sink);
void sb__sink_bytes(struct sb__sink *sink, const void *bytes, size_t size);
/* Tag and length of a field that holds `size` bytes. */
size_t sb__prefix_size(uint32_t field, uint64_t size);
void sb__sink_prefix(struct sb__sink *sink, uint32_t field, uint64_t size);
/* Bytes [begin, end) of a source as they are; a count does not read them. IO. */
sb_status sb__sink_span(struct sb__sink *sink, const struct sb__source *source, uint32_t begin,
                        uint32_t end, sb_error *err);

#endif
