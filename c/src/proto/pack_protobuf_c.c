#include "proto/pack.h"

#include "syncblob.pb-c.h"

/* Used only for messages without nested messages. protobuf-c would buffer a nested message on the
   heap, and silently omit the nested message if out of memory. For this reason, sb__pack_shape
   packs on the stack. */
struct to_sink {
    ProtobufCBuffer base; /* must be first, because protobuf-c passes its address to `append` */
    struct sb__sink *sink;
};

static void append(ProtobufCBuffer *base, size_t size, const uint8_t *bytes) {
    sb__sink_bytes(((struct to_sink *)base)->sink, bytes, size);
}

static void pack(struct sb__sink *sink, const ProtobufCMessage *message) {
    struct to_sink to = {{append}, sink};
    (void)protobuf_c_message_pack_to_buffer(message, &to.base);
}

static ProtobufCBinaryData binary(sb_text text) {
    return (ProtobufCBinaryData){text.size, (uint8_t *)text.bytes};
}

size_t sb__pack_shape(const int64_t *dims, size_t num_axes, uint8_t out[SB__MAX_SHAPE_BYTES]) {
    Sb__BlobShape shape = SB__BLOB_SHAPE__INIT;
    Sb__BlobProto message = SB__BLOB_PROTO__INIT;
    shape.n_dim = num_axes;
    shape.dim = (int64_t *)dims;
    message.shape = &shape;
    return sb__blob_proto__pack(&message, out);
}

void sb__pack_floats(struct sb__sink *sink, const float *data, size_t data_count, const float *diff,
                     size_t diff_count) {
    Sb__BlobProto message = SB__BLOB_PROTO__INIT;
    message.n_data = data_count;
    message.data = (float *)data;
    message.n_diff = diff_count;
    message.diff = (float *)diff;
    pack(sink, &message.base);
}

void sb__pack_doubles(struct sb__sink *sink, const double *data, size_t data_count,
                      const double *diff, size_t diff_count) {
    Sb__BlobProto message = SB__BLOB_PROTO__INIT;
    message.n_double_data = data_count;
    message.double_data = (double *)data;
    message.n_double_diff = diff_count;
    message.double_diff = (double *)diff;
    pack(sink, &message.base);
}

void sb__pack_layer(struct sb__sink *sink, sb_text name, sb_text type) {
    Sb__LayerParameter message = SB__LAYER_PARAMETER__INIT;
    message.has_name = message.has_type = true;
    message.name = binary(name);
    message.type = binary(type);
    pack(sink, &message.base);
}

void sb__pack_net(struct sb__sink *sink, sb_text name) {
    Sb__NetParameter message = SB__NET_PARAMETER__INIT;
    message.has_name = true;
    message.name = binary(name);
    pack(sink, &message.base);
}

void sb__pack_solver(struct sb__sink *sink, const sb_solver_info *solver) {
    Sb__SolverState message = SB__SOLVER_STATE__INIT;
    message.has_iter = message.has_current_step = true;
    message.iter = solver->iter;
    message.current_step = solver->current_step;
    message.has_learned_net = solver->learned_net.size > 0;
    message.learned_net = binary(solver->learned_net);
    pack(sink, &message.base);
}
