/* Tests that the library alone orders the accesses of threads. The flags and devices of the tests
   order no accesses, so that ThreadSanitizer reports a memory order that is too weak. */
#include "blobs.h"
#include "mirror.h"
#include "plain.h"
#include "pointers.h"
#include "team.h"

#include <syncblob/dlpack.h>

#define BYTES ((size_t)256)
#define COUNT ((int64_t)64)       /* floats in BYTES */
#define LARGE ((size_t)128 << 10) /* a size that the cache keeps */

/* A device that does not order threads. A scaling fails and loses the device. */
struct tiny {
    struct plain plain; /* must be first: the slots of plain.c point to `plain` */
    sb_status (*on_event_wait)(void *user);
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
    return sb_error_fill(err, SB_ERR_DEVICE_FAILURE, 0, "planted");
}

static sb_status tiny_sum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err) {
    assert_int_equal(dtype, SB_DTYPE_F32);
    *out = 0;
    for (int64_t i = 0; i < count; i++)
        *out += (double)((const float *)x)[i]; /* exact, because each value is 0 or 1 */
    return SB_OK;
}

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

/* Uses the built-in allocator, because a lock in the test's allocator would order the threads. */
static sb_context *tiny_context(const sb_backend *table) {
    sb_context *context;
    assert_ok(create_with_backend(table, "tiny:0", &context, &err));
    return context;
}

struct stage {
    struct tiny tiny;
    sb_backend table;
    sb_context *context;
    sb_mem *mem;
    sb_blob *blobs[2]; /* the same blob twice, or a blob for each thread */
    sb_dl_managed_versioned *tensors[2];
    char lent[2][256];
    _Atomic int accepted, deleted;
};

static void stage_open(struct stage *s) {
    memset(s, 0, sizeof *s);
    s->table = tiny_table(&s->tiny);
    s->context = tiny_context(&s->table);
    assert_ok(sb_mem_create(s->context, BYTES, &s->mem, &err));
}

static void stage_close(struct stage *s) {
    sb_mem_release(s->mem);
    sb_blob_destroy(s->blobs[0]);
    sb_context_release(s->context);
}

static void count_deleter(void *user, void *ptr) {
    struct stage *s = user;
    atomic_fetch_add_explicit(&s->deleted, 1, memory_order_relaxed);
}

/* The next two tests must run first, because they test first uses in the process. */

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

static int stream_objects[2];

static sb_status use_large_buffer(struct stage *s, int which) {
    sb_mem_release(mem_filled(s->context, LARGE, 1));
    return SB_OK;
}

static sb_status trim(struct stage *s, int which) {
    sb_context_trim(s->context);
    return SB_OK;
}

static sb_status use_stream(struct stage *s, int stream) {
    sb_mem *mem;
    const void *in;
    assert_ok(sb_mem_create(s->context, BYTES, &mem, &err));
    const sb_status st = sb_mem_gpu_on(mem, (sb_stream)&stream_objects[stream], &in, NULL);
    sb_mem_release(mem);
    return st;
}

static sb_status use_stream_0(struct stage *s, int which) {
    return use_stream(s, 0);
}

static sb_status forget_stream_0(struct stage *s, int which) {
    return sb_context_forget_stream(s->context, (sb_stream)&stream_objects[0], NULL);
}

static sb_status synchronize_context(struct stage *s, int which) {
    return sb_context_synchronize(s->context, NULL);
}

static sb_status look_at_storage(struct stage *s, int which) {
    (void)sb_mem_storage(s->mem, SB_SIDE_CPU);
    (void)sb_mem_storage(s->mem, SB_SIDE_GPU);
    return SB_OK;
}

static sb_status sum(struct stage *s, int which) {
    return sb_blob_asum(s->blobs[which], SB_DATA, &(double){0}, NULL);
}

static sb_status look_at_memories(struct stage *s, int which) {
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        sb_mem *mem;
        assert_ok(sb_blob_mutable_mem(s->blobs[which], part, &mem, &err));
        assert_int_equal(sb_mem_size(mem), BYTES);
    }
    return SB_OK;
}

