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

/* Indexed by sb_dtype. Entries of unassigned numbers are zero. */
static const struct {
    size_t size;
    const char *name;
} dtypes[] = {
#define ROW(NAME, number, name, type, kind, with) [number] = {sizeof(type), #name},
    SB_DTYPE_LIST(ROW, )
#undef ROW
};

size_t sb_dtype_size(sb_dtype dtype) {
    const uint32_t place = (uint32_t)dtype; /* negative numbers become large */
    return place < sizeof dtypes / sizeof *dtypes ? dtypes[place].size : 0;
}

const char *sb_dtype_name(sb_dtype dtype) {
    return sb_dtype_size(dtype) ? dtypes[dtype].name : "unknown";
}
