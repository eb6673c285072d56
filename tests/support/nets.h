/* A small net in each generation of Caffe's layer messages, built without the library. The net is
   called "small". Its layer "conv" has a blob of shape 2x3 with the values 1, 2, ... and a blob of
   shape 2 with the values 100 and 101. Its layer "relu" has no blobs. */
#ifndef SB_TESTS_NETS_H
#define SB_TESTS_NETS_H

#include "wire_builder.h"

#include <syncblob/model.h>

struct wire small_net(int32_t generation); /* SB_LAYER_* */

/* These call sb_model_open_bytes, and sb_blob_from_proto with SB_PROTO_RESHAPE. */
sb_status open_wire(sb_context *context, int32_t format, const struct wire *wire,
                    const sb_limits *limits, sb_model **out, sb_error *err);
sb_status read_wire(sb_blob *blob, const struct wire *wire, sb_error *err);
/* Opens the net of the current generation in a context. The model refers to bytes that exist until
   the test ends. */
sb_model *small_model(sb_context *context);
/* These create models that the test owns: a model of the bytes of `wire`, and an empty model. */
sb_model *test_model_of(const struct wire *wire, int32_t format);
sb_model *test_model(sb_context *context, int32_t format);
/* Loads a blob. Asserts its shape string, such as "2 (2)", and its values first, first + 1, ... */
void assert_loads(const sb_model *model, int64_t layer, int64_t index, const char *shape,
                  double first);
/* These return the model's information about a layer and about a blob. */
sb_layer_info layer_of(const sb_model *model, int64_t layer);
sb_blob_info blob_info_of(const sb_model *model, int64_t layer, int64_t index);
/* Makes the test the owner of the model. Returns the model. */
sb_model *test_own_model(sb_model *model);
sb_text name_of(const sb_model *model);

/* Encodes the blob as a message; the caller frees `*out`. */
sb_status blob_message(const sb_blob *blob, uint32_t flags, void **out, size_t *out_size,
                       sb_error *err);
/* Returns the number of blobs of a layer or of SB_NO_LAYER; 0 for a layer that does not exist. */
int64_t num_blobs(const sb_model *model, int64_t layer);

#endif
