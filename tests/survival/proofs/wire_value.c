/* read_value: a value of any type but a group's, before `end`.
   --unwind 9: a value of fixed size has eight bytes */
#include "wire_reader.h"

#define fetch(...)           CONTRACT(fetch, __VA_ARGS__)
#define sb__wire_varint(...) CONTRACT(sb__wire_varint, __VA_ARGS__)
#define sb__wire_fail(...)   CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

int main(void) {
    const uint32_t end = any_reader(), at = reader.at;
    struct sb__field field = {any_u32(), any_u32(), any_u32(), any_u32(), any_u32(), 0};
    const struct sb__field before = field;
    assume(field.offset <= source.size && field.type <= 7);
    sb_status st = read_value(&reader, &path, end, &field, NULL);
    claim(field.number == before.number && field.type == before.type &&
          field.offset == before.offset);
    if (st != SB_OK) {
        claim(is_failure(st, end));
        return 0;
    }
    const uint32_t size = field.end - field.begin;
    claim(is_kept() && value_holds(&field, at, end));
    claim(field.type == SB__WIRE_BYTES || (field.type == SB__WIRE_VARINT && size <= 10) ||
          (field.type == SB__WIRE_FIXED32 && size == 4) ||
          (field.type == SB__WIRE_FIXED64 && size == 8));
}
