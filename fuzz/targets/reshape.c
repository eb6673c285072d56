/* Tests sb_blob with random calls on four blobs, whose state must agree with a reference model
   (plain_*). */
#include "counting_allocator.h"
#include "loan.h"
#include "simulated.h"
#include "state_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOBS       4
#define STEPS_MAX   96
#define ELEMENT_MAX 8
#define EXTRA_MAX   64
#define BYTES_MAX   ((size_t)(SMALL_COUNT * ELEMENT_MAX + EXTRA_MAX))

/* The reference model cannot predict whether memory suffices for counts between these limits. */
#define SMALL_COUNT  512
#define ABSURD_COUNT ((int64_t)1 << 24)
#define MEMORY_CAP   ((size_t)16 << 20) /* absurd counts need more bytes */

enum { DATA = SB_DATA, DIFF = SB_DIFF };

struct plain_context {
    bool has_device;
    int32_t host_kind;
};

struct plain_memory {
    const struct plain_context *context;
    struct memory_state state;
    int owners;
    unsigned char *value; /* the expected bytes; NULL if there are more than MEMORY_CAP */
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
    struct plain_memory *memory[2]; /* NULL if not created yet */
};

struct pair {
    sb_blob *blob;
    struct plain_blob plain;
};

struct world {
    struct tape tape;
    struct simulated sims[2];
    struct plain_context plain_contexts[2];
    struct lender lender;
    struct pair pairs[BLOBS];
    unsigned stamp;
    struct pair *pair, *other;
    sb_blob *blob; /* the blob of `pair` */
    struct plain_blob *plain;
    int which; /* DATA or DIFF */
    uint32_t variant;
    uint32_t mask, *asked; /* `mask` receives SB_REALLOCATED_* bits; `asked` is NULL or &mask */
    /* The memories that the call uses, in the order of use. */
    struct use {
        struct plain_memory *memory;
        enum call call;
    } uses[2];
    int num_uses;
};

/* --- the reference model: shapes ------------------------------------------------------------- */

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

static int32_t plain_axes(const struct plain_shape *shape) {
    return shape->num_axes < 0 ? 0 : shape->num_axes;
}

static bool plain_shape_same(const struct plain_shape *a, const struct plain_shape *b) {
    return a->num_axes == b->num_axes &&
           memcmp(a->dims, b->dims, (size_t)plain_axes(a) * sizeof *a->dims) == 0;
}

static size_t plain_bytes(const struct plain_blob *blob) {
    return (size_t)blob->shape.count * sb_dtype_size(blob->dtype);
}

static bool plain_has_arithmetic(const struct plain_blob *blob) {
    return blob->dtype == SB_DTYPE_F32 || blob->dtype == SB_DTYPE_F64;
}

/* --- the reference model: memories ----------------------------------------------------------- */

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

static struct plain_memory *plain_memory_of(struct plain_blob *blob, int which) {
    if (!blob->memory[which])
        blob->memory[which] = plain_memory_new(blob->context, plain_bytes(blob));
    return blob->memory[which];
}

