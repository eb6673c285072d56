/* Threads use shared objects while another thread makes device operations fail. */
#include "blobs.h"
#include "mem_calls.h"
#include "team.h"

#include <syncblob/dlpack.h>

#include <math.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4, STREAMS = 3, SHARED = 3, OWN = 2, TENSORS = 4, STEPS = 120 };
enum { MAX_LOANS = 4096, MAX_JOBS = 4096 };
#define COUNT ((int64_t)48)
#define BYTES ((size_t)COUNT * sizeof(float))

/* Workers write floats from 1 to VALUES: their sums and squares are exact. Deleters write TAKEN. */
enum { VALUES = 100 };

enum manners { MERELY_COUNTS, TRIMS, SYNCHRONIZES, RELEASES_OWNER, ALL_MANNERS };

struct loan {
    struct lent lent; /* must be first: the deleter's `user` points to `lent` */
    sb_context *context;
    enum manners manners;
    bool accepted;
    sb_dl_managed tensor;
    int64_t shape[1];
};

struct object {
    pthread_rwlock_t lock;
    sb_blob *blob;
    float value; /* every float of the data, or NAN if unknown */
};

/* The lock prevents a thread from using a stream while another thread forgets the stream. */
struct lane {
    pthread_rwlock_t lock;
    sb_stream stream;
};

struct round {
    struct rig rig;
    int number;
    bool fails, has_device;
    bool may_lose;
    sb_stream own; /* the library's stream */
    struct object shared[SHARED];
    struct lane lanes[STREAMS];
    struct loan *loans;
    struct job *jobs;
    _Atomic(sb_mem *) parked; /* a reference that one thread passes to another thread */
    _Atomic int loan_count, job_count, kernel_count, idle;
    pthread_barrier_t quiet; /* the threads wait at this barrier until no fault is armed */
};

struct worker {
    struct round *round;
    uint64_t random;
    struct object own[OWN];
    sb_dl_managed_versioned *tensors[TENSORS];
};

static int num_loans, num_kernels;
static _Atomic int num_failures;

static int draw(uint64_t *random, int n) {
    return (int)(test_random(random) % (uint64_t)n);
}

static void set_all(void *values, float value) {
    for (int i = 0; i < COUNT; i++)
        ((float *)values)[i] = value;
}

static bool all_are(const void *values, float value) {
    for (int i = 0; i < COUNT; i++)
        if (((const float *)values)[i] != value)
            return isnan(value);
    return true;
}

static bool is_ok(struct round *round, sb_status status) {
    /* The call found nothing to push, pull or evict. */
    const bool is_refusal = status == SB_ERR_INVALID_ARGUMENT;
    const bool is_failure = status == SB_ERR_DEVICE_FAILURE || status == SB_ERR_DEVICE_LOST ||
                            status == SB_ERR_OUT_OF_MEMORY ||
                            status == SB_ERR_UNINITIALIZED; /* the memory is LOST */
    expect(status == SB_OK || is_refusal || (round->fails && is_failure));
    if (is_failure)
        atomic_fetch_add_explicit(&num_failures, 1, memory_order_relaxed);
    return status == SB_OK;
}

static sb_mem *memory_of(struct object *o) {
    sb_mem *mem = NULL;
    expect(sb_blob_mutable_mem(o->blob, SB_DATA, &mem, NULL) == SB_OK);
    return mem;
}

static void set_device(struct round *round, void *ptr, float value) {
    float values[COUNT];
    set_all(values, value);
    ignore(sb_sim_poke(round->rig.context, ptr, values, BYTES, NULL));
}

static void end_loan(void *user, void *ptr) {
    struct loan *loan = user;
    lent_deleter(&loan->lent, ptr);
    if (loan->manners == TRIMS)
        sb_context_trim(loan->context);
    else if (loan->manners == SYNCHRONIZES)
        ignore(sb_context_synchronize(loan->context, NULL));
    else if (loan->manners == RELEASES_OWNER)
        sb_context_release(loan->context);
}

static void end_tensor(sb_dl_managed *self) {
    struct loan *loan = self->manager_ctx;
    end_loan(loan, loan->lent.ptr);
}

