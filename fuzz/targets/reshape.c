/* Tests sb_blob: the input chooses calls on four blobs of several element types, on the host or the
   simulated device. The calls share memory, lend it to blobs and reshape blobs, and allocations may
   fail. After every step shapes, contents, storage and sharing must agree with a model, in which
   tests/support/state_table.h determines on which side each call leaves the bytes. */
#include "counting_allocator.h"
#include "loan.h"
#include "simulated.h"
#include "state_table.h"
#include "wire_builder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOBS       4
#define STEPS_MAX   48
#define ELEMENT_MAX 8
#define EXTRA_MAX   64 /* bytes that a loan may have beyond the blob's elements */
#define BYTES_MAX   ((size_t)(SMALL_COUNT * ELEMENT_MAX + EXTRA_MAX))

/* Blobs have few or absurdly many elements: the model can predict whether memory suffices. */
#define SMALL_COUNT  512
#define ABSURD_COUNT ((int64_t)1 << 24)
#define MEMORY_CAP   ((size_t)16 << 20) /* of host or device; blobs of absurd counts need more */

enum { DATA = SB_DATA, DIFF = SB_DIFF };

/* The model of a context. */
struct plain_context {
    bool has_device;
    int32_t host_kind; /* SB_STORAGE_* of host memory that the library allocates */
};

struct plain_memory {
    const struct plain_context *context;
    struct memory_state state;
    int owners;
    unsigned char *value; /* the expected contents; NULL if they exceed MEMORY_CAP */
    /* The library's handle and pointers at the last comparison, or NULL. */
    const sb_mem *handle;
    const void *at[2];
};

struct plain_shape {
    int32_t num_axes;              /* -1: never shaped */
    int64_t dims[SB_MAX_AXES + 1]; /* an invalid shape may have one axis too many */
    int64_t count;                 /* valid only if plain_shape_check succeeds */
};

struct plain_blob {
    const struct plain_context *context;
    int32_t dtype;
    struct plain_shape shape;
    struct plain_memory *memory[2]; /* NULL: not created yet */
};

struct pair {
    sb_blob *blob;
    struct plain_blob plain;
};

struct world {
    struct tape tape;
    struct simulated sims[2]; /* the second is open for half of the inputs */
    struct plain_context plain_contexts[2];
    struct lender lender;
    struct pair pairs[BLOBS];
    unsigned stamp;
    /* The operands of the current step. */
    struct pair *pair, *other;
    sb_blob *blob;            /* of `pair` */
    struct plain_blob *plain; /* of `pair` */
    int which;                /* DATA or DIFF */
    uint32_t variant;
    uint32_t mask, *asked; /* `mask` receives bits of replaced memories; `asked`: NULL or &mask */
};

/* --- the model: shapes ----------------------------------------------------------------------- */

