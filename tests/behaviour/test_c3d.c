/* Tests files of C3D 1.0, whose BlobProto has a field `length` before `height`, so later fields
   have higher numbers than in Caffe. */
#include "blobs.h"
#include "nets.h"

#define DIMS "1:1 2:3 3:16 4:2 5:2" /* the five dimensions of 192 values */
#define TWO  "1:1 2:1 3:1 4:1 5:2"  /* of two values */

/* Appends the values first, first + 1, ... */
static void put_values(struct wire *wire, uint32_t field, int64_t count, float first) {
    float values[192];
    fill_values(SB_DTYPE_F32, count, (double)first, 1, values);
    wire_floats(wire, field, values, (size_t)count);
}

static void assert_text(sb_text text, const char *expected) {
    assert_int_equal(text.size, strlen(expected));
    assert_string_equal(text.bytes, expected);
}

TEST(a_blob_has_five_axes_data_and_diff) {
    struct wire wire = wire_of(DIMS);
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    put_values(&wire, 6, 192, 1);
    put_values(&wire, 7, 192, 500);
    assert_ok(read_wire(blob, &wire, &err));
    assert_shape_is(blob, "1 3 16 2 2 (192)");
    assert_values(blob, SB_DATA, 192, 1);
    assert_values(blob, SB_DIFF, 192, 500);
}

/* If another field precedes the five dimensions, the library reads the message as Caffe's. In a
   message of Caffe, a field 5 that is a varint (C3D's width) is unknown, and is skipped. */
TEST(dimensions_after_another_field_are_caffes) {
    struct wire wire = {0};
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    put_values(&wire, 5, 96, 1);
    wire_write(&wire, DIMS);
    put_values(&wire, 6, 96, 500);
    assert_ok(read_wire(blob, &wire, &err));
    assert_shape_is(blob, "1 3 16 2 (96)");
    assert_values(blob, SB_DATA, 96, 1);
    assert_values(blob, SB_DIFF, 96, 500);
}

/* --- files ---------------------------------------------------------------------------------- */

TEST(a_mean_is_recognised) {
    struct wire wire = wire_of(DIMS);
    put_values(&wire, 6, 192, 1);
    sb_model *model = test_model_of(&wire, SB_FORMAT_AUTO);
    assert_int_equal(sb_model_format(model), SB_FORMAT_BLOB);
    const sb_blob_info info = blob_info_of(model, SB_NO_LAYER, 0);
    assert_int_equal(info.num_axes, 5);
    assert_int_equal(info.legacy, 1);
    assert_int_equal(info.data_encoding, SB_ENCODING_LITTLE_ENDIAN);
    assert_memory_equal(wire.bytes + info.data_offset, "\0\0\x80\x3f", 4);
}

/* Parameters of C3D identify a layer of C3D, even if a program has replaced the layer's blobs. */
TEST(a_layer_with_the_parameters_of_a_convolution_is_c3ds) {
    static const struct {
        int number, field;
        const char *type;
    } rows[] = {{30, 10, "CONVOLUTION3D"}, {31, 19, "POOLING3D"},  {34, 10, "DECONVOLUTION3D"},
                {30, 11, "ARGMAX"},        {4, 10, "CONVOLUTION"}, {39, 10, "DECONVOLUTION"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct wire net = wire_of("2:{4:'layer' %d:{} 5:%d}", rows[i].field, rows[i].number);
        sb_model *model = test_model_of(&net, SB_FORMAT_CAFFEMODEL);
        assert_text(layer_of(model, 0).type, rows[i].type);
    }
}

/* For its layer types, C3D 1.0 uses numbers that Caffe later used for other types. */
TEST(types_of_layers_are_c3ds_in_a_net_with_its_blobs) {
    static const struct {
        int number;
        const char *caffes, *c3ds;
    } rows[] = {{0, "NONE", "NONE"},
                {4, "CONVOLUTION", "CONVOLUTION"},
                {14, "INNER_PRODUCT", "INNER_PRODUCT"},
                {21, "SOFTMAX_LOSS", "SOFTMAX_LOSS"},
                {35, "ABSVAL", "VIDEO_SEGMENTATION_DATA"},
                {25, "ELTWISE", "ELTWISE_PRODUCT"},
                {29, "MEMORY_DATA", "MEMORY_DATA"},
                {30, "ARGMAX", "CONVOLUTION3D"},
                {31, "THRESHOLD", "POOLING3D"},
                {39, "DECONVOLUTION", "VOXEL_CUSTOM_LOSS"},
                {40, "40", "DOWN_SAMPLING"},
                {41, "41", "41"},
                {-1, "-1", "-1"}};
    for (int is_c3d = 0; is_c3d < 2; is_c3d++) {
        struct wire net = wire_of("1:'net'");
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) /* one layer has blobs of both */
            wire_write(&net, "2:{4:'layer' 5:%d %s}", rows[i].number,
                       is_c3d && i == 3 ? "6:{" TWO " 6:'----++++'} 6:{[1]1}" : "");
        sb_model *model = test_model_of(&net, SB_FORMAT_AUTO);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            assert_text(layer_of(model, (int64_t)i).type, is_c3d ? rows[i].c3ds : rows[i].caffes);
    }
}
