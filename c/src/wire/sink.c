#include "wire/sink.h"

#include "base/error.h"
#include "base/options.h"
#include "wire/wire.h"

#include <string.h>

#define WATCHED_BYTES ((size_t)1 << 20)

/* The size of sb_sink in version 0.1. */
#define FIRST_SIZE (offsetof(sb_sink, write) + sizeof(((sb_sink *)0)->write))

sb_status sb__sink_adopt(sb_sink *out, const sb_sink *theirs, sb_error *err) {
    sb_sink ours = SB_SINK_INIT;
    sb_status st = sb__adopt_struct(&ours, sizeof ours, FIRST_SIZE, theirs, theirs->struct_size,
                                    "sb_sink", err);
    if (st == SB_OK && !ours.write)
        st = sb__fail_null(err, "write");
    if (st == SB_OK)
        *out = ours;
    return st;
}

/* --- writing ---------------------------------------------------------------------------- */

static void give(struct sb__sink *sink, const void *bytes, size_t size) {
    const sb_sink *to = &sink->outlet->to;
    sb_error reported = {.code = SB_OK};
    if (size == 0 || sink->status != SB_OK)
        return;
    sb_status st = to->write(to->user, bytes, size, &reported);
    if (st != SB_OK)
        sink->status = sb__callback_failed(st, &reported, "the sink", -1, sink->err);
}

static void flush(struct sb__sink *sink) {
    give(sink, sink->outlet->buffer, sink->outlet->used);
    sink->outlet->used = 0;
}

static void gather(struct sb__sink *sink, const void *bytes, size_t size) {
    struct sb__outlet *outlet = sink->outlet;
    if (size > sizeof outlet->buffer - outlet->used)
        flush(sink);
    if (size > sizeof outlet->buffer) {
        give(sink, bytes, size);
        return;
    }
    memcpy(outlet->buffer + outlet->used, bytes, size);
    outlet->used += size;
}

static void wrote(struct sb__sink *sink, size_t size) {
    sink->written += size;
    if (sink->status == SB_OK)
        sink->status = sb__progress_done(sink->progress, sink->written, size, sink->err);
}

static void put(struct sb__sink *sink, const void *bytes, size_t size) {
    if (sink->outlet)
        gather(sink, bytes, size);
    else if (sink->written <= sink->capacity && size <= sink->capacity - sink->written)
        memcpy(sink->memory + sink->written, bytes, size);
    wrote(sink, size);
}

struct sb__sink sb__sink_count(void) {
    return (struct sb__sink){.status = SB_OK};
}

struct sb__sink sb__sink_memory(void *memory, size_t capacity) {
    return (struct sb__sink){.memory = memory, .capacity = capacity};
}

struct sb__sink sb__sink_outlet(struct sb__outlet *outlet, const sb_sink *to) {
    outlet->to = *to;
    outlet->used = 0;
    return (struct sb__sink){.outlet = outlet};
}

bool sb__sink_counts(const struct sb__sink *sink) {
    return !sink->outlet && !sink->memory;
}

void sb__sink_bytes(struct sb__sink *sink, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    const size_t most = sink->progress ? WATCHED_BYTES : SIZE_MAX;
    if (sb__sink_counts(sink))
        sink->written += size;
    else
        for (size_t n; size > 0 && sink->status == SB_OK; size -= n, from += n) {
            n = size < most ? size : most;
            put(sink, from, n);
        }
}

/* Returns the address for the next bytes, and reduces `*size` to the number of bytes that fit.
   Returns NULL if the memory is full. */
static unsigned char *room(struct sb__sink *sink, size_t *size) {
    struct sb__outlet *outlet = sink->outlet;
    size_t left = sink->written < sink->capacity ? sink->capacity - (size_t)sink->written : 0;
    if (outlet) {
        if (outlet->used == sizeof outlet->buffer)
            flush(sink);
        left = sizeof outlet->buffer - outlet->used;
    }
    *size = *size < left ? *size : left;
    if (sink->progress && *size > WATCHED_BYTES)
        *size = WATCHED_BYTES;
    return outlet ? outlet->buffer + outlet->used : left > 0 ? sink->memory + sink->written : NULL;
}

size_t sb__put_varint(uint8_t *out, uint64_t value) {
    size_t used = 0;
    for (; value >= 0x80; value >>= 7)
        out[used++] = (uint8_t)(value | 0x80);
    out[used++] = (uint8_t)value;
    return used;
}

static size_t put_prefix(uint8_t *out, uint32_t field, uint64_t size) {
    size_t used = sb__put_varint(out, (uint64_t)field << 3 | SB__WIRE_BYTES);
    return used + sb__put_varint(out + used, size);
}

size_t sb__prefix_size(uint32_t field, uint64_t size) {
    uint8_t prefix[SB__TWO_VARINTS];
    return put_prefix(prefix, field, size);
}

void sb__sink_prefix(struct sb__sink *sink, uint32_t field, uint64_t size) {
    uint8_t prefix[SB__TWO_VARINTS];
    sb__sink_bytes(sink, prefix, put_prefix(prefix, field, size));
}

sb_status sb__sink_span(struct sb__sink *sink, const struct sb__source *source, uint32_t begin,
                        uint32_t end, sb_error *err) {
    if (sb__sink_counts(sink)) {
        sink->written += end - begin;
        return SB_OK;
    }
    if (source->bytes) {
        sb__sink_bytes(sink, source->bytes + begin, end - begin);
        return sink->status;
    }
    while (begin < end && sink->status == SB_OK) {
        size_t n = end - begin;
        unsigned char *to = room(sink, &n);
        sb_status st = to ? sb__source_read(source, begin, to, n, err) : sb__source_changed(err);
        if (st != SB_OK)
            return st;
        if (sink->outlet)
            sink->outlet->used += n;
        wrote(sink, n);
        begin += (uint32_t)n;
    }
    return sink->status;
}

sb_status sb__sink_end(struct sb__sink *sink) {
    if (sink->outlet)
        give(sink, sink->outlet->buffer, sink->outlet->used);
    return sink->status;
}
