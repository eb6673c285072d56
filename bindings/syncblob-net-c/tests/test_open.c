/* Tests that nets are opened from texts, models and files. */
#include "files.h"
#include "nets.h"
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <syncblob/net.h>

static const char small[] =
    "name: \"small\""
    " layer { name: \"data\" type: \"Input\" top: \"data\""
    "   input_param { shape { dim: 1 dim: 3 dim: 4 dim: 6 } } }"
    " layer { name: \"pool\" type: \"Pooling\" bottom: \"data\" top: \"pool\""
    "   pooling_param { pool: MAX kernel_size: 2 stride: 2 } }"
    " layer { name: \"relu\" type: \"ReLU\" bottom: \"pool\" top: \"pool\" }";

static sb_text text(const char *bytes) {
    return (sb_text){bytes, strlen(bytes)};
}

static void assert_text(sb_text found, const char *expected) {
    assert_string_equal(found.bytes, expected);
    assert_int_equal(found.size, strlen(expected));
}

static sb_status open_text(const char *prototxt, const sb_net_options *options, sb_net **out,
                           sb_error *err) {
    return sb_net_open(prototxt, strlen(prototxt), NULL, options, out, err);
}

static sb_net *open_small(void) {
    sb_net *net;
    assert_ok(open_text(small, NULL, &net, &err));
    return net;
}

static void assert_shape(const sb_net *net, const char *blob, const int64_t *dims, int32_t axes) {
    const int64_t *shape;
    int32_t num_axes;
    assert_ok(sb_net_blob_shape(net, blob, strlen(blob), &shape, &num_axes, &err));
    assert_int_equal(num_axes, axes);
    assert_memory_equal(shape, dims, (size_t)axes * sizeof *dims);
}

/* --- contents of a net ----------------------------------------------------------------------- */

TEST(a_net_has_a_name_inputs_outputs_and_layers) {
    sb_net *net = open_small();
    sb_net_summary summary = SB_NET_SUMMARY_INIT;
    sb_net_layer layer = SB_NET_LAYER_INIT;
    assert_ok(sb_net_info(net, &summary, &err));
    assert_text(summary.name, "small");
    assert_int_equal(summary.num_inputs, 1);
    assert_text(summary.inputs[0], "data");
    assert_int_equal(summary.num_outputs, 1);
    assert_text(summary.outputs[0], "pool");
    assert_int_equal(summary.num_warnings, 0);
    assert_int_equal(summary.num_layers, 2);
    assert_ok(sb_net_layer_info(net, 0, &layer, &err));
    assert_text(layer.name, "pool");
    assert_text(layer.type, "Pooling");
    assert_int_equal(layer.num_bottoms, 1);
    assert_text(layer.bottoms[0], "data");
    assert_int_equal(layer.num_tops, 1);
    assert_text(layer.tops[0], "pool");
    sb_net_destroy(net);
}

TEST(shapes_follow_caffes_rules) {
    sb_net *net = open_small();
    assert_shape(net, "data", (int64_t[]){1, 3, 4, 6}, 4);
    assert_shape(net, "pool", (int64_t[]){1, 3, 2, 3}, 4);
    sb_net_destroy(net);
}

TEST(options_set_shapes_a_batch_and_stages) {
    const int64_t dims[] = {1, 3, 8, 8};
    const sb_net_blob input = {text("data"), dims, 4, 0};
    const sb_text stage = text("deploy");
    sb_net_options options = SB_NET_OPTIONS_INIT;
    options.inputs = &input;
    options.num_inputs = 1;
    options.batch = 5;
    options.stages = &stage;
    options.num_stages = 1;
    char prototxt[1024];
    snprintf(prototxt, sizeof prototxt,
             "%s layer { name: \"x\" type: \"ReLU\" bottom: \"pool\" top: \"x\""
             " include { stage: \"deploy\" } }",
             small);
    sb_net *net;
    assert_ok(open_text(prototxt, &options, &net, &err));
    assert_shape(net, "x", (int64_t[]){5, 3, 4, 4}, 4);
    sb_net_destroy(net);
}

TEST(an_omitted_layer_is_a_warning) {
    char prototxt[1024];
    snprintf(prototxt, sizeof prototxt,
             "%s layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"pool\" bottom: \"pool\""
             " top: \"loss\" }",
             small);
    sb_net *net;
    sb_net_summary summary = SB_NET_SUMMARY_INIT;
    assert_ok(open_text(prototxt, NULL, &net, &err));
    assert_ok(sb_net_info(net, &summary, &err));
    assert_int_equal(summary.num_warnings, 1);
    assert_non_null(strstr(summary.warnings[0].bytes, "'loss'"));
    sb_net_destroy(net);
}

TEST(a_net_of_a_model_borrows_the_model) {
    const struct wire bytes = small_net(SB_LAYER_V1);
    sb_model *model = test_model_of(&bytes, SB_FORMAT_CAFFEMODEL);
    sb_net *net;
    sb_net_summary summary = SB_NET_SUMMARY_INIT;
    assert_ok(sb_net_open(NULL, 0, model, NULL, &net, &err));
    assert_ok(sb_net_info(net, &summary, &err));
    assert_text(summary.name, "small");
    sb_net_destroy(net);
    assert_text(name_of(model), "small");
}

