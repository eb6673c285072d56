/* Proves the functions that read numbers, given the contract of the window (fetch). */
#include "wire_reader.h"

#define fetch(...)         CONTRACT(fetch, __VA_ARGS__)
#define sb__wire_fail(...) CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

/* sb__wire_varint: reads a protobuf varint of at most ten bytes, before `end`. A number that is cut
   or has more than 64 bits is MALFORMED; no other number is.
   --unwind 11: ten bytes
   planted: "reader->at >= end || !in_window"
        -> "!in_window"
   planted: "if (reader->at == end)"
        -> "if (reader->at > end)"
   planted: "<< (7 * i);\n        if"
        -> "<< (8 * i);\n        if"
   planted: "#define MAX_VARINT_BYTES 10"
        -> "#define MAX_VARINT_BYTES 11"
   planted: "if (i == MAX_VARINT_BYTES - 1 && byte > 1)"
        -> "if (false)" */
void wire_varint(void) {
    const uint32_t end = any_reader(), at = reader.at;
    const unsigned char *number = bytes + (at - base);
    uint64_t value, sum = 0;
    unsigned going_on = 0; /* bytes that announce another byte */
    assume(at - base <= NEAR - 10);
    while (going_on < 10 && at + going_on < end && number[going_on] >= 0x80)
        going_on++;
    const bool is_cut = going_on < 10 && at + going_on == end;
    const bool is_long = going_on == 10 || (going_on == 9 && !is_cut && number[9] > 1);
    sb_status st = sb__wire_varint(&reader, &path, end, any_u32(), &value, NULL);
    claim(st == SB_OK || is_failure(st, end));
    claim((st == SB_ERR_MALFORMED) == (is_cut || is_long) || is_of_source(st));
    if (st != SB_OK)
        return;
    claim(is_window() && varint_holds(at, end) && reader.at - at == going_on + 1);
    for (unsigned i = 10; i-- > 0;)
        if (i <= going_on)
            sum = sum << 7 | (number[i] & 0x7f);
    claim(value == sum);
}

/* read_fixed: reads four or eight bytes before `end`, little-endian.
   --unwind 9: eight bytes
   planted: "if (size > end - field->begin)"
        -> "if (size > end)"
   planted: "(uint64_t)p[i] << (8 * i)"
        -> "(uint64_t)p[size - 1 - i] << (8 * i)" */
void wire_fixed(void) {
    const uint32_t end = any_reader(), at = reader.at, size = any_bool() ? 4 : 8;
    struct sb__field field = {.number = any_u32(), .value = 0};
    sb_status st = read_fixed(&reader, &path, end, &field, size, NULL);
    claim(st == SB_OK || is_failure(st, end));
    claim(st != SB_ERR_MALFORMED || end - at < size);
    if (st != SB_OK)
        return;
    claim(is_window() && value_holds(&field, at, end) && field.begin == at);
    claim(field.end - field.begin == size && (size == 8 || field.value <= UINT32_MAX));
    for (uint32_t i = 0; i < 8; i++)
        if (i < size)
            claim((unsigned char)(field.value >> 8 * i) == bytes[at - base + i]);
}
