/* In these tests the library alone orders the accesses of threads: by a lock, a reference count, a
   memory's state word or a published pointer. The tests' flags and device do not order accesses, so
   that ThreadSanitizer reports a memory order that is too weak. The contract forbids some of the
   concurrent calls; the library's own state must stay valid even during such calls. */
#include "blobs.h"
#include "mirror.h"
#include "plain.h"
#include "pointers.h"
#include "team.h"

#include <syncblob/dlpack.h>

#define BYTES ((size_t)256)
#define COUNT ((int64_t)64)       /* floats in BYTES */
#define LARGE ((size_t)128 << 10) /* a size that the cache keeps */

/* --- a device that orders no threads --------------------------------------------------------- */

/* The device of plain.h with streams, events and arithmetic on F32. Each operation completes before
   it returns. */
struct tiny {
    struct plain plain; /* must be first: the slots of plain.c point to it */
    bool fails_scale;
    sb_status (*on_event_wait)(void *user); /* may be NULL */
    void *user;
};

static sb_stream tiny_own_stream(void *device) {
    return (sb_stream)device;
}

static sb_status tiny_stream(void *device, sb_stream stream, sb_error *err) {
    return SB_OK;
}

static sb_status tiny_record(void *device, sb_stream stream, void **out, sb_error *err) {
    *out = device;
    return SB_OK;
}

static sb_status tiny_stream_wait(void *device, sb_stream stream, void *event, sb_error *err) {
    return SB_OK;
}

static sb_status tiny_event_wait(void *device, void *event, sb_error *err) {
    const struct tiny *tiny = device;
    sb_status status = tiny->on_event_wait ? tiny->on_event_wait(tiny->user) : SB_OK;
    return status == SB_OK ? SB_OK : sb_error_fill(err, status, 0, "planted");
}

static void tiny_event_destroy(void *device, void *event) {
}

static sb_status tiny_prepare(void *device, sb_error *err) {
    return SB_OK;
}

static sb_status tiny_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                           void *y, sb_stream stream, sb_error *err) {
    assert_int_equal(dtype, SB_DTYPE_F32);
    const float *from = x;
    float *to = y;
    for (int64_t i = 0; i < count; i++)
        to[i] += (float)alpha * from[i];
    return SB_OK;
}

static sb_status tiny_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                            sb_stream stream, sb_error *err) {
    float *to = x;
    assert_int_equal(dtype, SB_DTYPE_F32);
    if (((const struct tiny *)device)->fails_scale)
        return sb_error_fill(err, SB_ERR_DEVICE_FAILURE, 0, "planted");
    for (int64_t i = 0; i < count; i++)
        to[i] *= (float)alpha;
    return SB_OK;
}

static sb_status tiny_sum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err) {
    assert_int_equal(dtype, SB_DTYPE_F32);
    *out = 0;
    for (int64_t i = 0; i < count; i++)
        *out += (double)((const float *)x)[i]; /* correct if each value is 0 or 1 */
    return SB_OK;
}

/* Returns the backend for "tiny:0"; the backend and `tiny` must outlive the context. */
static sb_backend tiny_table(struct tiny *tiny) {
    sb_backend table = plain_backend(&tiny->plain);
    table.name = "tiny";
    table.own_stream = tiny_own_stream;
    table.check_stream = tiny_stream;
    table.stream_synchronize = tiny_stream;
    table.event_record = tiny_record;
    table.stream_wait = tiny_stream_wait;
    table.event_wait = tiny_event_wait;
    table.event_destroy = tiny_event_destroy;
    table.prepare_arithmetic = tiny_prepare;
    table.axpy = tiny_axpy;
    table.scale = tiny_scale;
    table.asum = tiny_sum;
    table.sumsq = tiny_sum;
    return table;
}

/* Creates a context with the built-in allocator, which takes no lock of the test. */
static sb_context *tiny_context(const sb_backend *table) {
    sb_context *context;
    assert_ok(create_with_backend(table, "tiny:0", &context, &err));
    return context;
}

/* --- the objects of a test ------------------------------------------------------------------- */

