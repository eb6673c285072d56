/* Tests writing blobs as BlobProto messages. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

#include "syncblob.pb-c.h"

static void fill(sb_blob *blob, sb_part part, double first) {
    fill_values(sb_blob_dtype(blob), sb_blob_count(blob), first, 1, host_to_write(blob, part));
}

static const int64_t two_by_three[] = {2, 3};

static void check_message(const sb_blob *blob, const Sb__BlobProto *read, size_t diffs) {
    const int32_t axes = sb_blob_num_axes(blob);
    const size_t count = (size_t)sb_blob_count(blob);
    const bool wide = sb_blob_dtype(blob) == SB_DTYPE_F64;
    assert_int_equal(wide ? read->n_double_data : read->n_data, count);
    assert_int_equal(wide ? read->n_double_diff : read->n_diff, diffs);
    for (size_t k = 0; k < count; k++)
        assert_true((wide ? read->double_data[k] : (double)read->data[k]) == 3 + (double)k);
    for (size_t k = 0; k < diffs; k++)
        assert_true((wide ? read->double_diff[k] : (double)read->diff[k]) == -9 + (double)k);
    assert_int_equal(read->shape != NULL, axes > 0);
    assert_int_equal(read->shape ? read->shape->n_dim : 0, axes);
    for (int k = 0; k < axes; k++)
        assert_int_equal(read->shape->dim[k], sb_blob_shape(blob)[k]);
    assert_false(read->has_num || (wide ? read->n_data || read->n_diff
                                        : read->n_double_data || read->n_double_diff));
    assert_int_equal(read->base.n_unknown_fields, 0);
}

TEST(test_protobuf_c_reads_the_written_messages) {
    static const int64_t dims[][4] = {{0}, {1, 1, 1, 1}, {300, 2, 1, 5}, {4, 0, 7, 9}};
    for (int axes = 0; axes <= 4; axes++)
        for (size_t i = 0; i < 4 * sizeof dims / sizeof *dims; i++) {
            const bool with_diff = i & 1;
            sb_blob *blob = test_blob(NULL, i & 2 ? SB_DTYPE_F64 : SB_DTYPE_F32, axes, dims[i / 4]);
            void *bytes;
            size_t size;
            fill(blob, SB_DATA, 3);
            fill(blob, SB_DIFF, -9);
            assert_ok(blob_message(blob, with_diff ? SB_PROTO_WRITE_DIFF : 0, &bytes, &size, &err));
            Sb__BlobProto *read = sb__blob_proto__unpack(NULL, size, bytes);
            assert_non_null(read);
            check_message(blob, read, with_diff ? (size_t)sb_blob_count(blob) : 0);
            sb__blob_proto__free_unpacked(read, NULL);
            free(bytes);
        }
}

TEST(test_a_blob_without_a_shape_is_written_as_a_vector_without_elements) {
    void *bytes;
    size_t size;
    assert_ok(blob_message(test_unshaped(NULL, SB_DTYPE_F32), 0, &bytes, &size, &err));
    assert_int_equal(size, 5);
    assert_memory_equal(bytes, "\x3a\x03\x0a\x01\x00", 5);
    free(bytes);
}

TEST_ON(rig, test_two_gigabytes_are_refused_before_anything_is_done) {
    skip_on_32_bits("the blobs exceed the address space");
    static const struct {
        int64_t count;
        uint32_t flags;
        int32_t dtype;
        sb_status status;
    } rows[] = {
        {536870911, 0, SB_DTYPE_F32, SB_ERR_OVER_LIMIT}, /* 2^31 - 4 bytes, plus the tags */
        {536870909, 0, SB_DTYPE_F32, SB_ERR_OVER_LIMIT},
        {536870908, 0, SB_DTYPE_F32, SB_OK}, /* exactly the limit */
        {268435456, SB_PROTO_WRITE_DIFF, SB_DTYPE_F32, SB_ERR_OVER_LIMIT},
        {268435450, SB_PROTO_WRITE_DIFF, SB_DTYPE_F32, SB_OK},
        {268435456, 0, SB_DTYPE_F64, SB_ERR_OVER_LIMIT},
        {INT64_MAX / 8, 0, SB_DTYPE_F64, SB_ERR_OVER_LIMIT},
        {INT64_MAX / 8, SB_PROTO_WRITE_DIFF, SB_DTYPE_F64, SB_ERR_OVER_LIMIT},
    };
    rig_reopen_on(f, NULL, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t size = 77;
        void *bytes = NULL;
        sb_blob *blob = test_blob(f->context, rows[i].dtype, 1, &rows[i].count);
        int64_t calls = f->counting.buffer_calls + f->counting.object_calls;
        assert_status(rows[i].status, sb_blob_proto_size(blob, rows[i].flags, &size, &err));
        if (rows[i].status == SB_OK)
            assert_true(size > (size_t)rows[i].count && size <= INT32_MAX);
        else
            assert_status(rows[i].status, blob_message(blob, rows[i].flags, &bytes, &size, &err));
        if (rows[i].status != SB_OK) {
            assert_non_null(strstr(err.message, "safetensors"));
            assert_int_equal(strstr(err.message, ", data and diff,") != NULL, rows[i].flags != 0);
            assert_status(rows[i].status, /* fails before the library opens the folder */
                          sb_blob_save_file(blob, "/nowhere/blob", rows[i].flags, &err));
            assert_int_equal(size, 77);
            assert_null(bytes);
        }
        assert_int_equal(f->counting.buffer_calls + f->counting.object_calls, calls);
    }
}

