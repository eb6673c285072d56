/* Tests the exact messages of failures. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

TEST(indices_and_dimensions_are_reported_with_their_axis) {
    int64_t offset;
    float element;
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    assert_error(SB_ERR_INDEX_OUT_OF_RANGE,
                 sb_blob_offset(blob, (int64_t[]){1, 7}, 2, &offset, &err),
                 "axis 1: index 7 is not in 0 to 2");
    assert_error(SB_ERR_INDEX_OUT_OF_RANGE,
                 sb_blob_offset(blob, (int64_t[]){1, 1, 1}, 3, &offset, &err),
                 "3 indices for a blob with 2 axes");
    assert_error(SB_ERR_INDEX_OUT_OF_RANGE, sb_blob_offset(blob, NULL, -1, &offset, &err),
                 "-1 indices for a blob with 2 axes");
    assert_error(SB_ERR_INDEX_OUT_OF_RANGE, sb_blob_offset_legacy(blob, 1, 2, 5, 0, &offset, &err),
                 "axis 2: index 5 is beyond 1");
    assert_error(SB_ERR_INDEX_OUT_OF_RANGE,
                 sb_blob_data_at_legacy(blob, 1, 2, 1, 0, &element, &err),
                 "3 indices for a blob with 2 axes");
    assert_error(SB_ERR_SIZE_OVERFLOW,
                 sb_blob_reshape(blob, (int64_t[]){INT32_MAX, INT32_MAX, INT32_MAX}, 3, NULL, &err),
                 "axis 2: a dimension of 2147483647 makes the count exceed 2^63 - 1");
}

TEST(two_blobs_are_reported_in_their_order) {
    sb_blob *three = test_vector(NULL, SB_DTYPE_F32, 3);
    sb_blob *four = test_vector(NULL, SB_DTYPE_F32, 4);
    sb_blob *wide = test_vector(NULL, SB_DTYPE_F64, 3);
    assert_error(SB_ERR_SHAPE_MISMATCH, sb_blob_copy_from(three, SB_DATA, four, 0, &err),
                 "shapes 3 (3) and 4 (4) differ");
    assert_error(SB_ERR_DTYPE_MISMATCH, sb_blob_copy_from(three, SB_DATA, wide, 0, &err),
                 "a blob of f32 cannot copy a blob of f64");
    assert_error(SB_ERR_SHAPE_MISMATCH, sb_blob_share(three, SB_DATA, four, &err),
                 "counts 3 and 4 differ");
    assert_error(SB_ERR_DTYPE_MISMATCH, sb_blob_share(three, SB_DIFF, wide, &err),
                 "a blob of f32 cannot share with a blob of f64");
}

#define assert_refused(status, at, text, expr)                                                     \
    do {                                                                                           \
        assert_error(status, expr, text);                                                          \
        assert_int_equal(err.offset, at);                                                          \
    } while (0)

static sb_status open_into(const struct wire *wire, const sb_limits *limits, sb_model **out,
                           sb_error *err) {
    return open_wire(NULL, SB_FORMAT_AUTO, wire, limits, out, err);
}

#define LIMITS(...)                                                                                \
    { .struct_size = sizeof(sb_limits), __VA_ARGS__ }
#define X10(text) text text text text text text text text text text

TEST(faults_of_blobs_and_models_are_reported_with_their_fields_and_offsets) {
    static const struct {
        const char *blob, *model;
        struct wire wire;
        sb_limits limits;
        sb_status status;
        int64_t offset;
        const char *text;
    } rows[] = {
        {"7:{1:2 1:-1}", NULL, W(""), LIMITS(0), SB_ERR_BAD_SHAPE, 5,
         "shape.dim: axis 1 is negative or beyond 63 bits at offset 5"},
        {"2:1 1:1", NULL, W(""), LIMITS(.max_axes = 3), SB_ERR_DATA_LIMIT, 2,
         "4 axes are more than the limit of 3 at offset 2"},
        {"1:1 2:1 3:2147483648 4:1 5:2", NULL, W(""), LIMITS(0), SB_ERR_DATA_OVERFLOW, 4,
         "length: 2147483648 is beyond 31 bits at offset 4"},
        {"1:1 2:1 3:1 4:1 5:-1", NULL, W(""), LIMITS(0), SB_ERR_BAD_SHAPE, 8,
         "width: -1 is negative at offset 8"},
        {"1:1 2:1 3:1 4:1 5:2 6:'----++++//--'", NULL, W(""), LIMITS(0), SB_ERR_LENGTH_MISMATCH, 10,
         "data: 3 values for a shape of 2 at offset 10"},
        {NULL, "14:''", W(""), LIMITS(0), SB_ERR_MALFORMED, 0, /* a blob's last field is 13 */
         "the fields do not belong to a Caffe model, solver state or blob"},
        {NULL, "100:{7:{[1]1} 7:{[1]1}}", W(""), LIMITS(.max_blobs = 1), SB_ERR_DATA_LIMIT, 16,
         "layer[0].blobs: the limit of 1 blobs is exceeded at offset 16"},
        {NULL, "100:{} 100:{7:{} 7:{5:'--------'}}", W(""), LIMITS(0), SB_ERR_LENGTH_MISMATCH, 10,
         "layer[1].blobs[1].data: 2 values for a shape of 1 at offset 10"},
        {NULL, "2:{} 2:{6:{} 6:{1:-1}}", W(""), LIMITS(0), SB_ERR_BAD_SHAPE, 8,
         "layers[1].blobs[1].num: -1 is negative at offset 8"},
        {NULL, "2:{} 2:{1:{50:{} 50:{7:{1:2147483648 1:2147483648 1:2}}}}", W(""), LIMITS(0),
         SB_ERR_DATA_OVERFLOW, 15,
         "layers[1].layer.blobs[1].shape: the product of the dimensions overflows; the shape "
         "begins at offset 15"},
        {NULL, NULL, W("\x08\1" X10(X10("\x13")) "\x13"), LIMITS(0), SB_ERR_DATA_LIMIT, 102,
         "field 2: groups nest deeper than 100 at offset 102"},
        {NULL, NULL, W("\x80"), LIMITS(0), SB_ERR_MALFORMED, 1, "1 byte is missing at offset 1"},
        {NULL, NULL, W("\x08\1\x1a\2\x08\x80"), LIMITS(0), SB_ERR_MALFORMED, 6,
         "history[0].num: 1 byte is missing at offset 6"},
        {NULL, NULL, W("\xa2\6\2\x3a\0\xa2\6\6\x3a\0\x3a\2\x08\x80"), LIMITS(0), SB_ERR_MALFORMED,
         14, "layer[1].blobs[1].num: 1 byte is missing at offset 14"},
        {NULL, NULL, W("\xa2\6\5\x12\3abc"), LIMITS(.max_name_bytes = 2), SB_ERR_DATA_LIMIT, 3,
         "layer[0].type: 3 bytes exceed the limit of 2 for a text at offset 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *fields = rows[i].blob ? rows[i].blob : rows[i].model;
        const struct wire wire = fields ? wire_of("%s", fields) : rows[i].wire;
        sb_blob *blob = test_vector(NULL, SB_DTYPE_F64, 1);
        sb_model *model;
        assert_refused(rows[i].status, rows[i].offset, rows[i].text,
                       rows[i].blob ? sb_blob_from_proto(blob, wire.bytes, wire.size,
                                                         SB_PROTO_RESHAPE, &rows[i].limits, &err)
                                    : open_into(&wire, &rows[i].limits, &model, &err));
    }
}

