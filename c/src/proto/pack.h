/* Packs fields in the order of their numbers. pack_protobuf_c.c uses protobuf-c. pack_plain.c, for
   builds without protobuf-c, writes the same bytes. */
#ifndef SB_PROTO_PACK_H
#define SB_PROTO_PACK_H

#include "blob/blob.h"
#include "wire/sink.h"

#include <syncblob/model.h>

#define SB__MAX_SHAPE_BYTES 512

/* Packs the shape of a BlobProto into `out`. Returns the size of the packed shape. */
size_t sb__pack_shape(const int64_t *dims, size_t num_axes, uint8_t out[SB__MAX_SHAPE_BYTES]);
/* Packs data and diff, or double_data and double_diff. Omits a field without values. */
void sb__pack_floats(struct sb__sink *sink, const float *data, size_t data_count, const float *diff,
                     size_t diff_count);
void sb__pack_doubles(struct sb__sink *sink, const double *data, size_t data_count,
                      const double *diff, size_t diff_count);
/* These functions pack fields of a LayerParameter, a NetParameter or a SolverState. An empty
   learned_net is omitted. */
void sb__pack_layer(struct sb__sink *sink, sb_text name, sb_text type);
void sb__pack_net(struct sb__sink *sink, sb_text name);
void sb__pack_solver(struct sb__sink *sink, const sb_solver_info *solver);

#endif
