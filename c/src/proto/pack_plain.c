#include "proto/pack.h"

#include "format/layout.h"

#define PIECE 4096 /* bytes that are swapped at a time; a multiple of each value's size */

static void pack_text(struct sb__sink *sink, uint32_t field, sb_text text) {
    sb__sink_prefix(sink, field, text.size);
    sb__sink_bytes(sink, text.bytes, text.size);
}

/* Packs an int32; a negative value is a varint of 64 bits. */
static void pack_int32(struct sb__sink *sink, uint32_t field, int32_t value) {
    uint8_t bytes[SB__TWO_VARINTS];
    size_t used = sb__put_varint(bytes, (uint64_t)field << 3 | SB__WIRE_VARINT);
    used += sb__put_varint(bytes + used, (uint64_t)(int64_t)value);
    sb__sink_bytes(sink, bytes, used);
}

size_t sb__pack_shape(const int64_t *dims, size_t num_axes, uint8_t out[SB__MAX_SHAPE_BYTES]) {
    uint8_t packed[SB__MAX_SHAPE_BYTES];
    size_t used = 0;
    struct sb__sink sink = sb__sink_memory(out, SB__MAX_SHAPE_BYTES);
    for (size_t i = 0; i < num_axes; i++)
        used += sb__put_varint(packed + used, (uint64_t)dims[i]);
    sb__sink_prefix(&sink, SB__BLOB_SHAPE, sb__prefix_size(SB__SHAPE_DIM, used) + used);
    sb__sink_prefix(&sink, SB__SHAPE_DIM, used);
    sb__sink_bytes(&sink, packed, used);
    return (size_t)sink.written;
}

/* Packs numbers in the wire's order, little-endian. */
static void pack_numbers(struct sb__sink *sink, const void *values, size_t bytes, size_t width) {
    unsigned char piece[PIECE];
    const unsigned char *from = values;
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        sb__sink_bytes(sink, values, bytes);
        return;
    }
    for (size_t n; bytes > 0; bytes -= n, from += n) {
        n = bytes < PIECE ? bytes : PIECE;
        for (size_t i = 0; i < n; i++)
            piece[i] = from[i - i % width + width - 1 - i % width];
        sb__sink_bytes(sink, piece, n);
    }
}

static void pack_values(struct sb__sink *sink, uint32_t field, const void *values, size_t count,
                        size_t width) {
    if (count == 0)
        return;
    sb__sink_prefix(sink, field, (uint64_t)count * width);
    pack_numbers(sink, values, count * width, width);
}

void sb__pack_floats(struct sb__sink *sink, const float *data, size_t data_count, const float *diff,
                     size_t diff_count) {
    pack_values(sink, SB__BLOB_DATA, data, data_count, sizeof *data);
    pack_values(sink, SB__BLOB_DIFF, diff, diff_count, sizeof *diff);
}

void sb__pack_doubles(struct sb__sink *sink, const double *data, size_t data_count,
                      const double *diff, size_t diff_count) {
    pack_values(sink, SB__BLOB_DOUBLE_DATA, data, data_count, sizeof *data);
    pack_values(sink, SB__BLOB_DOUBLE_DIFF, diff, diff_count, sizeof *diff);
}

void sb__pack_layer(struct sb__sink *sink, sb_text name, sb_text type) {
    pack_text(sink, sb__layer_layout.name, name);
    pack_text(sink, sb__layer_layout.type, type);
}

void sb__pack_net(struct sb__sink *sink, sb_text name) {
    pack_text(sink, sb__format_layout(SB_FORMAT_CAFFEMODEL)->name, name);
}

void sb__pack_solver(struct sb__sink *sink, const sb_solver_info *solver) {
    const struct sb__layout *layout = sb__format_layout(SB_FORMAT_SOLVERSTATE);
    pack_int32(sink, layout->iter, solver->iter);
    if (solver->learned_net.size > 0)
        pack_text(sink, layout->learned_net, solver->learned_net);
    pack_int32(sink, layout->current_step, solver->current_step);
}