TEST(test_nothing_is_written_without_room_for_all) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 2, two_by_three),
            *ints = test_blob(NULL, SB_DTYPE_I32, 0, NULL);
    unsigned char bytes[64];
    size_t size;
    memset(bytes, 0x5a, sizeof bytes);
    assert_ok(sb_blob_proto_size(blob, 0, &size, &err));
    for (size_t capacity = 0; capacity < size; capacity++) {
        size_t needed = 77;
        assert_status(SB_ERR_BUFFER_TOO_SMALL,
                      sb_blob_to_proto(blob, 0, bytes, capacity, &needed, &err));
        assert_int_equal(needed, size);
    }
    assert_status(SB_ERR_BUFFER_TOO_SMALL, sb_blob_to_proto(blob, 0, NULL, 0, NULL, &err));
    assert_true(bytes_are(bytes, sizeof bytes, 0x5a));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_blob_to_proto(blob, 0, NULL, size, NULL, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_blob_to_proto(blob, 0, NULL, 1, NULL, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_proto_size(ints, 0, &size, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_to_proto(ints, 0, bytes, 64, NULL, &err));
}

static sb_status lend(void *user, int64_t layer, int64_t index, const sb_blob **out,
                      sb_error *err) {
    *out = user;
    return SB_OK;
}

TEST_ON(rig, test_a_write_ends_the_loan_that_it_replaces) {
    enum { TO_BUFFER, TO_FILE, TO_SINK, TO_MODEL, MODEL_TO_FILE, WAYS };
    unsigned char bytes[100];
    for (int way = 0; way < WAYS; way++) {
        struct test_sink written = {.writes = 0};
        const sb_sink sink = test_sink_of(&written);
        struct lent lent = lend_host(6 * sizeof(float), 0);
        sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 2, two_by_three);
        sb_model *model = test_model(f->context, SB_FORMAT_BLOB_VECTOR);
        void *p;
        assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, lent.bytes, SB_READ_ONLY, lent_deleter,
                                  &lent, &err));
        assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &p, &err));
        assert_int_equal(lent.deleted, 0);
        if (way == TO_BUFFER)
            assert_ok(sb_blob_to_proto(blob, 0, bytes, sizeof bytes, NULL, &err));
        if (way == TO_FILE)
            assert_ok(sb_blob_save_file(blob, rig_path(f, "blob"), 0, &err));
        if (way == TO_SINK)
            assert_ok(sb_blob_save_sink(blob, &sink, 0, NULL, &err));
        if (way == TO_MODEL)
            assert_ok(sb_model_add_blob(model, SB_NO_LAYER, blob, 0, &err));
        if (way == MODEL_TO_FILE) {
            assert_ok(sb_model_announce_blob(model, SB_NO_LAYER, blob, &err));
            assert_ok(sb_model_save_file_from(model, rig_path(f, "model"), lend, blob, &err));
        }
        assert_int_equal(lent.deleted, 1);
    }
}