struct stage {
    struct tiny tiny;
    sb_backend table;
    sb_context *context;
    sb_mem *mem;
    sb_blob *blob;
    char lent[2][256];
    _Atomic int deleted;
    sb_dl_managed_versioned *tensors[2];
};

static void stage_open(struct stage *s) {
    memset(s, 0, sizeof *s);
    s->table = tiny_table(&s->tiny);
    s->context = tiny_context(&s->table);
    assert_ok(sb_mem_create(s->context, BYTES, &s->mem, &err));
}

static void stage_close(struct stage *s) {
    sb_mem_release(s->mem);
    sb_blob_destroy(s->blob);
    sb_context_release(s->context);
}

static void count_deleter(void *user, void *ptr) {
    struct stage *s = user;
    atomic_fetch_add_explicit(&s->deleted, 1, memory_order_relaxed);
}

/* --- first uses: these tests must run first ----------------------------------------------- */

static void use_builtin(void *arg, int member) {
    sb_mem_release(mem_filled(NULL, 100, 1));
}

TEST(threads_share_the_first_use_of_the_built_in_context) {
    hand_over(use_builtin, use_builtin, NULL);
}

static void open_and_close(void *arg, int member) {
    const struct stage *s = arg;
    sb_context_release(tiny_context(&s->table));
}

TEST(threads_share_the_first_opening_of_a_device) {
    struct stage s = {.mem = NULL};
    s.table = tiny_table(&s.tiny);
    hand_over(open_and_close, open_and_close, &s);
}

/* --- each call, then each other call on another thread ----------------------------------- */

static int stream_objects[2];

static void use_large_buffer(struct stage *s) {
    sb_mem_release(mem_filled(s->context, LARGE, 1));
}

static void trim(struct stage *s) {
    sb_context_trim(s->context);
}

static void use_stream(struct stage *s, int stream) {
    sb_mem *mem;
    assert_ok(sb_mem_create(s->context, BYTES, &mem, &err));
    (void)mem_pointer_on(mem, GPU_DATA_ON, (sb_stream)&stream_objects[stream]);
    sb_mem_release(mem);
}

static void use_stream_0(struct stage *s) {
    use_stream(s, 0);
}

static void use_stream_1(struct stage *s) {
    use_stream(s, 1);
}

static void forget_stream_0(struct stage *s) {
    ignore(sb_context_forget_stream(s->context, (sb_stream)&stream_objects[0], NULL));
}

static void synchronize_context(struct stage *s) {
    assert_ok(sb_context_synchronize(s->context, &err));
}

static void look_at_storage(struct stage *s) {
    (void)sb_mem_storage(s->mem, SB_SIDE_CPU);
    (void)sb_mem_storage(s->mem, SB_SIDE_GPU);
}

static void sum(struct stage *s) {
    double sum;
    assert_ok(sb_blob_asum(s->blob, SB_DATA, &sum, &err));
}

static void look_at_memories(struct stage *s) {
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        sb_mem *mem;
        assert_ok(sb_blob_mutable_mem(s->blob, part, &mem, &err));
        assert_int_equal(sb_mem_size(mem), BYTES);
    }
}

static void (*const others[])(struct stage *s) = {
    use_large_buffer, trim, use_stream_0,    use_stream_1, forget_stream_0, synchronize_context,
    look_at_storage,  sum,  look_at_memories};

/* Numbers the calls: first on the memory, then on the blob's data, then the calls in `others`. */
enum { OTHERS = CALLS + POINTER_CALLS, ACTS = OTHERS + sizeof others / sizeof *others };

static bool is_const(int act) {
    const int call = act < CALLS ? act : act - CALLS;
    const enum purpose purpose = act < OTHERS ? call_kinds[call].purpose : READ;
    return purpose == READ || purpose == MOVE || purpose == WAIT;
}

struct two_acts {
    struct stage stage;
    int acts[2];
};