static struct loan *make_loan(struct worker *w, int32_t side, float value) {
    struct round *round = w->round;
    struct lent lent = {.context = side == SB_SIDE_GPU ? round->rig.context : NULL, .bytes = BYTES};
    if (atomic_load(&round->loan_count) >= MAX_LOANS - WORKERS)
        return NULL;
    if (side == SB_SIDE_CPU) {
        lent = lend_host(BYTES, 0);
        set_all(lent.ptr, value);
    } else if (sb_sim_malloc(round->rig.context, BYTES, &lent.ptr, NULL) == SB_OK) {
        set_device(round, lent.ptr, value);
    } else {
        return NULL;
    }
    struct loan *loan = &round->loans[atomic_fetch_add(&round->loan_count, 1)];
    lent.taken = true;
    *loan = (struct loan){.lent = lent, .context = round->rig.context};
    loan->manners = (enum manners)draw(&w->random, ALL_MANNERS);
    if (loan->manners == RELEASES_OWNER)
        (void)sb_context_retain(loan->context);
    return loan;
}

static bool settle_loan(struct worker *w, struct loan *loan, sb_status status) {
    bool ok = is_ok(w->round, status);
    if (ok)
        loan->accepted = true;
    else if (loan->manners == RELEASES_OWNER)
        sb_context_release(loan->context);
    return ok;
}

static void loans_close(struct round *round) {
    for (int i = 0; i < atomic_load(&round->loan_count); i++) {
        struct loan *loan = &round->loans[i];
        expect(loan->lent.deleted == loan->accepted); /* each loan is returned once */
        expect(!loan->accepted || lent_holds(&loan->lent, TAKEN));
        if (loan->lent.context)
            assert_int_equal(sb_sim_free(round->rig.context, loan->lent.ptr, NULL), SB_OK);
        else
            lent_free(&loan->lent);
        num_loans += loan->accepted;
    }
}

struct job {
    struct round *round;
    const void *ptr;
    float finds, writes; /* NAN in `finds` expects any value, NAN in `writes` writes nothing */
};

static void kernel(void *user) {
    struct job *job = user;
    unsigned char *p = sb_sim_address(job->round->rig.context, job->ptr, BYTES);
    atomic_fetch_add_explicit(&job->round->kernel_count, 1, memory_order_relaxed);
    expect(p && p[0] != TAKEN && p[BYTES - 1] != TAKEN);
    expect(!p || all_are(p, job->finds));
    if (p && !isnan(job->writes))
        set_all(p, job->writes);
}

static void launch(struct worker *w, sb_stream stream, const void *ptr, float finds, float writes) {
    struct round *round = w->round;
    if (atomic_load(&round->job_count) >= MAX_JOBS - WORKERS)
        return;
    struct job *job = &round->jobs[atomic_fetch_add(&round->job_count, 1)];
    *job = (struct job){round, ptr, round->fails ? NAN : finds, writes};
    (void)is_ok(round, sb_sim_launch(round->rig.context, stream, kernel, job, NULL));
}

static struct lane *lock_lane(struct worker *w) {
    struct lane *lane = &w->round->lanes[draw(&w->random, STREAMS)];
    (void)pthread_rwlock_rdlock(&lane->lock);
    return lane;
}

static void unlock_lane(struct lane *lane) {
    (void)pthread_rwlock_unlock(&lane->lock);
}

static void read_host(struct worker *w, struct object *o) {
    const void *in;
    float value;
    if (is_ok(w->round, sb_blob_cpu(o->blob, SB_DATA, &in, NULL)))
        expect(all_are(in, o->value));
    if (is_ok(w->round, sb_blob_at_f32(o->blob, SB_DATA, (int64_t[]){draw(&w->random, COUNT)}, 1,
                                       &value, NULL)))
        expect(value == o->value || isnan(o->value));
}

/* Without a stream the kernel accepts any value, because writers do not wait for the kernel. */
static void read_device(struct worker *w, struct object *o) {
    void *in = NULL;
    float values[COUNT];
    const bool is_plain = draw(&w->random, 2);
    struct lane *lane = lock_lane(w);
    if (is_ok(w->round, blob_call(o->blob, SB_DATA, is_plain ? GPU_DATA : GPU_DATA_ON, lane->stream,
                                  &in, NULL))) {
        if (is_plain) {
            expect(sb_sim_peek(w->round->rig.context, values, in, BYTES, NULL) == SB_OK);
            expect(all_are(values, o->value));
        }
        launch(w, is_plain ? NULL : lane->stream, in, is_plain ? NAN : o->value, NAN);
    }
    unlock_lane(lane);
}