static void end_tensor(sb_dl_managed_versioned *tensor) {
    assert_true(bytes_are(tensor->dl_tensor.data, BYTES, 0));
    tensor->deleter(tensor);
}

static sb_status export(struct stage *s, int which) {
    sb_dl_managed_versioned *tensor;
    const sb_status st = sb_blob_to_dlpack(s->blobs[which], SB_DIFF, SB_SIDE_CPU, &tensor, NULL);
    if (st == SB_OK)
        end_tensor(tensor);
    return st;
}

/* The library reads the addresses of both sides, to check their alignment. */
static sb_blob *blob_on(struct stage *s, sb_part part) {
    sb_blob *blob = blob_of_count(s->context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_set_mem(blob, part, s->mem, &err));
    return blob;
}

static sb_status update(struct stage *s, int which) {
    sb_blob *blob = blob_on(s, SB_DIFF);
    void *data;
    sb_status st = sb_blob_overwrite_gpu(blob, SB_DATA, &data, NULL);
    if (st == SB_OK)
        st = sb_blob_update(blob, NULL);
    sb_blob_destroy(blob);
    return st;
}

static sb_status spoil(struct stage *s, int which) {
    sb_blob *blob = blob_on(s, SB_DATA);
    void *data;
    sb_status st = sb_blob_mutable_gpu(blob, SB_DATA, &data, NULL);
    if (st == SB_OK)
        st = sb_blob_scale(blob, SB_DATA, 2, NULL);
    sb_blob_destroy(blob);
    return st;
}

static sb_status (*const others[])(struct stage *s, int which) = {
    use_large_buffer, trim, use_stream_0,     use_stream, forget_stream_0, synchronize_context,
    look_at_storage,  sum,  look_at_memories, export,     update,          spoil};

/* An act is a number: first the calls on the memory, then on the blob's data, then `others`. */
enum { OTHERS = CALLS + POINTER_CALLS, ACTS = OTHERS + sizeof others / sizeof *others };
enum { SPOIL = ACTS - 1 };

static bool is_const(int act) {
    const int call = act < CALLS ? act : act - CALLS;
    const enum purpose purpose = act < OTHERS ? call_kinds[call].purpose : READ;
    return act != SPOIL && (purpose == READ || purpose == MOVE || purpose == WAIT);
}

struct two_acts {
    struct stage stage;
    int acts[2];
};

static void do_act(struct two_acts *two, int which) {
    struct stage *s = &two->stage;
    const int act = two->acts[which];
    const sb_stream stream = (sb_stream)&stream_objects[which];
    const struct call_arguments a = {stream, s->lent[which], BYTES, 0, count_deleter, s};
    void *ptr = NULL;
    sb_status st = SB_OK;
    if (act >= OTHERS)
        st = others[act - OTHERS](s, which);
    else if (act >= CALLS)
        st = blob_call(s->blobs[which], SB_DATA, (enum call)(act - CALLS), stream, &ptr, NULL);
    else if (mem_call(s->mem, (enum call)act, &a, &ptr, NULL) == SB_OK) /* some calls are refused */
        s->accepted += act == SET_CPU || act == SET_GPU;
    assert_true(st == SB_OK || two->acts[0] == SPOIL || two->acts[1] == SPOIL);
    if (ptr && is_const(two->acts[0]) && is_const(two->acts[1]))
        assert_true(bytes_are(ptr, BYTES, 0)); /* the tiny device uses host memory */
}

static void do_act_and_leave(void *arg, int which) {
    struct two_acts *two = arg;
    do_act(two, which);
    if (two->stage.tensors[which]) {
        end_tensor(two->stage.tensors[which]);
        sb_blob_destroy(two->stage.blobs[which]);
    }
    sb_mem_release(two->stage.mem);
    sb_context_release(two->stage.context);
}

