#include "blobs.h"

void mem_place(sb_mem *mem, int32_t head, const void *values, size_t bytes) {
    const void *in;
    void *out;
    if (head == SB_HEAD_UNINITIALIZED)
        return;
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    memcpy(out, values, bytes);
    if (head == SB_HEAD_SYNCED)
        assert_ok(sb_mem_gpu(mem, &in, &err));
    if (head == SB_HEAD_AT_GPU)
        assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    assert_int_equal(sb_mem_head(mem), head);
}

sb_mem *mem_filled(sb_context *context, size_t bytes, int fill) {
    sb_mem *mem;
    void *ptr;
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    assert_ok(sb_mem_overwrite_cpu(mem, &ptr, &err));
    memset(ptr, fill, bytes);
    return mem;
}

sb_mem *test_filled(sb_context *context, size_t bytes, int fill) {
    return test_own_mem(mem_filled(context, bytes, fill));
}

void mem_look(const sb_mem *mem, void *out, size_t bytes) {
    sb_error err;
    const void *in;
    int32_t head = sb_mem_head(mem);
    memset(out, 0, bytes);
    if (head == SB_HEAD_UNINITIALIZED || bytes == 0)
        return;
    if (head == SB_HEAD_AT_GPU) {
        assert_ok(sb_mem_gpu(mem, &in, &err));
        assert_ok(sb_sim_peek(sb_mem_context(mem), out, in, bytes, &err));
    } else {
        assert_ok(sb_mem_cpu(mem, &in, &err));
        memcpy(out, in, bytes);
    }
    assert_int_equal(sb_mem_head(mem), head);
}

bool mem_holds(const sb_mem *mem, const void *values, size_t bytes) {
    void *found = malloc(bytes ? bytes : 1);
    assert_non_null(found);
    mem_look(mem, found, bytes);
    bool same = memcmp(found, values, bytes) == 0;
    free(found);
    return same;
}

void mem_fail_wait(const sb_mem *mem) {
    const void *in;
    assert_ok(sb_sim_set_schedule(sb_mem_context(mem), SB_SIM_LAZY, 0, &err));
    device_fail_run(sb_mem_context(mem), SB_SIM_ANY, 2, 16);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_cpu(mem, &in, &err));
}

sb_blob *blob_of(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape) {
    sb_blob *blob = NULL;
    assert_ok(sb_blob_create_shaped(context, dtype, shape, num_axes, &blob, &err));
    return blob;
}

sb_blob *blob_of_count(sb_context *context, int32_t dtype, int64_t count) {
    return blob_of(context, dtype, 1, &count);
}

static void end_blob(void *blob) {
    sb_blob_destroy(blob);
}

sb_blob *test_blob(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape) {
    sb_blob *blob = blob_of(context, dtype, num_axes, shape);
    test_own(blob, end_blob);
    return blob;
}

sb_blob *test_vector(sb_context *context, int32_t dtype, int64_t count) {
    return test_blob(context, dtype, 1, &count);
}

sb_blob *test_unshaped(sb_context *context, int32_t dtype) {
    sb_blob *blob;
    assert_ok(sb_blob_create(context, dtype, &blob, &err));
    test_own(blob, end_blob);
    return blob;
}

sb_filler filler_of(int32_t type) {
    sb_filler filler = SB_FILLER_INIT;
    filler.type = type;
    return filler;
}

sb_mem *mem_of(sb_blob *blob, sb_part part) {
    sb_error err;
    sb_mem *mem = NULL;
    assert_ok(sb_blob_mutable_mem(blob, part, &mem, &err));
    return mem;
}

sb_mem *data_of(sb_blob *blob) {
    return mem_of(blob, SB_DATA);
}

sb_mem *diff_of(sb_blob *blob) {
    return mem_of(blob, SB_DIFF);
}

void assert_shape_is(const sb_blob *blob, const char *expected) {
    sb_error err;
    char text[256];
    assert_ok(sb_blob_shape_string(blob, text, sizeof text, NULL, &err));
    assert_string_equal(text, expected);
}

void assert_values(const sb_blob *blob, sb_part part, int64_t count, double first) {
    const void *values = host_of(blob, part);
    assert_int_equal(sb_blob_count(blob), count);
    for (int64_t i = 0; i < count; i++)
        assert_true(value_at(sb_blob_dtype(blob), values, i) == first + (double)i);
}

const void *host_of(const sb_blob *blob, sb_part part) {
    sb_error err;
    const void *bytes = NULL;
    assert_ok(sb_blob_cpu(blob, part, &bytes, &err));
    return bytes;
}

void *host_to_write(sb_blob *blob, sb_part part) {
    sb_error err;
    void *bytes = NULL;
    assert_ok(sb_blob_mutable_cpu(blob, part, &bytes, &err));
    return bytes;
}

void fill_values(int32_t dtype, int64_t count, double start, double step, void *out) {
    for (int64_t i = 0; i < count; i++) {
        double value = start + step * (double)i;
        if (dtype == SB_DTYPE_F64)
            ((double *)out)[i] = value;
        else
            ((float *)out)[i] = (float)value;
    }
}

double value_at(int32_t dtype, const void *values, int64_t i) {
    return dtype == SB_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}