static void do_act(void *arg, int which) {
    struct two_acts *two = arg;
    struct stage *s = &two->stage;
    const int act = two->acts[which];
    const sb_stream stream = (sb_stream)&stream_objects[which];
    const struct call_arguments a = {stream, s->lent[which], BYTES, 0, count_deleter, s};
    void *ptr = NULL;
    if (act >= OTHERS)
        others[act - OTHERS](s);
    else if (act >= CALLS)
        assert_ok(blob_call(s->blob, SB_DATA, (enum call)(act - CALLS), stream, &ptr, &err));
    else
        ignore(mem_call(s->mem, (enum call)act, &a, &ptr, NULL)); /* some calls are refused */
    if (ptr && is_const(two->acts[0]) && is_const(two->acts[1]))
        assert_true(bytes_are(ptr, BYTES, 0)); /* the tiny device uses host memory */
}

/* Runs every pair of calls, in order, on two threads. The sides are ready only if both calls are
   const: the contract forbids other calls during a call that changes a ready side. */
TEST(each_call_sees_the_effects_of_each_call_on_another_thread) {
    for (int i = 0; i < ACTS; i++)
        for (int k = 0; k < ACTS; k++)
            for (int ready = 0; ready <= (is_const(i) && is_const(k)); ready++) {
                struct two_acts two = {.acts = {i, k}};
                stage_open(&two.stage);
                two.stage.blob = blob_of_count(two.stage.context, SB_DTYPE_F32, COUNT);
                if (ready) { /* both sides */
                    (void)mem_pointer(two.stage.mem, CPU_DATA);
                    (void)mem_pointer(two.stage.mem, GPU_DATA);
                }
                hand_over(do_act, do_act, &two);
                stage_close(&two.stage);
                assert_int_equal(two.stage.deleted,
                                 (i == SET_CPU || i == SET_GPU) + (k == SET_CPU || k == SET_GPU));
            }
}

static void touch_cpu(void *arg, int member) {
    (void)mem_pointer(((struct stage *)arg)->mem, CPU_DATA);
}

static void take_stream_0(struct stage *s) {
    (void)mem_pointer_on(s->mem, GPU_DATA_ON, (sb_stream)&stream_objects[0]);
}

static void give_to_blob(void *arg, int member) {
    const struct stage *s = arg;
    assert_ok(sb_blob_set_mem(s->blob, SB_DATA, s->mem, &err));
}

/* sb_blob_set_mem reads the addresses of both sides, to check their alignment. */
TEST_ON(stage, a_memory_is_set_as_a_blob_s_data_beside_its_first_reader) {
    f->blob = blob_of_count(f->context, SB_DTYPE_F32, COUNT);
    hand_over(touch_cpu, give_to_blob, f);
}

/* Two blobs that share one diff; both are updated on the device. */
struct updates {
    struct stage stage;
    sb_blob *blobs[2];
};

static void update(void *arg, int member) {
    assert_ok(sb_blob_update(((struct updates *)arg)->blobs[member], &err));
}

TEST(two_updates_record_their_reads_of_one_diff) {
    struct updates u;
    stage_open(&u.stage);
    for (int i = 0; i < 2; i++) {
        u.blobs[i] = blob_of_count(u.stage.context, SB_DTYPE_F32, COUNT);
        assert_ok(sb_blob_set_mem(u.blobs[i], SB_DIFF, u.stage.mem, &err));
        memset(blob_pointer(u.blobs[i], SB_DATA, OVERWRITE_GPU), 0, BYTES);
    }
    (void)mem_pointer(u.stage.mem, GPU_DATA);
    hand_over(update, update, &u);
    for (int i = 0; i < 2; i++)
        sb_blob_destroy(u.blobs[i]);
    stage_close(&u.stage);
}

/* --- reference counts ------------------------------------------------------------ */

static void release_context(void *arg, int member) {
    sb_context *context = arg;
    assert_string_equal(sb_context_device(context), "cpu");
    sb_context_release(context);
}

TEST(the_last_release_of_a_context_comes_after_all_uses) {
    sb_context *context;
    assert_ok(sb_context_create(NULL, &context, &err));
    (void)sb_context_retain(context);
    hand_over(release_context, release_context, context);
}

static void look_and_release(void *arg, int member) {
    const struct stage *s = arg;
    assert_int_equal(sb_mem_size(s->mem), BYTES);
    sb_mem_release(s->mem);
}

