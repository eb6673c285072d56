#include "dlpack/types.h"

static const struct {
    int32_t dtype;
    uint8_t code;
} codes[] = {
    {SB_DTYPE_F32, SB_DL_CODE_FLOAT}, {SB_DTYPE_F64, SB_DL_CODE_FLOAT},
    {SB_DTYPE_I32, SB_DL_CODE_INT},   {SB_DTYPE_U32, SB_DL_CODE_UINT},
    {SB_DTYPE_F16, SB_DL_CODE_FLOAT}, {SB_DTYPE_BF16, SB_DL_CODE_BFLOAT},
    {SB_DTYPE_I8, SB_DL_CODE_INT},    {SB_DTYPE_U8, SB_DL_CODE_UINT},
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
