#include "dlpack/types.h"

static const struct {
    int32_t dtype;
    uint8_t code;
} codes[] = {
#define ROW(NAME, number, name, type, kind, with) {SB_DTYPE_##NAME, SB_DL_CODE_##kind},
    SB_DTYPE_LIST(ROW, )
#undef ROW
};
#define CODES (sizeof codes / sizeof *codes)

sb_dl_data_type sb__dl_type_of(int32_t dtype) {
    sb_dl_data_type type = {.bits = (uint8_t)(8 * sb_dtype_size(dtype)), .lanes = 1};
    for (size_t i = 0; i < CODES; i++)
        if (codes[i].dtype == dtype)
            type.code = codes[i].code;
    return type;
}

int32_t sb__dl_dtype(sb_dl_data_type type) {
    for (size_t i = 0; i < CODES; i++)
        if (codes[i].code == type.code && 8 * sb_dtype_size(codes[i].dtype) == type.bits &&
            type.lanes == 1)
            return codes[i].dtype;
    return 0;
}