static sb_status load(const struct wire *wire, const sb_limits *limits, int64_t layer,
                      sb_blob *blob, sb_error *err) {
    sb_model *model;
    assert_int_equal(open_into(wire, limits, &model, NULL), SB_OK);
    sb_status st = sb_model_load_blob(model, layer, 0, blob, err);
    sb_model_destroy(model);
    test_end(blob);
    return st;
}

TEST(faulty_blobs_of_models_are_reported_with_their_offsets) {
    skip_on_32_bits("the product of the dimensions overflows first");
#define TOO_LARGE "\x3a\x0b\x0a\x09\x80\x80\x80\x80\x80\x80\x80\x80\x10" /* 2^60 */
    static const struct wire net = W("\xa2\6\0\xa2\6\x0f\x3a\x0d" TOO_LARGE);
    static const struct wire solver = W("\x08\1\x1a\x0d" TOO_LARGE);
    const struct wire values = wire_of("1:1 3:{[2000]1}"), one = wire_of("1:1 3:{[1]1}");
    sb_limits limits = SB_LIMITS_INIT;
    assert_refused(
        SB_ERR_DATA_OVERFLOW, 8,
        "layer[1].blobs[0]: the shape's byte count overflows; the message begins at offset 8",
        load(&net, NULL, 1, test_vector(NULL, SB_DTYPE_F64, 1), &err));
    assert_refused(SB_ERR_DATA_OVERFLOW, 4,
                   "history[0]: the shape's byte count overflows; the message begins at offset 4",
                   load(&solver, NULL, SB_NO_LAYER, test_vector(NULL, SB_DTYPE_F64, 1), &err));
    limits.max_memory = 4000;
    assert_refused(SB_ERR_DATA_LIMIT, 5,
                   "history[0]: 2000 elements exceed the memory limit of 4000 bytes; the message "
                   "begins at offset 5",
                   load(&values, &limits, SB_NO_LAYER, test_vector(NULL, SB_DTYPE_F32, 1), &err));
    limits.max_memory = 3000;
    sb_blob *roomy = test_vector(NULL, SB_DTYPE_F32, 1000);
    (void)data_of(roomy);
    assert_ok(sb_blob_reshape(roomy, (int64_t[]){1}, 1, NULL, &err));
    assert_refused(SB_ERR_DATA_LIMIT, 4,
                   "history[0]: the blob's storage must move to the host, but its 4000 bytes "
                   "exceed the memory limit of 3000; the message begins at offset 4",
                   load(&one, &limits, SB_NO_LAYER, roomy, &err));
}

