/* Tests sb_blob: the input chooses calls on four blobs of several element types, on the host or the
   simulated device. The calls share memory, lend it to blobs and reshape blobs, and allocations may
   fail. After every step shapes, contents, storage and sharing must agree with the model in
   support/blob_model.c. */
#include "blob_message.h"
#include "blob_model.h"
#include "ignore.h"
#include "loan.h"
#include "simulated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOBS       4
#define STEPS_MAX   48
#define ELEMENT_MAX 8
#define EXTRA_MAX   64 /* bytes that a loan may have beyond the blob's elements */
#define BYTES_MAX   ((size_t)(SMALL_COUNT * ELEMENT_MAX + EXTRA_MAX))

struct pair {
    sb_blob *blob;
    struct plain_blob plain;
};

struct world {
    struct tape tape;
    struct simulated sims[2]; /* the second may be closed */
    struct plain_context plain_contexts[2];
    struct lender lender;
    struct pair pairs[BLOBS];
    unsigned stamp;
};

/* The operands of a step. */
struct step {
    struct pair *pair, *other;
    int which; /* DATA or DIFF */
    uint32_t variant;
    uint32_t mask, *asked; /* bits of replaced memories; `asked` is NULL or &mask */
    sb_error err;          /* the error of the next call */
};

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

static bool memory_ran_out(struct world *w) {
    bool first = simulated_strike(&w->sims[0]).allocator;
    return simulated_strike(&w->sims[1]).allocator || first;
}

/* Adds to the model the memories and the storage that a failed call may have created. */
static void accept_spares(struct world *w, struct pair *pair) {
    for (int which = DATA; which <= DIFF && pair->blob; which++) {
        struct plain_memory *memory = plain_memory_of(&pair->plain, which);
        sb_mem *mem;
        disarm(w);
        sb_status st = sb_blob_mutable_mem(pair->blob, which, &mem, NULL);
        fuzz_check(st == SB_OK, "no handle: %s", sb_status_name(st));
        for (int side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++) {
            int32_t kind = sb_mem_storage(mem, side);
            if (memory->state.side[side].kind == SB_STORAGE_NONE &&
                (kind == SB_STORAGE_OWNED || kind == SB_STORAGE_PINNED))
                memory->state.side[side].kind = kind;
        }
    }
}

/* Checks the status of a call. Returns whether it is SB_OK; then the caller updates the model. */
static bool agree(struct world *w, struct step *step, const char *what, sb_status st,
                  sb_status expected) {
    const sb_error err = step->err;
    step->err = fuzz_fresh_error();
    trace("%s of blob %d (%d), other %d, variant %u: %s", what, (int)(step->pair - w->pairs),
          step->which, (int)(step->other - w->pairs), step->variant, sb_status_name(st));
    if (memory_ran_out(w))
        expected = SB_ERR_OUT_OF_MEMORY;
    fuzz_check_error(st, &err);
    fuzz_check(st == expected, "%s: %s, not %s (%.200s)", what, sb_status_name(st),
               sb_status_name(expected), st == SB_OK ? "" : err.message);
    if (st == SB_OK)
        return true;
    accept_spares(w, step->pair);
    accept_spares(w, step->other);
    return false;
}

#define CHECK_EQUAL(what, found, expected)                                                         \
    fuzz_check((found) == (expected), "%s is %lld, not %lld", what, (long long)(found),            \
               (long long)(expected))

/* --- after every step --------------------------------------------------------------- */

static void compare_shape(const struct pair *pair) {
    const struct plain_blob *plain = &pair->plain;
    int32_t axes = plain->num_axes < 0 ? 0 : plain->num_axes;
    CHECK_EQUAL("dtype", sb_blob_dtype(pair->blob), plain->dtype);
    CHECK_EQUAL("shaped", sb_blob_is_shaped(pair->blob), plain->num_axes >= 0);
    CHECK_EQUAL("axes", sb_blob_num_axes(pair->blob), axes);
    CHECK_EQUAL("count", sb_blob_count(pair->blob), plain->count);
    for (int32_t i = 0; i < axes; i++)
        CHECK_EQUAL("a dimension", sb_blob_shape(pair->blob)[i], plain->dims[i]);
}

/* Checks that storage has the same address as at the last comparison. */
static void compare_place(struct plain_memory *memory, int side, const void *ptr) {
    if (memory->at[side] && memory->state.bytes)
        fuzz_check(memory->at[side] == ptr, "side %d moved from %p to %p", side, memory->at[side],
                   ptr);
    memory->at[side] = ptr;
}

static void compare_host(struct plain_memory *memory, const sb_mem *mem, int32_t dtype) {
    const void *seen;
    fuzz_check(sb_mem_cpu(mem, &seen, NULL) == SB_OK, "host bytes cannot be read");
    fuzz_check(plain_equal(seen, memory->value, memory->state.bytes, dtype),
               "%zu host bytes are wrong", memory->state.bytes);
    compare_place(memory, SB_SIDE_CPU, seen);
}

static void compare_device(const struct world *w, const struct pair *pair,
                           struct plain_memory *memory, const sb_mem *mem) {
    static unsigned char seen[BYTES_MAX];
    const void *ptr;
    fuzz_check(sb_mem_gpu(mem, &ptr, NULL) == SB_OK, "device bytes cannot be read");
    compare_place(memory, SB_SIDE_GPU, ptr);
    if (memory->state.bytes == 0)
        return;
    fuzz_check(sb_sim_peek(w->sims[0].context, seen, ptr, memory->state.bytes, NULL) == SB_OK,
               "a device pointer is invalid");
    fuzz_check(plain_equal(seen, memory->value, memory->state.bytes, pair->plain.dtype),
               "%zu device bytes are wrong", memory->state.bytes);
}

