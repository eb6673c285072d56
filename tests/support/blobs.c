#include "blobs.h"

#include "pointers.h"

#include <unistd.h>

void rig_open_options(struct rig *rig, sb_context_options options) {
    *rig = (struct rig){.counting = COUNTING_ALLOCATOR_INIT, .owned_before = test_num_owned()};
    options.allocator = counting_allocator_table(&rig->counting);
    assert_ok(sb_context_create(&options, &rig->context, &err));
}

void rig_open(struct rig *rig) {
    rig_open_on(rig, "sim:0", 0);
}

void rig_open_on(struct rig *rig, const char *device, uint32_t flags) {
    rig_open_options(rig, CONTEXT_OPTIONS(.device = device, .flags = flags));
}

void rig_reopen_on(struct rig *rig, const char *device, uint32_t flags) {
    rig_close(rig);
    rig_open_on(rig, device, flags);
}

void rig_reopen_options(struct rig *rig, sb_context_options options) {
    rig_close(rig);
    rig_open_options(rig, options);
}

void rigs_open(struct rigs *rigs) {
    rig_open(&rigs->a);
    rig_open(&rigs->b);
}

void rigs_close(struct rigs *rigs) {
    rig_close(&rigs->a);
    rig_close(&rigs->b);
}

void rigs_reopen_on(struct rigs *rigs, const char *device, const char *other, uint32_t flags) {
    rigs_close(rigs);
    rig_open_on(&rigs->a, device, flags);
    rig_open_on(&rigs->b, other, flags);
}

static void end_context(void *context) {
    sb_context_release(context);
}

sb_context *test_context(sb_context_options options) {
    sb_context *context;
    assert_ok(sb_context_create(&options, &context, &err));
    test_own(context, end_context);
    return context;
}

sb_context *test_context_on(const char *device) {
    return test_context(CONTEXT_OPTIONS(.device = device));
}

static void end_mem(void *mem) {
    sb_mem_release(mem);
}

static sb_mem *test_own_mem(sb_mem *mem) {
    test_own(mem, end_mem);
    return mem;
}

sb_mem *test_mem(sb_context *context, size_t bytes) {
    sb_mem *mem;
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    return test_own_mem(mem);
}

const char *rig_path(struct rig *rig, const char *name) {
    char path[sizeof *rig->paths];
    int i = 0;
    if (!*rig->folder) {
        strcpy(rig->folder, "/tmp/syncblob-test-XXXXXX");
        assert_non_null(mkdtemp(rig->folder));
    }
    (void)snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    while (i < 8 && *rig->paths[i] && strcmp(path, rig->paths[i]) != 0)
        i++;
    assert_true(i < 8);
    return strcpy(rig->paths[i], path);
}

static void remove_folder(struct rig *rig) {
    for (int i = 0; i < 8 && *rig->paths[i]; i++)
        (void)unlink(rig->paths[i]);
    if (*rig->folder && rmdir(rig->folder) != 0)
        fail_with("files are left in %s", rig->folder);
}

void rig_close(struct rig *rig) {
    test_end_after(rig->owned_before);
    sb_context_trim(rig->context);
    sb_stats stats = rig_stats(rig);
    assert_int_equal(stats.device_bytes, 0);
    assert_int_equal(stats.pinned_bytes, 0);
    assert_int_equal(stats.borrowed_bytes, 0);
    assert_int_equal(rig->counting.live_buffers, 0);
    sb_context_release(rig->context);
    rig->context = NULL;
    counting_allocator_assert_clean(&rig->counting);
    remove_folder(rig);
}

sb_stats rig_stats(struct rig *rig) {
    sb_error err;
    sb_stats stats = SB_STATS_INIT;
    assert_ok(sb_context_stats(rig->context, &stats, &err));
    return stats;
}