static void start_transfer(struct worker *w, struct object *o) {
    static sb_status (*const ways[])(const sb_mem *, sb_stream, sb_error *) = {
        sb_mem_prefetch_cpu, sb_mem_prefetch_gpu, sb_mem_async_gpu_push, sb_mem_async_cpu_pull};
    struct lane *lane = lock_lane(w);
    const sb_mem *mem = memory_of(o);
    const sb_stream stream = draw(&w->random, 3) ? lane->stream : w->round->own;
    (void)is_ok(w->round, ways[draw(&w->random, 4)](mem, stream, NULL));
    unlock_lane(lane);
    if (draw(&w->random, 4) == 0)
        (void)is_ok(w->round, sb_mem_synchronize(mem, NULL));
}

static void end_tensor_of(struct worker *w, int i) {
    if (w->tensors[i])
        w->tensors[i]->deleter(w->tensors[i]);
    w->tensors[i] = NULL;
}

/* When a tensor ends, queued work may still use the tensor's storage. */
static void export(struct worker *w, struct object *o) {
    int i = draw(&w->random, TENSORS);
    int32_t side = draw(&w->random, 2) ? SB_SIDE_GPU : SB_SIDE_CPU;
    const void *in = NULL;
    end_tensor_of(w, i);
    struct lane *lane = lock_lane(w);
    if (side == SB_SIDE_GPU &&
        !is_ok(w->round, sb_blob_gpu_on(o->blob, SB_DATA, lane->stream, &in, NULL)))
        in = NULL;
    if (!is_ok(w->round, sb_blob_to_dlpack(o->blob, SB_DATA, side, &w->tensors[i], NULL)))
        w->tensors[i] = NULL;
    if (in)
        launch(w, lane->stream, in, o->value, NAN);
    unlock_lane(lane);
}

static void share(struct worker *w, struct object *o) {
    sb_blob *sharer = blob_of_count(w->round->rig.context, SB_DTYPE_F32, COUNT);
    sb_blob *copy = blob_of_count(NULL, SB_DTYPE_F32, COUNT);
    double sum;
    const void *in;
    expect(sb_blob_share(sharer, SB_DATA, o->blob, NULL) == SB_OK);
    if (is_ok(w->round, sb_blob_sumsq(sharer, SB_DATA, &sum, NULL)))
        expect(sum == COUNT * (double)(o->value * o->value) || isnan(o->value));
    if (is_ok(w->round, sb_blob_copy_from(copy, SB_DATA, sharer, 0, NULL)) &&
        is_ok(w->round, sb_blob_cpu(copy, SB_DATA, &in, NULL)))
        expect(all_are(in, o->value));
    sb_blob_destroy(sharer);
    sb_blob_destroy(copy);
}

static void pass_on(struct worker *w, struct object *o) {
    sb_mem *mem = sb_mem_retain(memory_of(o));
    mem = atomic_exchange(&w->round->parked, mem);
    expect(!mem || !sb_mem_is_unique(mem) || sb_mem_size(mem) == BYTES);
    sb_mem_release(mem);
}

static void live_alone(struct worker *w, struct object *o) {
    sb_blob *blob = blob_of_count(w->round->rig.context, SB_DTYPE_F32,
                                  COUNT + 40000 * (int64_t)draw(&w->random, 3));
    const void *in;
    if (is_ok(w->round, sb_blob_cpu(blob, SB_DATA, &in, NULL)))
        expect(all_are(in, 0));
    if (w->round->has_device) {
        struct lane *lane = lock_lane(w);
        (void)is_ok(w->round, sb_mem_async_gpu_push(data_of(blob), lane->stream, NULL));
        unlock_lane(lane);
    }
    sb_blob_destroy(blob);
}

/* If the call has lost the device, the object's value becomes unknown. */
static bool is_done(struct worker *w, struct object *o, sb_status status) {
    if (status == SB_ERR_DEVICE_LOST)
        o->value = NAN;
    return is_ok(w->round, status);
}

static void write_host(struct worker *w, struct object *o, float value) {
    const enum call call = draw(&w->random, 2) ? OVERWRITE_CPU : MUTABLE_CPU;
    void *out;
    if (!is_done(w, o, blob_call(o->blob, SB_DATA, call, NULL, &out, NULL)))
        return;
    set_all(out, value);
    o->value = value;
}

