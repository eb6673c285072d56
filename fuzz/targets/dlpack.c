/* Imports valid and invalid tensors of DLPack as a blob's data or diff. */
#include "counting_allocator.h"
#include "simulated.h"

#include <stdlib.h>
#include <string.h>
#include <syncblob/dlpack.h>

#define REGION   256 /* bytes of the host and the device memory that tensors may point to */
#define AXES_MAX 6
#define ROOM     (SB_MAX_AXES + 8)
#define SMALL    512 /* elements of the largest blob that receives a tensor */
#define ODDITIES 2
#define FAULTS   16

struct world {
    struct simulated sim;
    struct tape tape;
    unsigned char *host, *device;
    sb_dl_managed_versioned versioned;
    sb_dl_managed legacy;
    int64_t shape[ROOM], strides[ROOM];
    int ended;
    bool is_legacy, into, reshape, diff, refuse_memory;
    int32_t blob_dtype;
    sb_blob *blob;
};

/* --- a tensor from choices; an empty input makes a valid tensor ------------------------------- */

static const struct {
    sb_dl_data_type type;
    int32_t dtype;
} types[] = {
#define ROW(NAME, number, name, type, kind, with)                                                  \
    {{SB_DL_CODE_##kind, 8 * sizeof(type), 1}, SB_DTYPE_##NAME},
    SB_DTYPE_LIST(ROW, )
#undef ROW
};
#define TYPES (sizeof types / sizeof *types)

static void count_versioned(sb_dl_managed_versioned *self) {
    struct world *w = self->manager_ctx;
    fuzz_check(self == &w->versioned, "the deleter received a wrong tensor");
    w->ended++;
}

static void count_legacy(sb_dl_managed *self) {
    struct world *w = self->manager_ctx;
    fuzz_check(self == &w->legacy, "the deleter received a wrong tensor");
    w->ended++;
}

static int64_t draw_dim(struct tape *tape) {
    static const int64_t special[] = {
        1, 0, 5, 7, 8, -1, INT64_C(1) << 31, INT64_C(1) << 40, 16, 64, INT64_C(1) << 61, INT64_MAX};
    uint32_t code = tape_below(tape, 16);
    return code < 4 ? (int64_t)code + 1 : special[code - 4];
}

static void draw_layout(struct world *w, int32_t ndim) {
    static const int64_t special[] = {0, 1, -1, 2, 3, 4, 6, 77, INT64_MAX, INT64_MIN};
    uint64_t next = 1;
    for (int32_t i = 0; i < ndim; i++)
        w->shape[i] = draw_dim(&w->tape);
    for (int32_t i = ndim - 1; i >= 0; i--) {
        uint32_t code = tape_below(&w->tape, 64);
        w->strides[i] = code > 0 && code <= 10 ? special[code - 1] : (int64_t)next;
        next *= (uint64_t)w->shape[i];
    }
}

static void make_odd(struct world *w, sb_dl_tensor *t) {
    struct tape *tape = &w->tape;
    const uint32_t oddity = tape_below(tape, 32);
    if (oddity == 1)
        w->versioned.version.major = tape_byte(tape);
    else if (oddity == 2)
        w->versioned.flags ^= (uint64_t)1 << tape_below(tape, 64);
    else if (oddity == 3)
        t->dtype.code = tape_byte(tape);
    else if (oddity == 4)
        t->dtype.bits = tape_byte(tape);
    else if (oddity == 5)
        t->dtype.lanes = (uint16_t)tape_u32(tape);
    else if (oddity == 6)
        t->device.device_type = tape_byte(tape);
    else if (oddity == 7)
        t->device.device_id = (int8_t)tape_byte(tape);
    else if (oddity == 8)
        t->data = NULL;
    else if (oddity == 9)
        t->byte_offset = (uint64_t)(int64_t)(int32_t)tape_u32(tape);
    else if (oddity == 10)
        t->byte_offset = tape_byte(tape);
    else if (oddity == 11)
        t->shape = NULL;
    else if (oddity == 12)
        t->ndim = (int32_t)tape_u32(tape);
    else if (oddity == 13)
        t->ndim = (int8_t)tape_byte(tape);
    else if (oddity == 14)
        t->byte_offset = (uint64_t)1 << tape_below(tape, 64);
}

static void draw_tensor(struct world *w) {
    uint8_t how = tape_byte(&w->tape);
    bool on_device = how & 32;
    int32_t ndim = (int32_t)tape_below(&w->tape, AXES_MAX + 1);
    w->is_legacy = how & 1;
    w->into = how & 2;
    w->reshape = how & 4;
    w->diff = how & 8;
    w->refuse_memory = how & 128;
    w->blob_dtype = types[tape_below(&w->tape, TYPES)].dtype;
    for (int i = 0; i < ROOM; i++)
        w->shape[i] = w->strides[i] = 1;
    draw_layout(w, ndim);
    sb_dl_tensor tensor = {
        .data = on_device ? w->device : w->host,
        .device = {.device_type = on_device ? SB_DL_DEVICE_EXTENSION : SB_DL_DEVICE_CPU},
        .ndim = ndim,
        .dtype = types[tape_below(&w->tape, TYPES)].type,
        .shape = w->shape,
        .strides = how & 64 ? NULL : w->strides,
    };
    w->versioned.version = (sb_dl_version){.major = 1, .minor = tape_byte(&w->tape)};
    w->versioned.flags = how & 16 ? SB_DL_READ_ONLY : 0;
    for (int i = 0; i < ODDITIES; i++)
        make_odd(w, &tensor);
    w->versioned.manager_ctx = w->legacy.manager_ctx = w;
    w->versioned.deleter = count_versioned;
    w->legacy.deleter = count_legacy;
    w->versioned.dl_tensor = w->legacy.dl_tensor = tensor;
}

/* --- the reference --------------------------------------------------------------------------- */

/* The statuses with which the import may fail, or 0 if the import must succeed. */
struct verdict {
    uint32_t statuses; /* bit -s for the status s; SB_ERR_ABI_MISMATCH is bit 31 */
    int32_t dtype;
    int64_t count;
    bool on_device;
};

static uint32_t bit_of(sb_status status) {
    return (uint32_t)1 << (status == SB_ERR_ABI_MISMATCH ? 31 : -status & 31);
}

static void blame(struct verdict *v, sb_status status) {
    v->statuses |= bit_of(status);
}

static void judge_dtype(const sb_dl_tensor *t, struct verdict *v) {
    for (size_t i = 0; i < TYPES; i++)
        if (memcmp(&t->dtype, &types[i].type, sizeof t->dtype) == 0)
            v->dtype = types[i].dtype;
    if (!v->dtype)
        blame(v, SB_ERR_UNSUPPORTED);
}

static void judge_count(const sb_dl_tensor *t, struct verdict *v) {
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] < 0)
            blame(v, SB_ERR_INVALID_ARGUMENT);
    if (v->statuses)
        return;
    v->count = count_elements(t->shape, (size_t)t->ndim, sb_dtype_size(v->dtype));
    if (v->count < 0) {
        blame(v, SB_ERR_SIZE_OVERFLOW);
        v->count = 0;
    }
}

