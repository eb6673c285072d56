/* convert_in_place, convert, whole: convert each value once, and stay within the bytes and the
   destination.
   --unwind 4: three chunks of 4096 bytes and a tail; the code treats all chunks in the same way
   planted: "room < count ? room : count"
        -> "count"
   planted: "(size_t)(copy->dst - copy->begin) / copy->size"
        -> "(size_t)(copy->dst - copy->begin) / sizeof(int32_t)"
   planted: "        offset += (uint32_t)bytes;\n"
        -> ""
   planted: "        copy->dst += n * copy->size;\n        offset"
        -> "        copy->dst += n * copy->wire_size;\n        offset"
   planted: "copy->convert(bytes, copy->dst, count);"
        -> "copy->convert(bytes, copy->dst, count + 1);"
   planted: "(copy->whole ? sizeof(double) : copy->wire_size)"
        -> "copy->wire_size"
   planted: "offset + (uint32_t)(fit * copy->wire_size)"
        -> "offset + (uint32_t)((fit + 1) * copy->wire_size)" */
#include "payload.h"

static uint32_t begin, taken; /* the part's offset; the number of bytes read */
static size_t values;
static size_t at_hand; /* bytes that can be read in place */
static unsigned char some[1];

const unsigned char *sb__reader_peek(const struct sb__reader *of, uint32_t offset, size_t bytes) {
    claim(offset == begin);
    if (any_bool())
        return NULL;
    at_hand = bytes;
    return some;
}

sb_status sb__reader_copy(const struct sb__reader *of, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    claim(size <= 4096 && offset == begin + taken);
    taken += (uint32_t)size;
    return any_bool() ? SB_OK : (last_failure = SB_ERR_IO);
}

/* payload.c calls sb__wire_fail only for a value that the integer type cannot hold. */
#define sb__wire_fail(in, field, status, offset, err, format, element, ...)                        \
    refuse_element(status, offset, element)
static sb_status refuse_element(sb_status status, uint32_t offset, long long element) {
    claim(offset >= begin && offset - begin < taken && element == (long long)values);
    return last_failure = status;
}

#include "proto/payload.c"

static unsigned char *first;
static size_t size, size_in_bytes;

static void convert_contract(const unsigned char *src, unsigned char *dst, size_t count) {
    claim(dst == first + values * size);
    claim(src != some || count * size_in_bytes == at_hand);
    values += count;
}

static void widen_contract(const unsigned char *src, unsigned char *dst, size_t count) {
    claim(count <= 4096 / sizeof(double));
}

static size_t whole_contract(const double *src, unsigned char *dst, size_t count) {
    const size_t fit = any_size();
    claim(dst == first + values * size && count <= 4096 / sizeof(double));
    assume(fit <= count);
    values += fit;
    return fit;
}

void payload_convert(void) {
    static unsigned char to[4 * 4096 * 4];
    const struct sb__payload payload = {any_u32(), any_i32(), 0, 0};
    const size_t wire_size = any_bool() ? 2 : any_bool() ? 4 : 8, count = any_size();
    const bool is_integer = any_bool();
    const size_t room = is_integer ? 4096 / sizeof(double) : 4096 / wire_size;
    size = any_bool() ? 4 : is_integer && any_bool() ? 1 : 8;
    size_in_bytes = wire_size;
    first = to;
    begin = any_u32();
    assume(count <= 3 * room);
    assume(begin <= SB__MAX_MESSAGE_BYTES && count * wire_size <= SB__MAX_MESSAGE_BYTES - begin);
    struct copy copy = {.payload = &payload,
                        .wire_size = wire_size,
                        .size = size,
                        .convert = is_integer ? widen_contract : convert_contract,
                        .whole = is_integer ? whole_contract : NULL,
                        .begin = to,
                        .dst = to};
    if (convert_in_place(&copy, begin, count)) {
        claim(!is_integer && values == count && copy.dst == to + count * size);
        return;
    }
    claim(values == 0 && copy.dst == to);
    const sb_status st = convert(&copy, begin, count);
    claim(st == SB_OK || st == last_failure);
    claim(values <= count && taken <= count * wire_size);
    claim(st != SB_OK || (values == count && copy.dst == to + count * size));
}