static void write_device(struct worker *w, struct object *o, float value) {
    static const enum call calls[] = {MUTABLE_GPU, OVERWRITE_GPU, MUTABLE_GPU_ON, OVERWRITE_GPU_ON};
    void *out;
    const int way = draw(&w->random, 4);
    struct lane *lane = lock_lane(w);
    if (is_done(w, o, blob_call(o->blob, SB_DATA, calls[way], lane->stream, &out, NULL))) {
        if (way < 2)
            set_device(w->round, out, value);
        else
            launch(w, lane->stream, out, way == 2 ? o->value : NAN, value);
        o->value = way >= 2 && w->round->fails ? NAN : value;
    }
    unlock_lane(lane);
}

static void lend(struct worker *w, struct object *o, float value) {
    int32_t side = draw(&w->random, 2) && w->round->has_device ? SB_SIDE_GPU : SB_SIDE_CPU;
    uint32_t flags = draw(&w->random, 2) ? SB_READ_ONLY : 0;
    struct loan *loan = make_loan(w, side, value);
    if (!loan)
        return;
    sb_status st = (side == SB_SIDE_CPU ? sb_mem_set_cpu : sb_mem_set_gpu)(
        memory_of(o), loan->lent.ptr, BYTES, flags, end_loan, loan, NULL);
    if (settle_loan(w, loan, st))
        o->value = value;
}

static void import(struct worker *w, struct object *o, float value) {
    struct loan *loan = make_loan(w, SB_SIDE_CPU, value);
    if (!loan)
        return;
    loan->shape[0] = COUNT;
    loan->tensor = (sb_dl_managed){.dl_tensor = {.data = loan->lent.ptr,
                                                 .device = {.device_type = SB_DL_DEVICE_CPU},
                                                 .ndim = 1,
                                                 .dtype = {SB_DL_CODE_FLOAT, 32, 1},
                                                 .shape = loan->shape},
                                   .manager_ctx = loan,
                                   .deleter = end_tensor};
    if (settle_loan(w, loan, sb_blob_from_legacy_dlpack(o->blob, SB_DATA, &loan->tensor, 0, NULL)))
        o->value = value;
}

static void evict(struct worker *w, struct object *o, float value) {
    sb_mem *mem = memory_of(o);
    (void)is_done(w, o,
                  draw(&w->random, 2) ? sb_mem_evict_cpu(mem, NULL) : sb_mem_evict_gpu(mem, NULL));
}

static sb_blob *new_blob(struct round *round) {
    float *x = NULL;
    sb_blob *blob = blob_of_count(round->rig.context, SB_DTYPE_F32, COUNT);
    expect(sb_blob_overwrite_cpu_f32(blob, SB_DIFF, &x, NULL) == SB_OK);
    if (x)
        set_all(x, 1);
    if (!round->fails) { /* a memory that was never written refuses pushes and pulls */
        expect(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, NULL) == SB_OK);
        set_all(x, 0);
    }
    return blob;
}

static void start_afresh(struct worker *w, struct object *o, float value) {
    sb_blob_destroy(o->blob);
    o->blob = new_blob(w->round);
    o->value = 0;
    write_host(w, o, value);
}

static void copy_other(struct worker *w, struct object *o, float value) {
    struct object *from = &w->round->shared[draw(&w->random, SHARED)];
    if (from == o || pthread_rwlock_tryrdlock(&from->lock) != 0)
        return;
    if (is_done(w, o, sb_blob_copy_from(o->blob, SB_DATA, from->blob, 0, NULL)))
        o->value = from->value;
    (void)pthread_rwlock_unlock(&from->lock);
}

/* A failure of arithmetic in place loses the device. */
static void compute(struct worker *w, struct object *o, float value) {
    const int what = draw(&w->random, 3);
    const float before = o->value;
    o->value = NAN;
    if (is_done(w, o,
                what == 0   ? sb_blob_scale(o->blob, SB_DATA, 2, NULL)
                : what == 1 ? sb_blob_update(o->blob, NULL)
                            : sb_blob_clear(o->blob, SB_DATA, NULL)) &&
        !w->round->fails)
        o->value = what == 0 ? before * 2 : what == 1 ? before - 1 : 0;
    if (!(o->value >= 0 && o->value <= VALUES))
        write_host(w, o, value);
}