/* A memory without owners is freed. The deleters of its loans must then have run. */
static void release(struct plain_memory *memory) {
    if (!memory || --memory->owners > 0)
        return;
    for (int side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
        if (memory->state.side[side].loan)
            memory->state.side[side].loan->due = true;
    free(memory->value);
    free(memory);
}

/* `memory` is [owned] [nullable]. */
static void plain_replace(struct plain_blob *blob, int which, struct plain_memory *memory) {
    struct plain_memory *old = blob->memory[which];
    blob->memory[which] = memory;
    release(old);
}

/* Returns SB_REALLOCATED_* bits. */
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

static sb_status plain_check(const struct plain_memory *memory, enum call call) {
    struct plan plan = table_plan(&memory->state, call);
    if (call_is_about_device(call) && !memory->context->has_device)
        return SB_ERR_NO_DEVICE;
    if (plan.status != SB_OK)
        return plan.status;
    return plan.allocates && memory->state.bytes > MEMORY_CAP ? SB_ERR_CAP_REACHED : SB_OK;
}

static void commit(struct plain_memory *memory, enum call call, struct side fresh) {
    const struct plan plan = table_plan(&memory->state, call);
    if (plan.allocates || plan.adopts || plan.drops)
        memory->at[plan.side] = NULL;
    struct loan *ended = table_commit(&memory->state, &plan, fresh);
    if (ended)
        ended->due = true;
    if (plan.zeroes)
        memset(memory->value, 0, memory->state.bytes);
}

static void plain_do(struct plain_memory *memory, enum call call) {
    const bool host = table_plan(&memory->state, call).side == SB_SIDE_CPU;
    const int32_t kind = memory->context->host_kind;
    commit(memory, call,
           (struct side){host && memory->state.bytes > 0 ? kind : SB_STORAGE_OWNED, NULL});
}

static void plain_adopt(struct plain_memory *memory, enum call call, struct loan *loan) {
    commit(
        memory, call,
        (struct side){loan->read_only ? SB_STORAGE_BORROWED_READ_ONLY : SB_STORAGE_BORROWED, loan});
    memcpy(memory->value, loan->before, memory->state.bytes);
}

static bool plain_is_written(const struct plain_memory *memory) {
    return memory && memory->state.head != SB_HEAD_UNINITIALIZED;
}

/* If both sides have the current bytes, `reading` and `writing` use the device. */
static enum call reading(const struct plain_memory *memory) {
    return memory->state.head == SB_HEAD_AT_CPU ? CPU_DATA : GPU_DATA;
}

static enum call writing(const struct plain_memory *memory) {
    return memory->state.head == SB_HEAD_AT_CPU ? MUTABLE_CPU : MUTABLE_GPU;
}

/* --- the reference model: elements ----------------------------------------------------------- */

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
    const size_t size = sb_dtype_size(dtype);
    memcpy(bytes + i * size, dtype == SB_DTYPE_F64 ? (const void *)&value : &narrow, size);
}

/* Floats represent odd integers exactly. No element is 0, because the sign of a computed 0 is
   unspecified. */
static void plain_fill(unsigned char *out, size_t bytes, const struct plain_blob *blob,
                       unsigned seed) {
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(i * 7 + seed * 13 + 1);
    for (size_t i = 0; plain_has_arithmetic(blob) && i < bytes / sb_dtype_size(blob->dtype); i++)
        plain_put(out, i, blob->dtype, (double)((i * 7 + (size_t)seed * 13) % 251) * 2 - 251);
}

/* --- choices ----------------------------------------------------------------------- */

static int64_t draw_dim(struct tape *tape) {
    static const int64_t special[] = {8, 64, -1, INT64_C(1) << 31, INT64_C(1) << 40, INT64_MAX};
    uint32_t code = tape_below(tape, 16);
    return code < 10 ? (int64_t)code % 5 : special[code - 10];
}

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

/* --- agreement ----------------------------------------------------------------------------- */

static void disarm(struct world *w) {
    for (int i = 0; i < 2; i++)
        w->sims[i].counting.fail_nth = 0;
}

/* Adds to the reference model the memories and the storage that a failed call may have created. */
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

static void expect_use(struct world *w, struct plain_memory *memory, enum call call) {
    w->uses[w->num_uses++] = (struct use){memory, call};
}

/* Checks that the status of `call` is `refusal` or, if `refusal` is SB_OK, the first failure of the
   step's uses. After a success, adds the uses to the reference model. The caller makes all other
   updates. */
