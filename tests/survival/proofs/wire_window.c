/* sb__reader_init, sb__reader_watch, in_window, fetch: satisfy fetch_contract in wire_reader.h.
   --unwind 13: a window of twelve bytes, which is larger than any request
   planted: "return offset >= reader->begin && offset"
        -> "return offset"
   planted: "left < SB__WINDOW_BYTES ? left : SB__WINDOW_BYTES"
        -> "SB__WINDOW_BYTES"
   planted: "    reader->begin = reader->end = 0;\n    if (bytes)"
        -> "    if (bytes)"
   planted: "reader->end = source->bytes ? source->size : 0;"
        -> "reader->end = source->size;"
   planted: "reader->bytes = bytes + reader->at;"
        -> "reader->bytes = bytes;"
   planted: "    if (progress)\n        reader->begin = reader->end = 0; /*"
        -> "    /*" */
#include "proof.h"

#include "wire/wire.h"

#undef SB__WINDOW_BYTES
#define SB__WINDOW_BYTES 12

extern unsigned char bytes[24]; /* the bytes of a source in memory */
extern struct sb__source source;
extern struct sb__reader reader;
static struct sb__progress *progress;
static uint32_t read_at;
static size_t read_bytes;

sb_status sb__source_read(const struct sb__source *from, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    claim(from == &source && !from->bytes && dst == reader.window && size <= SB__WINDOW_BYTES);
    claim(offset <= source.size && size <= source.size - offset);
    read_at = offset;
    read_bytes = size;
    return any_bool() ? SB_OK : (last_failure = SB_ERR_IO);
}

sb_status sb__progress_walked(struct sb__progress *of, uint32_t at, size_t size, sb_error *err) {
    claim(of == progress && at == reader.end && size == reader.end - reader.begin);
    return progress && any_bool() ? (last_failure = SB_ERR_CANCELLED) : SB_OK;
}

#include "wire/wire.c"

/* reader.bytes[0] must be the source's byte at reader.begin. */
static bool is_window(void) {
    return reader.begin <= reader.end && reader.end <= source.size &&
           reader.bytes == (source.bytes ? bytes + reader.begin : reader.window);
}

static void make_reader(void) {
    sb__reader_init(&reader, &source);
    claim(reader.at == 0 && reader.source == &source && !reader.progress && is_window());
    claim(reader.begin == 0 && reader.end == (source.bytes ? source.size : 0));
    sb__reader_watch(&reader, progress);
    claim(reader.at == 0 && reader.progress == progress && is_window());
    claim(!progress || reader.end == 0); /* the window of a watched reader starts empty */
}

void wire_window(void) {
    static struct sb__progress theirs;
    const uint32_t size = any_u32();
    progress = any_bool() ? &theirs : NULL;
    source.size = any_u32();
    source.bytes = any_bool() ? bytes : NULL;
    assume(source.size <= (source.bytes ? sizeof bytes : SB__MAX_MESSAGE_BYTES));
    make_reader();
    reader.begin = any_u32(); /* any window that earlier calls may leave */
    reader.end = any_u32();
    assume(reader.begin <= reader.end && reader.end <= source.size);
    assume(source.bytes || reader.end - reader.begin <= SB__WINDOW_BYTES);
    if (source.bytes)
        reader.bytes = bytes + reader.begin;
    reader.at = any_u32();
    assume(size <= 8 && reader.at <= source.size && size <= source.size - reader.at);
    const struct sb__reader before = reader;
    sb_status st = fetch(&reader, size, NULL);
    claim(reader.at == before.at && reader.progress == progress);
    if (st != SB_OK) { /* no stale bytes stay in the window */
        claim(st == last_failure && (reader.begin == reader.end || st == SB_ERR_CANCELLED));
        return;
    }
    claim(is_window() && reader.begin <= reader.at && reader.at + size <= reader.end);
    claim(in_window(&reader, reader.at, size));
    claim((reader.begin == before.begin && reader.end == before.end) || source.bytes ||
          (reader.begin == read_at && reader.end - reader.begin == read_bytes));
}
