/* The reductions of the simulated communicator, which combine doubles in the order of the ranks. */
#include "sim_comm.h"

#include "../../src/base/half.h"

#include <syncblob/sim_device.h>

#include <string.h>

/* The number of elements that are reduced at a time. */
#define BLOCK 512

static size_t bytes_of(const sb_comm_buffer *buffer, int64_t count) {
    return (size_t)count * sb_dtype_size(buffer->dtype);
}

static char *at(const sb_comm_buffer *buffer, int64_t first) {
    return (char *)buffer->ptr + bytes_of(buffer, first);
}

/* Returns the host address of elements on the host or on a simulated device: the slot `takes`
   accepts no other device. Returns NULL only in a forked child. */
static void *reach(const sb_comm_buffer *buffer, int64_t first, size_t bytes) {
    const void *table;
    void *device, *address = NULL;
    if (!buffer->context)
        return at(buffer, first);
    if (sb_context_extension(buffer->context, SB_SIM_DEVICE, &table, &device, NULL) == SB_OK) {
        const sb_sim_device *sim = table;
        sim->lock(device);
        address = sim->address(device, at(buffer, first), bytes, NULL);
        sim->unlock(device);
    }
    return address;
}

/* Copies elements to `block` if `into_block`, else from `block` to the buffer. */
static void copy(const sb_comm_buffer *buffer, int64_t first, int64_t count, void *block,
                 bool into_block) {
    const size_t bytes = bytes_of(buffer, count);
    void *elements = reach(buffer, first, bytes);
    if (elements)
        memcpy(into_block ? block : elements, into_block ? elements : block, bytes);
}

union block {
    float f32[BLOCK];
    double f64[BLOCK];
    uint16_t half[BLOCK];
    char u8[BLOCK];
};

static double value_at(sb_dtype dtype, const union block *block, int64_t i) {
    switch (dtype) {
    case SB_DTYPE_F16:
        return (double)sb__float_of_f16(block->half[i]);
    case SB_DTYPE_BF16:
        return (double)sb__float_of_bf16(block->half[i]);
    case SB_DTYPE_F32:
        return (double)block->f32[i];
    default:
        return block->f64[i];
    }
}

/* Stores `value` as element i. For a half type, first rounds `value` to float. */
static void set_at(sb_dtype dtype, union block *block, int64_t i, double value) {
    switch (dtype) {
    case SB_DTYPE_F16:
        block->half[i] = sb__f16_of_float((float)value);
        break;
    case SB_DTYPE_BF16:
        block->half[i] = sb__bf16_of_float((float)value);
        break;
    case SB_DTYPE_F32:
        block->f32[i] = (float)value;
        break;
    default:
        block->f64[i] = value;
    }
}

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
    const sb_dtype dtype = operation->parts[0].buffer.dtype;
    double sums[BLOCK] = {0};
    union block block = {.f64 = {0}};
    for (int32_t rank = 0; rank < size; rank++) {
        copy(&operation->parts[rank].buffer, first, count, &block, true);
        for (int64_t i = 0; i < count; i++) {
            const double value = value_at(dtype, &block, i);
            sums[i] = rank ? one_of_two(operation->op, sums[i], value) : value;
        }
    }
    for (int64_t i = 0; i < count; i++)
        set_at(dtype, &block, i, sums[i]);
    for (int32_t rank = 0; rank < size; rank++)
        copy(&operation->parts[rank].buffer, first, count, &block, false);
}

static void spread_block(const struct sb__sim_operation *operation, int32_t size, int64_t first,
                         int64_t count) {
    union block block = {.f64 = {0}};
    copy(&operation->parts[operation->root].buffer, first, count, &block, true);
    for (int32_t rank = 0; rank < size; rank++)
        if (rank != operation->root)
            copy(&operation->parts[rank].buffer, first, count, &block, false);
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
