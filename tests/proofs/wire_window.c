/* sb__reader_init, in_window, fetch: what fetch's callers rely on (fetch_contract in
   wire_reader.h), with a window that is filled from a file of any size. How large the window is
   matters only beside the eight bytes that are asked for at most.
   --unwind 13: a window of twelve bytes */
#include "proof.h"

#include "format/wire.h"

#undef SB__WINDOW_BYTES
#define SB__WINDOW_BYTES 12

extern unsigned char bytes[24]; /* of a source in memory */
extern struct sb__source source;
extern struct sb__reader reader;
static uint32_t read_at;
static size_t read_bytes;

sb_status sb__source_read(const struct sb__source *from, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    (void)err;
    claim(from == &source && !from->bytes && dst == reader.window && size <= SB__WINDOW_BYTES);
    claim(offset <= source.size && size <= source.size - offset);
    read_at = offset;
    read_bytes = size;
    return any_bool() ? SB_OK : (told = SB_ERR_IO);
}

#include "format/wire.c"

int main(void) {
    const uint32_t size = any_u32();
    source.size = any_u32();
    source.bytes = any_bool() ? bytes : NULL;
    assume(source.size <= (source.bytes ? sizeof bytes : SB__MAX_MESSAGE_BYTES));
    sb__reader_init(&reader, &source);
    claim(reader.at == 0 && reader.source == &source);
    claim(reader.begin == 0 && reader.end == (source.bytes ? source.size : 0));
    if (!source.bytes) { /* wherever the window has been since */
        reader.begin = any_u32();
        reader.end = any_u32();
        assume(reader.begin <= reader.end && reader.end <= source.size);
        assume(reader.end - reader.begin <= SB__WINDOW_BYTES);
    }
    reader.at = any_u32();
    assume(size <= 8 && reader.at <= source.size && size <= source.size - reader.at);
    const struct sb__reader before = reader;
    sb_status st = fetch(&reader, size, NULL);
    claim(reader.at == before.at && reader.bytes == before.bytes);
    claim(reader.begin <= reader.end && reader.end <= source.size);
    if (st != SB_OK) { /* nobody takes what is in the window for the file's */
        claim(st == told && !source.bytes && reader.begin == reader.end);
        return 0;
    }
    claim(reader.begin <= reader.at && reader.at + size <= reader.end);
    claim(in_window(&reader, reader.at, size));
    claim((reader.begin == before.begin && reader.end == before.end) ||
          (reader.begin == read_at && reader.end - reader.begin == read_bytes));
    if (size > 0)
        claim(source.bytes ? &reader.bytes[reader.at] == bytes + reader.at
                           : reader.bytes == reader.window);
}
