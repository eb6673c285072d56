/* Proves the functions that read a field, given the contracts of the functions that they call. */
#include "wire_reader.h"

#define fetch(...)           CONTRACT(fetch, __VA_ARGS__)
#define sb__wire_varint(...) CONTRACT(sb__wire_varint, __VA_ARGS__)
#define sb__wire_fail(...)   CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

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

/* read_length: reads a length, then a value of as many bytes as the length; all are before `end`.
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