TEST_ON(stage, the_last_release_of_a_memory_comes_after_all_uses) {
    (void)sb_mem_retain(f->mem);
    hand_over(look_and_release, look_and_release, f);
    f->mem = NULL;
}

static void read_and_release(void *arg, int member) {
    const struct stage *s = arg;
    assert_true(bytes_are(mem_pointer(s->mem, CPU_DATA), BYTES, 0x11));
    sb_mem_release(s->mem);
}

static void write_when_alone(void *arg, int member) {
    const struct stage *s = arg;
    while (!sb_mem_is_unique(s->mem))
        sched_yield();
    memset(mem_pointer(s->mem, MUTABLE_CPU), 0x22, BYTES);
}

TEST_ON(stage, the_only_owner_sees_the_writes_of_earlier_owners) {
    (void)sb_mem_retain(f->mem);
    assert_int_equal(sb_mem_is_unique(f->mem), 0);
    void *ptr = mem_pointer(f->mem, OVERWRITE_CPU);
    memset(ptr, 0x11, BYTES);
    hand_over(read_and_release, write_when_alone, f);
    assert_true(bytes_are(ptr, BYTES, 0x22));
}

/* Two threads find that a blob has no memory, and each creates a memory. The allocation of the
   slower thread waits until the other thread is done. */
struct duel {
    sb_blob *blob;
    sb_mem *seen[2];
    quiet_flag slow_is_in, fast_is_done;
    atomic_int live; /* blocks of memory */
};

static _Thread_local bool is_slow;

static void *duel_alloc(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    struct duel *duel = user;
    void *ptr = test_aligned_alloc(alignment, bytes);
    if (is_slow) {
        quiet_raise(&duel->slow_is_in);
        quiet_await(&duel->fast_is_done);
    }
    (void)atomic_fetch_add_explicit(&duel->live, ptr != NULL, memory_order_relaxed);
    return ptr ? memset(ptr, 0, bytes) : NULL;
}

static void duel_free(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags) {
    (void)atomic_fetch_sub_explicit(&((struct duel *)user)->live, 1, memory_order_relaxed);
    test_aligned_free(ptr);
}

static void look_for_memory(void *arg, int member) {
    struct duel *duel = arg;
    is_slow = member == 1;
    if (!is_slow)
        quiet_await(&duel->slow_is_in);
    assert_ok(sb_blob_mutable_mem(duel->blob, SB_DATA, &duel->seen[member], &err));
    assert_int_equal(sb_mem_size(duel->seen[member]), BYTES);
    quiet_raise(&duel->fast_is_done);
}

TEST(the_slower_thread_sees_the_memory_of_the_faster) {
    struct duel duel = {.blob = NULL};
    sb_context *context;
    const sb_allocator allocator = {duel_alloc, duel_free, &duel};
    assert_ok(sb_context_create(&CONTEXT_OPTIONS(.allocator = allocator), &context, &err));
    duel.blob = blob_of_count(context, SB_DTYPE_F32, COUNT);
    team_run(2, look_for_memory, &duel);
    assert_ptr_equal(duel.seen[0], duel.seen[1]);
    assert_int_equal(sb_mem_is_unique(duel.seen[0]), 1);
    sb_blob_destroy(duel.blob);
    sb_context_release(context);
    assert_int_equal(atomic_load_explicit(&duel.live, memory_order_relaxed), 0);
}

/* Pulls into a lent host side, whose bytes the test can read without requesting a pointer. */
static void pull_and_wait(void *arg, int member) {
    const struct stage *s = arg;
    assert_ok(sb_mem_async_cpu_pull(s->mem, NULL, &err));
    assert_ok(sb_mem_synchronize(s->mem, &err));
}

static void wait_and_look(void *arg, int member) {
    const struct stage *s = arg;
    assert_ok(sb_mem_synchronize(s->mem, &err));
    assert_true(bytes_are(s->lent[0], BYTES, 0x11));
}

TEST_ON(stage, a_copy_that_another_thread_waited_for_is_over) {
    assert_ok(sb_mem_set_cpu(f->mem, f->lent[0], BYTES, 0, count_deleter, f, &err));
    memset(mem_pointer(f->mem, OVERWRITE_GPU), 0x11, BYTES);
    hand_over(pull_and_wait, wait_and_look, f);
}

