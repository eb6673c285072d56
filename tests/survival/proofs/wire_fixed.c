/* read_fixed: four or eight bytes before `end`, little-endian.
   --unwind 9: eight bytes */
#include "wire_reader.h"

#define fetch(...)         CONTRACT(fetch, __VA_ARGS__)
#define sb__wire_fail(...) CONTRACT(sb__wire_fail, __VA_ARGS__)

#include "wire/wire.c"

int main(void) {
    const uint32_t end = any_reader(), at = reader.at, size = any_bool() ? 4 : 8;
    struct sb__field field = {.number = any_u32(), .value = 0};
    sb_status st = read_fixed(&reader, &path, end, &field, size, NULL);
    claim(st == SB_OK || is_failure(st, end));
    claim(st != SB_ERR_MALFORMED || end - at < size);
    if (st != SB_OK)
        return 0;
    claim(is_kept() && value_holds(&field, at, end) && field.begin == at);
    claim(field.end - field.begin == size && (size == 8 || field.value <= UINT32_MAX));
    for (uint32_t i = 0; i < 8; i++)
        if (i < size)
            claim((unsigned char)(field.value >> 8 * i) == bytes[at - base + i]);
}
