/* sb__reader_copy: copies bytes of the source, from the window if it contains all of them, and
   never beyond the window or `dst`.
   --unwind 13: a window of twelve bytes, of which all, some or none are copied
   planted: "reader->bytes + (offset - reader->begin) : NULL"
        -> "reader->bytes : NULL"
   planted: "&& size <= reader->end - offset"
        -> "&& size <= reader->end" */
#include "proof.h"

#include "wire/wire.h"

#include <string.h>

#undef SB__WINDOW_BYTES
#define SB__WINDOW_BYTES 12

extern unsigned char window[SB__WINDOW_BYTES], copied[SB__WINDOW_BYTES];
extern struct sb__source source;
extern struct sb__reader reader;
static uint32_t wanted;
static size_t wanted_bytes;
static bool is_read;

sb_status sb__source_read(const struct sb__source *from, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    claim(from == &source && offset == wanted && size == wanted_bytes && dst == copied);
    is_read = true;
    return any_bool() ? SB_OK : (last_failure = SB_ERR_IO);
}

static void copy_bytes(unsigned char *to, const unsigned char *from, size_t size) {
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
}
#define memcpy copy_bytes /* so that each copied byte is checked */

static inline sb_status read_watched_contract(const struct sb__reader *of, uint32_t offset,
                                              unsigned char *dst, size_t size, sb_error *err) {
    claim(of == &reader && of->progress);
    return sb__source_read(of->source, offset, dst, size, err);
}
#define read_watched(...) CONTRACT(read_watched, __VA_ARGS__)

sb_status sb__progress_walked(struct sb__progress *progress, uint32_t at, size_t size,
                              sb_error *err) {
    return last_failure = SB_ERR_CANCELLED;
}

#include "wire/wire.c"

void wire_copy(void) {
    reader.source = &source;
    reader.bytes = window;
    reader.begin = any_u32();
    reader.end = any_u32();
    assume(reader.begin <= reader.end && reader.end - reader.begin <= SB__WINDOW_BYTES);
    wanted = any_u32();
    wanted_bytes = any_size();
    assume(wanted_bytes <= SB__WINDOW_BYTES || wanted > reader.end);
    sb_status st = sb__reader_copy(&reader, wanted, copied, wanted_bytes, NULL);
    claim(st == SB_OK || (is_read && st == last_failure));
    if (is_read)
        return;
    claim(reader.begin <= wanted && wanted + wanted_bytes <= reader.end);
    for (size_t i = 0; i < SB__WINDOW_BYTES; i++)
        if (i < wanted_bytes)
            claim(copied[i] == window[wanted - reader.begin + i]);
}
