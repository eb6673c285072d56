/* Tables of those fields of Caffe's messages that the library uses. proto/README.md lists the field
   numbers, which come from caffe.proto. */
#ifndef SB_FORMAT_LAYOUT_H
#define SB_FORMAT_LAYOUT_H

#include "wire/wire.h"

enum {
    SB__BLOB_NUM = 1,
    SB__BLOB_WIDTH = 4,
    SB__BLOB_DATA = 5,
    SB__BLOB_DIFF = 6,
    SB__BLOB_SHAPE = 7,
    SB__BLOB_DOUBLE_DATA = 8,
    SB__BLOB_DOUBLE_DIFF = 9,
    SB__BLOB_RAW_DATA_TYPE = 10, /* fields 10 to 13 are NVCaffe's */
    SB__BLOB_RAW_DIFF_TYPE = 11,
    SB__BLOB_RAW_DATA = 12,
    SB__BLOB_RAW_DIFF = 13,
    SB__C3D_WIDTH = 5, /* C3D 1.0 has a length before the height, so its field numbers differ */
    SB__C3D_DATA = 6,
    SB__C3D_DIFF = 7,
    SB__SHAPE_DIM = 1,
    SB__V1_CONVOLUTION_PARAM = 10,
    SB__V1_POOLING_PARAM = 19,
    SB__NET_LAYER = 100
};

/* A message that contains blobs: a file or a layer. A field number of 0 means that the message does
   not have the field. */
struct sb__layout {
    const struct sb__field_name *fields;
    uint32_t name;        /* the name of the net or layer */
    uint32_t type;        /* a layer's type as a text */
    uint32_t type_number; /* a layer's type as a number of V1's enum */
    uint32_t blobs;
    uint32_t iter, learned_net, current_step;
    struct sb__child {
        uint32_t field;
        const struct sb__layout *layout;
    } children[2]; /* the layers of a net, or the V0 layer inside a V1 layer */
    bool is_layer;
    int32_t generation; /* SB_LAYER_* of a layer */
};

extern const struct sb__field_name sb__blob_fields[], sb__c3d_blob_fields[], sb__shape_fields[];
extern const struct sb__layout sb__layer_layout; /* the layout of LayerParameter */

/* Returns the name of a format other than SB_FORMAT_AUTO, such as "caffemodel". */
const char *sb__format_name(int32_t format);

/* Returns the layout of a file, or NULL for a blob file and for an unknown format. */
const struct sb__layout *sb__format_layout(int32_t format);

/* Returns whether `field` has the number `number` and the wire type of texts and messages. Returns
   false if `number` is 0. */
static inline bool sb__field_is_bytes(const struct sb__field *field, uint32_t number) {
    return field->number == number && field->type == SB__WIRE_BYTES;
}

static inline bool sb__field_is_varint(const struct sb__field *field, uint32_t number) {
    return field->number == number && field->type == SB__WIRE_VARINT;
}

/* Returns the layout of `field` if the field is one of layout->children, else NULL. */
static inline const struct sb__layout *sb__layout_child(const struct sb__layout *layout,
                                                        const struct sb__field *field) {
    for (size_t i = 0; i < 2; i++)
        if (sb__field_is_bytes(field, layout->children[i].field))
            return layout->children[i].layout;
    return NULL;
}

/* Returns the static name of a V1 layer type ("CONVOLUTION"), or NULL for an unknown number. C3D
   1.0 uses some numbers for other layers. */
const char *sb__layer_type_name(int32_t number, bool is_c3d);

/* Returns whether layer type `number` is a convolution or pooling layer in C3D 1.0, but a layer
   without convolution and pooling parameters in Caffe. */
bool sb__layer_type_is_c3d(int32_t number);

#endif
