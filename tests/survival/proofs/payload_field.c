/* copy_field, is_part: copy only the requested values, even if the bytes have changed since the
   library indexed the message.
   --unwind 1: there is no loop
   planted: "if (count > copy->present)"
        -> "if (false)"
   planted: "    copy->present -= count;\n"
        -> ""
   planted: "    copy->skip -= skipped;\n"
        -> ""
   planted: "field->begin + (uint32_t)skipped * (uint32_t)copy->wire_size"
        -> "field->begin"
   planted: "    if (field->number != payload->field)\n        return false;\n"
        -> "" */
#include "payload.h"

sb_status sb__reader_copy(const struct sb__reader *of, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    return any_i32();
}
const unsigned char *sb__reader_peek(const struct sb__reader *of, uint32_t offset, size_t size) {
    return NULL;
}
sb_status sb__wire_fail(const struct sb__path *in, uint32_t field, sb_status status,
                        uint32_t offset, sb_error *err, const char *format, ...) {
    return last_failure = status;
}

static uint32_t copied_from;
static size_t copied;

struct copy;
static sb_status copy_values_contract(struct copy *copy, uint32_t offset, size_t count);
#define copy_values(copy, offset, count) CONTRACT(copy_values, copy, offset, count)
#include "proto/payload.c"

static sb_status copy_values_contract(struct copy *copy, uint32_t offset, size_t count) {
    copied_from = offset;
    copied = count;
    return SB_OK;
}

void payload_field(void) {
    const struct sb__payload payload = {any_u32(), any_i32(), 0, 0};
    const struct sb__field field = {any_u32(), any_u32(), 0, any_u32(), any_u32(), 0};
    const int64_t skip = any_i64(), left = any_i64(), present = any_i64();
    const size_t wire_size = sb_dtype_size(payload.dtype);
    const int64_t values = (int64_t)((field.end - field.begin) / wire_size);
    struct copy copy = {.payload = &payload,
                        .wire_size = wire_size,
                        .size = 4,
                        .skip = skip,
                        .left = left,
                        .present = present};
    assume(skip >= 0 && left >= 0 && skip <= present && left <= present - skip);
    assume(field.begin <= field.end);
    const sb_status st = copy_field(&copy, &field);
    const int64_t skipped = skip - copy.skip, taken = left - copy.left,
                  seen = present - copy.present;
    const bool is_whole_part = field.number == payload.field && field.type == SB__WIRE_BYTES;
    claim(st == SB_OK ? !is_whole_part || seen == values : st == last_failure && values > present);
    claim(0 <= seen && seen <= present && (st == SB_OK || seen == 0));
    claim(copied == (size_t)taken && 0 <= taken && 0 <= skipped && skipped + taken <= seen);
    claim(seen == 0 || (seen == values && field.number == payload.field));
    claim(skipped == (skip < seen ? skip : seen));
    claim(taken == (left < seen - skipped ? left : seen - skipped));
    claim(copied == 0 || copied_from == field.begin + (uint64_t)skipped * wire_size);
}
