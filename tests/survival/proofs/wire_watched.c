/* read_watched: reads all bytes in order, and reports the progress after each piece.
   --unwind 5: three pieces and a tail; the code treats all pieces in the same way
   planted: "        offset += n;\n"
        -> ""
   planted: "        dst += n;\n"
        -> ""
   planted: "while (st == SB_OK && size > 0)"
        -> "while (size > 0)"
   planted: "        if (st == SB_OK)\n            st = sb__progress_walked"
        -> "        st = sb__progress_walked"
   planted: "size < WATCHED_BYTES ? (uint32_t)size : WATCHED_BYTES"
        -> "(uint32_t)size" */
#include "proof.h"

#include "wire/wire.h"

static struct sb__source source;
static struct sb__progress progress;
static struct sb__reader reader = {.source = &source, .progress = &progress};
static unsigned char to[4u << 20];
static uint32_t begin;
static size_t taken, num_reported; /* bytes read; bytes reported */
static bool has_failed;

sb_status sb__source_read(const struct sb__source *from, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    claim(!has_failed && from == &source && size > 0 && taken == num_reported);
    claim(offset == begin + taken && dst == to + taken);
    has_failed = any_bool();
    taken += has_failed ? 0 : size;
    return has_failed ? (last_failure = SB_ERR_IO) : SB_OK;
}

sb_status sb__progress_walked(struct sb__progress *of, uint32_t at, size_t size, sb_error *err) {
    claim(!has_failed && of == &progress && at == begin + taken);
    num_reported += size;
    claim(num_reported == taken && size <= 1u << 20);
    has_failed = any_bool();
    return has_failed ? (last_failure = SB_ERR_CANCELLED) : SB_OK;
}

#include "wire/wire.c"

void wire_watched(void) {
    const size_t size = any_size();
    begin = any_u32();
    assume(size <= sizeof to && begin <= SB__MAX_MESSAGE_BYTES - size);
    const sb_status st = read_watched(&reader, begin, to, size, NULL);
    claim((st == SB_OK) == !has_failed && (st == SB_OK || st == last_failure));
    claim(taken <= size && (st != SB_OK || num_reported == size));
}
