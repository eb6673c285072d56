/* sb__wire_next: reads the next complete field before `end`; returns number 0 only at the end.
   --unwind 1: there is no loop
   planted: "if (reader->at >= end || short"
        -> "if (reader->at > end || short"
   planted: "&& value <= end - behind"
        -> "&& value <= end"
   planted: "    reader->at = field->end;\n    field->number"
        -> "    field->number" */
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

#define read_tag(...)      CONTRACT(read_tag, __VA_ARGS__)
#define read_value(...)    CONTRACT(read_value, __VA_ARGS__)
#define skip_group(...)    CONTRACT(skip_group, __VA_ARGS__)
#define sb__wire_fail(...) CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

void wire_next(void) {
    const uint32_t end = any_reader(), at = reader.at;
    struct sb__field field = {any_u32(), any_u32(), any_u32(), any_u32(), at, any_u64()};
    reader.at = any_u32(); /* the window may have moved since the last field */
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
