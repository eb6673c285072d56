#include <syncblob/base.h>

#define QUOTED_(x) #x
#define QUOTED(x)  QUOTED_(x)

uint32_t sb_version(void) {
    return SB_VERSION_NUMBER;
}

const char *sb_version_string(void) {
    return QUOTED(SB_VERSION_MAJOR) "." QUOTED(SB_VERSION_MINOR) "." QUOTED(SB_VERSION_PATCH);
}

uint32_t sb_features(void) {
    uint32_t features = SB_FEATURE_SIM;
#ifdef SYNCBLOB_OPENBLAS
    features |= SB_FEATURE_OPENBLAS;
#endif
#ifdef SYNCBLOB_CUDA
    features |= SB_FEATURE_CUDA;
#endif
    return features;
}

size_t sb_dtype_size(sb_dtype dtype) {
    switch (dtype) {
    case SB_DTYPE_F64:
        return 8;
    case SB_DTYPE_F32:
    case SB_DTYPE_I32:
    case SB_DTYPE_U32:
        return 4;
    case SB_DTYPE_F16:
    case SB_DTYPE_BF16:
        return 2;
    case SB_DTYPE_I8:
    case SB_DTYPE_U8:
        return 1;
    default:
        return 0;
    }
}

const char *sb_dtype_name(sb_dtype dtype) {
    static const char *const names[] = {"unknown", "f32",  "f64", "i32", "u32",
                                        "f16",     "bf16", "i8",  "u8",  "i64"};
    return names[dtype >= SB_DTYPE_F32 && dtype <= SB_DTYPE_I64 ? dtype : 0];
}
