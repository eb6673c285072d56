/* Prints numbers whose bits depend on every rounding of fillers, conversions and arithmetic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/syncblob.h>

static void must(sb_status status, const sb_error *err) {
    if (status == SB_OK)
        return;
    fprintf(stderr, "%s: %s\n", sb_status_name(status), err->message);
    exit(1);
}

static uint64_t bits_of(const sb_blob *blob) {
    const void *data;
    sb_error err;
    uint64_t hash = 14695981039346656037u;
    must(sb_blob_cpu(blob, SB_DATA, &data, &err), &err);
    const size_t bytes = (size_t)sb_blob_count(blob) * sb_dtype_size(sb_blob_dtype(blob));
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

static void print_numbers(sb_dtype dtype, sb_filler_type type) {
    const int64_t shape[] = {7, 3, 5, 5};
    sb_filler filler = SB_FILLER_INIT;
    sb_blob *blob;
    sb_error err;
    filler.type = type;
    must(sb_blob_create_shaped(NULL, dtype, shape, 4, &blob, &err), &err);
    must(sb_blob_fill(blob, &filler, 7, &err), &err);
    printf("%d %d %016llx", dtype, type, (unsigned long long)bits_of(blob));
    must(sb_blob_scale(blob, SB_DATA, 0.1, &err), &err);
    must(sb_blob_copy_from(blob, SB_DIFF, blob, 0, &err), &err);
    printf(" %016llx\n", (unsigned long long)bits_of(blob));
    sb_blob_destroy(blob);
}

int main(void) {
    const sb_dtype dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64};
    for (int i = 0; i < 2; i++)
        for (sb_filler_type type = SB_FILLER_UNIFORM; type <= SB_FILLER_MSRA; type++)
            print_numbers(dtypes[i], type);
    return 0;
}
