/* sb__wire_varint: the number of at most ten bytes that protobuf's rule gives, before `end`. What
   is cut, or has bits beyond 64, is MALFORMED, and nothing else is.
   --unwind 11: ten bytes */
#include "wire_reader.h"

#define fetch(...)         CONTRACT(fetch, __VA_ARGS__)
#define sb__wire_fail(...) CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

int main(void) {
    const uint32_t end = any_reader(), at = reader.at;
    const unsigned char *number = bytes + (at - base);
    uint64_t value, sum = 0;
    unsigned going_on = 0; /* bytes that say that another one follows */
    assume(at - base <= NEAR - 10);
    while (going_on < 10 && at + going_on < end && number[going_on] >= 0x80)
        going_on++;
    const bool is_cut = going_on < 10 && at + going_on == end;
    const bool is_long = going_on == 10 || (going_on == 9 && !is_cut && number[9] > 1);
    sb_status st = sb__wire_varint(&reader, &path, end, any_u32(), &value, NULL);
    claim(st == SB_OK || is_failure(st, end));
    claim((st == SB_ERR_MALFORMED) == (is_cut || is_long) || is_of_source(st));
    if (st != SB_OK)
        return 0;
    claim(is_kept() && varint_holds(at, end) && reader.at - at == going_on + 1);
    for (unsigned i = 10; i-- > 0;)
        if (i <= going_on)
            sum = sum << 7 | (number[i] & 0x7f);
    claim(value == sum);
}