struct tally rig_tally(struct rig *rig) {
    sb_error err;
    struct tally t = {0};
    sb_stats stats = rig_stats(rig);
    if (strncmp(sb_context_device(rig->context), "sim:", 4) == 0)
        assert_ok(sb_sim_calls(rig->context, t.calls, SB_SIM_OP_COUNT, &err));
    t.host_allocs = rig->counting.buffer_calls + t.calls[SB_SIM_ALLOC_PINNED];
    t.device_allocs = t.calls[SB_SIM_ALLOC];
    t.uploads = (int64_t)stats.uploads;
    t.downloads = (int64_t)stats.downloads;
    t.device_copies = (int64_t)stats.device_copies;
    t.host_copies = (int64_t)stats.host_copies;
    return t;
}

struct tally rig_since(struct rig *rig, const struct tally *before) {
    struct tally t = rig_tally(rig);
    int64_t *number = (int64_t *)&t; /* each member of struct tally is an int64_t */
    for (size_t i = 0; i < sizeof t / sizeof *number; i++)
        number[i] -= ((const int64_t *)before)[i];
    return t;
}

void assert_no_work(const struct tally *since) {
    assert_int_equal(since->host_allocs, 0);
    for (int op = 0; op < SB_SIM_OP_COUNT; op++)
        if (op != SB_SIM_CHECK_STREAM && since->calls[op])
            fail_with("operation %d of the device was called %d times", op, (int)since->calls[op]);
}

void bytes_get(sb_context *context, const void *there, void *out, size_t bytes) {
    if (context)
        ignore(sb_sim_peek(context, out, there, bytes, NULL));
    else
        memcpy(out, there, bytes);
}

void bytes_put(sb_context *context, void *there, const void *in, size_t bytes) {
    if (context)
        ignore(sb_sim_poke(context, there, in, bytes, NULL));
    else
        memcpy(there, in, bytes);
}

bool bytes_are(const void *ptr, size_t bytes, int fill) {
    const unsigned char *p = ptr;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != (unsigned char)fill)
            return false;
    return true;
}

bool device_bytes_are(sb_context *context, const void *ptr, size_t bytes, int fill) {
    sb_error err;
    unsigned char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    if (bytes)
        assert_ok(sb_sim_peek(context, copy, ptr, bytes, &err));
    const bool same = bytes_are(copy, bytes, fill);
    free(copy);
    return same;
}

void device_fill(sb_context *context, void *ptr, size_t bytes, int fill) {
    sb_error err;
    unsigned char *image = malloc(bytes + 1);
    assert_non_null(image);
    memset(image, fill, bytes + 1);
    if (bytes)
        assert_ok(sb_sim_poke(context, ptr, image, bytes, &err));
    free(image);
}

void rig_schedule(struct rig *rig, int32_t schedule, uint64_t seed) {
    sb_error err;
    assert_ok(sb_sim_set_schedule(rig->context, schedule, seed, &err));
}

sb_stream rig_stream(struct rig *rig) {
    sb_error err;
    sb_stream stream;
    assert_ok(sb_sim_stream_create(rig->context, &stream, &err));
    return stream;
}

void rig_end_stream(struct rig *rig, sb_stream stream) {
    sb_error err;
    assert_ok(sb_context_forget_stream(rig->context, stream, &err));
    assert_ok(sb_sim_stream_destroy(rig->context, stream, &err));
}

static void look_now(void *user) {
    struct look *look = user;
    look->ran = true;
    look->reached = sb_sim_address(look->context, look->ptr, look->bytes) != NULL;
}

void rig_look(struct look *look, struct rig *rig, sb_stream stream, const void *ptr, size_t bytes) {
    sb_error err;
    *look = (struct look){.context = rig->context, .ptr = ptr, .bytes = bytes};
    assert_ok(sb_sim_launch(rig->context, stream, look_now, look, &err));
}

void device_fail(sb_context *context, int32_t op, int64_t nth, int32_t mode) {
    sb_error err;
    assert_ok(sb_sim_fail(context, op, nth, mode, &err));
}

void device_fail_no_more(sb_context *context) {
    device_fail(context, SB_SIM_ANY, 0, SB_SIM_FAIL_NOW);
}