/* Each table lists host calls first, then device calls, then calls that may lose the device. */
static void touch(struct worker *w, struct object *o) {
    static void (*const readers[])(struct worker *, struct object *) = {
        read_host, pass_on, live_alone, share, read_device, read_device, start_transfer, export};
    static void (*const writers[])(struct worker *, struct object *, float) = {
        write_host,   lend,  import,       lend,         copy_other,
        start_afresh, evict, write_device, write_device, compute};
    const struct round *round = w->round;
    const int num_readers = round->has_device ? 8 : 4;
    const int num_writers = round->may_lose ? 10 : round->has_device ? 9 : 6;
    if (draw(&w->random, 2)) {
        (void)pthread_rwlock_rdlock(&o->lock);
        readers[draw(&w->random, num_readers)](w, o);
    } else {
        (void)pthread_rwlock_wrlock(&o->lock);
        writers[draw(&w->random, num_writers)](w, o, (float)(1 + draw(&w->random, VALUES)));
    }
    (void)pthread_rwlock_unlock(&o->lock);
}

static void change_stream(struct worker *w, struct lane *lane) {
    sb_context *context = w->round->rig.context;
    sb_stream new_stream;
    (void)pthread_rwlock_wrlock(&lane->lock);
    if (is_ok(w->round, sb_context_forget_stream(context, lane->stream, NULL)) && lane->stream &&
        sb_sim_stream_create(context, &new_stream, NULL) == SB_OK) {
        expect(sb_sim_stream_destroy(context, lane->stream, NULL) == SB_OK);
        lane->stream = new_stream;
    }
    unlock_lane(lane);
}

static void control_device(struct worker *w) {
    sb_context *context = w->round->rig.context;
    const int32_t schedule = w->round->number % 4 ? SB_SIM_RANDOM : SB_SIM_LAZY;
    void *ptr;
    expect(sb_sim_set_schedule(context, schedule, w->random, NULL) == SB_OK);
    if (sb_sim_malloc(context, BYTES, &ptr, NULL) == SB_OK)
        expect(sb_sim_free(context, ptr, NULL) == SB_OK);
}

static void tend_context(struct worker *w) {
    sb_context *context = w->round->rig.context;
    sb_stats stats = SB_STATS_INIT;
    switch (draw(&w->random, w->round->has_device ? 5 : 3)) {
    case 0:
        sb_context_trim(context);
        break;
    case 1:
        (void)is_ok(w->round, sb_context_synchronize(context, NULL));
        break;
    case 2:
        expect(sb_context_stats(context, &stats, NULL) == SB_OK);
        expect(stats.host_bytes <= stats.host_peak && stats.device_bytes <= stats.device_peak);
        break;
    case 3:
        change_stream(w, &w->round->lanes[draw(&w->random, STREAMS)]);
        break;
    default:
        control_device(w);
    }
}

static void drain(struct round *round) {
    sb_status st = SB_ERR_DEVICE_FAILURE;
    for (int tries = 0; tries < 10000 && st == SB_ERR_DEVICE_FAILURE; tries++) {
        st = sb_context_synchronize(round->rig.context, NULL);
        if (st != SB_OK)
            sched_yield();
    }
    expect(st == SB_OK || st == SB_ERR_DEVICE_LOST);
}

static void object_open(struct round *round, struct object *o) {
    (void)pthread_rwlock_init(&o->lock, NULL);
    o->blob = new_blob(round);
    o->value = 0;
}

static void object_close(struct object *o) {
    sb_blob_destroy(o->blob);
    (void)pthread_rwlock_destroy(&o->lock);
}

static void work(struct round *round, int member) {
    struct worker w = {.round = round, .random = (uint64_t)(round->number * 64 + member)};
    for (int i = 0; i < OWN; i++)
        object_open(round, &w.own[i]);
    for (int step = 0; step < STEPS; step++) {
        int i = draw(&w.random, SHARED + OWN);
        if (draw(&w.random, 16) == 0)
            tend_context(&w);
        else
            touch(&w, i < SHARED ? &round->shared[i] : &w.own[i - SHARED]);
    }
    for (int i = 0; i < TENSORS; i++)
        end_tensor_of(&w, i);
    for (int i = 0; i < OWN; i++)
        object_close(&w.own[i]);
    atomic_fetch_add(&round->idle, 1);
    (void)pthread_barrier_wait(&round->quiet);
    drain(round);
}

static void arm(struct round *round, uint64_t *random) {
    int count = 1 + draw(random, draw(random, 3) ? 6 : 16);
    int32_t op = draw(random, 2) ? SB_SIM_ANY : draw(random, SB_SIM_OP_COUNT);
    int64_t nth = 1 + draw(random, 20);
    for (int i = 0; i < count; i++) {
        int32_t mode = draw(random, 2) ? SB_SIM_FAIL_NOW : SB_SIM_FAIL_LATER;
        if (round->may_lose && draw(random, 200) == 0)
            mode = SB_SIM_FAIL_STICKY;
        sb_status st =
            (i == 0 ? sb_sim_fail : sb_sim_fail_also)(round->rig.context, op, nth, mode, NULL);
        expect(st == SB_OK);
        if (draw(random, 3) == 0)
            op = draw(random, SB_SIM_OP_COUNT);
        nth += 1 + (draw(random, 4) == 0); /* the next fault mostly hits the next operation */
    }
}

