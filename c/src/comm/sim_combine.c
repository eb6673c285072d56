/* The work of the simulated communicator: in double, in the order of ranks. */
#include "comm/sim_comm.h"

#include <syncblob/sim.h>

#include <string.h>

/* Elements that are combined at once. */
#define BLOCK 512

static size_t bytes_of(const sb_comm_buffer *buffer, int64_t count) {
    return (size_t)count * sb_dtype_size(buffer->dtype);
}

static char *at(const sb_comm_buffer *buffer, int64_t first) {
    return (char *)buffer->ptr + bytes_of(buffer, first);
}

/* The device's calls fail for a pointer that is not its own alone, and `takes` saw the context. */
static void get(const sb_comm_buffer *buffer, int64_t first, int64_t count, void *out) {
    const size_t bytes = bytes_of(buffer, count);
    if (buffer->context)
        (void)sb_sim_peek(buffer->context, out, at(buffer, first), bytes, NULL);
    else
        memcpy(out, at(buffer, first), bytes);
}

static void put(const sb_comm_buffer *buffer, int64_t first, int64_t count, const void *values) {
    const size_t bytes = bytes_of(buffer, count);
    if (buffer->context)
        (void)sb_sim_poke(buffer->context, at(buffer, first), values, bytes, NULL);
    else
        memcpy(at(buffer, first), values, bytes);
}

union block {
    float f32[BLOCK];
    double f64[BLOCK];
    char u8[BLOCK];
};

static double one_of_two(sb_comm_op op, double a, double b) {
    switch (op) {
    case SB_COMM_MIN:
        return b < a ? b : a;
    case SB_COMM_MAX:
        return b > a ? b : a;
    default:
        return a + b;
    }
}

static void reduce_block(const struct sb__sim_operation *operation, int32_t size, int64_t first,
                         int64_t count) {
    const bool is_f32 = operation->parts[0].buffer.dtype == SB_DTYPE_F32;
    double sums[BLOCK] = {0};
    union block block;
    for (int32_t rank = 0; rank < size; rank++) {
        get(&operation->parts[rank].buffer, first, count, &block);
        for (int64_t i = 0; i < count; i++) {
            const double value = is_f32 ? (double)block.f32[i] : block.f64[i];
            sums[i] = rank ? one_of_two(operation->op, sums[i], value) : value;
        }
    }
    for (int64_t i = 0; i < count; i++) {
        if (is_f32)
            block.f32[i] = (float)sums[i];
        else
            block.f64[i] = sums[i];
    }
    for (int32_t rank = 0; rank < size; rank++)
        put(&operation->parts[rank].buffer, first, count, &block);
}

static void spread_block(const struct sb__sim_operation *operation, int32_t size, int64_t first,
                         int64_t count) {
    union block block;
    get(&operation->parts[operation->root].buffer, first, count, &block);
    for (int32_t rank = 0; rank < size; rank++)
        if (rank != operation->root)
            put(&operation->parts[rank].buffer, first, count, &block);
}

void sb__sim_combine(struct sb__sim_operation *operation, int32_t size) {
    const int64_t count = operation->parts[0].buffer.count;
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t some = count - first < BLOCK ? count - first : BLOCK;
        if (operation->kind == SB__SIM_REDUCE)
            reduce_block(operation, size, first, some);
        else
            spread_block(operation, size, first, some);
    }
}