#define agree(w, what, refusal, call) is_agreed(w, what, refusal, status_of(call))
static bool is_agreed(struct world *w, const char *what, sb_status expected, sb_status st) {
    trace("%s of blob %d (%d), other %d, variant %u: %s", what, (int)(w->pair - w->pairs), w->which,
          (int)(w->other - w->pairs), w->variant, sb_status_name(st));
    for (int i = 0; i < w->num_uses && expected == SB_OK; i++)
        expected = plain_check(w->uses[i].memory, w->uses[i].call);
    const bool first = simulated_strike(&w->sims[0]).allocator;
    if (simulated_strike(&w->sims[1]).allocator || first)
        expected = SB_ERR_OUT_OF_MEMORY;
    fuzz_check(st == expected, "%s: %s, not %s (%.200s)", what, sb_status_name(st),
               sb_status_name(expected), st == SB_OK ? "" : call_error.message);
    for (int i = 0; i < w->num_uses && st == SB_OK; i++)
        plain_do(w->uses[i].memory, w->uses[i].call);
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
    check_equal(sb_blob_num_axes(pair->blob), plain_axes(&plain->shape));
    check_equal(sb_blob_count(pair->blob), plain->shape.count);
    for (int32_t i = 0; i < plain_axes(&plain->shape); i++)
        check_equal(sb_blob_shape(pair->blob)[i], plain->shape.dims[i]);
}

/* Storage must keep its address between comparisons. */
static void compare_side(const struct world *w, struct plain_memory *memory, const sb_mem *mem,
                         int side) {
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
    fuzz_check(memcmp(ptr, memory->value, memory->state.bytes) == 0,
               "the %zu bytes on side %d differ from the model", memory->state.bytes, side);
}