/* --- refused input --------------------------------------------------------------------------- */

static void assert_refused(sb_status expected, const char *prototxt, const char *part) {
    sb_net *net = NULL;
    assert_status(expected, open_text(prototxt, NULL, &net, &err));
    assert_null(net);
    if (!strstr(err.message, part))
        fail_with("not '%s' but '%s'", part, err.message);
}

TEST(errors_contain_the_place) {
    assert_refused(SB_ERR_MALFORMED, "layer {\n  name: 5 }", "line 2, column 9");
    assert_refused(SB_ERR_MALFORMED,
                   "layer { name: \"a\" type: \"ReLU\" bottom: \"b\" top: \"c\" }",
                   "no layer makes its bottom 'b'");
    assert_refused(SB_ERR_MALFORMED,
                   "layer { name: \"a\\n\\001\" type: \"ReLU\" bottom: \"b\" top: \"c\" }",
                   "layer 'a\\n\\u{1}'");
}

static const struct {
    const char *what;
    sb_net_options options;
    sb_status expected;
} wrong_options[] = {
    {"too small", {.struct_size = 8}, SB_ERR_ABI_MISMATCH},
    {"never set", {.struct_size = 0}, SB_ERR_ABI_MISMATCH},
    {"too large", {.struct_size = 1 << 20}, SB_ERR_ABI_MISMATCH},
    {"within a member", {.struct_size = sizeof(sb_net_options) + 1}, SB_ERR_ABI_MISMATCH},
    {"inputs", {sizeof(sb_net_options), .num_inputs = 1}, SB_ERR_INVALID_ARGUMENT},
    {"inputs below 0", {sizeof(sb_net_options), .num_inputs = -1}, SB_ERR_INVALID_ARGUMENT},
    {"too many", {sizeof(sb_net_options), .num_inputs = INT64_MAX}, SB_ERR_INVALID_ARGUMENT},
    {"stages", {sizeof(sb_net_options), .num_stages = 1}, SB_ERR_INVALID_ARGUMENT},
    {"batch", {sizeof(sb_net_options), .batch = -1}, SB_ERR_INVALID_ARGUMENT},
    {"depth", {sizeof(sb_net_options), .max_depth = -1}, SB_ERR_INVALID_ARGUMENT},
    {"layers", {sizeof(sb_net_options), .max_layers = -1}, SB_ERR_INVALID_ARGUMENT},
    {"fields", {sizeof(sb_net_options), .max_fields = -1}, SB_ERR_INVALID_ARGUMENT},
    {"one layer", {sizeof(sb_net_options), .max_layers = 1}, SB_ERR_DATA_LIMIT},
    {"one byte", {sizeof(sb_net_options), .max_bytes = 1}, SB_ERR_DATA_LIMIT},
    {"one field", {sizeof(sb_net_options), .max_fields = 1}, SB_ERR_DATA_LIMIT},
    {"flat", {sizeof(sb_net_options), .max_depth = 1}, SB_ERR_DATA_LIMIT},
};

TEST(invalid_options_are_refused) {
    for (size_t i = 0; i < sizeof wrong_options / sizeof *wrong_options; i++) {
        sb_net *net = NULL;
        const sb_status st = open_text(small, &wrong_options[i].options, &net, &err);
        if (st != wrong_options[i].expected || net)
            fail_with("%s: %s", wrong_options[i].what, sb_status_name(st));
    }
}

TEST(an_input_that_the_net_lacks_is_an_invalid_argument) {
    const int64_t dims[] = {1};
    const sb_net_blob input = {text("nothing"), dims, 1, 0};
    sb_net_options options = SB_NET_OPTIONS_INIT;
    options.inputs = &input;
    options.num_inputs = 1;
    sb_net *net;
    assert_status(SB_ERR_INVALID_ARGUMENT, open_text(small, &options, &net, &err));
    assert_string_equal(err.message, "the net has no input 'nothing'; it has 'data'");
}

TEST(a_member_of_a_later_version_is_refused_if_it_is_set) {
    struct {
        sb_net_options known;
        size_t later;
    } options = {SB_NET_OPTIONS_INIT, 0};
    options.known.struct_size = sizeof options;
    sb_net *net;
    assert_ok(open_text(small, &options.known, &net, &err));
    sb_net_destroy(net);
    options.later = 1;
    assert_status(SB_ERR_UNSUPPORTED, open_text(small, &options.known, &net, &err));
}

TEST(a_result_struct_of_a_later_version_is_filled_with_zeros) {
    struct {
        sb_net_layer known;
        size_t later;
    } layer = {SB_NET_LAYER_INIT, 7};
    sb_net *net = open_small();
    layer.known.struct_size = sizeof layer;
    assert_ok(sb_net_layer_info(net, 1, &layer.known, &err));
    assert_int_equal(layer.known.struct_size, sizeof layer);
    assert_int_equal(layer.later, 0);
    layer.known.struct_size = 8;
    assert_status(SB_ERR_ABI_MISMATCH, sb_net_layer_info(net, 1, &layer.known, &err));
    sb_net_destroy(net);
}

