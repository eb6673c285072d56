#include "blob_model.h"

#include "loan.h"

#include <stdlib.h>
#include <string.h>

/* --- shapes ---------------------------------------------------------------------- */

sb_status plain_shape_check(struct plain_shape *shape, size_t element_size) {
    if (shape->num_axes < 0)
        return SB_ERR_INVALID_ARGUMENT;
    if (shape->num_axes > SB_MAX_AXES)
        return SB_ERR_OVER_LIMIT;
    for (int32_t i = 0; i < shape->num_axes; i++)
        if (shape->dims[i] < 0)
            return SB_ERR_INVALID_ARGUMENT;
    shape->count = count_elements(shape->dims, (size_t)shape->num_axes, element_size);
    return shape->count >= 0 ? SB_OK : SB_ERR_SIZE_OVERFLOW;
}

int32_t plain_axes(const struct plain_blob *blob) {
    return blob->num_axes < 0 ? 0 : blob->num_axes;
}

struct plain_shape plain_shape_of(const struct plain_blob *blob) {
    struct plain_shape shape = {.num_axes = blob->num_axes, .count = blob->count};
    memcpy(shape.dims, blob->dims, sizeof blob->dims);
    return shape;
}

bool plain_shape_same(const struct plain_blob *a, const struct plain_blob *b) {
    return a->num_axes == b->num_axes &&
           memcmp(a->dims, b->dims, (size_t)plain_axes(a) * sizeof *a->dims) == 0;
}

uint32_t plain_take_shape(struct plain_blob *blob, const struct plain_shape *shape) {
    static const uint32_t bits[2] = {SB_REALLOCATED_DATA, SB_REALLOCATED_DIFF};
    uint32_t replaced = 0;
    blob->num_axes = shape->num_axes;
    blob->count = shape->count;
    memcpy(blob->dims, shape->dims, sizeof blob->dims);
    for (int which = DATA; which <= DIFF; which++) {
        const struct plain_memory *memory = blob->memory[which];
        if (!memory || memory->state.bytes >= plain_bytes(blob))
            continue;
        plain_replace(blob, which, NULL);
        replaced |= bits[which];
    }
    return replaced;
}

size_t plain_bytes(const struct plain_blob *blob) {
    return (size_t)blob->count * sb_dtype_size(blob->dtype);
}

bool plain_has_arithmetic(const struct plain_blob *blob) {
    return blob->dtype == SB_DTYPE_F32 || blob->dtype == SB_DTYPE_F64;
}

/* --- memories -------------------------------------------------------------------- */

struct plain_memory *plain_memory_new(const struct plain_context *context, size_t bytes) {
    struct plain_memory *memory = calloc(1, sizeof *memory);
    fuzz_check(memory, "the model is out of memory");
    memory->context = context;
    memory->state.bytes = bytes;
    memory->owners = 1;
    if (bytes <= MEMORY_CAP) {
        memory->value = calloc(1, bytes + 1);
        fuzz_check(memory->value, "the model is out of memory");
    }
    return memory;
}

struct plain_memory *plain_memory_of(struct plain_blob *blob, int which) {
    if (!blob->memory[which])
        blob->memory[which] = plain_memory_new(blob->context, plain_bytes(blob));
    return blob->memory[which];
}