TEST(the_librarys_objects_are_reported) {
    const struct wire wire = wire_of("1:1 3:{[2000]1}");
    sb_limits limits = SB_LIMITS_INIT;
    char text[160];
    limits.max_memory = 8000;
    while (load(&wire, &limits, SB_NO_LAYER, test_vector(NULL, SB_DTYPE_F32, 1), NULL) != SB_OK)
        limits.max_memory++;
    limits.max_memory--;
    (void)snprintf(text, sizeof text,
                   "history[0]: 2000 elements, with the library's own objects, exceed the memory "
                   "limit of %zu bytes; the message begins at offset 5",
                   limits.max_memory);
    assert_refused(SB_ERR_DATA_LIMIT, 5, text,
                   load(&wire, &limits, SB_NO_LAYER, test_vector(NULL, SB_DTYPE_F32, 1), &err));
}

/* The test changes the source's bytes after the model was opened. */
TEST(changes_are_reported_with_the_fields_of_the_generation) {
    static const struct {
        const char *net;
        size_t tag; /* the offset of the blob's tag */
        const char *text;
    } rows[] = {
        {"100:{7:{5:{}}}", 3, "layer[0].blobs: 98 bytes are missing at offset 7"},
        {"2:{6:{5:{}}}", 2, "layer[0].blobs: 98 bytes are missing at offset 6"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct wire net = wire_of("%s", rows[i].net);
        struct test_source from = {0};
        sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 1);
        sb_model *model;
        const sb_source source = test_source_of(&from, &net);
        assert_ok(
            sb_model_open_source(NULL, SB_FORMAT_CAFFEMODEL, &source, NULL, NULL, &model, &err));
        net.bytes[rows[i].tag + 1] = 100;
        assert_error(SB_ERR_MALFORMED, sb_model_load_blob(model, 0, 0, blob, &err), rows[i].text);
        net.bytes[rows[i].tag] &= 0xf8;
        assert_error(SB_ERR_IO, sb_model_load_blob(model, 0, 0, blob, &err),
                     "the file changed while it was read");
        net.bytes[0] += 1 << 3;
        assert_error(SB_ERR_IO, sb_model_layer_message(model, 0, NULL, 0, NULL, &err),
                     "the file changed while it was read");
        sb_model_destroy(model);
    }
}

TEST(the_error_for_a_missing_layer_or_blob_reports_how_many_exist) {
    static const struct {
        int64_t layer, index;
        const char *text;
    } rows[] = {
        {0, 1, "layer 0 has no blob 1; its number of blobs is 1"},
        {0, -1, "layer 0 has no blob -1; its number of blobs is 1"},
        {1, 0, "the model has no layer 1; its number of layers is 1"},
        {-2, 0, "the model has no layer -2; its number of layers is 1"},
        {SB_NO_LAYER, 3, "there is no blob 3 outside of layers; the number of such blobs is 0"},
    };
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 1);
    const struct wire net = wire_of("100:{7:{5:{}}}");
    sb_model *model = test_model_of(&net, SB_FORMAT_CAFFEMODEL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_error(SB_ERR_INDEX_OUT_OF_RANGE,
                     sb_model_load_blob(model, rows[i].layer, rows[i].index, blob, &err),
                     rows[i].text);
        assert_error(SB_ERR_INDEX_OUT_OF_RANGE,
                     sb_model_set_blob(model, rows[i].layer, rows[i].index, blob, 0, &err),
                     rows[i].text);
    }
}