static void compare_memory(const struct world *w, const struct pair *pair, int which) {
    struct plain_memory *memory = pair->plain.memory[which];
    sb_mem *mem = NULL;
    int64_t capacity = sb_blob_capacity(pair->blob, which);
    CHECK_EQUAL("capacity", capacity,
                (int64_t)(memory ? memory->state.bytes / sb_dtype_size(pair->plain.dtype) : 0));
    if (!memory) /* a comparison would create it */
        return;
    sb_status st = sb_blob_mutable_mem(pair->blob, which, &mem, NULL);
    fuzz_check(st == SB_OK, "no handle: %s", sb_status_name(st));
    fuzz_check(!memory->handle || memory->handle == mem, "the memory was replaced");
    memory->handle = mem;
    CHECK_EQUAL("size", sb_mem_size(mem), memory->state.bytes);
    CHECK_EQUAL("only owner", sb_mem_is_unique(mem), memory->owners == 1);
    CHECK_EQUAL("head", sb_mem_head(mem), memory->state.head);
    for (int side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
        CHECK_EQUAL("storage", sb_mem_storage(mem, side), memory->state.side[side].kind);
    if (table_is_current(memory->state.head, SB_SIDE_CPU))
        compare_host(memory, mem, pair->plain.dtype);
    if (table_is_current(memory->state.head, SB_SIDE_GPU))
        compare_device(w, pair, memory, mem);
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

static void take_shape(struct step *step, const struct plain_shape *shape) {
    uint32_t expected = plain_take_shape(&step->pair->plain, shape);
    if (step->asked)
        CHECK_EQUAL("reallocation mask", step->mask, expected);
}

static void reshape(struct world *w, struct step *step) {
    struct plain_shape shape = draw_shape(&w->tape);
    sb_status expected = plain_shape_check(&shape, sb_dtype_size(step->pair->plain.dtype));
    sb_status st =
        sb_blob_reshape(step->pair->blob, shape.dims, shape.num_axes, step->asked, &step->err);
    if (agree(w, step, "reshape", st, expected))
        take_shape(step, &shape);
}

static void reshape_legacy(struct world *w, struct step *step) {
    struct plain_shape shape = {.num_axes = 4};
    for (int i = 0; i < 4; i++)
        shape.dims[i] = draw_dim(&w->tape);
    keep_small(&shape);
    const int64_t *d = shape.dims;
    sb_status expected = plain_shape_check(&shape, sb_dtype_size(step->pair->plain.dtype));
    sb_status st =
        sb_blob_reshape_legacy(step->pair->blob, d[0], d[1], d[2], d[3], step->asked, &step->err);
    if (agree(w, step, "reshape_legacy", st, expected))
        take_shape(step, &shape);
}

static void reshape_like(struct world *w, struct step *step) {
    struct plain_shape shape = plain_shape_of(&step->other->plain);
    if (shape.num_axes < 0)
        shape = (struct plain_shape){.count = 1};
    int64_t most = INT64_MAX / (int64_t)sb_dtype_size(step->pair->plain.dtype);
    sb_status expected = shape.count > most ? SB_ERR_SIZE_OVERFLOW : SB_OK;
    sb_status st =
        sb_blob_reshape_like(step->pair->blob, step->other->blob, step->asked, &step->err);
    if (agree(w, step, "reshape_like", st, expected))
        take_shape(step, &shape);
}

static void reshape_proto(struct world *w, struct step *step) {
    struct wire message = {0};
    struct plain_shape shape = draw_shape(&w->tape);
    if (shape.num_axes < 0)
        shape.num_axes = 0;
    bool cut = step->variant & 4 && shape.num_axes > 0;
    message_encode_shape(&shape, step->variant & 2, cut, &message);
    sb_status expected = cut ? SB_ERR_MALFORMED : message_shape_status(&shape);
    if (expected == SB_OK &&
        plain_shape_check(&shape, sb_dtype_size(step->pair->plain.dtype)) != SB_OK)
        expected = SB_ERR_DATA_OVERFLOW;
    sb_status st = sb_blob_reshape_proto(step->pair->blob, message.bytes, message.size, step->asked,
                                         &step->err);
    wire_free(&message);
    if (agree(w, step, "reshape_proto", st, expected))
        take_shape(step, &shape);
}

/* --- sharing and copying ------------------------------------------------------------ */

static void share(struct world *w, struct step *step) {
    struct plain_blob *plain = &step->pair->plain, *other = &step->other->plain;
    sb_status expected = plain->dtype != other->dtype       ? SB_ERR_DTYPE_MISMATCH
                         : plain->count != other->count     ? SB_ERR_SHAPE_MISMATCH
                         : plain->context != other->context ? SB_ERR_WRONG_DEVICE
                                                            : SB_OK;
    sb_status st = sb_blob_share(step->pair->blob, step->which, step->other->blob, &step->err);
    if (!agree(w, step, "share", st, expected))
        return;
    struct plain_memory *memory = plain_memory_of(other, step->which);
    memory->owners++;
    plain_replace(plain, step->which, memory);
}

/* Shares the other blob's memory by its handle, even if it is larger than the blob needs. */
static void set_memory(struct world *w, struct step *step) {
    struct plain_blob *plain = &step->pair->plain, *other = &step->other->plain;
    sb_mem *mem;
    sb_status st = sb_blob_mutable_mem(step->other->blob, step->which, &mem, &step->err);
    if (!agree(w, step, "handle", st, SB_OK))
        return;
    struct plain_memory *memory = plain_memory_of(other, step->which);
    if (plain->dtype != other->dtype) /* the model cannot convert bytes of another type */
        return;
    sb_status expected = memory->state.bytes < plain_bytes(plain) ? SB_ERR_INVALID_ARGUMENT
                         : plain->context != other->context       ? SB_ERR_WRONG_DEVICE
                                                                  : SB_OK;
    st = sb_blob_set_mem(step->pair->blob, step->which, mem, &step->err);
    if (!agree(w, step, "set memory", st, expected))
        return;
    memory->owners++;
    plain_replace(plain, step->which, memory);
}

static void drop_diff(struct world *w, struct step *step) {
    (void)w;
    sb_blob_drop(step->pair->blob, SB_DIFF);
    plain_replace(&step->pair->plain, DIFF, NULL);
}

/* The memory to which a call writes: the blob's memory, or a new memory if the blob has none or its
   memory is too small. */
struct target {
    struct plain_memory *memory, *fresh;
    enum call call;
};

static struct target target_of(struct plain_blob *blob, int which, size_t bytes, int32_t side) {
    struct target target = {.memory = blob->memory[which]};
    if (!target.memory || target.memory->state.bytes < bytes)
        target.memory = target.fresh = plain_memory_new(blob->context, bytes);
    bool whole = target.memory->state.bytes == bytes; /* all bytes will be overwritten */
    target.call = side == SB_SIDE_CPU ? (whole ? OVERWRITE_CPU : MUTABLE_CPU)
                                      : (whole ? OVERWRITE_GPU : MUTABLE_GPU);
    return target;
}

static void drop_target(struct target *target) {
    if (target->fresh) {
        free(target->fresh->value);
        free(target->fresh);
    }
}

static void take_target(struct plain_blob *blob, int which, struct target *target,
                        const unsigned char *value, size_t bytes) {
    (void)plain_do(target->memory, target->call);
    if (bytes)
        memcpy(target->memory->value, value, bytes);
    if (target->fresh)
        plain_replace(blob, which, target->fresh);
}

/* Returns the status of a clear of the first `bytes` bytes; if `commit`, also updates the model. */
static sb_status clear_model(struct plain_memory *memory, size_t bytes, bool commit) {
    if (!plain_is_written(memory) || (bytes == 0 && memory->state.bytes > 0))
        return SB_OK;
    enum call call = bytes == memory->state.bytes        ? CLEAR
                     : plain_side(memory) == SB_SIDE_CPU ? MUTABLE_CPU
                                                         : MUTABLE_GPU;
    sb_status st = plain_check(memory, call);
    if (st == SB_OK && commit) {
        (void)plain_do(memory, call);
        memset(memory->value, 0, bytes);
    }
    return st;
}

static sb_status check_copy(const struct step *step, uint32_t flags) {
    if (flags & ~(uint32_t)SB_COPY_RESHAPE)
        return SB_ERR_INVALID_ARGUMENT;
    if (step->pair->plain.dtype != step->other->plain.dtype)
        return SB_ERR_DTYPE_MISMATCH;
    if (!(flags & SB_COPY_RESHAPE) && !plain_shape_same(&step->pair->plain, &step->other->plain))
        return SB_ERR_SHAPE_MISMATCH;
    return SB_OK;
}

/* As clear_model, for a copy from a memory that was never written: clears the target on the side of
   its head, or on the host if the target was never written either. */
static sb_status copy_zeros(struct step *step, int which, bool commit) {
    struct plain_blob *to = &step->pair->plain;
    size_t bytes = plain_bytes(&step->other->plain);
    struct target target = target_of(to, which, bytes, SB_SIDE_CPU);
    if (plain_is_written(target.memory))
        return clear_model(target.memory, bytes, commit);
    target.call = MUTABLE_CPU;
    sb_status st = plain_check(target.memory, target.call);
    if (st == SB_OK && commit)
        take_target(to, which, &target, NULL, 0);
    else
        drop_target(&target);
    return st;
}

static sb_status copy_bytes(struct step *step, int which, bool commit) {
    struct plain_blob *to = &step->pair->plain, *source = &step->other->plain;
    struct plain_memory *from = source->memory[which];
    int32_t side = to->context == source->context ? plain_side(from) : SB_SIDE_CPU;
    struct target target = target_of(to, which, plain_bytes(source), side);
    enum call read = side == SB_SIDE_CPU ? CPU_DATA : GPU_DATA;
    sb_status st = plain_check(target.memory, target.call);
    if (st == SB_OK)
        st = plain_check(from, read);
    if (st != SB_OK || !commit) {
        drop_target(&target);
        return st;
    }
    (void)plain_do(from, read);
    take_target(to, which, &target, from->value, plain_bytes(source));
    return SB_OK;
}

static sb_status copy_model(struct step *step, int which, bool commit) {
    struct plain_memory *from = step->other->plain.memory[which];
    if (step->other->plain.count == 0 || (from && from == step->pair->plain.memory[which]))
        return SB_OK;
    return plain_is_written(from) ? copy_bytes(step, which, commit)
                                  : copy_zeros(step, which, commit);
}

static void copy_from(struct world *w, struct step *step) {
    uint32_t flags =
        step->variant == 7 ? SB_PROTO_RESHAPE : (step->variant & 1 ? SB_COPY_RESHAPE : 0);
    sb_status expected = check_copy(step, flags);
    if (expected == SB_OK && step->pair != step->other)
        expected = copy_model(step, step->which, false);
    sb_status st =
        sb_blob_copy_from(step->pair->blob, step->which, step->other->blob, flags, &step->err);
    if (!agree(w, step, "copy_from", st, expected) || step->pair == step->other)
        return;
    struct plain_shape shape = plain_shape_of(&step->other->plain);
    (void)copy_model(step, step->which, true);
    (void)plain_take_shape(&step->pair->plain, &shape);
}

/* --- bytes --------------------------------------------------------------------------------- */

/* Writes all bytes of the memory, whose values are unspecified after an OVERWRITE call. */
static void write_bytes(struct world *w, struct step *step, enum call call, void *ptr) {
    struct plain_memory *memory = step->pair->plain.memory[step->which];
    size_t bytes = memory->state.bytes;
    if (bytes == 0)
        return;
    plain_fill(memory->value, bytes, step->pair->plain.dtype, w->stamp++);
    if (call == MUTABLE_CPU || call == OVERWRITE_CPU)
        memcpy(ptr, memory->value, bytes);
    else
        ignore(sb_sim_poke(w->sims[0].context, ptr, memory->value, bytes, NULL));
}

static void use_bytes(struct world *w, struct step *step) {
    static const enum call calls[] = {CPU_DATA, MUTABLE_CPU, OVERWRITE_CPU,
                                      GPU_DATA, MUTABLE_GPU, OVERWRITE_GPU};
    enum call call = calls[tape_below(&w->tape, 6)];
    struct plain_memory *memory = plain_memory_of(&step->pair->plain, step->which);
    void *ptr = NULL;
    sb_status expected = plain_check(memory, call);
    sb_status st = blob_call(step->pair->blob, step->which, call, NULL, &ptr, &step->err);
    if (!agree(w, step, "bytes", st, expected))
        return;
    fuzz_check(ptr, "a NULL pointer");
    (void)plain_do(memory, call);
    if (call != CPU_DATA && call != GPU_DATA)
        write_bytes(w, step, call, ptr);
}

static void clear(struct world *w, struct step *step) {
    struct plain_memory *memory = step->pair->plain.memory[step->which];
    size_t bytes = plain_bytes(&step->pair->plain);
    sb_status expected = clear_model(memory, bytes, false);
    sb_status st = sb_blob_clear(step->pair->blob, step->which, &step->err);
    if (agree(w, step, "clear", st, expected))
        (void)clear_model(memory, bytes, true);
}

static void evict(struct world *w, struct step *step) {
    enum call call = step->variant & 1 ? EVICT_GPU : EVICT_CPU;
    sb_mem *mem;
    sb_status expected = SB_OK;
    sb_status st = sb_blob_mutable_mem(step->pair->blob, step->which, &mem, &step->err);
    if (!agree(w, step, "handle", st, expected))
        return;
    struct plain_memory *memory = plain_memory_of(&step->pair->plain, step->which);
    expected = plain_check(memory, call);
    st = call == EVICT_CPU ? sb_mem_evict_cpu(mem, &step->err) : sb_mem_evict_gpu(mem, &step->err);
    if (agree(w, step, "evict", st, expected))
        (void)plain_do(memory, call);
}

/* --- lending ------------------------------------------------------------------------------- */

enum { LEND_GOOD = 5, LEND_SHORT, LEND_FLAG, LEND_MISSING, LEND_ASKEW };

static struct loan *make_loan(struct world *w, const struct step *step, bool device, size_t bytes,
                              bool read_only) {
    static unsigned char value[BYTES_MAX];
    plain_fill(value, bytes, step->pair->plain.dtype, w->stamp++);
    return lender_make(&w->lender, device ? w->sims[0].context : NULL, value, bytes, read_only);
}

/* Returns whether to misalign the loan by one byte, which is impossible for elements of a byte. */
static bool is_askew(const struct plain_blob *plain, uint32_t variant) {
    return variant == LEND_ASKEW && sb_dtype_size(plain->dtype) > 1;
}

/* Returns the status that the arguments of a set call must cause: SB_OK if they are valid. */
static sb_status check_lend(const struct step *step, uint32_t variant) {
    const struct plain_blob *plain = &step->pair->plain;
    bool faulty = variant == LEND_FLAG || variant == LEND_MISSING ||
                  (variant == LEND_SHORT && plain_bytes(plain) > 0) || is_askew(plain, variant) ||
                  plain_bytes(plain) > BYTES_MAX - EXTRA_MAX;
    return faulty ? SB_ERR_INVALID_ARGUMENT : SB_OK;
}

/* Replaces the blob's data in the model by a new memory of the loan's size. */
static void take_loan(struct step *step, enum call call, struct loan *loan) {
    struct plain_memory *memory = plain_memory_new(step->pair->plain.context, loan->bytes);
    plain_adopt(memory, call, loan);
    plain_replace(&step->pair->plain, DATA, memory);
}

static void lend(struct world *w, struct step *step) {
    static const size_t extras[] = {0, 0, 8, 3, EXTRA_MAX};
    const struct plain_blob *plain = &step->pair->plain;
    bool device = step->variant & 1, has_device = plain->context->has_device;
    uint32_t variant = tape_below(&w->tape, 16);
    size_t least = plain_bytes(plain) > BYTES_MAX - EXTRA_MAX ? 0 : plain_bytes(plain);
    size_t bytes = least + extras[variant % 5];
    if (variant == LEND_SHORT && least)
        bytes = least - 1;
    uint32_t flags = variant == LEND_FLAG ? SB_COPY_RESHAPE : step->variant >> 1 & 1;
    struct loan *loan = make_loan(w, step, device && has_device, bytes, flags == SB_READ_ONLY);
    if (!loan)
        return;
    sb_status expected = check_lend(step, variant);
    if (expected == SB_OK && device && !has_device)
        expected = SB_ERR_NO_DEVICE;
    void *ptr = variant == LEND_MISSING ? NULL : (char *)loan->ptr + is_askew(plain, variant);
    loan->given = true;
    sb_status st = device ? sb_blob_set_gpu(step->pair->blob, SB_DATA, ptr, bytes, flags,
                                            loan_deleter, loan, &step->err)
                          : sb_blob_set_cpu(step->pair->blob, SB_DATA, ptr, bytes, flags,
                                            loan_deleter, loan, &step->err);
    loan->given = st == SB_OK;
    if (agree(w, step, "set data", st, expected))
        take_loan(step, device ? SET_GPU : SET_CPU, loan);
}

/* Calls sb_mem_set_cpu on the blob's memory, which affects all blobs that share the memory. */
static void lend_to_all(struct world *w, struct step *step) {
    sb_mem *mem;
    sb_status st = sb_blob_mutable_mem(step->pair->blob, step->which, &mem, &step->err);
    if (!agree(w, step, "handle", st, SB_OK))
        return;
    struct plain_memory *memory = plain_memory_of(&step->pair->plain, step->which);
    size_t bytes = memory->state.bytes;
    if (bytes > BYTES_MAX)
        return;
    struct loan *loan = make_loan(w, step, false, bytes, step->variant & 1);
    if (!loan)
        return;
    loan->given = true;
    st = sb_mem_set_cpu(mem, loan->ptr, bytes, step->variant & 1, loan_deleter, loan, &step->err);
    loan->given = st == SB_OK;
    if (agree(w, step, "set all", st, SB_OK))
        plain_adopt(memory, SET_CPU, loan);
}

/* --- arithmetic ---------------------------------------------------------------------------- */

static enum call writing(const struct plain_memory *memory) {
    return plain_side(memory) == SB_SIDE_CPU ? MUTABLE_CPU : MUTABLE_GPU;
}

static sb_status check_scale(const struct step *step) {
    const struct plain_memory *memory = step->pair->plain.memory[step->which];
    if (!plain_has_arithmetic(&step->pair->plain))
        return SB_ERR_UNSUPPORTED;
    if (step->pair->plain.count == 0 || !plain_is_written(memory))
        return SB_OK;
    return plain_check(memory, writing(memory));
}

static void scale(struct world *w, struct step *step) {
    static const double factors[] = {0, 1, -1, 0.5, 2, -3, 0.25, 1};
    struct plain_blob *plain = &step->pair->plain;
    struct plain_memory *memory = plain->memory[step->which];
    double factor = factors[step->variant];
    sb_status expected = check_scale(step);
    sb_status st = sb_blob_scale(step->pair->blob, step->which, factor, &step->err);
    if (!agree(w, step, "scale", st, expected) || plain->count == 0 || !plain_is_written(memory))
        return;
    (void)plain_do(memory, writing(memory));
    for (int64_t i = 0; i < plain->count; i++)
        plain_put(memory->value, (size_t)i, plain->dtype,
                  plain_at(memory->value, (size_t)i, plain->dtype) * factor);
}

static sb_status check_update(struct plain_blob *plain) {
    const struct plain_memory *data = plain->memory[DATA];
    if (!plain_has_arithmetic(plain))
        return SB_ERR_UNSUPPORTED;
    if (plain->count == 0)
        return SB_OK;
    if (!plain_is_written(data))
        return SB_ERR_UNINITIALIZED;
    sb_status st = plain_check(data, writing(data));
    enum call read = plain_side(data) == SB_SIDE_CPU ? CPU_DATA : GPU_DATA;
    return st == SB_OK ? plain_check(plain_memory_of(plain, DIFF), read) : st;
}

static void update(struct world *w, struct step *step) {
    struct plain_blob *plain = &step->pair->plain;
    sb_status expected = check_update(plain);
    sb_status st = sb_blob_update(step->pair->blob, &step->err);
    if (!agree(w, step, "update", st, expected) || plain->count == 0)
        return;
    struct plain_memory *data = plain->memory[DATA], *diff = plain->memory[DIFF];
    enum call read = plain_side(data) == SB_SIDE_CPU ? CPU_DATA : GPU_DATA;
    (void)plain_do(data, writing(data));
    (void)plain_do(diff, read);
    for (int64_t i = 0; i < plain->count; i++)
        plain_put(data->value, (size_t)i, plain->dtype,
                  plain_at(data->value, (size_t)i, plain->dtype) -
                      plain_at(diff->value, (size_t)i, plain->dtype));
}

static void sums(struct world *w, struct step *step) {
    const struct plain_blob *plain = &step->pair->plain;
    bool squares = step->variant & 1, any = plain_is_written(plain->memory[step->which]);
    double seen = -1, sum = 0;
    sb_status st =
        (squares ? sb_blob_sumsq : sb_blob_asum)(step->pair->blob, step->which, &seen, &step->err);
    if (!agree(w, step, "sum", st, plain_has_arithmetic(plain) ? SB_OK : SB_ERR_UNSUPPORTED))
        return;
    for (int64_t i = 0; i < plain->count && any; i++) {
        double x = plain_at(plain->memory[step->which]->value, (size_t)i, plain->dtype);
        sum += squares ? x * x : fabs(x);
    }
    fuzz_check(fabs(seen - sum) <= 1e-6 * sum, "a sum is %.17g, not %.17g", seen, sum);
}

/* --- messages ------------------------------------------------------------------------------ */

static void draw_legacy(struct tape *tape, struct blob_message *message) {
    static const int64_t dims[] = {0, 1, 2, 3, 4, INT32_MAX, -1, INT64_C(1) << 31};
    message->legacy = tape_below(tape, 16);
    for (int i = 0; i < 4; i++)
        if (message->legacy & 1u << i)
            message->legacy_dims[i] = dims[tape_below(tape, 8)];
}

/* Draws a number of values: `count`, one more, one less, or 0. */
static int64_t draw_count(struct tape *tape, int64_t count) {
    uint32_t code = tape_below(tape, 8);
    if (code == 7 || count > SMALL_COUNT)
        return 0;
    return code == 6 ? count + 1 : code == 5 && count > 0 ? count - 1 : count;
}

static struct blob_message draw_message(struct world *w, const struct step *step) {
    uint32_t code = tape_below(&w->tape, 32);
    struct blob_message message = {.unpacked = code & 1, .cut = code == 31, .seed = w->stamp++};
    struct plain_shape judged;
    message.has_shape = code & 6;
    if (code & 8)
        draw_legacy(&w->tape, &message);
    message.shape = code & 4 ? plain_shape_of(&step->pair->plain) : draw_shape(&w->tape);
    if (message.shape.num_axes < 0)
        message.shape.num_axes = 0;
    bool fits = message_judge(&message, &judged) == SB_OK;
    for (int slot = 0; slot < 4; slot++)
        if (slot == (int)(code & 2) || code & 16)
            message.counts[slot] = fits ? draw_count(&w->tape, judged.count) : slot;
    return message;
}

/* Where a load writes data or diff. `wanted` is false for a diff without values in the message. */
struct load {
    bool wanted;
    struct target target;
};

static sb_status begin_load(const struct step *step, const struct blob_message *message,
                            const struct plain_shape *shape, struct load loads[2]) {
    size_t bytes = (size_t)shape->count * sb_dtype_size(step->pair->plain.dtype);
    sb_status st = SB_OK;
    for (int which = DATA; which <= DIFF && st == SB_OK; which++) {
        loads[which].wanted = which == DATA || message_count(message, DIFF) > 0;
        if (!loads[which].wanted)
            continue;
        loads[which].target = target_of(&step->pair->plain, which, bytes, SB_SIDE_CPU);
        st = plain_check(loads[which].target.memory, loads[which].target.call);
    }
    return st;
}

/* Returns the status that a load must return, and sets `shape`. */
static sb_status check_message(const struct step *step, const struct blob_message *message,
                               bool empty, bool reshapes, struct plain_shape *shape) {
    const int32_t dtype = step->pair->plain.dtype;
    if (message->cut && !empty)
        return SB_ERR_MALFORMED;
    sb_status st = message_judge(message, shape);
    if (st != SB_OK)
        return st;
    if (!reshapes && !message_shape_is(message, shape, &step->pair->plain))
        return SB_ERR_SHAPE_MISMATCH;
    if (!reshapes)
        *shape = plain_shape_of(&step->pair->plain);
    if (plain_shape_check(shape, sb_dtype_size(dtype)) != SB_OK)
        return SB_ERR_DATA_OVERFLOW;
    bool whole =
        message_count(message, DATA) == shape->count &&
        (message_count(message, DIFF) == 0 || message_count(message, DIFF) == shape->count);
    if (!whole)
        return SB_ERR_LENGTH_MISMATCH;
    return dtype == SB_DTYPE_F16 && shape->count > 0 ? SB_ERR_DTYPE_MISMATCH : SB_OK;
}

static void from_proto(struct world *w, struct step *step) {
    static unsigned char values[BYTES_MAX];
    struct wire encoded = {0};
    struct load loads[2] = {{.wanted = false}, {.wanted = false}};
    struct plain_shape shape;
    struct blob_message message = draw_message(w, step);
    bool reshapes = step->variant & 1;
    struct plain_blob *plain = &step->pair->plain;
    message_encode(&message, &encoded);
    sb_status expected = check_message(step, &message, encoded.size == 0, reshapes, &shape);
    if (expected == SB_OK)
        expected = begin_load(step, &message, &shape, loads);
    sb_status st = sb_blob_from_proto(step->pair->blob, encoded.bytes, encoded.size,
                                      reshapes ? SB_PROTO_RESHAPE : 0, NULL, &step->err);
    wire_free(&encoded);
    bool done = agree(w, step, "from_proto", st, expected);
    for (int which = DATA; which <= DIFF; which++) {
        if (!loads[which].wanted || !done) {
            drop_target(&loads[which].target);
            continue;
        }
        message_values(&message, which, plain->dtype, values);
        take_target(plain, which, &loads[which].target, values,
                    (size_t)shape.count * sb_dtype_size(plain->dtype));
    }
    if (done)
        (void)plain_take_shape(plain, &shape);
}

static void shape_equals_proto(struct world *w, struct step *step) {
    struct wire encoded = {0};
    struct plain_shape shape;
    struct blob_message message = draw_message(w, step);
    int32_t same = 77;
    message_encode(&message, &encoded);
    sb_status expected =
        message.cut && encoded.size ? SB_ERR_MALFORMED : message_judge(&message, &shape);
    sb_status st = sb_blob_shape_equals_proto(step->pair->blob, encoded.bytes, encoded.size, &same,
                                              &step->err);
    wire_free(&encoded);
    if (agree(w, step, "shape_equals_proto", st, expected))
        CHECK_EQUAL("equality", same, message_shape_is(&message, &shape, &step->pair->plain));
}

static sb_status check_write(const struct plain_blob *plain, bool with_diff, uint32_t flags) {
    if (flags & ~(uint32_t)SB_PROTO_WRITE_DIFF)
        return SB_ERR_INVALID_ARGUMENT;
    if (!plain_has_arithmetic(plain))
        return SB_ERR_UNSUPPORTED;
    bool over =
        plain_bytes(plain) > INT32_MAX || message_size_of_blob(plain, with_diff) > INT32_MAX;
    return over ? SB_ERR_OVER_LIMIT : SB_OK;
}

/* Makes data current on the host, then diff. If diff fails, data remains current. */
static sb_status fetch(struct plain_blob *plain, bool with_diff) {
    if (plain->count == 0)
        return SB_OK;
    sb_status st = plain_do(plain_memory_of(plain, DATA), CPU_DATA);
    if (st == SB_OK && with_diff)
        st = plain_do(plain_memory_of(plain, DIFF), CPU_DATA);
    return st;
}

static void check_written(struct plain_blob *plain, bool with_diff, const void *bytes,
                          size_t size) {
    struct wire message = {0};
    message_of_blob(plain, with_diff, &message);
    CHECK_EQUAL("bytes of a message", size, message.size);
    fuzz_check(size == 0 || memcmp(bytes, message.bytes, size) == 0, "a message is another");
    wire_free(&message);
}

/* Encodes the blob. First disarms the faults, because the model cannot predict which parts a failed
   call has copied to the host. */
static void to_proto(struct world *w, struct step *step) {
    static unsigned char buffer[2 * BYTES_MAX + 1024];
    struct plain_blob *plain = &step->pair->plain;
    bool with_diff = step->variant & 1;
    uint32_t flags = with_diff ? SB_PROTO_WRITE_DIFF : 0;
    size_t size = 0, needed = 0;
    disarm(w);
    sb_status expected = check_write(plain, with_diff, flags);
    sb_status st = sb_blob_proto_size(step->pair->blob, flags, &needed, &step->err);
    if (!agree(w, step, "proto_size", st, expected))
        return;
    CHECK_EQUAL("proto_size", needed, message_size_of_blob(plain, with_diff));
    size_t capacity = step->variant & 4 && needed ? needed - 1 : sizeof buffer;
    if (needed > capacity)
        expected = SB_ERR_BUFFER_TOO_SMALL;
    else
        expected = fetch(plain, with_diff);
    st = sb_blob_to_proto(step->pair->blob, flags, buffer, capacity, &size, &step->err);
    if (!agree(w, step, "to_proto", st, expected))
        return;
    check_written(plain, with_diff, buffer, size);
}

/* --- questions ----------------------------------------------------------------------------- */

static int64_t product(const struct plain_blob *plain, int32_t start, int32_t end, bool *fits) {
    struct plain_shape part = {.num_axes = end - start};
    for (int32_t i = start; i < end; i++)
        part.dims[i - start] = plain->dims[i];
    *fits = plain_shape_check(&part, 1) == SB_OK;
    return part.count;
}

static int32_t axes_of(const struct plain_blob *plain) {
    return plain->num_axes < 0 ? 0 : plain->num_axes;
}

static void ask_counts(struct world *w, struct step *step) {
    const struct plain_blob *plain = &step->pair->plain;
    int32_t start = (int32_t)tape_below(&w->tape, 8) - 1, end = (int32_t)tape_below(&w->tape, 8);
    bool inside = start >= 0 && start <= end && end <= axes_of(plain), fits = true;
    int64_t count = inside ? product(plain, start, end, &fits) : 0, seen = 77;
    sb_status expected = !inside ? SB_ERR_INDEX_OUT_OF_RANGE : fits ? SB_OK : SB_ERR_SIZE_OVERFLOW;
    sb_status st = sb_blob_count_range(step->pair->blob, start, end, &seen, &step->err);
    if (agree(w, step, "count_range", st, expected))
        CHECK_EQUAL("count_range", seen, count);
    if (start >= 0 && start <= axes_of(plain)) {
        count = product(plain, start, axes_of(plain), &fits);
        st = sb_blob_count_from(step->pair->blob, start, &seen, &step->err);
        if (agree(w, step, "count_from", st, fits ? SB_OK : SB_ERR_SIZE_OVERFLOW))
            CHECK_EQUAL("count_from", seen, count);
    }
}

static void ask_axes(struct world *w, struct step *step) {
    const struct plain_blob *plain = &step->pair->plain;
    int32_t axis = (int32_t)tape_below(&w->tape, 80) - 40, axes = axes_of(plain), canonical = 77;
    bool inside = axis >= -axes && axis < axes;
    int64_t dim = 77;
    sb_status expected = inside ? SB_OK : SB_ERR_INDEX_OUT_OF_RANGE;
    sb_status st = sb_blob_canonical_axis(step->pair->blob, axis, &canonical, &step->err);
    if (agree(w, step, "canonical_axis", st, expected))
        CHECK_EQUAL("canonical axis", canonical, (axis + axes) % axes);
    st = sb_blob_dim(step->pair->blob, axis, &dim, &step->err);
    if (agree(w, step, "dim", st, expected))
        CHECK_EQUAL("dimension", dim, plain->dims[(axis + axes) % axes]);
}

static void ask_legacy(struct world *w, struct step *step) {
    const struct plain_blob *plain = &step->pair->plain;
    int32_t index = (int32_t)tape_below(&w->tape, 10) - 5, axes = axes_of(plain);
    int64_t seen = 77, dim = 1;
    sb_status expected = axes > 4                  ? SB_ERR_SHAPE_MISMATCH
                         : index < -4 || index > 3 ? SB_ERR_INDEX_OUT_OF_RANGE
                                                   : SB_OK;
    if (expected == SB_OK && index >= -axes && index < axes)
        dim = plain->dims[(index + axes) % axes];
    sb_status st = sb_blob_legacy_shape(step->pair->blob, index, &seen, &step->err);
    if (agree(w, step, "legacy_shape", st, expected))
        CHECK_EQUAL("legacy dimension", seen, dim);
}

static void ask_text(struct world *w, struct step *step) {
    const struct plain_blob *plain = &step->pair->plain;
    char text[1024] = "", seen[1024];
    size_t at = 0, length = 77, capacity = tape_below(&w->tape, 64);
    for (int32_t i = 0; i < axes_of(plain); i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%lld ", (long long)plain->dims[i]);
    (void)snprintf(text + at, sizeof text - at, "(%lld)", (long long)plain->count);
    memset(seen, '?', sizeof seen);
    sb_status st = sb_blob_shape_string(step->pair->blob, seen, capacity, &length, &step->err);
    if (!agree(w, step, "shape_string", st, SB_OK))
        return;
    CHECK_EQUAL("length of a text", length, strlen(text));
    size_t shown = capacity == 0 ? 0 : length < capacity ? length : capacity - 1;
    fuzz_check(memcmp(seen, text, shown) == 0 && (capacity == 0 || seen[shown] == 0) &&
                   seen[capacity ? shown + 1 : 0] == '?',
               "the text in a buffer of %zu bytes is not a part of %s", capacity, text);
    CHECK_EQUAL("equal shapes", sb_blob_shape_equals(step->pair->blob, step->other->blob),
                plain_shape_same(plain, &step->other->plain));
    const struct plain_blob *other = &step->other->plain;
    CHECK_EQUAL("equal dimensions",
                sb_blob_shape_equals_dims(step->pair->blob, other->dims, other->num_axes),
                other->num_axes >= 0 && plain_shape_same(plain, other));
}

static void ask_device_shape(struct world *w, struct step *step) {
    const struct plain_blob *plain = &step->pair->plain;
    int64_t seen[SB_MAX_AXES];
    size_t bytes = (size_t)axes_of(plain) * sizeof *seen;
    const int64_t *dims = NULL;
    sb_status st = sb_blob_gpu_shape(step->pair->blob, &dims, &step->err);
    if (!agree(w, step, "gpu_shape", st, plain->context->has_device ? SB_OK : SB_ERR_NO_DEVICE) ||
        bytes == 0)
        return;
    fuzz_check(sb_sim_peek(w->sims[0].context, seen, dims, bytes, NULL) == SB_OK &&
                   memcmp(seen, plain->dims, bytes) == 0,
               "the device has another shape");
}

static void ask(struct world *w, struct step *step) {
    static void (*const questions[])(struct world *, struct step *) = {
        ask_counts, ask_axes, ask_legacy, ask_text, ask_device_shape};
    questions[step->variant % 5](w, step);
}

/* --- elements ------------------------------------------------------------------------------ */

/* Computes the row-major offset of an element. Indices that are not given count as 0. */
static sb_status offset_of(const struct plain_blob *plain, const int64_t *indices,
                           int32_t num_indices, int64_t *out) {
    *out = 0;
    if (num_indices > axes_of(plain) || plain->count == 0)
        return SB_ERR_INDEX_OUT_OF_RANGE;
    for (int32_t i = 0; i < axes_of(plain); i++) {
        int64_t index = i < num_indices ? indices[i] : 0;
        if (index < 0 || index >= plain->dims[i])
            return SB_ERR_INDEX_OUT_OF_RANGE;
        *out = *out * plain->dims[i] + index;
    }
    return SB_OK;
}

static sb_status legacy_element_of(const struct plain_blob *plain, const int64_t indices[4],
                                   int64_t *out) {
    int32_t axes = axes_of(plain);
    if (axes > 4)
        return SB_ERR_SHAPE_MISMATCH;
    for (int32_t i = axes; i < 4; i++)
        if (indices[i] != 0)
            return SB_ERR_INDEX_OUT_OF_RANGE;
    return offset_of(plain, indices, axes, out);
}

__extension__ typedef __int128 wide;

/* Computes the offset of four indices as Caffe does, where an index may equal its dimension. */
static sb_status legacy_offset_of(const struct plain_blob *plain, const int64_t indices[4],
                                  int64_t *out) {
    int32_t axes = axes_of(plain);
    wide offset = 0;
    if (axes > 4)
        return SB_ERR_SHAPE_MISMATCH;
    for (int32_t i = 0; i < 4; i++)
        if (indices[i] < 0 || indices[i] > (i < axes ? plain->dims[i] : 1))
            return SB_ERR_INDEX_OUT_OF_RANGE;
    for (int32_t i = 0; i < 4; i++) {
        offset = offset * (i < axes ? plain->dims[i] : 1) + indices[i];
        if (offset > INT64_MAX)
            return SB_ERR_SIZE_OVERFLOW;
    }
    *out = (int64_t)offset;
    return SB_OK;
}

struct element_question {
    bool legacy;
    int64_t indices[8];
    int32_t num_indices;
};

static sb_status call_offset(const struct step *step, const struct element_question *q,
                             int64_t *out, sb_error *err) {
    const sb_blob *blob = step->pair->blob;
    const int64_t *i = q->indices;
    return q->legacy ? sb_blob_offset_legacy(blob, i[0], i[1], i[2], i[3], out, err)
                     : sb_blob_offset(blob, i, q->num_indices, out, err);
}

static sb_status call_at(const struct step *step, const struct element_question *q, void *out,
                         sb_error *err) {
    const sb_blob *blob = step->pair->blob;
    const int64_t *i = q->indices;
    if (!q->legacy)
        return sb_blob_at(blob, step->which, i, q->num_indices, out, err);
    return step->which == DATA ? sb_blob_data_at_legacy(blob, i[0], i[1], i[2], i[3], out, err)
                               : sb_blob_diff_at_legacy(blob, i[0], i[1], i[2], i[3], out, err);
}

static void at_element(struct world *w, struct step *step, const struct element_question *q) {
    struct plain_blob *plain = &step->pair->plain;
    unsigned char seen[ELEMENT_MAX];
    size_t size = sb_dtype_size(plain->dtype);
    int64_t offset = 0;
    sb_status expected = q->legacy ? legacy_element_of(plain, q->indices, &offset)
                                   : offset_of(plain, q->indices, q->num_indices, &offset);
    struct plain_memory *memory = expected == SB_OK ? plain_memory_of(plain, step->which) : NULL;
    if (memory)
        expected = plain_check(memory, CPU_DATA);
    sb_status st = call_at(step, q, seen, &step->err);
    if (!agree(w, step, "an element", st, expected))
        return;
    (void)plain_do(memory, CPU_DATA);
    fuzz_check(plain_equal(seen, memory->value + (size_t)offset * size, size, plain->dtype),
               "element %lld is another", (long long)offset);
}

static void at(struct world *w, struct step *step) {
    const struct plain_blob *plain = &step->pair->plain;
    struct element_question q = {.legacy = step->variant & 1};
    int64_t offset = 0, found = 77;
    q.num_indices = q.legacy ? 4 : (int32_t)tape_below(&w->tape, 7);
    for (int32_t i = 0; i < q.num_indices; i++)
        q.indices[i] = draw_index(&w->tape);
    sb_status expected = q.legacy ? legacy_offset_of(plain, q.indices, &offset)
                                  : offset_of(plain, q.indices, q.num_indices, &offset);
    sb_status st = call_offset(step, &q, &found, &step->err);
    if (agree(w, step, "offset", st, expected))
        CHECK_EQUAL("offset", found, offset);
    at_element(w, step, &q);
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

static void shrink(struct world *w, struct step *step) {
    struct plain_blob *plain = &step->pair->plain;
    uint32_t expected = 0;
    sb_status st = sb_blob_shrink_to_fit(step->pair->blob, &step->mask, &step->err);
    if (!agree(w, step, "shrink_to_fit", st, SB_OK))
        return;
    for (int which = DATA; which <= DIFF; which++)
        if (is_shrinkable(plain, which)) {
            shrink_memory(plain, which);
            expected |= which == DATA ? SB_REALLOCATED_DATA : SB_REALLOCATED_DIFF;
        }
    CHECK_EQUAL("reallocation mask", step->mask, expected);
}

static void destroy(struct pair *pair) {
    sb_blob_destroy(pair->blob);
    plain_replace(&pair->plain, DATA, NULL);
    plain_replace(&pair->plain, DIFF, NULL);
    pair->blob = NULL;
}

/* Replaces the blob by a new blob of the same dtype and context. */
static void create(struct world *w, struct step *step) {
    struct plain_blob *plain = &step->pair->plain;
    sb_context *context = w->sims[plain->context - w->plain_contexts].context;
    struct plain_shape shape = {.num_axes = -1};
    sb_blob *blob = NULL;
    sb_status st, expected = SB_OK;
    int32_t form = (int32_t)step->variant % 4;
    int32_t dtype = form == 3 ? (step->variant & 4 ? 1000 : 0) : plain->dtype;
    if (form == 1 || form == 2) {
        shape = draw_shape(&w->tape);
        if (form == 2)
            shape.num_axes = 4;
        keep_small(&shape);
        expected = plain_shape_check(&shape, sb_dtype_size(dtype));
    }
    const int64_t *d = shape.dims;
    if (form == 3)
        expected = SB_ERR_INVALID_ARGUMENT;
    if (form == 1)
        st = sb_blob_create_shaped(context, dtype, d, shape.num_axes, &blob, &step->err);
    else if (form == 2)
        st = sb_blob_create_legacy(context, dtype, d[0], d[1], d[2], d[3], &blob, &step->err);
    else
        st = sb_blob_create(context, dtype, &blob, &step->err);
    if (!agree(w, step, "create", st, expected))
        return;
    destroy(step->pair);
    step->pair->blob = blob;
    (void)plain_take_shape(plain, &shape);
}

static void arm(struct world *w, struct step *step) {
    w->sims[step->pair->plain.context - w->plain_contexts].counting.fail_nth =
        1 + (int64_t)tape_below(&w->tape, 6);
}

/* --- a run --------------------------------------------------------------------------------- */

static void make_step(struct world *w) {
    static void (*const steps[])(struct world *, struct step *) = {
        reshape,     reshape_legacy, reshape_like, reshape_proto,
        share,       copy_from,      use_bytes,    clear,
        evict,       lend,           update,       scale,
        sums,        from_proto,     to_proto,     ask,
        at,          shrink,         create,       arm,
        lend_to_all, use_bytes,      reshape,      shape_equals_proto,
        set_memory,  drop_diff};
    uint32_t which = tape_below(&w->tape, sizeof steps / sizeof steps[0]);
    uint8_t how = tape_byte(&w->tape);
    struct step step = {.pair = &w->pairs[how % BLOBS],
                        .other = &w->pairs[how / 4 % BLOBS],
                        .which = how >> 4 & 1,
                        .variant = how >> 5,
                        .mask = 77,
                        .err = fuzz_fresh_error()};
    step.asked = step.variant & 1 ? NULL : &step.mask;
    steps[which](w, &step);
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

/* Opens the contexts. One input in eight has a device; the last blob may be in a second context. */
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
        sb_error err;
        pair->plain = (struct plain_blob){.context = &w->plain_contexts[home], .num_axes = -1};
        pair->plain.dtype = dtypes[i < 2 ? 0 : i == 2 ? how >> 4 & 2 : how >> 5];
        sb_status st = sb_blob_create(w->sims[home].context, pair->plain.dtype, &pair->blob, &err);
        fuzz_check(st == SB_OK, "no blob: %s", err.message);
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