void device_fail_run(sb_context *context, int32_t op, int64_t nth, int times) {
    for (int i = 0; i < times; i++)
        assert_ok(sb_sim_fail_also(context, op, nth + i, SB_SIM_FAIL_NOW, &err));
}

struct test_loan {
    sb_context *context;
    void *ptr;
};

static void end_loan(void *thing) {
    struct test_loan *loan = thing;
    if (loan->context)
        ignore(sb_sim_free(loan->context, loan->ptr, NULL)); /* the device may be lost */
    else
        test_aligned_free(loan->ptr);
    free(loan);
}

static struct lent lend(struct test_loan loan, size_t bytes) {
    struct lent lent = {.context = loan.context, .ptr = loan.ptr, .bytes = bytes};
    lent.loan = malloc(sizeof loan);
    assert_non_null(lent.loan);
    *lent.loan = loan;
    test_own_loan(lent.loan, end_loan);
    return lent;
}

struct lent lend_host(size_t bytes, int fill) {
    void *ptr = test_aligned_alloc(64, bytes ? bytes : 1);
    assert_non_null(ptr);
    memset(ptr, fill, bytes);
    return lend((struct test_loan){NULL, ptr}, bytes);
}

struct lent lend_device(sb_context *context, size_t bytes, int fill) {
    void *ptr;
    assert_int_equal(sb_sim_malloc(context, bytes ? bytes : 1, &ptr, NULL), SB_OK);
    device_fill(context, ptr, bytes, fill);
    return lend((struct test_loan){context, ptr}, bytes);
}

void lent_deleter(void *user, void *ptr) {
    struct lent *lent = user;
    lent->deleted += lent->ptr == ptr ? 1 : 1000;
    if (lent->taken && lent->context)
        device_fill(lent->context, lent->ptr, lent->bytes, TAKEN);
    else if (lent->taken)
        memset(lent->ptr, TAKEN, lent->bytes);
}

bool lent_holds(const struct lent *lent, int fill) {
    return lent->context ? device_bytes_are(lent->context, lent->ptr, lent->bytes, fill)
                         : bytes_are(lent->ptr, lent->bytes, fill);
}

void lent_free(struct lent *lent) {
    if (test_disown(lent->loan))
        end_loan(lent->loan);
    lent->ptr = NULL;
}

void mem_place(sb_mem *mem, int32_t head, const void *values, size_t bytes) {
    const void *in;
    void *out;
    if (head == SB_HEAD_UNINITIALIZED)
        return;
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    memcpy(out, values, bytes);
    if (head == SB_HEAD_SYNCED)
        assert_ok(sb_mem_gpu(mem, &in, &err));
    if (head == SB_HEAD_AT_GPU)
        assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    assert_int_equal(sb_mem_head(mem), head);
}

sb_mem *mem_filled(sb_context *context, size_t bytes, int fill) {
    sb_mem *mem;
    void *ptr;
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    assert_ok(sb_mem_overwrite_cpu(mem, &ptr, &err));
    memset(ptr, fill, bytes);
    return mem;
}

sb_mem *test_filled(sb_context *context, size_t bytes, int fill) {
    return test_own_mem(mem_filled(context, bytes, fill));
}

void mem_look(const sb_mem *mem, void *out, size_t bytes) {
    sb_error err;
    const void *in;
    int32_t head = sb_mem_head(mem);
    memset(out, 0, bytes);
    if (head == SB_HEAD_UNINITIALIZED || bytes == 0)
        return;
    if (head == SB_HEAD_AT_GPU) {
        assert_ok(sb_mem_gpu(mem, &in, &err));
        assert_ok(sb_sim_peek(sb_mem_context(mem), out, in, bytes, &err));
    } else {
        assert_ok(sb_mem_cpu(mem, &in, &err));
        memcpy(out, in, bytes);
    }
    assert_int_equal(sb_mem_head(mem), head);
}

