/* Tests opening nets of the three generations, solver states and blobs. */
#include "blobs.h"
#include "nets.h"

static void assert_text(sb_text text, const char *expected) {
    assert_int_equal(text.size, strlen(expected));
    assert_string_equal(text.bytes, expected);
}

TEST(test_three_generations_list_the_same) {
    static const char *const types[][2] = {[SB_LAYER_CURRENT] = {"Convolution", "ReLU"},
                                           [SB_LAYER_V1] = {"CONVOLUTION", "RELU"},
                                           [SB_LAYER_V0] = {"conv", "relu"}};
    for (int32_t i = SB_LAYER_V0; i <= SB_LAYER_CURRENT; i++) {
        const struct wire wire = small_net(i);
        int64_t found;
        sb_model *model = test_model_of(&wire, SB_FORMAT_AUTO);
        assert_int_equal(sb_model_format(model), SB_FORMAT_CAFFEMODEL);
        assert_text(name_of(model), "small");
        assert_int_equal(sb_model_num_layers(model), 2);
        sb_layer_info info = layer_of(model, 0);
        assert_text(info.name, "conv");
        assert_text(info.type, types[i][0]);
        assert_int_equal(info.num_blobs, 2);
        assert_int_equal(info.generation, i);
        info = layer_of(model, 1);
        assert_text(info.name, "relu");
        assert_text(info.type, types[i][1]);
        assert_int_equal(info.num_blobs, 0);
        assert_loads(model, 0, 0, "2 3 (6)", 1);
        assert_loads(model, 0, 1, "2 (2)", 100);
        assert_ok(sb_model_find_layer(model, "relu", 4, &found, &err));
        assert_int_equal(found, 1);
        assert_status(SB_ERR_NOT_FOUND, sb_model_find_layer(model, "rel", 3, &found, &err));
        assert_error(SB_ERR_NOT_FOUND, sb_model_find_layer(model, "relu\0", 5, &found, &err),
                     "no layer is named \"relu\\x00\"");
        assert_status(SB_ERR_INVALID_ARGUMENT, sb_model_find_layer(model, NULL, 1, &found, &err));
        assert_int_equal(found, 1);
        assert_int_equal(num_blobs(model, SB_NO_LAYER), 0);
        assert_int_equal(num_blobs(model, 2), 0);
    }
}

enum { NET = SB_FORMAT_CAFFEMODEL, SOLVER = SB_FORMAT_SOLVERSTATE };
enum { VECTOR = SB_FORMAT_BLOB_VECTOR, BLOB = SB_FORMAT_BLOB };

struct opened {
    const char *claim;
    struct wire wire;
    int32_t format;
};

/* The open must fail if `format` is SB_FORMAT_AUTO. */
static void check_open(const struct opened *row, int32_t requested, int32_t format) {
    sb_model *model = NULL;
    print_message("  %s\n", row->claim);
    assert_status(format ? SB_OK : SB_ERR_MALFORMED,
                  open_wire(NULL, requested, &row->wire, NULL, &model, &err));
    assert_int_equal(sb_model_format(model), format);
    sb_model_destroy(model);
}

