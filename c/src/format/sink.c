#include "format/sink.h"

#include "format/wire.h"

#include <string.h>

#define MAX_PREFIX_BYTES 20

static void append(ProtobufCBuffer *base, size_t size, const uint8_t *bytes) {
    struct sb__sink *sink = (struct sb__sink *)base;
    if (sink->file)
        sb__file_write_bytes(sink->file, bytes, size);
    else if (size > 0 && sink->written <= sink->capacity && size <= sink->capacity - sink->written)
        memcpy(sink->memory + sink->written, bytes, size);
    sink->written += size;
}

struct sb__sink sb__sink_count(void) {
    return (struct sb__sink){.base = {append}};
}

struct sb__sink sb__sink_memory(void *memory, size_t capacity) {
    return (struct sb__sink){.base = {append}, .memory = memory, .capacity = capacity};
}

struct sb__sink sb__sink_file(struct sb__file_write *file) {
    return (struct sb__sink){.base = {append}, .file = file};
}

bool sb__sink_counts(const struct sb__sink *sink) {
    return !sink->file && !sink->memory;
}

void sb__sink_bytes(struct sb__sink *sink, const void *bytes, size_t size) {
    append(&sink->base, size, bytes);
}

static size_t put_varint(uint8_t *out, uint64_t value) {
    size_t used = 0;
    for (; value >= 0x80; value >>= 7)
        out[used++] = (uint8_t)(value | 0x80);
    out[used++] = (uint8_t)value;
    return used;
}

static size_t put_prefix(uint8_t *out, uint32_t field, uint64_t size) {
    size_t used = put_varint(out, (uint64_t)field << 3 | SB__WIRE_BYTES);
    return used + put_varint(out + used, size);
}

size_t sb__prefix_size(uint32_t field, uint64_t size) {
    uint8_t prefix[MAX_PREFIX_BYTES];
    return put_prefix(prefix, field, size);
}

void sb__sink_prefix(struct sb__sink *sink, uint32_t field, uint64_t size) {
    uint8_t prefix[MAX_PREFIX_BYTES];
    sb__sink_bytes(sink, prefix, put_prefix(prefix, field, size));
}

sb_status sb__sink_span(struct sb__sink *sink, const struct sb__source *source, uint32_t begin,
                        uint32_t end, sb_error *err) {
    unsigned char chunk[SB__WINDOW_BYTES];
    if (sb__sink_counts(sink)) {
        sink->written += end - begin;
        return SB_OK;
    }
    if (source->bytes) {
        sb__sink_bytes(sink, source->bytes + begin, end - begin);
        return SB_OK;
    }
    while (begin < end) {
        uint32_t n = end - begin < sizeof chunk ? end - begin : (uint32_t)sizeof chunk;
        sb_status st = sb__source_read(source, begin, chunk, n, err);
        if (st != SB_OK)
            return st;
        sb__sink_bytes(sink, chunk, n);
        begin += n;
    }
    return SB_OK;
}