/* --- tensors of DLPack, which may be deleted on any thread --------------------------------------
 */

/* Lends memory to a new blob; the deleter, on the thread of the last owner, reads all writes. */
static void read_back(void *user, void *ptr) {
    assert_true(bytes_are(ptr, BYTES, 0x44));
    memset(ptr, 0, BYTES);
    count_deleter(user, ptr);
}

static void stage_open_lent(struct stage *s, int fill, uint32_t flags) {
    stage_open(s);
    memset(s->lent[0], fill, BYTES);
    s->blob = blob_of_count(s->context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_set_cpu(s->blob, SB_DATA, s->lent[0], BYTES, flags, read_back, s, &err));
}

/* The first of two threads also writes. */
static void end_tensor(void *arg, int member) {
    const struct stage *s = arg;
    if (member == 0)
        memset(s->tensors[0]->dl_tensor.data, 0x44, BYTES);
    s->tensors[0]->deleter(s->tensors[0]);
}

static void end_blob(void *arg, int member) {
    struct stage *s = arg;
    if (member == 0)
        memset(blob_pointer(s->blob, SB_DATA, MUTABLE_CPU), 0x44, BYTES);
    sb_blob_destroy(s->blob);
    s->blob = NULL;
}

TEST(the_last_user_sees_the_writes_of_all_others) {
    team_task *const ends[] = {end_tensor, end_blob, end_tensor};
    for (int i = 0; i < 2; i++) {
        struct stage s;
        stage_open_lent(&s, 0, 0);
        assert_ok(sb_blob_to_mutable_dlpack(s.blob, SB_DATA, SB_SIDE_CPU, s.tensors, &err));
        hand_over(ends[i], ends[i + 1], &s);
        assert_int_equal(s.deleted, 1);
        stage_close(&s);
    }
}

static void write_elsewhere(void *arg, int member) {
    (void)blob_pointer(((struct stage *)arg)->blob, SB_DATA, MUTABLE_CPU);
}

/* The write moves the memory out of read-only storage that a tensor still holds. Only the lease
   orders the two threads. */
TEST(released_storage_ends_with_the_tensor) {
    struct stage s;
    stage_open_lent(&s, 0x44, SB_READ_ONLY);
    assert_ok(sb_blob_to_dlpack(s.blob, SB_DATA, SB_SIDE_CPU, s.tensors, &err));
    hand_over(write_elsewhere, end_tensor, &s);
    assert_int_equal(s.deleted, 1);
    stage_close(&s);
}

static void export_tensor(void *arg, int member) {
    struct stage *s = arg;
    assert_ok(sb_blob_to_dlpack(s->blob, SB_DATA, SB_SIDE_CPU, &s->tensors[member], &err));
}

/* The export of the first tensor changes the storage; the export of the second reads that change.
   Each tensor keeps the storage alive. */
TEST_ON(stage, two_threads_export_one_side) {
    f->blob = blob_of_count(f->context, SB_DTYPE_F32, COUNT);
    void *data = blob_pointer(f->blob, SB_DATA, MUTABLE_CPU);
    hand_over(export_tensor, export_tensor, f);
    sb_blob_destroy(f->blob);
    f->blob = NULL;
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(f->tensors[i]->dl_tensor.data, data);
        memset(data, 0x55, BYTES);
        f->tensors[i]->deleter(f->tensors[i]);
    }
}

/* --- a write that failed midway ----------------------------------------------------------- */

static void spoil(void *arg, int member) {
    const struct stage *s = arg;
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale(s->blob, SB_DATA, 2, &err));
}

static void lend_after_the_loss(void *arg, int member) {
    struct stage *s = arg;
    assert_ok(sb_mem_set_cpu(s->mem, s->lent[0], BYTES, 0, NULL, NULL, &err));
}

/* Opens a stage whose blob is on the device. The next scaling of that blob loses the device. */
static void stage_open_to_spoil(struct stage *s) {
    stage_open(s);
    s->blob = blob_of_count(s->context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_set_mem(s->blob, SB_DATA, s->mem, &err));
    memset(mem_pointer(s->mem, OVERWRITE_GPU), 0, BYTES);
    s->tiny.fails_scale = true;
}

