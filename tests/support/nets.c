#include "nets.h"

#include "blobs.h"

sb_text name_of(const sb_model *model) {
    sb_error err;
    sb_text name = {NULL, 77};
    assert_ok(sb_model_name(model, &name, &err));
    assert_int_equal(name.bytes[name.size], '\0');
    return name;
}

struct wire small_net(int32_t generation) {
    static const char *const nets[] = {
        [SB_LAYER_CURRENT] = "1:'small' "
                             "100:{1:'conv' 2:'Convolution' 3:'data' 7:{[2 3]1} 7:{[2]100}} "
                             "100:{1:'relu' 2:'ReLU'}",
        [SB_LAYER_V1] = "1:'small' "
                        "2:{4:'conv' 5:4 2:'data' 6:{[2 3]1} 6:{[2]100}} 2:{4:'relu' 5:18}",
        [SB_LAYER_V0] = "1:'small' "
                        "2:{1:{1:'conv' 2:'conv' 50:{[2 3]1} 50:{[2]100}} 2:'data'} "
                        "2:{1:{1:'relu' 2:'relu'}}",
    };
    return wire_of("%s", nets[generation]);
}

sb_status open_wire(sb_context *context, int32_t format, const struct wire *wire,
                    const sb_limits *limits, sb_model **out, sb_error *err) {
    return sb_model_open_bytes(context, format, wire->bytes, wire->size, limits, NULL, NULL, out,
                               err);
}

sb_status read_wire(sb_blob *blob, const struct wire *wire, sb_error *err) {
    return sb_blob_from_proto(blob, wire->bytes, wire->size, SB_PROTO_RESHAPE, NULL, err);
}

sb_model *small_model(sb_context *context) {
    const struct wire net = small_net(SB_LAYER_CURRENT);
    sb_model *model;
    assert_ok(open_wire(context, SB_FORMAT_CAFFEMODEL, &net, NULL, &model, &err));
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
    sb_model *model;
    assert_ok(open_wire(NULL, format, wire, NULL, &model, &err));
    return test_own_model(model);
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

sb_status blob_message(const sb_blob *blob, uint32_t flags, void **out, size_t *out_size,
                       sb_error *err) {
    size_t size;
    sb_status st = sb_blob_proto_size(blob, flags, &size, err);
    if (st != SB_OK)
        return st;
    void *bytes = malloc(size ? size : 1);
    assert_non_null(bytes);
    st = sb_blob_to_proto(blob, flags, bytes, size, out_size, err);
    if (st == SB_OK)
        *out = bytes;
    else
        free(bytes);
    return st;
}

int64_t num_blobs(const sb_model *model, int64_t layer) {
    sb_error err;
    int64_t count = 0;
    sb_status st = sb_model_num_blobs(model, layer, &count, &err);
    if (st != SB_ERR_INDEX_OUT_OF_RANGE)
        assert_ok(st);
    return count;
}