/* Sets shape->count; returns the status that sb_blob_reshape must return for this shape. */
static sb_status plain_shape_check(struct plain_shape *shape, size_t element_size) {
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

/* Returns the number of axes; 0 if the blob was never shaped. */
static int32_t plain_axes(const struct plain_blob *blob) {
    return blob->shape.num_axes < 0 ? 0 : blob->shape.num_axes;
}

static bool plain_shape_same(const struct plain_shape *a, const struct plain_shape *b) {
    return a->num_axes == b->num_axes &&
           (a->num_axes <= 0 ||
            memcmp(a->dims, b->dims, (size_t)a->num_axes * sizeof *a->dims) == 0);
}

static size_t plain_bytes(const struct plain_blob *blob) {
    return (size_t)blob->shape.count * sb_dtype_size(blob->dtype);
}

static bool plain_has_arithmetic(const struct plain_blob *blob) {
    return blob->dtype == SB_DTYPE_F32 || blob->dtype == SB_DTYPE_F64;
}

/* --- the model: memories --------------------------------------------------------------------- */

static struct plain_memory *plain_memory_new(const struct plain_context *context, size_t bytes) {
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

/* Returns the blob's memory; creates it if needed. */
static struct plain_memory *plain_memory_of(struct plain_blob *blob, int which) {
    if (!blob->memory[which])
        blob->memory[which] = plain_memory_new(blob->context, plain_bytes(blob));
    return blob->memory[which];
}

/* Marks the loans of a memory without owners as due: their deleters must have run. */
static void release(struct plain_memory *memory) {
    if (!memory || --memory->owners > 0)
        return;
    for (int side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
        if (memory->state.side[side].loan)
            memory->state.side[side].loan->due = true;
    free(memory->value);
    free(memory);
}

/* Replaces the blob's memory by `memory` ([owned], may be NULL). */
static void plain_replace(struct plain_blob *blob, int which, struct plain_memory *memory) {
    struct plain_memory *old = blob->memory[which];
    blob->memory[which] = memory;
    release(old);
}

/* Sets the shape and releases memories that are too small; returns SB_REALLOCATED_* bits. */
static uint32_t plain_take_shape(struct plain_blob *blob, const struct plain_shape *shape) {
    static const uint32_t bits[2] = {SB_REALLOCATED_DATA, SB_REALLOCATED_DIFF};
    uint32_t replaced = 0;
    blob->shape = *shape;
    for (int which = DATA; which <= DIFF; which++)
        if (blob->memory[which] && blob->memory[which]->state.bytes < plain_bytes(blob)) {
            plain_replace(blob, which, NULL);
            replaced |= bits[which];
        }
    return replaced;
}

/* plain_check and plain_do return the status that the library must return. plain_do also updates
   the model. */
static sb_status plain_check(const struct plain_memory *memory, enum call call) {
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

static sb_status plain_do(struct plain_memory *memory, enum call call) {
    struct plan plan = table_plan(&memory->state, call);
    sb_status st = plain_check(memory, call);
    bool host = plan.side == SB_SIDE_CPU && memory->state.bytes > 0;
    if (st == SB_OK)
        commit(memory, &plan,
               (struct side){host ? memory->context->host_kind : SB_STORAGE_OWNED, NULL});
    return st;
}

static void plain_adopt(struct plain_memory *memory, enum call call, struct loan *loan) {
    struct plan plan = table_plan(&memory->state, call);
    commit(
        memory, &plan,
        (struct side){loan->read_only ? SB_STORAGE_BORROWED_READ_ONLY : SB_STORAGE_BORROWED, loan});
    memcpy(memory->value, loan->before, memory->state.bytes);
}

static bool plain_is_written(const struct plain_memory *memory) {
    return memory && memory->state.head != SB_HEAD_UNINITIALIZED;
}

/* Returns the side that has the current bytes, or the device if both sides have them. */
static int32_t plain_side(const struct plain_memory *memory) {
    return memory->state.head == SB_HEAD_AT_CPU ? SB_SIDE_CPU : SB_SIDE_GPU;
}

/* --- the model: elements --------------------------------------------------------------------- */

/* Returns element i of an array of F32 or F64. */
static double plain_at(const unsigned char *bytes, size_t i, int32_t dtype) {
    float narrow;
    double wide;
    if (dtype == SB_DTYPE_F64)
        memcpy(&wide, bytes + i * sizeof wide, sizeof wide);
    else
        memcpy(&narrow, bytes + i * sizeof narrow, sizeof narrow);
    return dtype == SB_DTYPE_F64 ? wide : (double)narrow;
}

static void plain_put(unsigned char *bytes, size_t i, int32_t dtype, double value) {
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

/* Fills whole elements with small integers, which floats represent exactly. */
static void plain_fill(unsigned char *out, size_t bytes, int32_t dtype, unsigned seed) {
    size_t count = bytes / sb_dtype_size(dtype);
    memset(out, 0, bytes);
    for (size_t i = 0; i < count; i++)
        plain_put(out, i, dtype, (double)((i * 7 + (size_t)seed * 13) % 251) - 125);
}

/* Compares bytes; elements of F32 and F64 may also be equal as numbers. */
static bool plain_equal(const void *seen, const unsigned char *value, size_t bytes, int32_t dtype) {
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

/* --- choices ----------------------------------------------------------------------- */

static int64_t draw_dim(struct tape *tape) {
    static const int64_t special[] = {8, 64, -1, INT64_C(1) << 31, INT64_C(1) << 40, INT64_MAX};
    uint32_t code = tape_below(tape, 16);
    return code < 10 ? (int64_t)code % 5 : special[code - 10];
}

/* If the count is between SMALL_COUNT and ABSURD_COUNT, replaces dimensions by 1 to reduce it. */
static void keep_small(struct plain_shape *shape) {
    for (int32_t i = shape->num_axes; i-- > 0;) {
        if (plain_shape_check(shape, ELEMENT_MAX) != SB_OK || shape->count <= SMALL_COUNT ||
            shape->count > ABSURD_COUNT)
            return;
        shape->dims[i] = 1;
    }
}

static struct plain_shape draw_shape(struct tape *tape) {
    uint32_t code = tape_below(tape, 16);
    struct plain_shape shape = {.num_axes = (int32_t)(code % 6)};
    if (code == 13)
        shape.num_axes = SB_MAX_AXES;
    if (code == 14)
        shape.num_axes = SB_MAX_AXES + 1;
    for (int32_t i = 0; i < shape.num_axes; i++)
        shape.dims[i] = i < 6 ? draw_dim(tape) : 1;
    if (code == 15)
        shape.num_axes = -1;
    keep_small(&shape);
    return shape;
}

static int64_t draw_index(struct tape *tape) {
    uint32_t code = tape_below(tape, 8);
    return code == 7 ? -1 : code == 6 ? INT64_MAX : (int64_t)code;
}

/* --- agreement ----------------------------------------------------------------------------- */

static void disarm(struct world *w) {
    for (int i = 0; i < 2; i++)
        w->sims[i].counting.fail_nth = 0;
}

/* Adds to the model the memories and the storage that a failed call may have created. */
static void accept_spares(struct world *w, struct pair *pair) {
    disarm(w);
    for (int which = DATA; which <= DIFF && pair->blob; which++) {
        struct plain_memory *memory = plain_memory_of(&pair->plain, which);
        sb_mem *mem;
        check_ok(sb_blob_mutable_mem(pair->blob, which, &mem, &call_error));
        for (int side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++) {
            int32_t kind = sb_mem_storage(mem, side);
            if (memory->state.side[side].kind == SB_STORAGE_NONE &&
                (kind == SB_STORAGE_OWNED || kind == SB_STORAGE_PINNED))
                memory->state.side[side].kind = kind;
        }
    }
}

/* Checks the status of `call`, which is passed &call_error. Returns whether the status is SB_OK; if
   so, the caller must update the model. */
#define agree(w, what, expected, call) is_agreed(w, what, expected, status_of(call))
static bool is_agreed(struct world *w, const char *what, sb_status expected, sb_status st) {
    trace("%s of blob %d (%d), other %d, variant %u: %s", what, (int)(w->pair - w->pairs), w->which,
          (int)(w->other - w->pairs), w->variant, sb_status_name(st));
    const bool first = simulated_strike(&w->sims[0]).allocator;
    if (simulated_strike(&w->sims[1]).allocator || first)
        expected = SB_ERR_OUT_OF_MEMORY;
    fuzz_check(st == expected, "%s: %s, not %s (%.200s)", what, sb_status_name(st),
               sb_status_name(expected), st == SB_OK ? "" : call_error.message);
    if (st == SB_OK)
        return true;
    accept_spares(w, w->pair);
    accept_spares(w, w->other);
    return false;
}

/* --- after every step --------------------------------------------------------------- */

static void compare_shape(const struct pair *pair) {
    const struct plain_blob *plain = &pair->plain;
    check_equal(sb_blob_dtype(pair->blob), plain->dtype);
    check_equal(sb_blob_is_shaped(pair->blob), plain->shape.num_axes >= 0);
    check_equal(sb_blob_num_axes(pair->blob), plain_axes(plain));
    check_equal(sb_blob_count(pair->blob), plain->shape.count);
    for (int32_t i = 0; i < plain_axes(plain); i++)
        check_equal(sb_blob_shape(pair->blob)[i], plain->shape.dims[i]);
}

/* Compares the bytes of a side; storage must have the same address as at the last comparison. */
static void compare_side(const struct world *w, struct plain_memory *memory, const sb_mem *mem,
                         int32_t dtype, int side) {
    static unsigned char copy[BYTES_MAX];
    const void *ptr;
    check_ok((side == SB_SIDE_CPU ? sb_mem_cpu : sb_mem_gpu)(mem, &ptr, &call_error));
    if (memory->at[side] && memory->state.bytes)
        fuzz_check(memory->at[side] == ptr, "side %d moved from %p to %p", side, memory->at[side],
                   ptr);
    memory->at[side] = ptr;
    if (side == SB_SIDE_GPU && memory->state.bytes) {
        check_ok(sb_sim_peek(w->sims[0].context, copy, ptr, memory->state.bytes, &call_error));
        ptr = copy;
    }
    fuzz_check(plain_equal(ptr, memory->value, memory->state.bytes, dtype),
               "the %zu bytes on side %d differ from the model", memory->state.bytes, side);
}

static void compare_memory(const struct world *w, const struct pair *pair, int which) {
    struct plain_memory *memory = pair->plain.memory[which];
    const int32_t dtype = pair->plain.dtype;
    sb_mem *mem = NULL;
    check_equal(sb_blob_capacity(pair->blob, which),
                memory ? memory->state.bytes / sb_dtype_size(dtype) : 0);
    if (!memory) /* a comparison would create the memory */
        return;
    check_ok(sb_blob_mutable_mem(pair->blob, which, &mem, &call_error));
    fuzz_check(!memory->handle || memory->handle == mem, "the memory was replaced");
    memory->handle = mem;
    check_equal(sb_mem_size(mem), memory->state.bytes);
    check_equal(sb_mem_is_unique(mem), memory->owners == 1);
    check_equal(sb_mem_head(mem), memory->state.head);
    for (int side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++) {
        check_equal(sb_mem_storage(mem, side), memory->state.side[side].kind);
        if (table_is_current(memory->state.head, side))
            compare_side(w, memory, mem, dtype, side);
    }
}

static void compare_all(struct world *w) {
    int64_t armed[2] = {w->sims[0].counting.fail_nth, w->sims[1].counting.fail_nth};
    disarm(w);
    for (int i = 0; i < BLOBS; i++) {
        compare_shape(&w->pairs[i]);
        compare_memory(w, &w->pairs[i], DATA);
        compare_memory(w, &w->pairs[i], DIFF);
    }
    for (int i = 0; i < 2; i++)
        w->sims[i].counting.fail_nth = armed[i];
    lender_check(&w->lender, false);
}

/* --- shapes -------------------------------------------------------------------------------- */

static void take_shape(struct world *w, const struct plain_shape *shape) {
    uint32_t expected = plain_take_shape(w->plain, shape);
    if (w->asked)
        check_equal(w->mask, expected);
}

static sb_status check_shape(const struct world *w, struct plain_shape *shape) {
    return plain_shape_check(shape, sb_dtype_size(w->plain->dtype));
}

static void reshape(struct world *w) {
    struct plain_shape shape = draw_shape(&w->tape);
    sb_status expected = check_shape(w, &shape);
    if (agree(w, "reshape", expected,
              sb_blob_reshape(w->blob, shape.dims, shape.num_axes, w->asked, &call_error)))
        take_shape(w, &shape);
}

static void reshape_legacy(struct world *w) {
    struct plain_shape shape = {.num_axes = 4};
    const int64_t *d = shape.dims;
    for (int i = 0; i < 4; i++)
        shape.dims[i] = draw_dim(&w->tape);
    keep_small(&shape);
    sb_status expected = check_shape(w, &shape);
    if (agree(w, "reshape_legacy", expected,
              sb_blob_reshape_legacy(w->blob, d[0], d[1], d[2], d[3], w->asked, &call_error)))
        take_shape(w, &shape);
}

static void reshape_like(struct world *w) {
    struct plain_shape shape = w->other->plain.shape;
    if (shape.num_axes < 0)
        shape.num_axes = 0;
    sb_status expected = check_shape(w, &shape);
    if (agree(w, "reshape_like", expected,
              sb_blob_reshape_like(w->blob, w->other->blob, w->asked, &call_error)))
        take_shape(w, &shape);
}

static sb_status status_of_shape(struct plain_shape *shape) {
    sb_status st = plain_shape_check(shape, sizeof(float));
    return st == SB_OK                  ? SB_OK
           : st == SB_ERR_SIZE_OVERFLOW ? SB_ERR_DATA_OVERFLOW
                                        : SB_ERR_BAD_SHAPE;
}

static void reshape_proto(struct world *w) {
    struct wire message = {0};
    struct plain_shape shape = draw_shape(&w->tape);
    if (shape.num_axes < 0)
        shape.num_axes = 0;
    wire_numbers(&message, 1, shape.dims, (size_t)shape.num_axes);
    sb_status expected = status_of_shape(&shape);
    if (expected == SB_OK && check_shape(w, &shape) != SB_OK)
        expected = SB_ERR_DATA_OVERFLOW;
    if (agree(w, "reshape_proto", expected,
              sb_blob_reshape_proto(w->blob, message.bytes, message.size, w->asked, &call_error)))
        take_shape(w, &shape);
    wire_free(&message);
}

/* --- sharing and copying ------------------------------------------------------------ */

/* In the model, makes the blob share the other blob's memory. */
static void take_memory(struct world *w) {
    struct plain_memory *memory = plain_memory_of(&w->other->plain, w->which);
    memory->owners++;
    plain_replace(w->plain, w->which, memory);
}

static void share(struct world *w) {
    const struct plain_blob *plain = w->plain, *other = &w->other->plain;
    sb_status expected = plain->dtype != other->dtype               ? SB_ERR_DTYPE_MISMATCH
                         : plain->shape.count != other->shape.count ? SB_ERR_SHAPE_MISMATCH
                         : plain->context != other->context         ? SB_ERR_WRONG_DEVICE
                                                                    : SB_OK;
    if (agree(w, "share", expected, sb_blob_share(w->blob, w->which, w->other->blob, &call_error)))
        take_memory(w);
}

/* Returns the handle of a memory of `pair`, or NULL if the call failed. */
static sb_mem *handle_of(struct world *w, struct pair *pair) {
    sb_mem *mem;
    if (!agree(w, "handle", SB_OK, sb_blob_mutable_mem(pair->blob, w->which, &mem, &call_error)))
        return NULL;
    (void)plain_memory_of(&pair->plain, w->which);
    return mem;
}

/* Shares the other blob's memory by its handle, even if the memory is larger than needed. */
static void set_memory(struct world *w) {
    const struct plain_blob *plain = w->plain, *other = &w->other->plain;
    sb_mem *mem = handle_of(w, w->other);
    if (!mem || plain->dtype != other->dtype) /* the model cannot convert bytes of another type */
        return;
    sb_status expected = other->memory[w->which]->state.bytes < plain_bytes(plain)
                             ? SB_ERR_INVALID_ARGUMENT
                         : plain->context != other->context ? SB_ERR_WRONG_DEVICE
                                                            : SB_OK;
    if (agree(w, "set memory", expected, sb_blob_set_mem(w->blob, w->which, mem, &call_error)))
        take_memory(w);
}

static void drop_diff(struct world *w) {
    sb_blob_drop(w->blob, SB_DIFF);
    plain_replace(w->plain, DIFF, NULL);
}

/* `reading` and `writing` return the call that reads, or partly writes, the bytes on a side. */
static enum call reading(int32_t side) {
    return side == SB_SIDE_CPU ? CPU_DATA : GPU_DATA;
}

static enum call writing(int32_t side) {
    return side == SB_SIDE_CPU ? MUTABLE_CPU : MUTABLE_GPU;
}

/* Returns the status of a write of all elements. A memory that is missing or too small is replaced.
   If `value` is not NULL, updates the model. */
static sb_status write_model(struct plain_blob *blob, int which, size_t bytes, int32_t side,
                             const unsigned char *value) {
    struct plain_memory fresh = {.context = blob->context, .state.bytes = bytes};
    struct plain_memory *memory = blob->memory[which];
    const bool replaces = !memory || memory->state.bytes < bytes;
    if (replaces)
        memory = value ? plain_memory_new(blob->context, bytes) : &fresh;
    enum call call = memory->state.bytes != bytes ? writing(side)
                     : side == SB_SIDE_CPU        ? OVERWRITE_CPU
                                                  : OVERWRITE_GPU;
    if (!value)
        return plain_check(memory, call);
    (void)plain_do(memory, call);
    memcpy(memory->value, value, bytes);
    if (replaces)
        plain_replace(blob, which, memory);
    return SB_OK;
}

/* Returns the status of a clear of the first `bytes` bytes; if `commit`, also updates the model. */
static sb_status clear_model(struct plain_memory *memory, size_t bytes, bool commit) {
    if (!plain_is_written(memory) || (bytes == 0 && memory->state.bytes > 0))
        return SB_OK;
    enum call call = bytes == memory->state.bytes ? CLEAR : writing(plain_side(memory));
    sb_status st = plain_check(memory, call);
    if (st == SB_OK && commit) {
        (void)plain_do(memory, call);
        memset(memory->value, 0, bytes);
    }
    return st;
}

static sb_status check_copy(const struct world *w, uint32_t flags) {
    if (flags & ~(uint32_t)SB_COPY_RESHAPE)
        return SB_ERR_INVALID_ARGUMENT;
    if (w->plain->dtype != w->other->plain.dtype)
        return SB_ERR_DTYPE_MISMATCH;
    if (!(flags & SB_COPY_RESHAPE) && !plain_shape_same(&w->plain->shape, &w->other->plain.shape))
        return SB_ERR_SHAPE_MISMATCH;
    return SB_OK;
}

/* Like clear_model, for a copy whose source was never written. Clears the target on the side of the
   target's head, or on the host if the target, too, was never written. */
static sb_status copy_zeros(struct world *w, bool commit) {
    size_t bytes = plain_bytes(&w->other->plain);
    struct plain_memory fresh = {.context = w->plain->context, .state.bytes = bytes};
    struct plain_memory *memory = w->plain->memory[w->which];
    const bool replaces = !memory || memory->state.bytes < bytes;
    if (!replaces && plain_is_written(memory))
        return clear_model(memory, bytes, commit);
    sb_status st = plain_check(replaces ? &fresh : memory, MUTABLE_CPU);
    if (st != SB_OK || !commit)
        return st;
    if (replaces)
        plain_replace(w->plain, w->which, plain_memory_new(w->plain->context, bytes));
    return plain_do(w->plain->memory[w->which], MUTABLE_CPU);
}

static sb_status copy_bytes(struct world *w, bool commit) {
    const struct plain_blob *source = &w->other->plain;
    struct plain_memory *from = source->memory[w->which];
    int32_t side = w->plain->context == source->context ? plain_side(from) : SB_SIDE_CPU;
    sb_status st = write_model(w->plain, w->which, plain_bytes(source), side, NULL);
    if (st == SB_OK)
        st = plain_check(from, reading(side));
    if (st != SB_OK || !commit)
        return st;
    (void)plain_do(from, reading(side));
    return write_model(w->plain, w->which, plain_bytes(source), side, from->value);
}

static sb_status copy_model(struct world *w, bool commit) {
    struct plain_memory *from = w->other->plain.memory[w->which];
    if (w->other->plain.shape.count == 0 || (from && from == w->plain->memory[w->which]))
        return SB_OK;
    return plain_is_written(from) ? copy_bytes(w, commit) : copy_zeros(w, commit);
}

static void copy_from(struct world *w) {
    uint32_t flags = w->variant == 7 ? SB_PROTO_RESHAPE : (w->variant & 1 ? SB_COPY_RESHAPE : 0);
    sb_status expected = check_copy(w, flags);
    if (expected == SB_OK && w->pair != w->other)
        expected = copy_model(w, false);
    if (!agree(w, "copy_from", expected,
               sb_blob_copy_from(w->blob, w->which, w->other->blob, flags, &call_error)) ||
        w->pair == w->other)
        return;
    struct plain_shape shape = w->other->plain.shape;
    (void)copy_model(w, true);
    (void)plain_take_shape(w->plain, &shape);
}

/* --- bytes --------------------------------------------------------------------------------- */

/* Writes all bytes of the memory, because an OVERWRITE call leaves their values unspecified. */
static void write_bytes(struct world *w, enum call call, void *ptr) {
    struct plain_memory *memory = w->plain->memory[w->which];
    size_t bytes = memory->state.bytes;
    if (bytes == 0)
        return;
    plain_fill(memory->value, bytes, w->plain->dtype, w->stamp++);
    if (call_kinds[call].side == SB_SIDE_CPU)
        memcpy(ptr, memory->value, bytes);
    else
        ignore(sb_sim_poke(w->sims[0].context, ptr, memory->value, bytes, NULL));
}

static void use_bytes(struct world *w) {
    static const enum call calls[] = {CPU_DATA, MUTABLE_CPU, OVERWRITE_CPU,
                                      GPU_DATA, MUTABLE_GPU, OVERWRITE_GPU};
    enum call call = calls[tape_below(&w->tape, 6)];
    struct plain_memory *memory = plain_memory_of(w->plain, w->which);
    void *ptr = NULL;
    sb_status expected = plain_check(memory, call);
    if (!agree(w, "bytes", expected, blob_call(w->blob, w->which, call, NULL, &ptr, &call_error)))
        return;
    fuzz_check(ptr, "a NULL pointer");
    (void)plain_do(memory, call);
    if (call != CPU_DATA && call != GPU_DATA)
        write_bytes(w, call, ptr);
}

static void clear(struct world *w) {
    struct plain_memory *memory = w->plain->memory[w->which];
    size_t bytes = plain_bytes(w->plain);
    sb_status expected = clear_model(memory, bytes, false);
    if (agree(w, "clear", expected, sb_blob_clear(w->blob, w->which, &call_error)))
        (void)clear_model(memory, bytes, true);
}

static void evict(struct world *w) {
    enum call call = w->variant & 1 ? EVICT_GPU : EVICT_CPU;
    sb_mem *mem = handle_of(w, w->pair);
    if (!mem)
        return;
    sb_status expected = plain_check(w->plain->memory[w->which], call);
    if (agree(w, "evict", expected,
              (call == EVICT_CPU ? sb_mem_evict_cpu : sb_mem_evict_gpu)(mem, &call_error)))
        (void)plain_do(w->plain->memory[w->which], call);
}

/* --- lending ------------------------------------------------------------------------------- */

enum { LEND_GOOD = 5, LEND_SHORT, LEND_FLAG, LEND_MISSING, LEND_ASKEW };

static struct loan *make_loan(struct world *w, bool device, size_t bytes, bool read_only) {
    static unsigned char value[BYTES_MAX];
    plain_fill(value, bytes, w->plain->dtype, w->stamp++);
    return lender_make(&w->lender, device ? w->sims[0].context : NULL, value, bytes, read_only);
}

/* Returns whether to misalign the loan by one byte; elements of one byte cannot be misaligned. */
static bool is_askew(const struct plain_blob *plain, uint32_t variant) {
    return variant == LEND_ASKEW && sb_dtype_size(plain->dtype) > 1;
}

/* Returns the status that a set call on a side must return. */
static sb_status check_lend(const struct plain_blob *plain, uint32_t variant, bool device) {
    bool faulty = variant == LEND_FLAG || variant == LEND_MISSING ||
                  (variant == LEND_SHORT && plain_bytes(plain) > 0) || is_askew(plain, variant) ||
                  plain_bytes(plain) > BYTES_MAX - EXTRA_MAX;
    return faulty                                  ? SB_ERR_INVALID_ARGUMENT
           : device && !plain->context->has_device ? SB_ERR_NO_DEVICE
                                                   : SB_OK;
}

/* Lends memory to the blob as its new data. Blobs that shared the old data keep the old memory. */
static void lend(struct world *w) {
    static const size_t extras[] = {0, 0, 8, 3, EXTRA_MAX};
    const struct plain_blob *plain = w->plain;
    bool device = w->variant & 1;
    uint32_t variant = tape_below(&w->tape, 16);
    size_t least = plain_bytes(plain) > BYTES_MAX - EXTRA_MAX ? 0 : plain_bytes(plain);
    size_t bytes = variant == LEND_SHORT && least ? least - 1 : least + extras[variant % 5];
    uint32_t flags = variant == LEND_FLAG ? SB_COPY_RESHAPE : w->variant >> 1 & 1;
    struct loan *loan =
        make_loan(w, device && plain->context->has_device, bytes, flags == SB_READ_ONLY);
    if (!loan)
        return;
    sb_status expected = check_lend(plain, variant, device);
    void *ptr = variant == LEND_MISSING ? NULL : (char *)loan->ptr + is_askew(plain, variant);
    loan->given = true;
    loan->given = agree(w, "set data", expected,
                        (device ? sb_blob_set_gpu : sb_blob_set_cpu)(
                            w->blob, SB_DATA, ptr, bytes, flags, loan_deleter, loan, &call_error));
    if (!loan->given)
        return;
    struct plain_memory *memory = plain_memory_new(plain->context, bytes);
    plain_adopt(memory, device ? SET_GPU : SET_CPU, loan);
    plain_replace(w->plain, DATA, memory);
}

/* Calls sb_mem_set_cpu on the blob's memory, which affects all blobs that share the memory. */
static void lend_to_all(struct world *w) {
    sb_mem *mem = handle_of(w, w->pair);
    struct plain_memory *memory = w->plain->memory[w->which];
    if (!mem || memory->state.bytes > BYTES_MAX)
        return;
    struct loan *loan = make_loan(w, false, memory->state.bytes, w->variant & 1);
    if (!loan)
        return;
    loan->given = true;
    loan->given = agree(w, "set all", SB_OK,
                        sb_mem_set_cpu(mem, loan->ptr, memory->state.bytes, w->variant & 1,
                                       loan_deleter, loan, &call_error));
    if (loan->given)
        plain_adopt(memory, SET_CPU, loan);
}

/* --- arithmetic ---------------------------------------------------------------------------- */

static sb_status check_scale(const struct plain_blob *plain, const struct plain_memory *memory) {
    if (!plain_has_arithmetic(plain))
        return SB_ERR_UNSUPPORTED;
    if (plain->shape.count == 0 || !plain_is_written(memory))
        return SB_OK;
    return plain_check(memory, writing(plain_side(memory)));
}

static void scale(struct world *w) {
    static const double factors[] = {0, 1, -1, 0.5, 2, -3, 0.25, 1};
    const struct plain_blob *plain = w->plain;
    struct plain_memory *memory = plain->memory[w->which];
    double factor = factors[w->variant];
    sb_status expected = check_scale(plain, memory);
    if (!agree(w, "scale", expected, sb_blob_scale(w->blob, w->which, factor, &call_error)) ||
        plain->shape.count == 0 || !plain_is_written(memory))
        return;
    (void)plain_do(memory, writing(plain_side(memory)));
    for (size_t i = 0; i < (size_t)plain->shape.count; i++)
        plain_put(memory->value, i, plain->dtype,
                  plain_at(memory->value, i, plain->dtype) * factor);
}

static sb_status check_update(struct plain_blob *plain) {
    const struct plain_memory *data = plain->memory[DATA];
    if (!plain_has_arithmetic(plain))
        return SB_ERR_UNSUPPORTED;
    if (plain->shape.count == 0)
        return SB_OK;
    if (!plain_is_written(data))
        return SB_ERR_UNINITIALIZED;
    sb_status st = plain_check(data, writing(plain_side(data)));
    return st == SB_OK ? plain_check(plain_memory_of(plain, DIFF), reading(plain_side(data))) : st;
}

static void update(struct world *w) {
    struct plain_blob *plain = w->plain;
    sb_status expected = check_update(plain);
    if (!agree(w, "update", expected, sb_blob_update(w->blob, &call_error)) ||
        plain->shape.count == 0)
        return;
    struct plain_memory *data = plain->memory[DATA], *diff = plain->memory[DIFF];
    int32_t side = plain_side(data);
    (void)plain_do(data, writing(side));
    (void)plain_do(diff, reading(side));
    for (size_t i = 0; i < (size_t)plain->shape.count; i++)
        plain_put(data->value, i, plain->dtype,
                  plain_at(data->value, i, plain->dtype) - plain_at(diff->value, i, plain->dtype));
}

static void sums(struct world *w) {
    const struct plain_blob *plain = w->plain;
    const struct plain_memory *memory = plain->memory[w->which];
    bool squares = w->variant & 1;
    double seen = -1, sum = 0;
    if (!agree(w, "sum", plain_has_arithmetic(plain) ? SB_OK : SB_ERR_UNSUPPORTED,
               (squares ? sb_blob_sumsq : sb_blob_asum)(w->blob, w->which, &seen, &call_error)))
        return;
    for (size_t i = 0; i < (size_t)plain->shape.count && plain_is_written(memory); i++) {
        double x = plain_at(memory->value, i, plain->dtype);
        sum += squares ? x * x : fabs(x);
    }
    fuzz_check(fabs(seen - sum) <= 1e-6 * sum, "a sum is %.17g, not %.17g", seen, sum);
}

/* --- messages ------------------------------------------------------------------------------ */

/* Appends the message of a blob, with its fields in the order that sb_blob_to_proto chooses; `diff`
   may be NULL. */
static void put_blob(struct wire *out, int32_t dtype, const struct plain_shape *shape,
                     const unsigned char *data, const unsigned char *diff) {
    static const int64_t none[1] = {0};
    const bool is_wide = dtype == SB_DTYPE_F64;
    const size_t size = sb_dtype_size(dtype), bytes = data ? (size_t)shape->count * size : 0;
    const size_t axes = shape->num_axes < 0 ? 1 : (size_t)shape->num_axes;
    if (is_wide && axes)
        wire_shape(out, shape->num_axes < 0 ? none : shape->dims, axes);
    if (bytes)
        wire_values(out, is_wide ? 8 : 5, data, size, bytes);
    if (bytes && diff)
        wire_values(out, is_wide ? 9 : 6, diff, size, bytes);
    if (!is_wide && axes)
        wire_shape(out, shape->num_axes < 0 ? none : shape->dims, axes);
}

/* Returns the status that a load of a whole message must return. */
static sb_status check_message(const struct world *w, struct plain_shape *shape, bool reshapes) {
    sb_status st = status_of_shape(shape);
    if (st != SB_OK)
        return st;
    if (!reshapes && !plain_shape_same(shape, &w->plain->shape))
        return SB_ERR_SHAPE_MISMATCH;
    if (check_shape(w, shape) != SB_OK)
        return SB_ERR_DATA_OVERFLOW;
    if (shape->count > SMALL_COUNT)
        return SB_ERR_LENGTH_MISMATCH;
    return w->plain->dtype == SB_DTYPE_F16 && shape->count > 0 ? SB_ERR_DTYPE_MISMATCH : SB_OK;
}

/* Loads a message with few values, or with a shape only. The target `differential` tests all other
   forms of messages. */
static void from_proto(struct world *w) {
    static unsigned char values[2][BYTES_MAX], converted[BYTES_MAX];
    struct wire message = {0};
    const uint32_t code = tape_below(&w->tape, 32);
    const bool reshapes = w->variant & 1, is_cut = code == 31;
    const int parts = code & 16 ? 2 : 1;
    const int32_t dtype = code & 2 ? SB_DTYPE_F64 : SB_DTYPE_F32;
    struct plain_shape shape = code & 4 ? w->plain->shape : draw_shape(&w->tape);
    if (shape.num_axes < 0)
        shape.num_axes = 0;
    sb_status expected = check_message(w, &shape, reshapes);
    const bool is_small = shape.count >= 0 && shape.count <= SMALL_COUNT;
    const size_t count = is_small ? (size_t)shape.count : 0;
    const size_t bytes = count * sb_dtype_size(w->plain->dtype);
    for (int which = DATA; which < parts; which++)
        plain_fill(values[which], count * sb_dtype_size(dtype), dtype, w->stamp++);
    put_blob(&message, dtype, &shape, is_small ? values[DATA] : NULL,
             parts > 1 ? values[DIFF] : NULL);
    if (is_cut)
        expected = SB_ERR_MALFORMED;
    for (int which = DATA; which < parts && expected == SB_OK && (which == DATA || count); which++)
        expected = write_model(w->plain, which, bytes, SB_SIDE_CPU, NULL);
    const bool done = agree(w, "from_proto", expected,
                            sb_blob_from_proto(w->blob, message.bytes, message.size - is_cut,
                                               reshapes ? SB_PROTO_RESHAPE : 0, NULL, &call_error));
    wire_free(&message);
    for (int which = DATA; which < parts && done && (which == DATA || count); which++) {
        for (size_t i = 0; i < count; i++)
            plain_put(converted, i, w->plain->dtype, plain_at(values[which], i, dtype));
        (void)write_model(w->plain, which, bytes, SB_SIDE_CPU, converted);
    }
    if (done)
        (void)plain_take_shape(w->plain, &shape);
}

static void put_plain(struct wire *out, const struct plain_blob *plain, bool with_diff) {
    const struct plain_memory *data = plain->memory[DATA], *diff = plain->memory[DIFF];
    const bool is_empty = plain->shape.count == 0;
    put_blob(out, plain->dtype, &plain->shape, is_empty ? NULL : data->value,
             is_empty || !with_diff ? NULL : diff->value);
}

/* Returns the size of the blob's message, also of a blob of absurd count. */
static size_t size_of_message(const struct plain_blob *plain, bool with_diff) {
    struct wire out = {0};
    const size_t bytes = plain_bytes(plain);
    put_blob(&out, plain->dtype, &plain->shape, NULL, NULL);
    const size_t shape = out.size;
    wire_tag(&out, 5, 2);
    wire_varint(&out, bytes);
    const size_t payload = bytes ? out.size - shape + bytes : 0;
    wire_free(&out);
    return shape + (with_diff ? 2 : 1) * payload;
}

static sb_status check_write(const struct plain_blob *plain, bool with_diff) {
    if (!plain_has_arithmetic(plain))
        return SB_ERR_UNSUPPORTED;
    bool over = plain_bytes(plain) > INT32_MAX || size_of_message(plain, with_diff) > INT32_MAX;
    return over ? SB_ERR_OVER_LIMIT : SB_OK;
}

/* Makes data, then diff, current on the host. If the call for diff fails, data remains current. */
static sb_status fetch(struct plain_blob *plain, bool with_diff) {
    if (plain->shape.count == 0)
        return SB_OK;
    sb_status st = plain_do(plain_memory_of(plain, DATA), CPU_DATA);
    if (st == SB_OK && with_diff)
        st = plain_do(plain_memory_of(plain, DIFF), CPU_DATA);
    return st;
}

/* Encodes the blob. First disarms the faults, because the model cannot predict which parts a failed
   call has copied to the host. */
static void to_proto(struct world *w) {
    static unsigned char buffer[2 * BYTES_MAX + 1024];
    struct wire message = {0};
    bool with_diff = w->variant & 1;
    uint32_t flags = with_diff ? SB_PROTO_WRITE_DIFF : 0;
    size_t size = 0, needed = 0;
    disarm(w);
    sb_status expected = check_write(w->plain, with_diff);
    if (!agree(w, "proto_size", expected, sb_blob_proto_size(w->blob, flags, &needed, &call_error)))
        return;
    check_equal(needed, size_of_message(w->plain, with_diff));
    size_t capacity = w->variant & 4 && needed ? needed - 1 : sizeof buffer;
    expected = needed > capacity ? SB_ERR_BUFFER_TOO_SMALL : fetch(w->plain, with_diff);
    if (!agree(w, "to_proto", expected,
               sb_blob_to_proto(w->blob, flags, buffer, capacity, &size, &call_error)))
        return;
    put_plain(&message, w->plain, with_diff);
    check_equal(size, message.size);
    fuzz_check(size == 0 || memcmp(buffer, message.bytes, size) == 0, "wrong message");
    wire_free(&message);
}

/* --- questions ----------------------------------------------------------------------------- */

static int64_t product(const struct plain_blob *plain, int32_t start, int32_t end, bool *fits) {
    struct plain_shape part = {.num_axes = end - start};
    for (int32_t i = start; i < end; i++)
        part.dims[i - start] = plain->shape.dims[i];
    *fits = plain_shape_check(&part, 1) == SB_OK;
    return part.count;
}

static void ask_counts(struct world *w) {
    const struct plain_blob *plain = w->plain;
    int32_t start = (int32_t)tape_below(&w->tape, 8) - 1, end = (int32_t)tape_below(&w->tape, 8);
    bool inside = start >= 0 && start <= end && end <= plain_axes(plain), fits = true;
    int64_t count = inside ? product(plain, start, end, &fits) : 0, seen = 77;
    sb_status expected = !inside ? SB_ERR_INDEX_OUT_OF_RANGE : fits ? SB_OK : SB_ERR_SIZE_OVERFLOW;
    if (agree(w, "count_range", expected,
              sb_blob_count_range(w->blob, start, end, &seen, &call_error)))
        check_equal(seen, count);
    if (start < 0 || start > plain_axes(plain))
        return;
    count = product(plain, start, plain_axes(plain), &fits);
    if (agree(w, "count_from", fits ? SB_OK : SB_ERR_SIZE_OVERFLOW,
              sb_blob_count_from(w->blob, start, &seen, &call_error)))
        check_equal(seen, count);
}

static void ask_axes(struct world *w) {
    int32_t axis = (int32_t)tape_below(&w->tape, 80) - 40, axes = plain_axes(w->plain),
            canonical = 77;
    bool inside = axis >= -axes && axis < axes;
    int64_t dim = 77;
    sb_status expected = inside ? SB_OK : SB_ERR_INDEX_OUT_OF_RANGE;
    if (agree(w, "canonical_axis", expected,
              sb_blob_canonical_axis(w->blob, axis, &canonical, &call_error)))
        check_equal(canonical, (axis + axes) % axes);
    if (agree(w, "dim", expected, sb_blob_dim(w->blob, axis, &dim, &call_error)))
        check_equal(dim, w->plain->shape.dims[(axis + axes) % axes]);
}

static void ask_legacy(struct world *w) {
    int32_t index = (int32_t)tape_below(&w->tape, 10) - 5, axes = plain_axes(w->plain);
    int64_t seen = 77, dim = 1;
    sb_status expected = axes > 4                  ? SB_ERR_SHAPE_MISMATCH
                         : index < -4 || index > 3 ? SB_ERR_INDEX_OUT_OF_RANGE
                                                   : SB_OK;
    if (expected == SB_OK && index >= -axes && index < axes)
        dim = w->plain->shape.dims[(index + axes) % axes];
    if (agree(w, "legacy_shape", expected,
              sb_blob_legacy_shape(w->blob, index, &seen, &call_error)))
        check_equal(seen, dim);
}

static void ask_text(struct world *w) {
    const struct plain_blob *plain = w->plain, *other = &w->other->plain;
    char text[1024] = "", seen[1024];
    size_t at = 0, length = 77, capacity = tape_below(&w->tape, 64);
    for (int32_t i = 0; i < plain_axes(plain); i++)
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%lld ", (long long)plain->shape.dims[i]);
    (void)snprintf(text + at, sizeof text - at, "(%lld)", (long long)plain->shape.count);
    memset(seen, '?', sizeof seen);
    if (!agree(w, "shape_string", SB_OK,
               sb_blob_shape_string(w->blob, seen, capacity, &length, &call_error)))
        return;
    check_equal(length, strlen(text));
    size_t shown = capacity == 0 ? 0 : length < capacity ? length : capacity - 1;
    fuzz_check(memcmp(seen, text, shown) == 0 && (capacity == 0 || seen[shown] == 0) &&
                   seen[capacity ? shown + 1 : 0] == '?',
               "the text in a buffer of %zu bytes is not a part of %s", capacity, text);
    check_equal(sb_blob_shape_equals(w->blob, w->other->blob),
                plain_shape_same(&plain->shape, &other->shape));
    check_equal(sb_blob_shape_equals_dims(w->blob, other->shape.dims, other->shape.num_axes),
                other->shape.num_axes >= 0 && plain_shape_same(&plain->shape, &other->shape));
}

static void ask_device_shape(struct world *w) {
    int64_t seen[SB_MAX_AXES];
    size_t bytes = (size_t)plain_axes(w->plain) * sizeof *seen;
    const int64_t *dims = NULL;
    sb_status expected = w->plain->context->has_device ? SB_OK : SB_ERR_NO_DEVICE;
    if (!agree(w, "gpu_shape", expected, sb_blob_gpu_shape(w->blob, &dims, &call_error)) ||
        bytes == 0)
        return;
    check_ok(sb_sim_peek(w->sims[0].context, seen, dims, bytes, &call_error));
    fuzz_check(memcmp(seen, w->plain->shape.dims, bytes) == 0, "the shape on the device is wrong");
}

static void ask(struct world *w) {
    static void (*const questions[])(struct world *) = {ask_counts, ask_axes, ask_legacy, ask_text,
                                                        ask_device_shape};
    questions[w->variant % 5](w);
}

/* --- elements ------------------------------------------------------------------------------ */

/* Computes the row-major offset of an element. Indices that are not given count as 0. */
static sb_status offset_of(const struct plain_shape *shape, const int64_t *indices,
                           int32_t num_indices, int64_t *out) {
    *out = 0;
    if (num_indices > shape->num_axes || shape->count == 0)
        return SB_ERR_INDEX_OUT_OF_RANGE;
    for (int32_t i = 0; i < shape->num_axes; i++) {
        int64_t index = i < num_indices ? indices[i] : 0;
        if (index < 0 || index >= shape->dims[i])
            return SB_ERR_INDEX_OUT_OF_RANGE;
        *out = *out * shape->dims[i] + index;
    }
    return SB_OK;
}

__extension__ typedef __int128 wide;

/* Computes the offset of four indices as Caffe does: an index may be equal to its dimension. */
static sb_status legacy_offset_of(const struct plain_shape *shape, const int64_t indices[4],
                                  int64_t *out) {
    wide offset = 0;
    for (int32_t i = 0; i < 4; i++)
        if (indices[i] < 0 || indices[i] > shape->dims[i])
            return SB_ERR_INDEX_OUT_OF_RANGE;
    for (int32_t i = 0; i < 4; i++) {
        offset = offset * shape->dims[i] + indices[i];
        if (offset > INT64_MAX)
            return SB_ERR_SIZE_OVERFLOW;
    }
    *out = (int64_t)offset;
    return SB_OK;
}

/* Calls the library for an element's offset, then for the element. */
static void at(struct world *w) {
    const bool legacy = w->variant & 1;
    const int32_t count = legacy ? 4 : (int32_t)tape_below(&w->tape, 7);
    const size_t size = sb_dtype_size(w->plain->dtype);
    unsigned char seen[ELEMENT_MAX];
    int64_t i[8] = {0}, offset = 0, found = 77;
    for (int32_t axis = 0; axis < count; axis++)
        i[axis] = draw_index(&w->tape);
    struct plain_shape shape = w->plain->shape;
    shape.num_axes = plain_axes(w->plain);
    const bool is_refused = legacy && shape.num_axes > 4;
    while (legacy && shape.num_axes < 4) /* missing axes have the size 1 */
        shape.dims[shape.num_axes++] = 1;
    sb_status expected = is_refused ? SB_ERR_SHAPE_MISMATCH
                         : legacy   ? legacy_offset_of(&shape, i, &offset)
                                    : offset_of(&shape, i, count, &offset);
    if (agree(w, "offset", expected,
              legacy ? sb_blob_offset_legacy(w->blob, i[0], i[1], i[2], i[3], &found, &call_error)
                     : sb_blob_offset(w->blob, i, count, &found, &call_error)))
        check_equal(found, offset);
    if (!is_refused)
        expected = offset_of(&shape, i, count, &offset);
    struct plain_memory *memory = expected == SB_OK ? plain_memory_of(w->plain, w->which) : NULL;
    if (memory)
        expected = plain_check(memory, CPU_DATA);
    if (!agree(w, "an element", expected,
               !legacy ? sb_blob_at(w->blob, w->which, i, count, seen, &call_error)
                       : (w->which == DATA ? sb_blob_data_at_legacy : sb_blob_diff_at_legacy)(
                             w->blob, i[0], i[1], i[2], i[3], seen, &call_error)))
        return;
    (void)plain_do(memory, CPU_DATA);
    fuzz_check(plain_equal(seen, memory->value + (size_t)offset * size, size, w->plain->dtype),
               "element %lld is wrong", (long long)offset);
}

/* --- storage ------------------------------------------------------------------------------- */

static bool is_shrinkable(const struct plain_blob *plain, int which) {
    const struct plain_memory *memory = plain->memory[which];
    return memory && memory->owners == 1 && memory->state.bytes > plain_bytes(plain) &&
           !table_is_borrowed(memory->state.side[SB_SIDE_CPU].kind) &&
           !table_is_borrowed(memory->state.side[SB_SIDE_GPU].kind);
}

static void shrink_memory(struct plain_blob *plain, int which) {
    const struct plain_memory *from = plain->memory[which];
    size_t bytes = plain_bytes(plain);
    struct plain_memory *to = plain_memory_new(plain->context, bytes);
    if (bytes && plain_is_written(from)) {
        (void)plain_do(to, from->state.head == SB_HEAD_AT_GPU ? OVERWRITE_GPU : OVERWRITE_CPU);
        memcpy(to->value, from->value, bytes);
    }
    plain_replace(plain, which, to);
}

static void shrink(struct world *w) {
    struct plain_blob *plain = w->plain;
    uint32_t expected = 0;
    if (!agree(w, "shrink_to_fit", SB_OK, sb_blob_shrink_to_fit(w->blob, &w->mask, &call_error)))
        return;
    for (int which = DATA; which <= DIFF; which++)
        if (is_shrinkable(plain, which)) {
            shrink_memory(plain, which);
            expected |= which == DATA ? SB_REALLOCATED_DATA : SB_REALLOCATED_DIFF;
        }
    check_equal(w->mask, expected);
}

static void destroy(struct pair *pair) {
    sb_blob_destroy(pair->blob);
    plain_replace(&pair->plain, DATA, NULL);
    plain_replace(&pair->plain, DIFF, NULL);
    pair->blob = NULL;
}

/* Replaces the blob by a new blob of the same dtype and context. */
static void create(struct world *w) {
    struct plain_blob *plain = w->plain;
    sb_context *context = w->sims[plain->context - w->plain_contexts].context;
    enum { EMPTY, SHAPED, LEGACY, INVALID } form = w->variant % 4;
    struct plain_shape shape = {.num_axes = -1};
    sb_blob *blob = NULL;
    sb_status expected = form == INVALID ? SB_ERR_INVALID_ARGUMENT : SB_OK;
    int32_t dtype = form == INVALID ? (w->variant & 4 ? 1000 : 0) : plain->dtype;
    if (form == SHAPED || form == LEGACY) {
        shape = draw_shape(&w->tape);
        if (form == LEGACY)
            shape.num_axes = 4;
        keep_small(&shape);
        expected = check_shape(w, &shape);
    }
    const int64_t *d = shape.dims;
    if (!agree(w, "create", expected,
               form == SHAPED
                   ? sb_blob_create_shaped(context, dtype, d, shape.num_axes, &blob, &call_error)
               : form == LEGACY ? sb_blob_create_legacy(context, dtype, d[0], d[1], d[2], d[3],
                                                        &blob, &call_error)
                                : sb_blob_create(context, dtype, &blob, &call_error)))
        return;
    destroy(w->pair);
    w->pair->blob = blob;
    (void)plain_take_shape(plain, &shape);
}

static void arm(struct world *w) {
    w->sims[w->plain->context - w->plain_contexts].counting.fail_nth =
        1 + (int64_t)tape_below(&w->tape, 6);
}

/* --- a run --------------------------------------------------------------------------------- */

static void make_step(struct world *w) {
    static void (*const steps[])(struct world *) = {
        reshape,     reshape_legacy, reshape_like, reshape_proto,
        share,       copy_from,      use_bytes,    clear,
        evict,       lend,           update,       scale,
        sums,        from_proto,     to_proto,     ask,
        at,          shrink,         create,       arm,
        lend_to_all, use_bytes,      reshape,      copy_from,
        set_memory,  drop_diff};
    uint32_t which = tape_below(&w->tape, sizeof steps / sizeof steps[0]);
    uint8_t how = tape_byte(&w->tape);
    w->pair = &w->pairs[how % BLOBS];
    w->other = &w->pairs[how / 4 % BLOBS];
    w->blob = w->pair->blob;
    w->plain = &w->pair->plain;
    w->which = how >> 4 & 1;
    w->variant = how >> 5;
    w->mask = 77;
    w->asked = w->variant & 1 ? NULL : &w->mask;
    steps[which](w);
}

static void open_context(struct world *w, int i, bool simulated, bool pinned) {
    simulated_open(&w->sims[i], (struct simulated_options){.host_only = !simulated,
                                                           .no_pinned = !pinned,
                                                           .max_host = MEMORY_CAP,
                                                           .max_pinned = MEMORY_CAP,
                                                           .max_device = MEMORY_CAP});
    w->plain_contexts[i] = (struct plain_context){
        simulated, simulated && pinned ? SB_STORAGE_PINNED : SB_STORAGE_OWNED};
}

/* Opens the contexts. One in eight inputs uses a device; one in two, a second context. */
static void open_world(struct world *w) {
    static const int32_t dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F64, SB_DTYPE_F64,
                                     SB_DTYPE_I32, SB_DTYPE_I8,  SB_DTYPE_F16, SB_DTYPE_F16};
    uint8_t how = tape_byte(&w->tape);
    bool simulated = how % 8 == 1, separate = how & 16;
    open_context(w, 0, simulated, how & 8);
    if (separate)
        open_context(w, 1, false, false);
    for (int i = 0; i < BLOBS; i++) {
        struct pair *pair = &w->pairs[i];
        int home = separate && i == BLOBS - 1;
        pair->plain =
            (struct plain_blob){.context = &w->plain_contexts[home], .shape.num_axes = -1};
        pair->plain.dtype = dtypes[i < 2 ? 0 : i == 2 ? how >> 4 & 2 : how >> 5];
        check_ok(
            sb_blob_create(w->sims[home].context, pair->plain.dtype, &pair->blob, &call_error));
    }
}

static void close_world(struct world *w) {
    disarm(w);
    for (int i = 0; i < BLOBS; i++)
        destroy(&w->pairs[i]);
    lender_check(&w->lender, false);
    lender_close(&w->lender);
    for (int i = 1; i >= 0; i--)
        if (w->sims[i].context)
            simulated_close(&w->sims[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world w = {.tape = {data, size}};
    open_world(&w);
    for (int i = 0; i < STEPS_MAX && w.tape.left > 0; i++) {
        make_step(&w);
        compare_all(&w);
    }
    close_world(&w);
    return 0;
}