TEST(test_formats_are_distinguished) {
    static const struct opened rows[] = {
        {"a net's name alone", W("\x0a\x01n"), NET},
        {"a vector of a blob", W("\x0a\x0b\x3a\3\x0a\1\1\x2a\4\0\0\0\0"), VECTOR},
        {"a vector of two blobs, the second without values",
         W("\x0a\x0b\x3a\3\x0a\1\1\x2a\4\0\0\0\0\x0a\0"), VECTOR},
        {"a vector of a double_diff", W("\x0a\x0f\x3a\3\x0a\1\1\x4a\x08\0\0\0\0\0\0\0\0"), VECTOR},
        {"a vector of a scalar", W("\x0a\6\x2a\4\0\0\x80\x3f"), VECTOR},
        {"a vector of a double scalar with a diff, and a blob without a value",
         W("\x0a\x14\x42\x08\0\0\0\0\0\0\0\0\x4a\x08\0\0\0\0\0\0\0\0\x0a\0"), VECTOR},
        {"a vector of a half scalar", W("\x0a\6\x50\2\x62\2\0\x3c"), VECTOR},
        {"a name like a raw value without a type", W("\x0a\4\x62\2\0\x3c"), NET},
        {"a name like a raw value that is too short", W("\x0a\5\x50\2\x62\1\0"), NET},
        {"a name like a raw value that is too long", W("\x0a\x0d\x50\0\x62\x09\0\0\0\0\0\0\0\0\0"),
         NET},
        {"a name like a value and a byte", W("\x0a\7\x2a\5\0\0\0\0\0"), NET},
        {"a name like a value with the second dimension", W("\x0a\x08\x10\1\x2a\4\0\0\0\0"), NET},
        {"a name like a value with the third dimension", W("\x0a\x08\x18\1\x2a\4\0\0\0\0"), NET},
        {"a name like a value with the fourth dimension", W("\x0a\x08\x20\1\x2a\4\0\0\0\0"), NET},
        {"a name that begins with a dash", W("\x0a\5-abcd"), NET},
        {"a name like a value with a dimension", W("\x0a\x08\x08\1\x2a\4\0\0\0\0"), NET},
        {"a name, followed by a blob", W("\x0a\0\x0a\x0b\x3a\3\x0a\1\1\x2a\4\0\0\0\0"), NET},
        {"a name like a blob, and a layer", W("\x0a\x0b\x3a\3\x0a\1\1\x2a\4\0\0\0\0\xa2\6\0"), NET},
        {"V1 layers without a net's name", W("\x12\x02\x22\x00"), NET},
        {"V1 layers and inputs", W("\x1a\4data\x20\x01\x12\x02\x22\x00"), NET},
        {"iter and current_step", W("\x08\x05\x20\x01"), SOLVER},
        {"history alone", W("\x1a\x00"), SOLVER},
        {"legacy dimensions and data", W("\x08\1\x10\1\x18\1\x20\1\x2a\x04\0\0\0\0"), BLOB},
        {"num and data", W("\x08\0\x2a\0"), BLOB},
        {"double_data alone", W("\x42\x08\0\0\0\0\0\0\0\0"), BLOB},
        {"raw_data alone", W("\x50\2\x62\2\0\x3c"), BLOB},
        {"raw_diff alone", W("\x58\2\x6a\2\0\x3c"), BLOB},
        {"unknown fields have no effect", W("\xfa\x01\x01x\x0a\x01n"), NET},
        {"iter, and numbers that a blob may have", W("\x08\5\x50\1\x58\1"), SOLVER},
        {"a value, and a raw_diff that is a number", W("\x2d\0\0\0\0\x68\1"), SB_FORMAT_AUTO},
        {"nothing", W(""), SB_FORMAT_AUTO},
        {"unknown fields alone", W("\xfa\x01\x01x"), SB_FORMAT_AUTO},
        {"a number as a name, and bytes as a number", W("\x08\x01\x0a\x01n"), SB_FORMAT_AUTO},
        {"text", W("# a text file\n"), SB_FORMAT_AUTO},
        {"inputs of a net without name or layers, which a net reader also refuses",
         W("\x1a\x01x\x22\x01\x01"), SB_FORMAT_AUTO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_open(&rows[i], SB_FORMAT_AUTO, rows[i].format);
}

TEST(test_a_file_is_opened_only_as_its_own_format) {
    static const struct opened refused[] = {
        {"a net is not a solver state", W("\x0a\x01n\xa2\x06\x00"), SOLVER},
        {"a solver state is not a net", W("\x08\x05\x1a\x00"), NET},
        {"a mean is not a net", W("\x3a\x02\x08\x01\x2a\x04\0\0\0\0"), NET},
        {"unknown fields are not a net", W("\xfa\x01\x01x"), NET},
    };
    static const struct opened rows[] = {
        {"current_step alone is enough", W("\x20\1"), SOLVER},
        {"an empty message is a scalar blob without values", W(""), BLOB},
        {"an empty message is an empty vector", W(""), VECTOR},
        {"a dimension alone is a blob", W("\x08\1"), BLOB},
        {"the beginning of a vector is a solver state if learned_net follows",
         W("\x0a\x0b\x3a\3\x0a\1\1\x2a\4\0\0\0\0\x12\x01n"), SOLVER},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_open(&refused[i], refused[i].format, SB_FORMAT_AUTO);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_open(&rows[i], rows[i].format, rows[i].format);
}

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

/* Caffe later used some of C3D's type numbers for other layer types. */
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
        /* Layer 3 has a blob of C3D and a blob of Caffe. */
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            wire_write(&net, "2:{4:'layer' 5:%d %s}", rows[i].number,
                       is_c3d && i == 3 ? "6:{1:1 2:1 3:1 4:1 5:2 1:1 6:'----++++' 12:'x'} 6:{[1]1}"
                                        : "");
        sb_model *model = test_model_of(&net, SB_FORMAT_AUTO);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            assert_text(layer_of(model, (int64_t)i).type, is_c3d ? rows[i].c3ds : rows[i].caffes);
    }
}

TEST(bytes_that_begin_at_a_page_stay_the_callers) {
    static _Alignas(4096) char page[4096] = "\x0a\1n";
    sb_model *model;
    assert_ok(sb_model_open_bytes(NULL, SB_FORMAT_AUTO, page, 3, NULL, NULL, NULL, &model, &err));
    assert_status(SB_ERR_NOT_FOUND, sb_model_find_layer(model, NULL, 0, &(int64_t){0}, &err));
    sb_model_destroy(model);
    assert_int_equal(page[2], 'n');
}
