/* The fields that the library writes, in the order of their numbers. pack_protobuf_c.c leaves that
   to protobuf-c; pack_plain.c is for a build without it, and gives the same bytes. */
#ifndef SB_PROTO_PACK_H
#define SB_PROTO_PACK_H

#include "blob/blob.h"
#include "wire/sink.h"

#include <syncblob/model.h>

#define SB__MAX_SHAPE_BYTES 512

/* Of a BlobProto its shape, into memory of `out`; how many bytes. */
size_t sb__pack_shape(const int64_t *dims, size_t num_axes, uint8_t out[SB__MAX_SHAPE_BYTES]);
/* data and diff, or double_data and double_diff; one of 0 values is left out. */
void sb__pack_floats(struct sb__sink *sink, const float *data, size_t data_count, const float *diff,
                     size_t diff_count);
void sb__pack_doubles(struct sb__sink *sink, const double *data, size_t data_count,
                      const double *diff, size_t diff_count);
/* Of a LayerParameter, a NetParameter, a SolverState; an empty learned_net is left out. */
void sb__pack_layer(struct sb__sink *sink, sb_text name, sb_text type);
void sb__pack_net(struct sb__sink *sink, sb_text name);
void sb__pack_solver(struct sb__sink *sink, const sb_solver_info *solver);

#endif
