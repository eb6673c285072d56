/* read_length: a value of as many bytes as the number before it says, all before `end`.
   --unwind 1: there is no loop */
#include "wire_reader.h"

#define sb__wire_varint(...) CONTRACT(sb__wire_varint, __VA_ARGS__)
#define sb__wire_fail(...)   CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

int main(void) {
    struct sb__field field;
    const uint32_t end = any_reader(), at = reader.at;
    sb_status st = read_length(&reader, &path, end, &field, NULL);
    if (st == SB_OK)
        claim(is_kept() && value_holds(&field, at, end) && field.begin > at &&
              field.end - field.begin == number_read);
    else
        claim(is_failure(st, end));
}