static bool is_row_major(const sb_dl_tensor *t, int64_t count) {
    int64_t product = 1;
    if (!t->strides || count == 0)
        return true;
    for (int32_t i = t->ndim - 1; i >= 0; product *= t->shape[i--])
        if (t->shape[i] > 1 && t->strides[i] != product)
            return false;
    return true;
}

static void judge_place(const struct world *w, const sb_dl_tensor *t, struct verdict *v) {
    const size_t size = sb_dtype_size(v->dtype), bytes = (size_t)v->count * size;
    uintptr_t start, end;
    bool wraps = __builtin_add_overflow((uintptr_t)t->data, t->byte_offset, &start);
    wraps |= __builtin_add_overflow(start, bytes, &end);
    int32_t type = t->device.device_type;
    bool on_host = type == SB_DL_DEVICE_CPU || type == SB_DL_DEVICE_CUDA_HOST;
    v->on_device = type == SB_DL_DEVICE_EXTENSION && t->device.device_id == 0;
    if (!on_host && !v->on_device)
        blame(v, SB_ERR_WRONG_DEVICE);
    if (v->count == 0)
        return;
    if (!t->data)
        blame(v, SB_ERR_INVALID_ARGUMENT);
    if (wraps || t->byte_offset > (uint64_t)PTRDIFF_MAX - bytes)
        blame(v, SB_ERR_SIZE_OVERFLOW);
    if (start % size)
        blame(v, SB_ERR_INVALID_ARGUMENT);
    const uintptr_t region = (uintptr_t)w->device;
    if (v->on_device && (wraps || start < region || end > region + REGION))
        blame(v, SB_ERR_WRONG_DEVICE);
}

static void judge_blob(const struct world *w, const sb_dl_tensor *t, struct verdict *v) {
    if (!w->into)
        return;
    if (v->dtype != w->blob_dtype)
        blame(v, SB_ERR_DTYPE_MISMATCH);
    bool same = t->ndim == sb_blob_num_axes(w->blob);
    for (int32_t i = 0; same && i < t->ndim; i++)
        same = t->shape[i] == sb_blob_shape(w->blob)[i];
    if (!same && !w->reshape)
        blame(v, SB_ERR_SHAPE_MISMATCH);
}

