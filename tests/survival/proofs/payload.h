/* Stubs of the functions that payload.c calls. */
#ifndef SB_TESTS_PROOFS_PAYLOAD_H
#define SB_TESTS_PROOFS_PAYLOAD_H

#include "proof.h"

#include "proto/blob_index.h"

const struct sb__field_name sb__blob_fields[1], sb__shape_fields[1];

void sb__widen(const unsigned char *src, unsigned char *dst, size_t count) {
}

void sb__narrow(const unsigned char *src, unsigned char *dst, size_t count) {
}

sb_status sb__wire_next(struct sb__reader *of, const struct sb__path *in, uint32_t end,
                        struct sb__field *field, sb_error *err) {
    return any_i32();
}

sb_status sb__source_changed(sb_error *err) {
    return last_failure = SB_ERR_IO;
}

const char *sb_dtype_name(int32_t dtype) {
    return "";
}

size_t sb_dtype_size(int32_t dtype) {
    return dtype == SB_DTYPE_F64 ? 8 : dtype == SB_DTYPE_F16 ? 2 : 4;
}

#endif