bool mem_holds(const sb_mem *mem, const void *values, size_t bytes) {
    void *found = malloc(bytes ? bytes : 1);
    assert_non_null(found);
    mem_look(mem, found, bytes);
    bool same = memcmp(found, values, bytes) == 0;
    free(found);
    return same;
}

void mem_fail_wait(const sb_mem *mem) {
    const void *in;
    assert_ok(sb_sim_set_schedule(sb_mem_context(mem), SB_SIM_LAZY, 0, &err));
    device_fail_run(sb_mem_context(mem), SB_SIM_ANY, 2, 16);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_cpu(mem, &in, &err));
}

sb_blob *blob_of(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape) {
    sb_blob *blob = NULL;
    assert_ok(sb_blob_create_shaped(context, dtype, shape, num_axes, &blob, &err));
    return blob;
}

sb_blob *blob_of_count(sb_context *context, int32_t dtype, int64_t count) {
    return blob_of(context, dtype, 1, &count);
}

static void end_blob(void *blob) {
    sb_blob_destroy(blob);
}

sb_blob *test_blob(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape) {
    sb_blob *blob = blob_of(context, dtype, num_axes, shape);
    test_own(blob, end_blob);
    return blob;
}

sb_blob *test_vector(sb_context *context, int32_t dtype, int64_t count) {
    return test_blob(context, dtype, 1, &count);
}

sb_blob *test_unshaped(sb_context *context, int32_t dtype) {
    sb_blob *blob;
    assert_ok(sb_blob_create(context, dtype, &blob, &err));
    test_own(blob, end_blob);
    return blob;
}

sb_filler filler_of(int32_t type) {
    sb_filler filler = SB_FILLER_INIT;
    filler.type = type;
    return filler;
}

sb_mem *mem_of(sb_blob *blob, sb_part part) {
    sb_error err;
    sb_mem *mem = NULL;
    assert_ok(sb_blob_mutable_mem(blob, part, &mem, &err));
    return mem;
}

sb_mem *data_of(sb_blob *blob) {
    return mem_of(blob, SB_DATA);
}

sb_mem *diff_of(sb_blob *blob) {
    return mem_of(blob, SB_DIFF);
}

void assert_shape_is(const sb_blob *blob, const char *expected) {
    sb_error err;
    char text[256];
    assert_ok(sb_blob_shape_string(blob, text, sizeof text, NULL, &err));
    assert_string_equal(text, expected);
}

void assert_values(const sb_blob *blob, sb_part part, int64_t count, double first) {
    const void *values = host_of(blob, part);
    assert_int_equal(sb_blob_count(blob), count);
    for (int64_t i = 0; i < count; i++)
        assert_true(value_at(sb_blob_dtype(blob), values, i) == first + (double)i);
}

const void *host_of(const sb_blob *blob, sb_part part) {
    sb_error err;
    const void *bytes = NULL;
    assert_ok(sb_blob_cpu(blob, part, &bytes, &err));
    return bytes;
}

void *host_to_write(sb_blob *blob, sb_part part) {
    sb_error err;
    void *bytes = NULL;
    assert_ok(sb_blob_mutable_cpu(blob, part, &bytes, &err));
    return bytes;
}

void fill_values(int32_t dtype, int64_t count, double start, double step, void *out) {
    for (int64_t i = 0; i < count; i++) {
        double value = start + step * (double)i;
        if (dtype == SB_DTYPE_F64)
            ((double *)out)[i] = value;
        else
            ((float *)out)[i] = (float)value;
    }
}

