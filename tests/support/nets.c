#include "nets.h"

#include "blobs.h"

static const int64_t two_by_three[] = {2, 3}, two[] = {2};

sb_text name_of(const sb_model *model) {
    sb_error err;
    sb_text name = {NULL, 77};
    assert_ok(sb_model_name(model, &name, &err));
    assert_int_equal(name.bytes[name.size], '\0');
    return name;
}

void wire_blob_field(struct wire *wire, uint32_t field, const int64_t *dims, size_t axes,
                     float first) {
    struct wire blob = {0};
    wire_blob(&blob, dims, axes, first);
    wire_message(wire, field, &blob);
    wire_free(&blob);
}

void net_current(struct wire *net) {
    struct wire layer = {0};
    wire_text(net, 1, "small");
    wire_text(&layer, 1, "conv");
    wire_text(&layer, 2, "Convolution");
    wire_text(&layer, 3, "data");
    wire_blob_field(&layer, 7, two_by_three, 2, 1);
    wire_blob_field(&layer, 7, two, 1, 100);
    wire_message(net, 100, &layer);
    wire_free(&layer);
    wire_text(&layer, 1, "relu");
    wire_text(&layer, 2, "ReLU");
    wire_message(net, 100, &layer);
    wire_free(&layer);
}

void net_v1(struct wire *net) {
    struct wire layer = {0};
    wire_text(net, 1, "small");
    wire_text(&layer, 4, "conv");
    wire_number(&layer, 5, 4);
    wire_text(&layer, 2, "data");
    wire_blob_field(&layer, 6, two_by_three, 2, 1);
    wire_blob_field(&layer, 6, two, 1, 100);
    wire_message(net, 2, &layer);
    wire_free(&layer);
    wire_text(&layer, 4, "relu");
    wire_number(&layer, 5, 18);
    wire_message(net, 2, &layer);
    wire_free(&layer);
}

void net_v0(struct wire *net) {
    struct wire layer = {0}, inside = {0};
    wire_text(net, 1, "small");
    wire_text(&inside, 1, "conv");
    wire_text(&inside, 2, "conv");
    wire_blob_field(&inside, 50, two_by_three, 2, 1);
    wire_blob_field(&inside, 50, two, 1, 100);
    wire_message(&layer, 1, &inside);
    wire_text(&layer, 2, "data");
    wire_message(net, 2, &layer);
    wire_free(&layer);
    wire_free(&inside);
    wire_text(&inside, 1, "relu");
    wire_text(&inside, 2, "relu");
    wire_message(&layer, 1, &inside);
    wire_message(net, 2, &layer);
    wire_free(&layer);
    wire_free(&inside);
}

void (*const net_of_generation[])(struct wire *) = {
    [SB_LAYER_V0] = net_v0, [SB_LAYER_V1] = net_v1, [SB_LAYER_CURRENT] = net_current};

sb_model *model_of(const struct wire *wire, int32_t format) {
    sb_model *model;
    assert_ok(
        sb_model_open_bytes(NULL, format, wire->bytes, wire->size, NULL, NULL, NULL, &model, &err));
    return model;
}

sb_model *small_model(sb_context *context) {
    struct wire net = {0};
    sb_model *model;
    net_current(&net);
    assert_ok(sb_model_open_bytes(context, SB_FORMAT_CAFFEMODEL, net.bytes, net.size, NULL, NULL,
                                  NULL, &model, &err));
    return model;
}

static void end_model(void *model) {
    sb_model_destroy(model);
}

sb_model *test_own_model(sb_model *model) {
    test_own(model, end_model);
    return model;
}

sb_model *test_model_of(const struct wire *wire, int32_t format) {
    return test_own_model(model_of(wire, format));
}

sb_model *test_model(sb_context *context, int32_t format) {
    sb_model *model;
    assert_ok(sb_model_create(context, format, &model, &err));
    return test_own_model(model);
}

sb_layer_info layer_of(const sb_model *model, int64_t layer) {
    sb_layer_info info = SB_LAYER_INFO_INIT;
    assert_ok(sb_model_layer_info(model, layer, &info, &err));
    return info;
}

sb_blob_info blob_info_of(const sb_model *model, int64_t layer, int64_t index) {
    sb_blob_info info = SB_BLOB_INFO_INIT;
    assert_ok(sb_model_blob_info(model, layer, index, &info, &err));
    return info;
}

void assert_loads(const sb_model *model, int64_t layer, int64_t index, const char *shape,
                  double first) {
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    assert_ok(sb_model_load_blob(model, layer, index, blob, &err));
    assert_shape_is(blob, shape);
    assert_values(blob, SB_DATA, sb_blob_count(blob), first);
    test_end(blob);
}
