/* Builds a small net in each generation of Caffe's layer messages, without the library. The layer
   "conv" has a blob of 2x3 values 1, 2, ... and a blob of the values 100 and 101. */
#ifndef SB_TESTS_NETS_H
#define SB_TESTS_NETS_H

#include "wire_builder.h"

#include <syncblob/model.h>

struct wire small_net(int32_t generation); /* SB_LAYER_* */

/* open_wire calls sb_model_open_bytes, and read_wire sb_blob_from_proto with SB_PROTO_RESHAPE. */
sb_status open_wire(sb_context *context, int32_t format, const struct wire *wire,
                    const sb_limits *limits, sb_model **out, sb_error *err);
sb_status read_wire(sb_blob *blob, const struct wire *wire, sb_error *err);
/* The model refers to bytes that exist until the test ends. */
sb_model *small_model(sb_context *context);
/* The test owns the models. */
sb_model *test_model_of(const struct wire *wire, int32_t format);
sb_model *test_model(sb_context *context, int32_t format);
/* Asserts the blob's shape string, such as "2 (2)", and that the values count up from `first`. */
void assert_loads(const sb_model *model, int64_t layer, int64_t index, const char *shape,
                  double first);
sb_layer_info layer_of(const sb_model *model, int64_t layer);
sb_blob_info blob_info_of(const sb_model *model, int64_t layer, int64_t index);
sb_model *test_own_model(sb_model *model);
sb_text name_of(const sb_model *model);

/* The caller frees `*out`. */
sb_status blob_message(const sb_blob *blob, uint32_t flags, void **out, size_t *out_size,
                       sb_error *err);
/* Returns 0 for a layer that does not exist. */
int64_t num_blobs(const sb_model *model, int64_t layer);

#endif
