#include "format/layout.h"

#include <syncblob/model.h>

const struct sb__field_name sb__blob_fields[] = {{1, "num"},
                                                 {2, "channels"},
                                                 {3, "height"},
                                                 {4, "width"},
                                                 {5, "data"},
                                                 {6, "diff"},
                                                 {7, "shape"},
                                                 {8, "double_data"},
                                                 {9, "double_diff"},
                                                 {SB__BLOB_RAW_DATA_TYPE, "raw_data_type"},
                                                 {SB__BLOB_RAW_DIFF_TYPE, "raw_diff_type"},
                                                 {SB__BLOB_RAW_DATA, "raw_data"},
                                                 {SB__BLOB_RAW_DIFF, "raw_diff"},
                                                 {0, NULL}};
const struct sb__field_name sb__c3d_blob_fields[] = {{1, "num"},
                                                     {2, "channels"},
                                                     {3, "length"},
                                                     {4, "height"},
                                                     {SB__C3D_WIDTH, "width"},
                                                     {SB__C3D_DATA, "data"},
                                                     {SB__C3D_DIFF, "diff"},
                                                     {0, NULL}};
const struct sb__field_name sb__shape_fields[] = {{SB__SHAPE_DIM, "dim"}, {0, NULL}};

static const struct sb__field_name layer_fields[] = {
    {1, "name"}, {2, "type"}, {7, "blobs"}, {0, NULL}};
static const struct sb__field_name v1_fields[] = {
    {1, "layer"}, {4, "name"}, {5, "type"}, {6, "blobs"}, {0, NULL}};
static const struct sb__field_name v0_fields[] = {
    {1, "name"}, {2, "type"}, {50, "blobs"}, {0, NULL}};
static const struct sb__field_name net_fields[] = {
    {1, "name"}, {2, "layers"}, {SB__NET_LAYER, "layer"}, {0, NULL}};
static const struct sb__field_name solver_fields[] = {
    {1, "iter"}, {2, "learned_net"}, {3, "history"}, {4, "current_step"}, {0, NULL}};
static const struct sb__field_name vector_fields[] = {{1, "blobs"}, {0, NULL}};

const struct sb__layout sb__layer_layout = {.fields = layer_fields,
                                            .name = 1,
                                            .type = 2,
                                            .blobs = 7,
                                            .is_layer = true,
                                            .generation = SB_LAYER_CURRENT};
static const struct sb__layout v0_layout = {.fields = v0_fields,
                                            .name = 1,
                                            .type = 2,
                                            .blobs = 50,
                                            .is_layer = true,
                                            .generation = SB_LAYER_V0};
static const struct sb__layout v1_layout = {.fields = v1_fields,
                                            .name = 4,
                                            .type_number = 5,
                                            .blobs = 6,
                                            .children = {{1, &v0_layout}},
                                            .is_layer = true,
                                            .generation = SB_LAYER_V1};
static const struct sb__layout net_layout = {
    .fields = net_fields,
    .name = 1,
    .children = {{SB__NET_LAYER, &sb__layer_layout}, {2, &v1_layout}}};
static const struct sb__layout solver_layout = {
    .fields = solver_fields, .iter = 1, .learned_net = 2, .blobs = 3, .current_step = 4};
static const struct sb__layout vector_layout = {.fields = vector_fields, .blobs = 1};

const struct sb__layout *sb__format_layout(int32_t format) {
    switch (format) {
    case SB_FORMAT_CAFFEMODEL:
        return &net_layout;
    case SB_FORMAT_SOLVERSTATE:
        return &solver_layout;
    case SB_FORMAT_BLOB_VECTOR:
        return &vector_layout;
    default:
        return NULL;
    }
}

const char *sb__format_name(int32_t format) {
    static const char *const names[] = {
        [SB_FORMAT_BLOB] = "blob",
        [SB_FORMAT_CAFFEMODEL] = "caffemodel",
        [SB_FORMAT_SOLVERSTATE] = "solverstate",
        [SB_FORMAT_BLOB_VECTOR] = "blobvector",
    };
    return names[format];
}