static void release(struct plain_memory *memory) {
    if (!memory || --memory->owners > 0)
        return;
    for (int side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
        if (memory->state.side[side].loan)
            memory->state.side[side].loan->due = true;
    free(memory->value);
    free(memory);
}

void plain_replace(struct plain_blob *blob, int which, struct plain_memory *memory) {
    struct plain_memory *old = blob->memory[which];
    blob->memory[which] = memory;
    release(old);
}

sb_status plain_check(const struct plain_memory *memory, enum call call) {
    struct plan plan = table_plan(&memory->state, call);
    if (call_is_about_device(call) && !memory->context->has_device)
        return SB_ERR_NO_DEVICE;
    if (plan.status != SB_OK)
        return plan.status;
    return plan.allocates && memory->state.bytes > MEMORY_CAP ? SB_ERR_CAP_REACHED : SB_OK;
}

static void commit(struct plain_memory *memory, const struct plan *plan, struct side fresh) {
    if (plan->allocates || plan->adopts || plan->drops)
        memory->at[plan->side] = NULL;
    struct loan *ended = table_commit(&memory->state, plan, fresh);
    if (ended)
        ended->due = true;
    if (plan->zeroes)
        memset(memory->value, 0, memory->state.bytes);
}

sb_status plain_do(struct plain_memory *memory, enum call call) {
    struct plan plan = table_plan(&memory->state, call);
    sb_status st = plain_check(memory, call);
    bool host = plan.side == SB_SIDE_CPU && memory->state.bytes > 0;
    if (st == SB_OK)
        commit(memory, &plan,
               (struct side){host ? memory->context->host_kind : SB_STORAGE_OWNED, NULL});
    return st;
}

void plain_adopt(struct plain_memory *memory, enum call call, struct loan *loan) {
    struct plan plan = table_plan(&memory->state, call);
    commit(
        memory, &plan,
        (struct side){loan->read_only ? SB_STORAGE_BORROWED_READ_ONLY : SB_STORAGE_BORROWED, loan});
    memcpy(memory->value, loan->before, memory->state.bytes);
}

bool plain_is_written(const struct plain_memory *memory) {
    return memory && memory->state.head != SB_HEAD_UNINITIALIZED;
}

int32_t plain_side(const struct plain_memory *memory) {
    return memory->state.head == SB_HEAD_AT_CPU ? SB_SIDE_CPU : SB_SIDE_GPU;
}

/* --- elements -------------------------------------------------------------------- */

double plain_at(const unsigned char *bytes, size_t i, int32_t dtype) {
    float narrow;
    double wide;
    if (dtype == SB_DTYPE_F64)
        memcpy(&wide, bytes + i * sizeof wide, sizeof wide);
    else
        memcpy(&narrow, bytes + i * sizeof narrow, sizeof narrow);
    return dtype == SB_DTYPE_F64 ? wide : (double)narrow;
}

void plain_put(unsigned char *bytes, size_t i, int32_t dtype, double value) {
    const float narrow = (float)value;
    const int32_t whole = value > -2147483649.0 && value < 2147483648.0 ? (int32_t)value : 0;
    const int8_t small = (int8_t)(whole > INT8_MAX || whole < INT8_MIN ? 0 : whole);
    const int16_t bits = (int16_t)(whole > INT16_MAX || whole < INT16_MIN ? 0 : whole);
    const void *element = dtype == SB_DTYPE_F32   ? (const void *)&narrow
                          : dtype == SB_DTYPE_F64 ? (const void *)&value
                          : dtype == SB_DTYPE_I8  ? (const void *)&small
                          : dtype == SB_DTYPE_F16 ? (const void *)&bits
                                                  : (const void *)&whole;
    memcpy(bytes + i * sb_dtype_size(dtype), element, sb_dtype_size(dtype));
}

void plain_fill(unsigned char *out, size_t bytes, int32_t dtype, unsigned seed) {
    size_t count = bytes / sb_dtype_size(dtype);
    memset(out, 0, bytes);
    for (size_t i = 0; i < count; i++)
        plain_put(out, i, dtype, (double)((i * 7 + (size_t)seed * 13) % 251) - 125);
}

bool plain_equal(const void *seen, const unsigned char *value, size_t bytes, int32_t dtype) {
    size_t size = sb_dtype_size(dtype), whole = bytes / size * size;
    if (memcmp(seen, value, bytes) == 0)
        return true;
    if (dtype != SB_DTYPE_F32 && dtype != SB_DTYPE_F64)
        return false;
    for (size_t i = 0; i < bytes / size; i++) /* 0 and -0 are equal */
        if (plain_at(seen, i, dtype) != plain_at(value, i, dtype))
            return false;
    return memcmp((const unsigned char *)seen + whole, value + whole, bytes - whole) == 0;
}