double value_at(int32_t dtype, const void *values, int64_t i) {
    return dtype == SB_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void count_versioned(sb_dl_managed_versioned *self) {
    struct tensor *tensor = self->manager_ctx;
    tensor->deleted += self == &tensor->versioned ? 1 : 1000;
}

static void count_legacy(sb_dl_managed *self) {
    struct tensor *tensor = self->manager_ctx;
    tensor->deleted += self == &tensor->legacy ? 1 : 1000;
}

void tensor_make(struct tensor *tensor) {
    const struct lent lent = lend_host(256, 0);
    for (int i = 0; i < 6; i++)
        ((float *)lent.ptr)[i] = (float)(i + 1);
    *tensor = (struct tensor){.shape = {2, 3}, .strides = {3, 1}, .lent = lent};
    tensor->versioned = (sb_dl_managed_versioned){
        .version = {1, 0},
        .manager_ctx = tensor,
        .deleter = count_versioned,
        .dl_tensor = {.data = lent.ptr,
                      .device = {.device_type = SB_DL_DEVICE_CPU},
                      .ndim = 2,
                      .dtype = {SB_DL_CODE_FLOAT, 32, 1},
                      .shape = tensor->shape,
                      .strides = tensor->strides},
    };
    tensor->legacy = (sb_dl_managed){
        .dl_tensor = tensor->versioned.dl_tensor, .manager_ctx = tensor, .deleter = count_legacy};
}

static void reshape_grows(sb_blob *blob) {
    assert_ok(sb_blob_reshape(blob, (int64_t[]){4000}, 1, NULL, &err));
}

static void set_lends(sb_blob *blob) {
    static float other[4];
    assert_ok(sb_mem_set_cpu(data_of(blob), other, sizeof other, 0, NULL, NULL, &err));
}

static void evict_frees(sb_blob *blob) {
    (void)blob_pointer(blob, SB_DATA, GPU_DATA);
    assert_ok(sb_mem_evict_cpu(data_of(blob), &err));
}

static void reads_from_the_device_again(sb_blob *blob) {
    evict_frees(blob);
    (void)blob_pointer(blob, SB_DATA, CPU_DATA);
}

static void device_writes(sb_blob *blob) {
    device_fill(sb_blob_context(blob), blob_pointer(blob, SB_DATA, MUTABLE_GPU), 16, 0);
}

void (*const retirings[RETIRINGS])(sb_blob *) = {reshape_grows, set_lends, evict_frees,
                                                 reads_from_the_device_again, device_writes};

const char *fault_name(enum fault fault) {
    static const char *const names[FAULTS] = {"allocation", "device now", "device later",
                                              "device for good"};
    return names[fault];
}

static int64_t device_calls(struct rig *rig) {
    struct tally t = rig_tally(rig);
    int64_t sum = 0;
    for (int op = 0; op < SB_SIM_OP_COUNT; op++)
        sum += t.calls[op];
    return sum;
}

struct armed fault_arm(struct rig *rig, enum fault fault, int64_t nth) {
    static const int32_t modes[FAULTS] = {-1, SB_SIM_FAIL_NOW, SB_SIM_FAIL_LATER,
                                          SB_SIM_FAIL_STICKY};
    struct armed armed = {rig, fault, nth, 0};
    if (fault == FAULT_ALLOC) {
        armed.calls_before = rig->counting.failures;
        rig->counting.fail_nth = nth;
    } else {
        armed.calls_before = device_calls(rig);
        device_fail(rig->context, SB_SIM_ANY, nth, modes[fault]);
    }
    return armed;
}

bool fault_fired(const struct armed *armed) {
    return armed->fault == FAULT_ALLOC
               ? armed->rig->counting.failures > armed->calls_before
               : device_calls(armed->rig) - armed->calls_before >= armed->nth;
}

bool fault_disarm(const struct armed *armed) {
    armed->rig->counting.fail_nth = 0;
    if (armed->fault != FAULT_ALLOC)
        ignore(sb_sim_fail(armed->rig->context, SB_SIM_ANY, 0, SB_SIM_FAIL_NOW, NULL));
    return fault_fired(armed);
}

bool fault_explains(enum fault fault, sb_status status, bool writes_in_place) {
    switch (status) {
    case SB_ERR_OUT_OF_MEMORY:
        return fault != FAULT_STICKY;
    case SB_ERR_DEVICE_FAILURE:
        return fault == FAULT_NOW || fault == FAULT_LATER;
    case SB_ERR_DEVICE_LOST:
        return fault == FAULT_STICKY || (writes_in_place && fault != FAULT_ALLOC);
    default:
        return false;
    }
}