static void break_things(struct round *round) {
    uint64_t random = (uint64_t)round->number;
    const struct timespec pause = {.tv_nsec = 100000};
    while (atomic_load(&round->idle) < WORKERS) {
        if (round->fails)
            arm(round, &random);
        (void)nanosleep(&pause, NULL);
    }
    if (round->has_device)
        device_fail(round->rig.context, SB_SIM_ANY, 0, SB_SIM_FAIL_NOW);
    (void)pthread_barrier_wait(&round->quiet);
}

static void run(void *arg, int member) {
    if (member == WORKERS)
        break_things(arg);
    else
        work(arg, member);
}

/* Every third round has no failures. Every fourth of these rounds uses only the host. */
static void round_open(struct round *round, int number) {
    *round =
        (struct round){.number = number, .fails = number % 3 < 2, .has_device = number % 12 != 11};
    round->may_lose = round->fails ? number % 2 : round->has_device;
    rig_open_options(&round->rig, CONTEXT_OPTIONS(.device = round->has_device ? "sim:0" : "cpu",
                                                  .flags = number % 2 ? SB_CONTEXT_NO_PINNED : 0,
                                                  .max_cache_bytes = (size_t)1 << 20));
    const int late = number % 4 ? SB_SIM_RANDOM : SB_SIM_LAZY; /* fills the quarantine */
    if (round->has_device) {
        rig_schedule(&round->rig, round->fails ? late : number / 3 % 3, (uint64_t)number);
        assert_ok(sb_context_stream(round->rig.context, &round->own, &err));
    }
    round->loans = calloc(MAX_LOANS, sizeof *round->loans);
    round->jobs = calloc(MAX_JOBS, sizeof *round->jobs);
    assert_true(round->loans && round->jobs);
    assert_int_equal(pthread_barrier_init(&round->quiet, NULL, WORKERS + 1), 0);
    for (int i = 0; i < SHARED; i++)
        object_open(round, &round->shared[i]);
    for (int i = 0; i < STREAMS; i++) {
        (void)pthread_rwlock_init(&round->lanes[i].lock, NULL);
        if (round->has_device && i > 0) /* the first lane has the legacy default stream */
            round->lanes[i].stream = rig_stream(&round->rig);
    }
}

static void round_close(struct round *round) {
    for (int i = 0; i < SHARED; i++)
        object_close(&round->shared[i]);
    sb_mem_release(round->parked);
    drain(round);
    for (int i = 1; round->has_device && i < STREAMS; i++) {
        (void)is_ok(round,
                    sb_context_forget_stream(round->rig.context, round->lanes[i].stream, NULL));
        assert_int_equal(sb_sim_stream_destroy(round->rig.context, round->lanes[i].stream, NULL),
                         SB_OK);
    }
    sb_context_trim(round->rig.context);
    assert_int_equal(rig_stats(&round->rig).quarantined_bytes, 0);
    loans_close(round);
    rig_close(&round->rig);
    for (int i = 0; i < STREAMS; i++)
        (void)pthread_rwlock_destroy(&round->lanes[i].lock);
    (void)pthread_barrier_destroy(&round->quiet);
    free(round->loans);
    free(round->jobs);
}

static double stress_seconds(void) {
    const char *text = getenv("SYNCBLOB_STRESS_SECONDS");
    const double given = text ? strtod(text, NULL) : 0;
    return given > 0 ? given : 4;
}

TEST(after_any_failure_readers_see_the_last_writer_and_nothing_in_use_is_returned) {
    static struct round round;
    const double end = now() + stress_seconds();
    for (int number = 0; number < 12 || now() < end; number++) { /* a round of each kind */
        round_open(&round, number);
        team_run(WORKERS + 1, run, &round);
        round_close(&round);
        if (!round.fails)
            assert_int_equal(round.kernel_count, round.job_count);
        num_kernels += round.kernel_count;
    }
    assert_true(num_failures && num_loans && num_kernels);
}

int main(void) {
    (void)alarm((unsigned)stress_seconds() * 4 + 100);
    return run_all_tests();
}