static void make_ready(struct stage *s) {
    (void)mem_pointer(s->mem, CPU_DATA);
    (void)mem_pointer(s->mem, GPU_DATA);
    for (int i = 0; i < 2; i++) {
        s->blobs[i] = blob_on(s, SB_DIFF);
        assert_ok(sb_blob_to_dlpack(s->blobs[i], SB_DIFF, SB_SIDE_CPU, &s->tensors[i], &err));
    }
}

/* Only pairs of const calls start with ready sides: the contract forbids other pairs. */
TEST(each_call_sees_the_effects_of_each_call_on_another_thread) {
    for (int i = 0; i < ACTS; i++)
        for (int k = 0; k < ACTS; k++)
            for (int ready = 0; ready <= (is_const(i) && is_const(k)); ready++) {
                struct two_acts two = {.acts = {i, k}};
                struct stage *s = &two.stage;
                stage_open(s);
                if (ready)
                    make_ready(s);
                else
                    s->blobs[0] = s->blobs[1] = blob_of_count(s->context, SB_DTYPE_F32, COUNT);
                (void)sb_mem_retain(s->mem);
                (void)sb_context_retain(s->context);
                hand_over(do_act_and_leave, do_act_and_leave, &two);
                if (!ready)
                    sb_blob_destroy(s->blobs[0]);
                assert_int_equal(s->deleted, s->accepted);
                assert_int_equal(s->tiny.plain.opened, s->tiny.plain.closed);
            }
}

