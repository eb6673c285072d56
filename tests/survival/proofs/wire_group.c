/* skip_group: skips fields up to the end of the group. Inner groups must close in order, and must
   not be nested too deep. A limit of three is enough: the code compares only the last open group.
   --unwind 10: a group of nine fields, in which groups open and close up to the limit
   planted: "depth == SB__MAX_GROUP_DEPTH"
        -> "depth > SB__MAX_GROUP_DEPTH"
   planted: "if (field.number != open[depth - 1])"
        -> "if (false)"
   planted: "if (--depth == 0)"
        -> "if (depth-- == 0)" */
#include "wire_reader.h"

#undef SB__MAX_GROUP_DEPTH
#define SB__MAX_GROUP_DEPTH 3

static uint32_t open_numbers[3]; /* the open groups, recorded independently of the function */
static int depth, tags;

static void follow(const struct sb__field *field) {
    if (field->type == SB__WIRE_GROUP_BEGIN && depth < SB__MAX_GROUP_DEPTH)
        open_numbers[depth++] = field->number;
    else if (field->type == SB__WIRE_GROUP_END && depth > 0 &&
             field->number == open_numbers[depth - 1])
        depth--;
}

static sb_status next_tag(struct sb__reader *of, uint32_t end, struct sb__field *field) {
    sb_status st = read_tag_contract(of, &path, end, field, NULL);
    assume(tags++ < 9);
    claim(tags == 1 || depth > 0); /* nothing is read after the group's end */
    if (st == SB_OK)
        follow(field);
    return st;
}

#define read_tag_contract(reader, path, end, field, err) next_tag(reader, end, field)
#define read_tag(...)                                    CONTRACT(read_tag, __VA_ARGS__)
#define read_value(...)                                  CONTRACT(read_value, __VA_ARGS__)
#define sb__wire_fail(...)                               CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

void wire_group(void) {
    struct sb__field field;
    const uint32_t end = any_reader();
    sb_status st = next_tag(&reader, end, &field);
    const uint32_t at = reader.at, number = field.number;
    assume(st == SB_OK && field.type == SB__WIRE_GROUP_BEGIN);
    st = skip_group(&reader, &path, end, &field, NULL);
    if (st == SB_OK)
        claim(is_window() && depth == 0 && value_holds(&field, at, end) && field.number == number);
    else
        claim(is_failure(st, end));
}
