/* read_tag: the number and the type of a field, or a failure.
   --unwind 1: there is no loop */
#include "wire_reader.h"

#define sb__wire_varint(...) CONTRACT(sb__wire_varint, __VA_ARGS__)
#define sb__wire_fail(...)   CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

int main(void) {
    struct sb__field field;
    const uint32_t end = any_reader(), at = reader.at;
    sb_status st = read_tag(&reader, &path, end, &field, NULL);
    if (st == SB_OK)
        claim(is_kept() && tag_holds(&field, at, end) && field.value == 0);
    else
        claim(is_failure(st, end));
}