static struct verdict judge(const struct world *w) {
    const sb_dl_tensor *t = &w->versioned.dl_tensor;
    struct verdict v = {0};
    if (!w->is_legacy && w->versioned.version.major != 1) {
        blame(&v, SB_ERR_ABI_MISMATCH);
        return v;
    }
    if (!w->is_legacy && w->versioned.flags > 7)
        blame(&v, SB_ERR_UNSUPPORTED);
    judge_dtype(t, &v);
    if (t->ndim < 0 || (t->ndim > 0 && t->ndim <= SB_MAX_AXES && !t->shape))
        blame(&v, SB_ERR_INVALID_ARGUMENT);
    if (t->ndim > SB_MAX_AXES)
        blame(&v, SB_ERR_OVER_LIMIT);
    if (v.statuses)
        return v;
    judge_count(t, &v);
    if (!v.statuses && !is_row_major(t, v.count))
        blame(&v, SB_ERR_UNSUPPORTED);
    judge_place(w, t, &v);
    judge_blob(w, t, &v);
    return v;
}

/* --- the call -------------------------------------------------------------------------------- */

static bool is_read_only(const struct world *w) {
    return !w->is_legacy && w->versioned.flags & SB_DL_READ_ONLY;
}

static sb_status import(struct world *w) {
    uint32_t flags = w->reshape ? SB_DLPACK_RESHAPE : 0;
    sb_part part = w->diff ? SB_DIFF : SB_DATA;
    sb_context *context = w->sim.context;
    if (w->into)
        return status_of(
            w->is_legacy ? sb_blob_from_legacy_dlpack(w->blob, part, &w->legacy, flags, &call_error)
                         : sb_blob_from_dlpack(w->blob, part, &w->versioned, flags, &call_error));
    return status_of(
        w->is_legacy ? sb_blob_create_from_legacy_dlpack(context, &w->legacy, &w->blob, &call_error)
                     : sb_blob_create_from_dlpack(context, &w->versioned, &w->blob, &call_error));
}

static void make_blob(struct world *w) {
    static const int64_t other[] = {2, 3};
    bool alike = tape_byte(&w->tape) % 4 != 3;
    const sb_dl_tensor *t = &w->versioned.dl_tensor;
    sb_status st = SB_ERR_INVALID_ARGUMENT;
    void *data;
    int64_t count = 1;
    for (int32_t i = 0; alike && i < t->ndim && t->shape && t->ndim <= AXES_MAX; i++)
        alike = t->shape[i] >= 0 && !__builtin_mul_overflow(count, t->shape[i], &count) &&
                count <= SMALL;
    if (alike && t->ndim >= 0 && t->ndim <= AXES_MAX && (t->shape || t->ndim == 0))
        st =
            sb_blob_create_shaped(w->sim.context, w->blob_dtype, t->shape, t->ndim, &w->blob, NULL);
    if (st != SB_OK)
        st = sb_blob_create_shaped(w->sim.context, w->blob_dtype, other, 2, &w->blob, NULL);
    fuzz_check(st == SB_OK && sb_blob_mutable_cpu(w->blob, SB_DATA, &data, NULL) == SB_OK,
               "no blob");
}

struct seen {
    int32_t axes;
    const int64_t *shape;
    const void *data;
    sb_dl_managed_versioned versioned;
    sb_dl_managed legacy;
};

static struct seen see(const struct world *w) {
    struct seen s;
    memset(&s, 0, sizeof s);
    memcpy(&s.versioned, &w->versioned, sizeof s.versioned);
    memcpy(&s.legacy, &w->legacy, sizeof s.legacy);
    s.axes = sb_blob_num_axes(w->blob);
    s.shape = sb_blob_shape(w->blob);
    if (w->blob)
        fuzz_check(sb_blob_cpu(w->blob, SB_DATA, &s.data, NULL) == SB_OK, "unreadable");
    return s;
}

static sb_status call(struct world *w, const struct verdict *v) {
    for (int64_t n = w->refuse_memory ? 1 : FAULTS;; n++) {
        struct seen before = see(w);
        if (n < FAULTS)
            w->sim.counting.fail_nth = n;
        sb_status st = import(w);
        bool struck = simulated_strike(&w->sim).allocator;
        w->sim.counting.fail_nth = 0;
        fuzz_check(!struck || st == SB_ERR_OUT_OF_MEMORY, "%s without memory", sb_status_name(st));
        if (st == SB_OK)
            return st;
        struct seen now = see(w);
        fuzz_check(memcmp(&before, &now, sizeof now) == 0, "a refusal changed something");
        fuzz_check(w->ended == 0, "a refused tensor was deleted");
        if (struck)
            continue;
        fuzz_check(v->statuses & bit_of(st), "refused with %s: %s", sb_status_name(st),
                   call_error.message);
        return st;
    }
}