TEST(another_thread_can_lend_storage_to_a_spoiled_memory) {
    struct stage s;
    stage_open_to_spoil(&s);
    hand_over(spoil, lend_after_the_loss, &s);
    assert_int_equal(sb_mem_head(s.mem), SB_HEAD_AT_CPU);
    stage_close(&s);
}

static void use_stream_beside(void *arg, int member) {
    use_stream_0(arg);
}

/* When the device is lost, the library waits for streams that other threads have used. */
TEST(a_device_is_lost_beside_another_thread_s_stream) {
    struct stage s;
    stage_open_to_spoil(&s);
    hand_over(use_stream_beside, spoil, &s);
    stage_close(&s);
}

/* The engine of mirror.h, whose reduction fails after another thread has read on the device. */
struct failing {
    struct mirror mirror; /* must be first: the engine's other slots point to it */
    struct stage stage;
    sb_comm *comm;
    quiet_flag reducing, read;
};

static sb_status failing_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                sb_error *err) {
    struct failing *f = comm;
    quiet_raise(&f->reducing);
    quiet_await(&f->read);
    return sb_error_fill(err, SB_ERR_COMM_FAILURE, 0, "planted");
}

static void reduce_or_read(void *arg, int member) {
    struct failing *f = arg;
    if (member == 0) {
        assert_status(SB_ERR_COMM_FAILURE, sb_comm_all_reduce_blobs(f->comm, &f->stage.blob, 1,
                                                                    SB_DATA, SB_COMM_SUM, &err));
        return;
    }
    quiet_await(&f->reducing);
    take_stream_0(&f->stage);
    quiet_raise(&f->read);
}

TEST(a_failed_reduction_beside_a_reader_leaves_the_memory_valid) {
    sb_comm_engine engine = mirror_engine_at_once;
    engine.all_reduce = failing_reduce;
    struct failing f = {.read = 0};
    struct stage *s = &f.stage;
    stage_open(s);
    assert_ok(sb_comm_create(s->context, &engine, &f, &f.comm, &err));
    s->blob = blob_of_count(s->context, SB_DTYPE_F32, COUNT);
    (void)mem_pointer(s->mem, CPU_DATA);
    (void)mem_pointer(s->mem, GPU_DATA);
    assert_ok(sb_blob_set_mem(s->blob, SB_DATA, s->mem, &err));
    team_run(2, reduce_or_read, &f);
    assert_int_equal(sb_mem_head(s->mem), SB_HEAD_AT_GPU);
    sb_comm_destroy(f.comm);
    stage_close(s);
}

/* --- device storage that is retired while another thread reads it --------------------------- */

/* A read replaces read-only device storage and retires the old storage while another thread begins
   to use the device side on a stream. To retire storage, the library waits for the storage's users.
   The first wait fails, and the other thread begins before the retry. */
struct replacing {
    struct stage stage;
    quiet_flag retiring, joined;
    _Atomic int waits;
};

static sb_status fail_first_wait(void *user) {
    struct replacing *r = user;
    if (atomic_fetch_add_explicit(&r->waits, 1, memory_order_relaxed) != 0)
        return SB_OK;
    quiet_raise(&r->retiring);
    quiet_await(&r->joined);
    return SB_ERR_DEVICE_FAILURE;
}

static void replace_or_join_in(void *arg, int member) {
    struct replacing *r = arg;
    if (member == 0) {
        (void)mem_pointer(r->stage.mem, GPU_DATA);
        return;
    }
    quiet_await(&r->retiring);
    take_stream_0(&r->stage);
    quiet_raise(&r->joined);
}