static void compare_memory(const struct world *w, const struct pair *pair, int which) {
    struct plain_memory *memory = pair->plain.memory[which];
    sb_mem *mem = NULL;
    check_equal(sb_blob_capacity(pair->blob, which),
                memory ? memory->state.bytes / sb_dtype_size(pair->plain.dtype) : 0);
    if (!memory) /* sb_blob_mutable_mem would create the memory */
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
            compare_side(w, memory, mem, side);
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

static void reshape(struct world *w) {
    enum { BY_DIMS, AGAIN_BY_DIMS, LEGACY, LIKE } way = w->variant >> 1;
    struct plain_shape shape = way == LIKE ? w->other->plain.shape : draw_shape(&w->tape);
    const int64_t *d = shape.dims;
    if (way == LIKE)
        shape.num_axes = plain_axes(&shape);
    if (way == LEGACY)
        shape.num_axes = 4;
    keep_small(&shape);
    if (!agree(w, "reshape", plain_shape_check(&shape, sb_dtype_size(w->plain->dtype)),
               way == LIKE ? sb_blob_reshape_like(w->blob, w->other->blob, w->asked, &call_error)
               : way == LEGACY
                   ? sb_blob_reshape_legacy(w->blob, d[0], d[1], d[2], d[3], w->asked, &call_error)
                   : sb_blob_reshape(w->blob, d, shape.num_axes, w->asked, &call_error)))
        return;
    const uint32_t expected = plain_take_shape(w->plain, &shape);
    if (w->asked)
        check_equal(w->mask, expected);
}

/* --- questions ----------------------------------------------------------------------------- */

/* If `end` is -1, counts all axes from `start` on. */
static void ask_count(struct world *w, int32_t start, int32_t end) {
    const struct plain_shape *shape = &w->plain->shape;
    const int32_t last = end < 0 ? plain_axes(shape) : end;
    const bool inside = start >= 0 && start <= last && last <= plain_axes(shape);
    struct plain_shape part = {.num_axes = inside ? last - start : 0};
    int64_t seen = 77;
    for (int32_t i = 0; i < part.num_axes; i++)
        part.dims[i] = shape->dims[start + i];
    if (agree(w, "count", inside ? plain_shape_check(&part, 1) : SB_ERR_INDEX_OUT_OF_RANGE,
              end < 0 ? sb_blob_count_from(w->blob, start, &seen, &call_error)
                      : sb_blob_count_range(w->blob, start, end, &seen, &call_error)))
        check_equal(seen, part.count);
}

static void ask_axis(struct world *w, int32_t axis) {
    const int64_t *dims = w->plain->shape.dims;
    const int32_t axes = plain_axes(&w->plain->shape), at = axis < 0 ? axis + axes : axis;
    const bool inside = at >= 0 && at < axes;
    const sb_status expected = inside ? SB_OK : SB_ERR_INDEX_OUT_OF_RANGE;
    int32_t canonical = 77;
    int64_t dim = 77;
    if (agree(w, "axis", expected, sb_blob_canonical_axis(w->blob, axis, &canonical, &call_error)))
        check_equal(canonical, at);
    if (agree(w, "dim", expected, sb_blob_dim(w->blob, axis, &dim, &call_error)))
        check_equal(dim, dims[at]);
    if (agree(w, "legacy_shape",
              axes > 4                ? SB_ERR_SHAPE_MISMATCH
              : axis < -4 || axis > 3 ? SB_ERR_INDEX_OUT_OF_RANGE
                                      : SB_OK,
              sb_blob_legacy_shape(w->blob, axis, &dim, &call_error)))
        check_equal(dim, inside ? dims[at] : 1);
}

static void ask_text(struct world *w, size_t capacity) {
    const struct plain_shape *shape = &w->plain->shape, *other = &w->other->plain.shape;
    char text[1024] = "", seen[1024];
    size_t at = 0, length = 77;
    for (int32_t i = 0; i < plain_axes(shape); i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%lld ", (long long)shape->dims[i]);
    at += (size_t)snprintf(text + at, sizeof text - at, "(%lld)", (long long)shape->count);
    memset(seen, '?', sizeof seen);
    check_ok(sb_blob_shape_string(w->blob, seen, capacity, &length, &call_error));
    check_equal(length, at);
    const size_t shown = capacity > at ? at : capacity > 0 ? capacity - 1 : 0;
    memset(text + shown, '?', sizeof text - shown);
    if (capacity > 0)
        text[shown] = 0;
    fuzz_check(memcmp(seen, text, sizeof text) == 0, "wrong text in %zu bytes", capacity);
    check_equal(sb_blob_shape_equals(w->blob, w->other->blob), plain_shape_same(shape, other));
    check_equal(sb_blob_shape_equals_dims(w->blob, other->dims, other->num_axes),
                other->num_axes >= 0 && plain_shape_same(shape, other));
}

static void ask(struct world *w) {
    const int32_t start = (int32_t)tape_below(&w->tape, 8) - 1;
    ask_count(w, start, (int32_t)tape_below(&w->tape, 8));
    ask_count(w, start, -1);
    ask_axis(w, (int32_t)tape_below(&w->tape, 80) - 40);
    ask_axis(w, start - 3);
    ask_text(w, tape_below(&w->tape, 64));
}

/* As in Caffe, an index of a legacy offset may be equal to its dimension. */
static void at(struct world *w) {
    static const int64_t codes[] = {0, 1, 2, 3, 4, 5, INT64_MAX, -1};
    const bool legacy = w->variant & 1;
    const int32_t given = legacy ? 4 : (int32_t)tape_below(&w->tape, 7);
    const size_t size = sb_dtype_size(w->plain->dtype);
    struct plain_shape shape = w->plain->shape;
    unsigned char seen[ELEMENT_MAX];
    int64_t i[SB_MAX_AXES] = {0}, offset = 0, found = 77;
    for (int32_t axis = 0; axis < given; axis++)
        i[axis] = codes[tape_below(&w->tape, 8)];
    shape.num_axes = plain_axes(&shape);
    const bool is_refused = legacy && shape.num_axes > 4;
    while (legacy && shape.num_axes < 4)
        shape.dims[shape.num_axes++] = 1;
    bool inside = given <= shape.num_axes && shape.count > 0, near = true, fits = true;
    for (int32_t axis = 0; axis < shape.num_axes; axis++) {
        inside &= i[axis] >= 0 && i[axis] < shape.dims[axis];
        near &= i[axis] >= 0 && i[axis] <= shape.dims[axis];
        fits &= !__builtin_mul_overflow(offset, shape.dims[axis], &offset);
        fits &= !__builtin_add_overflow(offset, i[axis], &offset);
    }
    const sb_status refusal = is_refused ? SB_ERR_SHAPE_MISMATCH
                              : inside   ? SB_OK
                                         : SB_ERR_INDEX_OUT_OF_RANGE;
    if (agree(w, "offset",
              legacy && near && !is_refused ? fits ? SB_OK : SB_ERR_SIZE_OVERFLOW : refusal,
              legacy ? sb_blob_offset_legacy(w->blob, i[0], i[1], i[2], i[3], &found, &call_error)
                     : sb_blob_offset(w->blob, i, given, &found, &call_error)))
        check_equal(found, offset);
    struct plain_memory *memory = refusal == SB_OK ? plain_memory_of(w->plain, w->which) : NULL;
    if (memory)
        expect_use(w, memory, CPU_DATA);
    if (agree(w, "element", refusal,
              !legacy ? sb_blob_at(w->blob, w->which, i, given, seen, &call_error)
                      : (w->which == DATA ? sb_blob_data_at_legacy : sb_blob_diff_at_legacy)(
                            w->blob, i[0], i[1], i[2], i[3], seen, &call_error)))
        fuzz_check(memcmp(seen, memory->value + (size_t)offset * size, size) == 0,
                   "element %lld is wrong", (long long)offset);
}

/* --- sharing and copying ------------------------------------------------------------ */

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

static sb_mem *handle_of(struct world *w, struct pair *pair) {
    sb_mem *mem;
    if (!agree(w, "handle", SB_OK, sb_blob_mutable_mem(pair->blob, w->which, &mem, &call_error)))
        return NULL;
    (void)plain_memory_of(&pair->plain, w->which);
    return mem;
}

/* The memory may be larger than the blob needs. */
static void set_memory(struct world *w) {
    const struct plain_blob *plain = w->plain, *other = &w->other->plain;
    sb_mem *mem = handle_of(w, w->other);
    if (!mem || plain->dtype != other->dtype) /* the reference model cannot convert bytes */
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

/* A copy from a source that was never written clears the target. */
static void expect_copy(struct world *w, struct plain_memory *to, struct plain_memory *from,
                        size_t bytes) {
    const bool whole = to->state.bytes == bytes;
    if (!plain_is_written(from)) {
        expect_use(w, to, !plain_is_written(to) ? MUTABLE_CPU : whole ? CLEAR : writing(to));
        return;
    }
    const bool host = w->plain->context != w->other->plain.context || reading(from) == CPU_DATA;
    expect_use(w, to,
               whole  ? host ? OVERWRITE_CPU : OVERWRITE_GPU
               : host ? MUTABLE_CPU
                      : MUTABLE_GPU);
    expect_use(w, from, host ? CPU_DATA : GPU_DATA);
}

static void copy_from(struct world *w) {
    const struct plain_shape shape = w->other->plain.shape;
    const size_t bytes = plain_bytes(&w->other->plain);
    struct plain_memory *to = w->plain->memory[w->which], *fresh = NULL,
                        *from = w->other->plain.memory[w->which];
    const uint32_t flags =
        w->variant == 7 ? SB_PROTO_RESHAPE : (w->variant & 1 ? SB_COPY_RESHAPE : 0);
    const sb_status expected = flags & ~(uint32_t)SB_COPY_RESHAPE         ? SB_ERR_INVALID_ARGUMENT
                               : w->plain->dtype != w->other->plain.dtype ? SB_ERR_DTYPE_MISMATCH
                               : !flags && !plain_shape_same(&w->plain->shape, &shape)
                                   ? SB_ERR_SHAPE_MISMATCH
                                   : SB_OK;
    const bool copies = w->pair != w->other && bytes > 0 && !(from && from == to);
    if (copies && expected == SB_OK) {
        if (!to || to->state.bytes < bytes)
            to = fresh = plain_memory_new(w->plain->context, bytes);
        expect_copy(w, to, from, bytes);
    }
    if (!agree(w, "copy_from", expected,
               sb_blob_copy_from(w->blob, w->which, w->other->blob, flags, &call_error))) {
        release(fresh);
        return;
    }
    if (fresh)
        plain_replace(w->plain, w->which, fresh);
    if (copies && w->num_uses == 2)
        memcpy(to->value, from->value, bytes);
    else if (copies)
        memset(to->value, 0, bytes);
    if (w->pair != w->other)
        (void)plain_take_shape(w->plain, &shape);
}

/* --- bytes --------------------------------------------------------------------------------- */

/* Writes all bytes of the memory, because an OVERWRITE call leaves their values unspecified. */
static void use_bytes(struct world *w) {
    static const enum call calls[] = {CPU_DATA, MUTABLE_CPU, OVERWRITE_CPU,
                                      GPU_DATA, MUTABLE_GPU, OVERWRITE_GPU};
    const enum call call = calls[tape_below(&w->tape, 6)];
    struct plain_memory *memory = plain_memory_of(w->plain, w->which);
    const size_t bytes = memory->state.bytes;
    void *ptr = NULL;
    expect_use(w, memory, call);
    if (!agree(w, "bytes", SB_OK, blob_call(w->blob, w->which, call, NULL, &ptr, &call_error)))
        return;
    fuzz_check(ptr, "a NULL pointer");
    if (bytes == 0 || call_kinds[call].purpose == READ)
        return;
    plain_fill(memory->value, bytes, w->plain, w->stamp++);
    if (call_kinds[call].side == SB_SIDE_CPU)
        memcpy(ptr, memory->value, bytes);
    else
        ignore(sb_sim_poke(w->sims[0].context, ptr, memory->value, bytes, NULL));
}

static void clear(struct world *w) {
    struct plain_memory *memory = w->plain->memory[w->which];
    const size_t bytes = plain_bytes(w->plain);
    const bool writes = plain_is_written(memory) && (bytes > 0 || memory->state.bytes == 0);
    if (writes)
        expect_use(w, memory, bytes == memory->state.bytes ? CLEAR : writing(memory));
    if (agree(w, "clear", SB_OK, sb_blob_clear(w->blob, w->which, &call_error)) && writes)
        memset(memory->value, 0, bytes);
}

static void evict(struct world *w) {
    sb_mem *mem = handle_of(w, w->pair);
    if (!mem)
        return;
    expect_use(w, w->plain->memory[w->which], w->variant & 1 ? EVICT_GPU : EVICT_CPU);
    (void)agree(w, "evict", SB_OK,
                (w->variant & 1 ? sb_mem_evict_gpu : sb_mem_evict_cpu)(mem, &call_error));
}

/* --- lending ------------------------------------------------------------------------------- */

static struct loan *make_loan(struct world *w, bool device, size_t bytes, bool read_only) {
    static unsigned char value[BYTES_MAX];
    plain_fill(value, bytes, w->plain, w->stamp++);
    return lender_make(&w->lender, device ? w->sims[0].context : NULL, value, bytes, read_only);
}

/* Blobs that shared the old data keep the old memory. */
static void lend(struct world *w) {
    enum { SHORT = 6, FLAG, MISSING, ASKEW };
    static const size_t extras[] = {0, 0, 8, 3, EXTRA_MAX};
    const struct plain_blob *plain = w->plain;
    const bool device = w->variant & 1;
    const uint32_t way = tape_below(&w->tape, 16);
    const bool is_absurd = plain_bytes(plain) > BYTES_MAX - EXTRA_MAX;
    const size_t least = is_absurd ? 0 : plain_bytes(plain);
    const bool is_short = way == SHORT && least > 0, is_flawed = way == FLAG || way == MISSING,
               is_askew = way == ASKEW && sb_dtype_size(plain->dtype) > 1;
    const size_t bytes = is_short ? least - 1 : least + extras[way % 5];
    const uint32_t flags = way == FLAG ? SB_COPY_RESHAPE : w->variant >> 1 & 1;
    struct loan *loan =
        make_loan(w, device && plain->context->has_device, bytes, flags == SB_READ_ONLY);
    if (!loan)
        return;
    const sb_status expected = is_short || is_flawed || is_askew || is_absurd
                                   ? SB_ERR_INVALID_ARGUMENT
                               : device && !plain->context->has_device ? SB_ERR_NO_DEVICE
                                                                       : SB_OK;
    void *ptr = way == MISSING ? NULL : (char *)loan->ptr + is_askew;
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

static void scale(struct world *w) {
    static const double factors[] = {1, -1, 0.5, 2, -3, 0.25, 1, -1};
    const struct plain_blob *plain = w->plain;
    struct plain_memory *memory = plain->memory[w->which];
    const double factor = factors[w->variant];
    const bool writes = plain->shape.count > 0 && plain_is_written(memory);
    if (writes)
        expect_use(w, memory, writing(memory));
    if (!agree(w, "scale", plain_has_arithmetic(plain) ? SB_OK : SB_ERR_UNSUPPORTED,
               sb_blob_scale(w->blob, w->which, factor, &call_error)))
        return;
    for (size_t i = 0; writes && i < (size_t)plain->shape.count; i++)
        plain_put(memory->value, i, plain->dtype,
                  plain_at(memory->value, i, plain->dtype) * factor);
}

static void update(struct world *w) {
    struct plain_blob *plain = w->plain;
    struct plain_memory *data = plain->memory[DATA], *diff = NULL;
    const int32_t dtype = plain->dtype;
    const bool is_empty = plain->shape.count == 0;
    const sb_status expected = !plain_has_arithmetic(plain)           ? SB_ERR_UNSUPPORTED
                               : !is_empty && !plain_is_written(data) ? SB_ERR_UNINITIALIZED
                                                                      : SB_OK;
    if (expected == SB_OK && !is_empty) {
        expect_use(w, data, writing(data));
        diff = plain_memory_of(plain, DIFF);
        expect_use(w, diff, writing(data) == MUTABLE_CPU ? CPU_DATA : GPU_DATA);
    }
    if (!agree(w, "update", expected, sb_blob_update(w->blob, &call_error)))
        return;
    for (size_t i = 0; i < (size_t)plain->shape.count; i++)
        plain_put(data->value, i, dtype,
                  plain_at(data->value, i, dtype) - plain_at(diff->value, i, dtype));
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
        plain_do(to, from->state.head == SB_HEAD_AT_GPU ? OVERWRITE_GPU : OVERWRITE_CPU);
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

static void create(struct world *w) {
    struct plain_blob *plain = w->plain;
    sb_context *context = w->sims[plain->context - w->plain_contexts].context;
    const bool is_shaped = w->variant & 1, legacy = w->variant & 2;
    struct plain_shape shape = {.num_axes = -1};
    const int64_t *d = shape.dims;
    sb_blob *blob = NULL;
    if (is_shaped)
        shape = draw_shape(&w->tape);
    if (is_shaped && legacy)
        shape.num_axes = 4;
    keep_small(&shape);
    if (!agree(w, "create",
               is_shaped ? plain_shape_check(&shape, sb_dtype_size(plain->dtype)) : SB_OK,
               is_shaped && legacy ? sb_blob_create_legacy(context, plain->dtype, d[0], d[1], d[2],
                                                           d[3], &blob, &call_error)
               : is_shaped ? sb_blob_create_shaped(context, plain->dtype, d, shape.num_axes, &blob,
                                                   &call_error)
                           : sb_blob_create(context, plain->dtype, &blob, &call_error)))
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
        reshape, reshape, share,  copy_from, copy_from,   use_bytes,  use_bytes,
        clear,   evict,   lend,   update,    scale,       sums,       ask,
        at,      shrink,  create, arm,       lend_to_all, set_memory, drop_diff};
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
    w->num_uses = 0;
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

/* One in eight inputs uses a device. One in two inputs uses a second context. */
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