static void take_stream_0(struct stage *s) {
    (void)mem_pointer_on(s->mem, GPU_DATA_ON, (sb_stream)&stream_objects[0]);
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

/* The allocation of the slower thread waits until the faster thread is done. */
struct duel {
    sb_blob *blob;
    sb_mem *seen[2];
    quiet_flag slow_is_in, fast_is_done;
    atomic_int live; /* memory blocks that are not freed */
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

/* The test can read a lent host side without requesting a pointer. */
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

/* The last owner's thread runs the deleter. */
static void read_back(void *user, void *ptr) {
    assert_true(bytes_are(ptr, BYTES, 0x44));
    count_deleter(user, ptr);
}

static void write_elsewhere(void *arg, int member) {
    (void)blob_pointer(((struct stage *)arg)->blobs[0], SB_DATA, MUTABLE_CPU);
}

static void end_tensor_0(void *arg, int member) {
    const struct stage *s = arg;
    s->tensors[0]->deleter(s->tensors[0]);
}

static void end_blob(void *arg, int member) {
    struct stage *s = arg;
    sb_blob_destroy(s->blobs[0]);
    s->blobs[0] = NULL;
}

static void write_and_end_tensor(void *arg, int member) {
    const struct stage *s = arg;
    memset(s->tensors[0]->dl_tensor.data, 0x44, BYTES);
    end_tensor_0(arg, member);
}

/* Only the lease orders the two threads. */
TEST(released_storage_ends_with_its_last_user) {
    team_task *const rows[][2] = {{write_elsewhere, end_tensor_0},
                                  {write_and_end_tensor, end_blob}};
    for (int i = 0; i < 2; i++) {
        struct stage s;
        stage_open(&s);
        memset(s.lent[0], 0x44, BYTES);
        s.blobs[0] = blob_of_count(s.context, SB_DTYPE_F32, COUNT);
        assert_ok(sb_blob_set_cpu(s.blobs[0], SB_DATA, s.lent[0], BYTES, SB_READ_ONLY, read_back,
                                  &s, &err));
        assert_ok(sb_blob_to_dlpack(s.blobs[0], SB_DATA, SB_SIDE_CPU, s.tensors, &err));
        hand_over(rows[i][0], rows[i][1], &s);
        assert_int_equal(s.deleted, 1);
        stage_close(&s);
    }
}

static void export_tensor(void *arg, int member) {
    struct stage *s = arg;
    assert_ok(sb_blob_to_dlpack(s->blobs[0], SB_DATA, SB_SIDE_CPU, &s->tensors[member], &err));
}

/* The second export reads the storage that the first export has changed. */
TEST_ON(stage, two_threads_export_one_side) {
    f->blobs[0] = blob_of_count(f->context, SB_DTYPE_F32, COUNT);
    void *data = blob_pointer(f->blobs[0], SB_DATA, MUTABLE_CPU);
    hand_over(export_tensor, export_tensor, f);
    sb_blob_destroy(f->blobs[0]);
    f->blobs[0] = NULL;
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(f->tensors[i]->dl_tensor.data, data);
        memset(data, 0x55, BYTES); /* each tensor keeps the storage alive */
        f->tensors[i]->deleter(f->tensors[i]);
    }
}

/* The reduction fails after another thread has read on the device. */
struct failing {
    struct mirror mirror; /* must be first: the engine's slots point to `mirror` */
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
        assert_status(SB_ERR_COMM_FAILURE, sb_comm_all_reduce_blobs(f->comm, f->stage.blobs, 1,
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
    (void)mem_pointer(s->mem, CPU_DATA);
    (void)mem_pointer(s->mem, GPU_DATA);
    s->blobs[0] = blob_on(s, SB_DATA);
    team_run(2, reduce_or_read, &f);
    assert_int_equal(sb_mem_head(s->mem), SB_HEAD_AT_GPU);
    sb_comm_destroy(f.comm);
    stage_close(s);
}

/* Between a failed wait and its retry, another thread begins to use the device side. */
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

static void use_stream_1(void *arg, int member) {
    assert_ok(use_stream(arg, 1));
}

static sb_status use_another_stream(void *user) {
    struct replacing *r = user;
    r->stage.tiny.on_event_wait = NULL;
    team_run(1, use_stream_1, &r->stage);
    quiet_raise(&r->joined);
    return SB_OK;
}

/* The library waits without a lock. */
TEST(a_stream_is_forgotten_beside_users_of_others) {
    struct replacing r = {.waits = 0};
    stage_open(&r.stage);
    take_stream_0(&r.stage);
    r.stage.tiny.on_event_wait = use_another_stream;
    r.stage.tiny.user = &r;
    assert_ok(forget_stream_0(&r.stage, 0));
    assert_true(r.joined);
    stage_close(&r.stage);
}

static void lose_device(void *arg, int member) {
    assert_int_equal(spoil(arg, member), SB_ERR_DEVICE_LOST);
}

static sb_status lose_meanwhile(void *user) {
    struct replacing *r = user;
    if (atomic_fetch_add(&r->waits, 1) == 0)
        team_run(1, lose_device, &r->stage);
    return SB_OK;
}

TEST(a_wait_that_a_loss_interrupts_does_not_succeed) {
    struct replacing r = {.waits = 0};
    stage_open(&r.stage);
    (void)mem_pointer(r.stage.mem, MUTABLE_GPU);
    r.stage.tiny.user = &r;
    r.stage.tiny.on_event_wait = lose_meanwhile;
    assert_status(SB_ERR_DEVICE_LOST, sb_context_synchronize(r.stage.context, &err));
    assert_int_equal(r.waits, 1); /* the library waits for only one of the two streams */
    stage_close(&r.stage);
}

struct chained {
    sb_context *other;
    _Atomic int deleted;
};

static void end_chained(void *user, void *ptr) {
    struct chained *chained = user;
    atomic_fetch_add(&chained->deleted, 1);
    sb_context_release(chained->other);
}

/* Every wait fails, so the memory is quarantined. */
static void leave_waiting(sb_context *context, void *bytes, struct chained *chained) {
    sb_mem *mem;
    assert_ok(sb_mem_create(context, BYTES, &mem, &err));
    assert_ok(sb_mem_set_cpu(mem, bytes, BYTES, 0, end_chained, chained, &err));
    (void)mem_pointer(mem, MUTABLE_GPU);
    mem_fail_wait(mem);
    sb_mem_release(mem);
}

static void trim_often(void *arg, int member) {
    for (int i = 0; i < 40; i++) /* enough to use up all armed faults */
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