TEST(storage_is_retired_beside_new_readers) {
    struct replacing r = {.waits = 0};
    struct stage *s = &r.stage;
    stage_open(s);
    assert_ok(sb_mem_set_gpu(s->mem, s->lent[0], BYTES, SB_READ_ONLY, count_deleter, s, &err));
    take_stream_0(s);
    memset(mem_pointer(s->mem, MUTABLE_CPU), 0x11, BYTES);
    s->tiny.on_event_wait = fail_first_wait;
    s->tiny.user = &r;
    team_run(2, replace_or_join_in, &r);
    assert_true(atomic_load(&r.waits) >= 2);
    assert_int_equal(atomic_load(&s->deleted), 1);
    assert_int_equal(sb_mem_storage(s->mem, SB_SIDE_GPU), SB_STORAGE_OWNED);
    stage_close(s);
}

/* --- a wait without a lock -------------------------------------------------------------- */

static void use_stream_1_too(void *arg, int member) {
    use_stream_1(arg);
}

static sb_status use_another_stream(void *user) {
    struct replacing *r = user;
    r->stage.tiny.on_event_wait = NULL;
    team_run(1, use_stream_1_too, &r->stage);
    quiet_raise(&r->joined);
    return SB_OK;
}

TEST(a_stream_is_forgotten_beside_users_of_others) {
    struct replacing r = {.waits = 0};
    stage_open(&r.stage);
    take_stream_0(&r.stage);
    r.stage.tiny.on_event_wait = use_another_stream;
    r.stage.tiny.user = &r;
    forget_stream_0(&r.stage);
    assert_true(r.joined);
    stage_close(&r.stage);
}

/* --- a loss during a wait --------------------------------------------------------------- */

static sb_status lose_meanwhile(void *user) {
    struct replacing *r = user;
    if (atomic_fetch_add(&r->waits, 1) == 0)
        team_run(1, spoil, &r->stage);
    return SB_OK;
}

TEST(a_wait_that_a_loss_interrupts_does_not_succeed) {
    struct replacing r = {.waits = 0};
    stage_open_to_spoil(&r.stage);
    r.stage.tiny.user = &r;
    r.stage.tiny.on_event_wait = lose_meanwhile;
    assert_status(SB_ERR_DEVICE_LOST, sb_context_synchronize(r.stage.context, &err));
    assert_int_equal(r.waits, 1); /* the library waits for only one of the two streams */
    stage_close(&r.stage);
}

/* --- two quarantined contexts, one of which owns the other ------------------------------------ */

struct chained {
    sb_context *other; /* the deleter releases the last reference to this context */
    _Atomic int deleted;
};

static void end_chained(void *user, void *ptr) {
    struct chained *chained = user;
    atomic_fetch_add(&chained->deleted, 1);
    sb_context_release(chained->other);
}

/* Retires memory lent to the context while every wait fails, so the memory is quarantined. */
static void leave_waiting(sb_context *context, void *bytes, struct chained *chained) {
    sb_mem *mem;
    assert_ok(sb_mem_create(context, BYTES, &mem, &err));
    assert_ok(sb_mem_set_cpu(mem, bytes, BYTES, 0, end_chained, chained, &err));
    (void)mem_pointer(mem, MUTABLE_GPU);
    mem_fail_wait(mem);
    sb_mem_release(mem);
}

static void trim_often(void *arg, int member) {
    for (int i = 0; i < 40; i++) /* until no armed fault is left */
        sb_context_trim(NULL);
}

TEST(threads_that_trim_end_each_quarantined_loan_once) {
    static char lent[2][BYTES];
    for (int round = 0; round < 50; round++) {
        const sb_context_options options =
            CONTEXT_OPTIONS(.device = "sim:0", .flags = SB_CONTEXT_NO_PINNED);
        sb_context *contexts[2];
        sb_stats stats = SB_STATS_INIT;
        for (int i = 0; i < 2; i++)
            assert_ok(sb_context_create(&options, &contexts[i], &err));
        struct chained first = {.other = contexts[1]}, second = {.other = NULL};
        leave_waiting(contexts[0], lent[0], &first);
        leave_waiting(contexts[1], lent[1], &second);
        sb_context_release(contexts[0]);
        team_run(3, trim_often, NULL);
        assert_int_equal(first.deleted, 1);
        assert_int_equal(second.deleted, 1);
        assert_ok(sb_context_stats(NULL, &stats, &err));
        assert_int_equal(stats.leaked_bytes, 0);
    }
}
