/* The loops of the benchmark in C. A loop returns -1 after a failure. */
#include <stdlib.h>
#include <syncblob/syncblob.h>

double loop_cpu_data(const sb_blob *blob, int64_t n) {
    double sum = 0;
    sb_error err;
    for (int64_t i = 0; i < n; i++) {
        const float *data;
        if (sb_blob_cpu_f32(blob, SB_DATA, &data, &err))
            return -1;
        sum += data[i & 7];
    }
    return sum;
}

double loop_mutable_cpu_data(sb_blob *blob, int64_t n) {
    double sum = 0;
    sb_error err;
    for (int64_t i = 0; i < n; i++) {
        float *data;
        if (sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, &err))
            return -1;
        data[i & 7] = 1;
        sum += 1;
    }
    return sum;
}

double loop_reshape(sb_blob *blob, int64_t n) {
    double sum = 0;
    sb_error err;
    for (int64_t i = 0; i < n; i++) {
        const int64_t step = (i & 1) * 2;
        const int64_t shape[4] = {2 << step, 2 << step, 8 >> step, 8 >> step};
        uint32_t reallocated;
        if (sb_blob_reshape(blob, shape, 4, &reallocated, &err))
            return -1;
        sum += (double)reallocated;
    }
    return sum;
}

double loop_offset(const sb_blob *blob, int64_t n) {
    double sum = 0;
    sb_error err;
    for (int64_t i = 0; i < n; i++) {
        int64_t indices[4] = {i & 1, i & 1, i & 1, i & 1}, offset;
        if (sb_blob_offset(blob, indices, 4, &offset, &err))
            return -1;
        sum += (double)offset;
    }
    return sum;
}

double loop_data_at(const sb_blob *blob, int64_t n) {
    double sum = 0;
    sb_error err;
    for (int64_t i = 0; i < n; i++) {
        int64_t indices[4] = {i & 1, i & 1, i & 1, i & 1};
        float value;
        if (sb_blob_at_f32(blob, SB_DATA, indices, 4, &value, &err))
            return -1;
        sum += (double)value;
    }
    return sum;
}

double loop_asum_data(const sb_blob *blob, int64_t n) {
    double sum = 0;
    sb_error err;
    for (int64_t i = 0; i < n; i++) {
        double one;
        if (sb_blob_asum(blob, SB_DATA, &one, &err))
            return -1;
        sum += one;
    }
    return sum;
}

double loop_update(sb_blob *blob, int64_t n) {
    sb_error err;
    for (int64_t i = 0; i < n; i++)
        if (sb_blob_update(blob, &err))
            return -1;
    return 0;
}

static int round_trip(const sb_blob *blob, double *sum) {
    size_t size, written;
    sb_blob *again = NULL;
    const float *data;
    sb_error err;
    if (sb_blob_proto_size(blob, 0, &size, &err))
        return -1;
    void *bytes = malloc(size);
    int failed = !bytes || sb_blob_to_proto(blob, 0, bytes, size, &written, &err) ||
                 sb_blob_create(NULL, SB_DTYPE_F32, &again, &err) ||
                 sb_blob_from_proto(again, bytes, written, SB_PROTO_RESHAPE, NULL, &err) ||
                 sb_blob_cpu_f32(again, SB_DATA, &data, &err);
    if (!failed)
        *sum += data[0];
    sb_blob_destroy(again);
    free(bytes);
    return failed ? -1 : 0;
}

double loop_proto(const sb_blob *blob, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (round_trip(blob, &sum))
            return -1;
    return sum;
}