/* --- accepted tensors ------------------------------------------------------------------------ */

static sb_mem *memory_of(const struct world *w) {
    sb_mem *mem;
    sb_part part = w->into && w->diff ? SB_DIFF : SB_DATA;
    fuzz_check(sb_blob_mutable_mem(w->blob, part, &mem, NULL) == SB_OK, "no memory");
    return mem;
}

static void check_export(const struct world *w, const struct verdict *v, const void *start) {
    const sb_dl_tensor *t = &w->versioned.dl_tensor;
    sb_dl_managed_versioned *again;
    sb_part part = w->into && w->diff ? SB_DIFF : SB_DATA;
    int32_t side = v->on_device ? SB_SIDE_GPU : SB_SIDE_CPU;
    fuzz_check(sb_blob_to_dlpack(w->blob, part, side, &again, NULL) == SB_OK, "no export");
    const sb_dl_tensor *exported = &again->dl_tensor;
    fuzz_check(exported->data == (v->count ? start : NULL), "another place");
    fuzz_check(exported->ndim == t->ndim &&
                   memcmp(&exported->dtype, &t->dtype, sizeof t->dtype) == 0,
               "wrong dtype or number of axes");
    for (int32_t i = 0; i < t->ndim; i++)
        fuzz_check(exported->shape[i] == t->shape[i], "another shape");
    fuzz_check(is_row_major(exported, v->count), "not row-major");
    again->deleter(again);
}

static void check_written(struct world *w, const struct verdict *v, unsigned char *start) {
    unsigned char before[REGION];
    size_t bytes = (size_t)v->count * sb_dtype_size(v->dtype);
    sb_mem *mem = memory_of(w);
    void *out;
    memcpy(before, w->host, REGION);
    fuzz_check(sb_mem_mutable_cpu(mem, &out, NULL) == SB_OK, "cannot be written");
    fuzz_check((out == start) != is_read_only(w), "a write must copy iff the memory is read-only");
    fuzz_check(memcmp(out, before + (start - w->host), bytes) == 0, "the tensor's bytes changed");
    fuzz_check(w->ended == is_read_only(w), "deleted %d times", w->ended);
    memset(out, 0x5A, bytes);
    if (is_read_only(w))
        fuzz_check(memcmp(before, w->host, REGION) == 0, "read-only bytes were written");
}

static void check_accepted(struct world *w, const struct verdict *v) {
    const sb_dl_tensor *t = &w->versioned.dl_tensor;
    size_t bytes = (size_t)v->count * sb_dtype_size(v->dtype);
    unsigned char *start = v->count ? (unsigned char *)t->data + t->byte_offset : NULL;
    sb_mem *mem = memory_of(w);
    fuzz_check(v->statuses == 0, "an invalid tensor was accepted");
    fuzz_check(w->ended == 0 && sb_blob_dtype(w->blob) == v->dtype, "wrong dtype, or deleted");
    fuzz_check(sb_blob_count(w->blob) == v->count && sb_mem_size(mem) == bytes, "another size");
    fuzz_check(sb_mem_head(mem) == (v->on_device ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU), "head");
    fuzz_check(sb_mem_storage(mem, v->on_device ? SB_SIDE_GPU : SB_SIDE_CPU) ==
                   (is_read_only(w) ? SB_STORAGE_BORROWED_READ_ONLY : SB_STORAGE_BORROWED),
               "storage");
    check_export(w, v, start);
    fuzz_check(sb_mem_is_unique(mem) && w->ended == 0, "the export left something");
    if (bytes > 0 && !v->on_device && start >= w->host && start + bytes <= w->host + REGION)
        check_written(w, v, start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world w;
    memset(&w, 0, sizeof w);
    w.tape = (struct tape){data, size};
    simulated_open(&w.sim, (struct simulated_options){0});
    void *device;
    w.host = test_aligned_alloc(64, REGION);
    fuzz_check(w.host && sb_sim_malloc(w.sim.context, REGION, &device, NULL) == SB_OK, "no memory");
    w.device = device;
    for (int i = 0; i < REGION; i++)
        w.host[i] = (unsigned char)(i * 7 + 1);
    draw_tensor(&w);
    if (w.into)
        make_blob(&w);
    struct verdict v = judge(&w);
    bool accepted = call(&w, &v) == SB_OK;
    if (accepted)
        check_accepted(&w, &v);
    sb_blob_destroy(w.blob);
    fuzz_check(w.ended == accepted, "deleted %d times", w.ended);
    fuzz_check(sb_sim_free(w.sim.context, device, NULL) == SB_OK, "not freed");
    simulated_close(&w.sim);
    test_aligned_free(w.host);
    return 0;
}