TEST(null_arguments_are_refused) {
    sb_net *net = open_small(), *other;
    sb_net_summary summary = SB_NET_SUMMARY_INIT;
    sb_net_layer layer = SB_NET_LAYER_INIT;
    const int64_t *shape;
    int32_t axes;
    assert_names_null("out", sb_net_open(small, 1, NULL, NULL, NULL, &err));
    assert_names_null("out", sb_net_open_file("a", NULL, NULL, NULL, &err));
    assert_names_null("prototxt", sb_net_open(NULL, 1, NULL, NULL, &other, &err));
    assert_names_null("net", sb_net_info(NULL, &summary, &err));
    assert_names_null("out", sb_net_info(net, NULL, &err));
    assert_names_null("net", sb_net_layer_info(NULL, 0, &layer, &err));
    assert_names_null("out", sb_net_layer_info(net, 0, NULL, &err));
    assert_names_null("net", sb_net_blob_shape(NULL, "a", 1, &shape, &axes, &err));
    assert_names_null("name", sb_net_blob_shape(net, NULL, 1, &shape, &axes, &err));
    assert_names_null("out_shape", sb_net_blob_shape(net, "a", 1, NULL, &axes, &err));
    assert_names_null("out_num_axes", sb_net_blob_shape(net, "a", 1, &shape, NULL, &err));
    assert_int_equal(sb_net_info(NULL, NULL, NULL), SB_ERR_INVALID_ARGUMENT);
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_net_open(NULL, 0, NULL, NULL, &other, &err));
    assert_string_equal(err.message, "neither a prototxt nor a model");
    sb_net_destroy(NULL);
    sb_net_destroy(net);
}

TEST(missing_indices_and_names_are_refused) {
    sb_net *net = open_small();
    sb_net_layer layer = SB_NET_LAYER_INIT;
    const int64_t *shape;
    int32_t axes;
    const int64_t indices[] = {-1, 2, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++)
        assert_status(SB_ERR_INDEX_OUT_OF_RANGE, sb_net_layer_info(net, indices[i], &layer, &err));
    assert_status(SB_ERR_NOT_FOUND, sb_net_blob_shape(net, "dat", 3, &shape, &axes, &err));
    assert_status(SB_ERR_NOT_FOUND, sb_net_blob_shape(net, NULL, 0, &shape, &axes, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_net_blob_shape(net, "data", SIZE_MAX, &shape, &axes, &err));
    sb_net_destroy(net);
}

TEST(a_blob_after_an_unknown_layer_has_no_shape) {
    char prototxt[1024];
    snprintf(prototxt, sizeof prototxt,
             "%s layer { name: \"new\" type: \"Newest\" bottom: \"pool\" top: \"new\" }", small);
    sb_net *net;
    const int64_t *shape;
    int32_t axes;
    assert_ok(open_text(prototxt, NULL, &net, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_net_blob_shape(net, "new", 3, &shape, &axes, &err));
    assert_non_null(strstr(err.message, "layer 'new' (Newest)"));
    sb_net_destroy(net);
}

/* --- files ----------------------------------------------------------------------------------- */

TEST(missing_files_are_refused) {
    sb_net *net;
    assert_status(SB_ERR_IO, sb_net_open_file("no/such.prototxt", NULL, NULL, &net, &err));
    assert_int_equal(err.device_code, 2);
    assert_non_null(strstr(err.message, "\"no/such.prototxt\""));
    assert_status(SB_ERR_IO, sb_net_open_file(NULL, "no/such.caffemodel", NULL, &net, &err));
    assert_int_equal(err.device_code, 2);
    assert_non_null(strstr(err.message, "no/such.caffemodel"));
    assert_status(SB_ERR_IO, sb_net_open_file("/", NULL, NULL, &net, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_net_open_file(NULL, NULL, NULL, &net, &err));
}

TEST(a_prototxt_file_is_read_only_to_its_limit) {
    sb_net_options options = SB_NET_OPTIONS_INIT;
    options.max_bytes = 1000;
    sb_net *net;
    assert_status(SB_ERR_DATA_LIMIT, sb_net_open_file("/dev/zero", NULL, &options, &net, &err));
}

TEST(files_of_a_real_net_are_opened) {
    char prototxt[512], model[512];
    if (!test_data_path("nets/mtcnn_kpzhang93_det1.prototxt", prototxt, sizeof prototxt) ||
        !test_data_path("mtcnn_kpzhang93_det1.caffemodel", model, sizeof model))
        skip();
    sb_net *net;
    sb_net_summary summary = SB_NET_SUMMARY_INIT;
    assert_ok(sb_net_open_file(prototxt, model, NULL, &net, &err));
    assert_ok(sb_net_info(net, &summary, &err));
    assert_int_equal(summary.num_outputs, 2);
    assert_text(summary.outputs[0], "conv4-2");
    assert_text(summary.outputs[1], "prob1");
    assert_shape(net, "prob1", (int64_t[]){1, 2, 1, 1}, 4);
    sb_net_destroy(net);
}
