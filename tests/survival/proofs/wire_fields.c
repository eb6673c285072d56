/* Proves the functions of wire.c that read numbers and fields. */
#include "wire_reader.h"

static sb_status skip_group_contract(struct sb__reader *of, const struct sb__path *in, uint32_t end,
                                     struct sb__field *field, sb_error *err) {
    const uint32_t at = reader.at;
    claim(field->type == SB__WIRE_GROUP_BEGIN);
    field->begin = any_u32();
    field->end = any_u32();
    sb_status st = step(end);
    assume(st != SB_OK || value_holds(field, at, end));
    return st;
}

#define fetch(...)           CONTRACT(fetch, __VA_ARGS__)
#define sb__wire_varint(...) CONTRACT(sb__wire_varint, __VA_ARGS__)
#define read_tag(...)        CONTRACT(read_tag, __VA_ARGS__)
#define read_value(...)      CONTRACT(read_value, __VA_ARGS__)
#define skip_group(...)      CONTRACT(skip_group, __VA_ARGS__)
#define sb__wire_fail(...)   CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

#undef sb__wire_varint
#undef read_tag
#undef read_value

/* sb__wire_varint: reads a varint of at most ten bytes before `end`.
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
    unsigned going_on = 0; /* bytes with the continuation bit */
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

/* read_tag: reads the number and the type of a field, or fails.
   --unwind 1: there is no loop
   planted: "tag >> 3 == 0 || "
        -> ""
   planted: " || tag >> 3 > MAX_FIELD_NUMBER"
        -> ""
   planted: "field->number = (uint32_t)(tag >> 3);"
        -> "field->number = (uint32_t)(tag >> 3);\n    field->offset = reader->at;" */
void wire_tag(void) {
    struct sb__field field;
    const uint32_t end = any_reader(), at = reader.at;
    sb_status st = read_tag(&reader, &path, end, &field, NULL);
    if (st == SB_OK)
        claim(is_window() && tag_holds(&field, at, end) && field.value == 0);
    else
        claim(is_failure(st, end));
}

/* read_length: reads a length and a value of that many bytes, all before `end`.
   --unwind 1: there is no loop
   planted: "if (length > end - field->begin)"
        -> "if (length > end)"
   planted: "if (length > end - field->begin)"
        -> "if ((uint32_t)length > end - field->begin)" */
void wire_length(void) {
    struct sb__field field;
    const uint32_t end = any_reader(), at = reader.at;
    sb_status st = read_length(&reader, &path, end, &field, NULL);
    if (st == SB_OK)
        claim(is_window() && value_holds(&field, at, end) && field.begin > at &&
              field.end - field.begin == number_read);
    else
        claim(is_failure(st, end));
}

/* read_value: reads a value of any type except a group, before `end`.
   --unwind 9: a value of fixed size has eight bytes
   planted: "read_fixed(reader, path, end, field, 8, err)"
        -> "read_fixed(reader, path, end, field, 4, err)"
   planted: "        field->end = reader->at;\n        return st;"
        -> "        return st;" */
void wire_value(void) {
    const uint32_t end = any_reader(), at = reader.at;
    struct sb__field field = {any_u32(), any_u32(), any_u32(), any_u32(), any_u32(), 0};
    const struct sb__field before = field;
    assume(field.offset <= source.size && field.type <= 7);
    sb_status st = read_value(&reader, &path, end, &field, NULL);
    claim(field.number == before.number && field.type == before.type &&
          field.offset == before.offset);
    if (st != SB_OK) {
        claim(is_failure(st, end));
        return;
    }
    const uint32_t size = field.end - field.begin;
    claim(is_window() && value_holds(&field, at, end));
    claim(field.type == SB__WIRE_BYTES || (field.type == SB__WIRE_VARINT && size <= 10) ||
          (field.type == SB__WIRE_FIXED32 && size == 4) ||
          (field.type == SB__WIRE_FIXED64 && size == 8));
}

/* sb__wire_next: reads the next field before `end`; sets field->number to 0 at the end.
   --unwind 1: there is no loop
   planted: "if (reader->at >= end || short"
        -> "if (reader->at > end || short"
   planted: "&& value <= end - behind"
        -> "&& value <= end"
   planted: "    reader->at = field->end;\n    field->number"
        -> "    field->number" */
void wire_next(void) {
    const uint32_t end = any_reader(), at = reader.at;
    struct sb__field field = {any_u32(), any_u32(), any_u32(), any_u32(), at, any_u64()};
    reader.at = any_u32(); /* sb__wire_next must begin at field.end, not at reader.at */
    sb_status st = sb__wire_next(&reader, &path, end, &field, NULL);
    if (st != SB_OK) {
        claim(is_failure(st, end) && at < end);
        return;
    }
    claim(is_window() && (field.number == 0) == (at == end));
    if (field.number == 0)
        return;
    claim(field.number < 1u << 29 && field.type != SB__WIRE_GROUP_END && field.offset == at);
    claim(value_holds(&field, at, end) && field.end > at);
}
