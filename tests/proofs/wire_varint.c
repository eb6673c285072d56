/* sb__wire_varint: the number of at most ten bytes that protobuf's rule gives, before `end`. One
   that needs more than 64 bits is never taken for a smaller one.
   --unwind 11: ten bytes */
#include "wire_reader.h"

#define fetch(...)         CONTRACT(fetch, __VA_ARGS__)
#define sb__wire_fail(...) CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "format/wire.c"

int main(void) {
    const uint32_t end = any_reader(), at = reader.at;
    uint64_t value, sum = 0;
    assume(at - base <= NEAR - 10);
    sb_status st = sb__wire_varint(&reader, &path, end, any_u32(), &value, NULL);
    if (st != SB_OK) {
        claim(is_failure(st, end));
        return 0;
    }
    claim(is_kept() && varint_holds(at, end));
    const unsigned n = reader.at - at;
    for (unsigned i = 10; i-- > 0;) {
        if (i >= n)
            continue;
        unsigned char byte = bytes[at - base + i];
        claim((byte >= 0x80) == (i < n - 1));
        sum = sum << 7 | (byte & 0x7f);
    }
    if (n == 10 && bytes[at - base + 9] > 1)
        claim(value == UINT64_MAX);
    else
        claim(value == sum);
}
