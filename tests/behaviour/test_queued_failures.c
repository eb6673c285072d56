/* Tests that calls report failures of queued work, and never return the bytes of failed work. */
#include "blobs.h"
#include "plain.h"
#include "pointers.h"

#include "context/context.h"
#include "sim/table.h"

#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define COUNT 8
#define BYTES (COUNT * sizeof(float))

/* DEFAULT is the default stream, OWN the library's stream. */
enum { ONE, TWO, STREAMS, DEFAULT = STREAMS, OWN };

struct scene {
    struct rig rig;
    sb_stream streams[STREAMS];
    sb_blob *blob, *other, *target;
};

/* --- the simulated device, with streams that forget failures --- */

static sb_stream table_own;

static sb_status forget_failures SLOT_STREAM {
    sb_status st = sb__sim_backend.stream_synchronize(device, stream, err);
    return st == SB_ERR_DEVICE_FAILURE && stream != table_own ? (sb_status)SB_OK : st;
}

/* --- the simulated device, with a failed kernel of the caller --- */

static struct {
    sb_stream stream; /* NULL if no kernel has failed */
    bool is_reported;
    void *events[64]; /* events recorded after the kernel, before the failure was reported */
} failed_kernel;

static void **kernel_event(const void *event) {
    for (int i = 0; i < 64; i++)
        if (failed_kernel.events[i] == event)
            return &failed_kernel.events[i];
    return NULL;
}

static sb_status report_kernel(void *event, sb_error *err) {
    if (!failed_kernel.is_reported)
        memset(failed_kernel.events, 0, sizeof failed_kernel.events);
    failed_kernel.is_reported = true;
    failed_kernel.events[0] = event;
    return sb_error_fill(err, SB_ERR_DEVICE_FAILURE, 0, "a kernel failed");
}

static bool is_unreported(sb_stream stream) {
    return stream && stream == failed_kernel.stream && !failed_kernel.is_reported;
}

static sb_status record_kernel SLOT_RECORD {
    const sb_status st = sb__sim_backend.event_record(device, stream, out, err);
    if (st == SB_OK && is_unreported(stream))
        *kernel_event(NULL) = *out;
    return st;
}

static sb_status wait_for_kernel SLOT_EVENT {
    const sb_status st = sb__sim_backend.event_wait(device, event, err);
    return st == SB_OK && kernel_event(event) ? report_kernel(event, err) : st;
}

static void destroy_event(void *device, void *event) {
    void **place = kernel_event(event);
    if (place)
        *place = NULL;
    sb__sim_backend.event_destroy(device, event);
}

static sb_status synchronize_kernel SLOT_STREAM {
    const sb_status st = sb__sim_backend.stream_synchronize(device, stream, err);
    return st == SB_OK && is_unreported(stream) ? report_kernel(NULL, err) : st;
}

enum { ON_SIM, FORGETFUL, KERNELS };

static sb_blob *on_device(sb_context *context, double start) {
    float values[COUNT];
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, COUNT);
    fill_values(SB_DTYPE_F32, COUNT, start, 1, values);
    mem_place(data_of(blob), SB_HEAD_AT_GPU, values, BYTES);
    mem_place(diff_of(blob), SB_HEAD_AT_GPU, values, BYTES);
    return blob;
}

static void scene_open_on(struct scene *s, const sb_backend *table, int32_t schedule) {
    rig_open_options(&s->rig, CONTEXT_OPTIONS(.device = "sim:0", .backend = table));
    assert_ok(sb_context_stream(s->rig.context, &table_own, &err));
    for (int i = 0; i < STREAMS; i++)
        s->streams[i] = rig_stream(&s->rig);
    s->blob = on_device(s->rig.context, 1);
    s->other = on_device(s->rig.context, 50);
    s->target = on_device(s->rig.context, 90);
    rig_schedule(&s->rig, schedule, 7);
}

static void scene_open(struct scene *s) {
    scene_open_on(s, NULL, SB_SIM_LAZY);
}

static void scene_close(struct scene *s) {
    rig_close(&s->rig);
}

static void scene_reopen_on(struct scene *s, const sb_backend *table, int32_t schedule) {
    scene_close(s);
    scene_open_on(s, table, schedule);
}

static void scene_reopen(struct scene *s, int kind, int32_t schedule) {
    sb_backend table = sb__sim_backend;
    memset(&failed_kernel, 0, sizeof failed_kernel);
    table.stream_synchronize = kind == KERNELS ? synchronize_kernel : forget_failures;
    if (kind == KERNELS) {
        table.event_record = record_kernel;
        table.event_wait = wait_for_kernel;
        table.event_destroy = destroy_event;
    }
    scene_reopen_on(s, kind ? &table : NULL, schedule);
}

static void fails(struct scene *s, int32_t op) {
    device_fail(s->rig.context, op, 1, SB_SIM_FAIL_LATER);
}

static void kernel_on_other(struct scene *s) {
    (void)blob_pointer_on(s->other, SB_DATA, MUTABLE_GPU_ON, s->streams[ONE]);
    failed_kernel.stream = s->streams[ONE];
}

static void kernel(struct scene *s) {
    (void)blob_pointer_on(s->blob, SB_DATA, MUTABLE_GPU_ON, s->streams[ONE]);
    kernel_on_other(s);
}

static void release_a_loan(struct scene *s) {
    struct lent lent = lend_device(s->rig.context, BYTES, 0);
    const void *in;
    sb_mem *mem;
    if (sb_context_device_status(s->rig.context) == SB_OK) {
        assert_ok(sb_mem_create(s->rig.context, BYTES, &mem, &err));
        assert_ok(sb_mem_set_gpu(mem, lent.ptr, BYTES, 0, NULL, NULL, &err));
        for (int i = 0; i < STREAMS; i++)
            ignore(sb_mem_gpu_on(mem, s->streams[i], &in, NULL));
        sb_mem_release(mem);
    }
}

enum step_call {
    END,
    FAIL, /* makes the next operation `on` of the device fail */
    UPDATE,
    SCALE,
    SCALE_OFTEN,
    SCALE_DIFF,
    POINTER,
    PULL,
    PREFETCH,
    WRITE_DIFF,
    SHARE_DIFF,
    DROP_DIFF,
    LEND_DATA,
    DERIVE_DIFF,
    KERNEL,
    KERNEL_ON_OTHER,
    /* The calls from here on may report the failure of earlier work. */
    NOTHING,
    SYNCHRONISE,
    FORGET_STREAMS,
    RELEASE_A_LOAN,
    READ_ANOTHER,
    ORDER_DATA,
    ORDER_DIFF,
    END_OF_EVENTS
};

struct step {
    enum step_call call;
    int32_t on; /* a stream; for FAIL, the operation that fails */
};

static void make_step(struct scene *s, enum step_call call, int32_t on) {
    const sb_stream stream = on < STREAMS ? s->streams[on] : NULL;
    const sb_part part = call == SCALE_DIFF ? SB_DIFF : SB_DATA;
    const void *in;
    void *out;
    switch (call) {
    case FAIL:
        fails(s, on);
        break;
    case UPDATE:
        assert_ok(on == OWN ? sb_blob_update(s->blob, &err)
                            : sb_blob_update_on(s->blob, stream, &err));
        break;
    case SCALE:
    case SCALE_DIFF:
        assert_ok(on == OWN ? sb_blob_scale(s->blob, part, 2, &err)
                            : sb_blob_scale_on(s->blob, part, 2, stream, &err));
        break;
    case SCALE_OFTEN:
        for (int i = 0; i < 9; i++)
            make_step(s, SCALE, i % STREAMS);
        break;
    case POINTER:
        (void)blob_pointer_on(s->blob, SB_DATA, MUTABLE_GPU_ON, stream);
        break;
    case PULL:
        assert_ok(sb_mem_async_cpu_pull(data_of(s->blob), stream, &err));
        break;
    case PREFETCH:
        assert_ok(sb_mem_prefetch_cpu(data_of(s->blob), stream, &err));
        break;
    case DERIVE_DIFF:
        assert_ok(sb_blob_scale_on(s->other, SB_DIFF, 2, s->streams[ONE], &err));
        assert_ok(sb_blob_update_on(s->other, s->streams[TWO], &err));
        assert_ok(sb_blob_set_mem(s->blob, SB_DIFF, data_of(s->other), &err));
        break;
    case SHARE_DIFF:
        assert_ok(sb_blob_set_mem(s->blob, SB_DIFF, data_of(s->other), &err));
        break;
    case WRITE_DIFF:
        (void)blob_pointer(s->blob, SB_DIFF, MUTABLE_CPU);
        break;
    case DROP_DIFF:
        sb_blob_drop(s->blob, SB_DIFF);
        break;
    case LEND_DATA:
        assert_ok(sb_mem_set_gpu(data_of(s->blob), lend_device(s->rig.context, BYTES, 0).ptr, BYTES,
                                 SB_READ_ONLY, NULL, NULL, &err));
        break;
    case KERNEL:
        kernel(s);
        break;
    case KERNEL_ON_OTHER:
        kernel_on_other(s);
        break;
    case SYNCHRONISE:
        ignore(sb_context_synchronize(s->rig.context, NULL));
        ignore(sb_context_synchronize(s->rig.context, NULL));
        break;
    case FORGET_STREAMS:
        for (int i = 0; i < 2 * STREAMS; i++)
            ignore(sb_context_forget_stream(s->rig.context, s->streams[i % STREAMS], NULL));
        ignore(sb_context_forget_stream(s->rig.context, NULL, NULL));
        ignore(sb_context_forget_stream(s->rig.context, table_own, NULL));
        break;
    case RELEASE_A_LOAN:
        release_a_loan(s);
        break;
    case READ_ANOTHER:
        ignore(sb_blob_cpu(s->other, SB_DATA, &in, NULL));
        break;
    case ORDER_DATA:
        ignore(sb_blob_gpu_on(s->blob, SB_DATA, s->streams[TWO], &in, NULL));
        break;
    case ORDER_DIFF:
        ignore(sb_blob_mutable_gpu_on(s->blob, SB_DIFF, s->streams[TWO], &out, NULL));
        break;
    default:
        break;
    }
}

static const struct work {
    const char *name;
    struct step steps[5]; /* the last step is END */
} works[] = {
    {"update_on", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}}},
    {"scale_on", {{FAIL, SB_SIM_SCALE}, {SCALE, ONE}}},
    {"scale_on_default", {{FAIL, SB_SIM_SCALE}, {SCALE, DEFAULT}}},
    {"scale_on_own", {{FAIL, SB_SIM_SCALE}, {SCALE, OWN}}},
    {"update_on_own", {{FAIL, SB_SIM_AXPY}, {UPDATE, OWN}}},
    /* Work queued behind the failing work succeeds, but reads wrong inputs. */
    {"write_behind", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}, {SCALE, ONE}, {UPDATE, TWO}}},
    {"write_behind_on_own", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}, {SCALE, OWN}}},
    {"write_behind_own", {{FAIL, SB_SIM_SCALE}, {SCALE, OWN}, {SCALE, ONE}}},
    {"hold_pointer_behind", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}, {POINTER, TWO}}},
    {"read_on_same", {{FAIL, SB_SIM_SCALE}, {SCALE_DIFF, ONE}, {UPDATE, ONE}}},
    {"read_on_another", {{FAIL, SB_SIM_SCALE}, {SCALE_DIFF, ONE}, {UPDATE, TWO}}},
    {"read_on_own", {{FAIL, SB_SIM_SCALE}, {SCALE_DIFF, ONE}, {UPDATE, OWN}}},
    {"read_own_on_another", {{FAIL, SB_SIM_SCALE}, {SCALE_DIFF, OWN}, {UPDATE, TWO}}},
    {"read_twice", {{FAIL, SB_SIM_SCALE}, {DERIVE_DIFF, 0}, {UPDATE, ONE}}},
    {"upload_diff", {{WRITE_DIFF, 0}, {FAIL, SB_SIM_UPLOAD}, {UPDATE, ONE}}},
    {"zero_diff", {{DROP_DIFF, 0}, {FAIL, SB_SIM_ZERO}, {UPDATE, ONE}}},
    {"move_data", {{LEND_DATA, 0}, {FAIL, SB_SIM_AXPY}, {UPDATE, ONE}}},
    {"pull_behind", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}, {PULL, TWO}}},
    {"pull_behind_on_same", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}, {PREFETCH, ONE}}},
    {"two_failures", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}, {FAIL, SB_SIM_SCALE}, {SCALE, TWO}}},
    {"long_before", {{FAIL, SB_SIM_AXPY}, {UPDATE, ONE}, {SCALE_OFTEN, 0}}},
    {"kernel", {{KERNEL, 0}}},
    {"kernel_and_pull", {{KERNEL, 0}, {PREFETCH, TWO}}},
    {"kernel_and_scale", {{KERNEL, 0}, {SCALE, TWO}}},
    {"kernel_and_scale_on_same", {{KERNEL, 0}, {SCALE, ONE}}},
    {"kernel_and_pointer", {{KERNEL, 0}, {POINTER, TWO}}},
    {"read_kernel_on_same", {{KERNEL_ON_OTHER, 0}, {SHARE_DIFF, 0}, {UPDATE, ONE}}},
    {"read_kernel_on_another", {{KERNEL_ON_OTHER, 0}, {SHARE_DIFF, 0}, {UPDATE, TWO}}},
    {"read_kernel_on_own", {{KERNEL_ON_OTHER, 0}, {SHARE_DIFF, 0}, {UPDATE, OWN}}},
};
enum { WORKS = sizeof works / sizeof *works };

static bool is_kernel(const struct work *work) {
    return work->steps[0].call == KERNEL || work->steps[0].call == KERNEL_ON_OTHER;
}

enum { ASUM = POINTER_CALLS, COPY_FROM, PULL_AND_WAIT, ALL_REDUCE, REDUCER };

static const int asks[] = {CPU_DATA,  MUTABLE_CPU,   GPU_DATA,   MUTABLE_GPU, ASUM,
                           COPY_FROM, PULL_AND_WAIT, ALL_REDUCE, REDUCER};
enum { ASKS = sizeof asks / sizeof *asks };

static sb_status communicate(struct scene *s, int call, sb_error *err) {
    sb_comm *comm;
    sb_reducer *reducer = NULL;
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    options.part = SB_DATA;
    assert_int_equal(sb_sim_comm_create(NULL, 1, NULL, &comm, NULL), SB_OK);
    sb_status st = call == ALL_REDUCE
                       ? sb_comm_all_reduce_blobs(comm, &s->blob, 1, SB_DATA, SB_COMM_SUM, err)
                       : sb_reducer_create(comm, &s->blob, 1, &options, &reducer, err);
    if (reducer)
        assert_int_equal(sb_reducer_ready(reducer, s->blob, err), SB_OK);
    if (reducer)
        st = sb_reducer_wait(reducer, err);
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
    return st;
}

static sb_status ask(struct scene *s, int call, void **out, sb_error *err) {
    double sum;
    sb_status st;
    switch (call) {
    case ASUM:
        return sb_blob_asum(s->blob, SB_DATA, &sum, err);
    case COPY_FROM:
        return sb_blob_copy_from(s->target, SB_DATA, s->blob, 0, err);
    case PULL_AND_WAIT:
        st = sb_mem_prefetch_cpu(data_of(s->blob), s->streams[TWO], err);
        return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
    case ALL_REDUCE:
    case REDUCER:
        return communicate(s, call, err);
    default:
        return blob_call(s->blob, SB_DATA, (enum call)call, NULL, out, err);
    }
}

struct trial {
    int kind;
    const struct work *work;
    enum step_call event;
    int ask;
    int32_t schedule;
};

static void blame(const struct trial *t, const char *what, sb_status st) {
    fail_with("table %d, schedule %d, %s, then event %d, then call %d: %s %s", t->kind, t->schedule,
              t->work->name, (int)t->event, asks[t->ask], what, sb_status_name(st));
}

static void check_overwrite(struct scene *s, const struct trial *t) {
    void *out = NULL;
    sb_status st = sb_blob_overwrite_cpu(s->blob, SB_DATA, &out, &err);
    if (st != SB_OK) /* the first call reports the failure of a queued copy */
        st = sb_blob_overwrite_cpu(s->blob, SB_DATA, &out, &err);
    if (st != SB_OK)
        blame(t, "an overwrite returned", st);
    memset(out, 0x11, BYTES);
    assert_true(bytes_are(blob_pointer(s->blob, SB_DATA, CPU_DATA), BYTES, 0x11));
}

static void run(struct scene *s, const struct trial *t) {
    void *out = NULL;
    scene_reopen(s, t->kind, t->schedule);
    for (const struct step *step = t->work->steps; step->call != END; step++)
        make_step(s, step->call, step->on);
    make_step(s, t->event, 0);
    for (int i = 0; i < 3; i++) {
        support_poison_error(&err);
        sb_status st = ask(s, asks[t->ask], &out, &err);
        const bool is_lost = sb_context_device_status(s->rig.context) == SB_ERR_DEVICE_LOST;
        const int32_t head = sb_mem_head(data_of(s->blob));
        if (out)
            blame(t, "a pointer and the status", st);
        if (is_lost ? st != SB_ERR_DEVICE_LOST && st != SB_ERR_UNINITIALIZED
                    : st != (i == 0 ? SB_ERR_DEVICE_FAILURE : SB_ERR_UNINITIALIZED))
            blame(t, i == 0 ? "the first status is" : "a later status is", st);
        if (!is_lost && head != SB_HEAD_LOST)
            blame(t, "the head is not LOST after", st);
    }
    check_overwrite(s, t);
}

TEST_ON(scene, bytes_that_failed_work_should_have_written_are_not_returned) {
    for (int work = 0; work < WORKS; work++) {
        const bool on_kernels = is_kernel(&works[work]);
        const int last = on_kernels ? KERNELS : FORGETFUL;
        for (int kind = on_kernels ? KERNELS : ON_SIM; kind <= last; kind++)
            for (enum step_call event = NOTHING; event < END_OF_EVENTS; event++)
                for (int ask = 0; ask < ASKS; ask++)
                    for (int32_t schedule = SB_SIM_EAGER; schedule <= SB_SIM_RANDOM; schedule++)
                        run(f, &(struct trial){kind, &works[work], event, ask, schedule});
    }
}

TEST_ON(scene, bytes_of_other_streams_and_of_later_kernels_are_valid) {
    const void *in;
    for (int forgets = 0; forgets < 2; forgets++) {
        scene_reopen(f, KERNELS, SB_SIM_LAZY);
        (void)blob_pointer_on(f->target, SB_DATA, MUTABLE_GPU_ON, f->streams[forgets ? ONE : TWO]);
        if (forgets) {
            rig_end_stream(&f->rig, f->streams[ONE]);
            f->streams[ONE] = rig_stream(&f->rig);
        }
        kernel(f);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_cpu(f->other, SB_DATA, &in, &err));
        (void)blob_pointer_on(f->blob, SB_DATA, OVERWRITE_GPU_ON, f->streams[ONE]);
        (void)blob_pointer_on(f->other, SB_DIFF, MUTABLE_GPU_ON, f->streams[ONE]);
        (void)blob_pointer(f->target, SB_DATA, CPU_DATA);
        (void)blob_pointer(f->blob, SB_DATA, CPU_DATA);
        (void)blob_pointer(f->other, SB_DIFF, CPU_DATA);
    }
}

/* In a set of streams, the last stream that the test creates shares a bit with the first. */
TEST_ON(scene, a_failure_is_not_that_of_another_stream_with_the_same_bit) {
    sb_stream last = NULL;
    const void *in;
    scene_reopen(f, KERNELS, SB_SIM_LAZY);
    kernel(f);
    for (int i = SB__FIRST_NAMED; i < 64; i++) {
        last = rig_stream(&f->rig);
        (void)blob_pointer_on(f->target, SB_DATA, OVERWRITE_GPU_ON, last);
    }
    assert_ok(sb_blob_scale_on(f->blob, SB_DATA, 2, last, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_cpu(f->other, SB_DATA, &in, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_cpu(f->blob, SB_DATA, &in, &err));
}

/* --- a kernel that checks whether the memory of earlier arithmetic still exists --- */

static struct rig *observed;
static struct look observation;

static sb_status observe_axpy SLOT_AXPY {
    const sb_status st = sb__sim_backend.axpy(device, dtype, count, alpha, x, y, stream, err);
    rig_look(&observation, observed, stream, y, BYTES);
    return st;
}

/* Returns whether the arithmetic was queued. */
static bool update_copy(struct scene *s, int64_t nth) {
    sb_backend table = sb__sim_backend;
    table.axpy = observe_axpy;
    observed = &s->rig;
    observation = (struct look){0};
    scene_reopen_on(s, &table, SB_SIM_LAZY);
    make_step(s, LEND_DATA, 0);
    device_fail(s->rig.context, SB_SIM_EVENT_RECORD, nth, SB_SIM_FAIL_NOW);
    device_fail_run(s->rig.context, SB_SIM_STREAM_SYNCHRONIZE, 2, 1);
    ignore(sb_blob_update_on(s->blob, s->streams[ONE], NULL));
    return observation.ptr;
}

TEST_ON(scene, a_copy_is_not_freed_while_queued_arithmetic_writes_it) {
    int64_t nth = 1;
    while (!update_copy(f, nth))
        assert_true(++nth < 10);
    scene_reopen(f, ON_SIM, SB_SIM_LAZY); /* waits for the device */
    assert_true(observation.ran && observation.reached);
}

TEST_ON(scene, a_reducer_reports_a_failure_that_the_wait_in_ready_returned) {
    sb_comm *comm;
    sb_reducer *reducer;
    void *out;
    (void)blob_pointer(f->blob, SB_DIFF, MUTABLE_CPU);
    assert_ok(sb_sim_comm_create(NULL, 1, NULL, &comm, &err));
    assert_ok(sb_reducer_create(comm, &f->blob, 1, NULL, &reducer, &err));
    fails(f, SB_SIM_UPLOAD);
    assert_ok(sb_blob_mutable_gpu_on(f->blob, SB_DIFF, f->streams[ONE], &out, &err));
    assert_ok(sb_reducer_ready(reducer, f->blob, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_reducer_wait(reducer, &err));
    assert_ok(sb_reducer_wait(reducer, &err));
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
}

TEST_ON(scene, a_wait_for_a_stream_reports_failures_of_the_stream) {
    for (int i = 0; i < 8; i++) {
        const bool forgets = i & 1, transfers = i & 2;
        scene_reopen(f, i & 4 ? FORGETFUL : ON_SIM, SB_SIM_LAZY);
        sb_context *context = f->rig.context;
        fails(f, transfers ? SB_SIM_DOWNLOAD : SB_SIM_AXPY);
        make_step(f, transfers ? PULL : UPDATE, ONE);
        if (forgets)
            assert_ok(sb_context_forget_stream(context, f->streams[TWO], &err));
        for (int k = 0; k < 2; k++)
            assert_status(k ? SB_OK : SB_ERR_DEVICE_FAILURE,
                          forgets ? sb_context_forget_stream(context, f->streams[ONE], &err)
                                  : sb_context_synchronize(context, &err));
    }
}

TEST_ON(scene, bytes_that_failed_work_has_read_are_valid) {
    const float *in;
    fails(f, SB_SIM_AXPY);
    make_step(f, UPDATE, ONE);
    assert_ok(sb_blob_cpu_f32(f->blob, SB_DIFF, &in, &err));
    assert_true(in[0] == 1 && in[COUNT - 1] == COUNT);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_cpu_f32(f->blob, SB_DATA, &in, &err));
}

struct fill {
    sb_context *context;
    void *ptr;
};

static void fill_with_threes(void *user) {
    const struct fill *fill = user;
    fill_values(SB_DTYPE_F32, COUNT, 3, 0, sb_sim_address(fill->context, fill->ptr, BYTES));
}

TEST_ON(scene, a_copy_whose_wait_failed_does_not_overwrite_later_results) {
    for (int times = 1; times <= 4; times += 3) {
        int failed = 0;
        for (int64_t nth = 1; nth <= 3; nth++) {
            double sum;
            scene_reopen(f, ON_SIM, SB_SIM_LAZY);
            sb_context *context = f->rig.context;
            struct fill fill = {context, NULL};
            (void)blob_pointer_on(f->blob, SB_DATA, MUTABLE_GPU_ON, f->streams[ONE]);
            sb_blob *target = test_vector(context, SB_DTYPE_F32, COUNT);
            (void)blob_pointer(target, SB_DATA, MUTABLE_CPU);
            device_fail_run(context, SB_SIM_STREAM_SYNCHRONIZE, nth, times);
            const sb_status st = sb_blob_copy_from(target, SB_DATA, f->blob, 0, &err);
            device_fail_no_more(context);
            if (st != SB_ERR_DEVICE_FAILURE)
                continue;
            failed++;
            fill.ptr = blob_pointer_on(target, SB_DATA, OVERWRITE_GPU_ON, f->streams[ONE]);
            assert_ok(sb_sim_launch(context, f->streams[ONE], fill_with_threes, &fill, &err));
            assert_ok(sb_blob_asum(target, SB_DATA, &sum, &err));
            assert_true(sum == 3 * COUNT);
        }
        assert_true(failed > 0);
    }
}

/* After `num_before` successful waits, `num_failing` waits return `status`. */
static struct {
    bool of_events, of_streams;
    int num_before, num_failing;
    sb_status status;
} waits;

static sb_status fail_wait(bool is_one, sb_error *err) {
    if (!is_one || waits.num_before-- > 0 || waits.num_failing <= 0)
        return SB_OK;
    waits.num_failing--;
    return sb_error_fill(err, waits.status, 0, "planted");
}

static sb_status fail_stream_wait SLOT_STREAM {
    const sb_status st = fail_wait(waits.of_streams, err);
    return st == SB_OK ? sb__sim_backend.stream_synchronize(device, stream, err) : st;
}

static sb_status fail_event_wait SLOT_EVENT {
    const sb_status st = fail_wait(waits.of_events, err);
    return st == SB_OK ? sb__sim_backend.event_wait(device, event, err) : st;
}

static void scene_reopen_failing(struct scene *s, bool of_events, bool of_streams) {
    sb_backend table = sb__sim_backend;
    table.event_wait = fail_event_wait;
    table.stream_synchronize = fail_stream_wait;
    memset(&waits, 0, sizeof waits);
    waits.of_events = of_events;
    waits.of_streams = of_streams;
    scene_reopen_on(s, &table, SB_SIM_LAZY);
}

static void fail_waits(int num_before, int num_failing, sb_status status) {
    waits.num_before = num_before;
    waits.num_failing = num_failing;
    waits.status = status;
}

static sb_status scale_and_wait(struct scene *s, int waiter, int num_failing, sb_status status) {
    const sb_stream one = s->streams[ONE];
    assert_ok(sb_blob_scale(s->blob, SB_DATA, 2, &err));
    fail_waits(0, num_failing, status);
    switch (waiter) {
    case 0:
        return sb_context_synchronize(s->rig.context, &err);
    case 1:
        return sb_blob_copy_from(s->target, SB_DATA, s->blob, 0, &err);
    case 2:
        return sb_blob_clear(s->target, SB_DATA, &err);
    default: /* no event can be recorded, so the call waits for the stream */
        device_fail(s->rig.context, SB_SIM_EVENT_RECORD, 2, SB_SIM_FAIL_NOW);
        return sb_blob_scale_on(s->other, SB_DATA, 2, one, &err);
    }
}

TEST_ON(scene, a_wait_for_a_stream_that_fails_is_retried) {
    static const sb_status statuses[] = {SB_ERR_DEVICE_FAILURE, SB_ERR_OUT_OF_MEMORY};
    const char *prefix = "failed while it wrote:";
    const float *in;
    for (int waiter = 0; waiter < 4; waiter++) {
        scene_reopen_failing(f, false, true);
        assert_ok(scale_and_wait(f, waiter, 1, SB_ERR_OUT_OF_MEMORY));
        assert_int_equal(waits.num_failing, 0);
        assert_ok(sb_blob_cpu_f32(f->blob, SB_DATA, &in, &err));
        assert_true(in[0] == 2 && in[COUNT - 1] == 2 * COUNT);
        for (int i = 0; i < 2 && (waiter == 1 || waiter == 2); i++) {
            scene_reopen_failing(f, false, true);
            assert_status(SB_ERR_DEVICE_LOST, scale_and_wait(f, waiter, 2, statuses[i]));
            const char *found = strstr(err.message, prefix);
            assert_true(found && !strstr(found + 1, prefix));
            waits.num_failing = 0;
        }
    }
}

TEST_ON(scene, an_event_whose_waits_fail_without_memory_remains) {
    const float *in;
    for (int work = 0; work < 6; work++) {
        const bool pulls = work / 2, work_fails = work % 2;
        scene_reopen_failing(f, true, false);
        if (work_fails)
            fails(f, pulls ? SB_SIM_DOWNLOAD : SB_SIM_SCALE);
        assert_ok(pulls ? sb_blob_scale(f->blob, SB_DATA, 2, &err)
                        : sb_blob_scale_on(f->blob, SB_DATA, 2, f->streams[ONE], &err));
        if (pulls)
            assert_ok(sb_mem_async_cpu_pull(data_of(f->blob),
                                            work / 2 == 1 ? f->streams[ONE] : table_own, &err));
        fail_waits(0, 2, SB_ERR_OUT_OF_MEMORY);
        assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_cpu_f32(f->blob, SB_DATA, &in, &err));
        if (work_fails) {
            assert_int_not_equal(sb_blob_cpu_f32(f->blob, SB_DATA, &in, &err), SB_OK);
            continue;
        }
        assert_ok(sb_blob_cpu_f32(f->blob, SB_DATA, &in, &err));
        assert_true(in[0] == 2 && in[COUNT - 1] == 2 * COUNT);
    }
}

/* Allocations or waits fail during arithmetic on operands that much queued work has written. */
TEST_ON(scene, arithmetic_that_lacked_memory_succeeds_when_it_is_retried) {
    const float *in;
    sb_status st;
    for (int i = 0; i < 90; i++) {
        const int kind = i % 3;
        scene_reopen_failing(f, true, false);
        for (int k = 0; k < 17; k++)
            make_step(f, SCALE_DIFF, k % STREAMS);
        assert_ok(sb_blob_scale(f->other, SB_DATA, 2, &err));
        f->rig.counting.fail_nth = i % 2 ? 1 + i / 6 : 0;
        fail_waits(i / 6, i % 2 ? 0 : 2, SB_ERR_OUT_OF_MEMORY);
        do
            st = kind ? sb_blob_scale_on(f->blob, SB_DIFF, 2,
                                         kind == 1 ? f->streams[ONE] : table_own, &err)
                      : sb_blob_update_on(f->blob, f->streams[ONE], &err);
        while (st == SB_ERR_OUT_OF_MEMORY);
        assert_ok(st);
        waits.num_failing = 0;
        f->rig.counting.fail_nth = 0;
        assert_ok(sb_blob_cpu_f32(f->blob, kind ? SB_DIFF : SB_DATA, &in, &err));
        assert_true(in[1] == (kind ? 2 << 18 : 2 - (2 << 17)));
    }
}

TEST_ON(scene, storage_of_a_copy_whose_waits_fail_without_memory_is_not_released) {
    for (int pulls = 0; pulls < 2; pulls++) {
        sb_mem *mem;
        void *out;
        scene_reopen_failing(f, true, true);
        struct lent lent = lend_host(BYTES, 1);
        assert_ok(sb_mem_create(f->rig.context, BYTES, &mem, &err));
        assert_ok(sb_mem_set_cpu(mem, lent.ptr, BYTES, 0, lent_deleter, &lent, &err));
        if (pulls)
            assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
        assert_ok(
            (pulls ? sb_mem_async_cpu_pull : sb_mem_async_gpu_push)(mem, f->streams[ONE], &err));
        fail_waits(0, 1000, SB_ERR_OUT_OF_MEMORY);
        sb_mem_release(mem);
        assert_int_equal(lent.deleted, 0);
        waits.num_failing = 0;
        sb_context_trim(f->rig.context);
        assert_int_equal(lent.deleted, 1);
        lent_free(&lent);
    }
}

TEST_ON(scene, work_that_fails_without_an_event_loses_the_device) {
    const void *in = NULL;
    /* The first event only orders the streams. */
    device_fail(f->rig.context, SB_SIM_EVENT_RECORD, 2, SB_SIM_FAIL_NOW);
    assert_ok(sb_sim_fail_also(f->rig.context, SB_SIM_SCALE, 1, SB_SIM_FAIL_LATER, &err));
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale_on(f->blob, SB_DATA, 2, f->streams[ONE], &err));
    assert_int_equal(sb_mem_head(data_of(f->blob)), SB_HEAD_LOST);
    assert_status(SB_ERR_UNINITIALIZED, sb_blob_cpu(f->blob, SB_DATA, &in, &err));
}

TEST_ON(scene, the_memory_for_queued_work_is_bounded) {
    uint64_t most = 0;
    const float *in;
    for (int i = 0; i < 400; i++) {
        assert_ok(sb_blob_scale_on(f->blob, SB_DIFF, 1, f->streams[i % STREAMS], &err));
        assert_ok(sb_blob_update_on(f->blob, f->streams[ONE], &err));
        if (i == 100)
            most = rig_stats(&f->rig).host_peak;
    }
    assert_int_equal(rig_stats(&f->rig).host_peak, most);
    assert_ok(sb_blob_cpu_f32(f->blob, SB_DATA, &in, &err));
    assert_true(in[0] == 1 - 400 && in[COUNT - 1] == COUNT * (1 - 400));
}

static int64_t events_to_order(struct scene *s, sb_status expected) {
    const struct tally before = rig_tally(&s->rig);
    const void *in;
    assert_status(expected, sb_blob_gpu_on(s->blob, SB_DATA, s->streams[TWO], &in, &err));
    return rig_since(&s->rig, &before).calls[SB_SIM_EVENT_RECORD];
}

TEST_ON(scene, an_event_of_the_librarys_arithmetic_is_recorded_once) {
    assert_ok(sb_blob_update(f->blob, &err));
    device_fail(f->rig.context, SB_SIM_EVENT_RECORD, 2, SB_SIM_FAIL_NOW);
    assert_int_equal(events_to_order(f, SB_ERR_DEVICE_FAILURE), 2);
    assert_int_equal(events_to_order(f, SB_OK), 3);
    assert_int_equal(events_to_order(f, SB_OK), 2);
    assert_ok(sb_blob_update(f->blob, &err));
    assert_ok(sb_context_synchronize(f->rig.context, &err));
    assert_int_equal(events_to_order(f, SB_OK), 2);
}

static const sb_status *scripted; /* the results of the next waits for events */

static sb_status scripted_wait SLOT_EVENT {
    return sb_error_fill(err, *scripted++, 0, "a scripted wait");
}

TEST_ON(rig, a_second_wait_decides_whether_work_has_failed) {
    static const struct {
        sb_status waits[2], result;
        ptrdiff_t calls;
    } rows[] = {{{SB_OK}, SB_OK, 1},
                {{SB_ERR_DEVICE_LOST}, SB_ERR_DEVICE_LOST, 1},
                {{SB_ERR_FORKED}, SB_ERR_FORKED, 1},
                {{SB_ERR_DEVICE_FAILURE, SB_OK}, SB_OK, 2},
                {{SB_ERR_OUT_OF_MEMORY, SB_OK}, SB_OK, 2},
                {{SB_ERR_OUT_OF_MEMORY, SB_ERR_DEVICE_FAILURE}, SB_ERR_DEVICE_FAILURE, 2},
                {{SB_ERR_DEVICE_FAILURE, SB_ERR_OUT_OF_MEMORY}, SB_ERR_DEVICE_FAILURE, 2},
                {{SB_ERR_DEVICE_FAILURE, SB_ERR_DEVICE_LOST}, SB_ERR_DEVICE_FAILURE, 2}};
    static sb_backend table;
    table = sb__sim_backend;
    table.event_wait = scripted_wait;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig_reopen_options(f, CONTEXT_OPTIONS(.device = "sim:0", .backend = &table));
        scripted = rows[i].waits;
        assert_status(rows[i].result, sb__event_ask_twice(f->context, &table, &err));
        assert_int_equal(scripted - rows[i].waits, rows[i].calls);
    }
}

static sb_status on_thread(void *(*task)(void *arg), void *arg) {
    pthread_t thread;
    void *status;
    assert_int_equal(pthread_create(&thread, NULL, task, arg), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    return (sb_status)(intptr_t)status;
}

static void *sum_other(void *arg) {
    struct scene *s = arg;
    double sum;
    return (void *)(intptr_t)sb_blob_asum(s->other, SB_DATA, &sum, NULL);
}

static struct scene *interrupted;
static sb_status sum_of_another;

static void interrupt(void) {
    struct scene *s = interrupted;
    interrupted = NULL;
    if (s)
        sum_of_another = on_thread(sum_other, s);
}

/* Another thread waits for the operation before the library's core knows that the operation is
   queued. */
static sb_status scale_and_interrupt SLOT_SCALE {
    const sb_status st = sb__sim_backend.scale(device, dtype, count, alpha, x, stream, err);
    interrupt();
    return st;
}

TEST_ON(scene, arithmetic_whose_failure_another_thread_gets_first_loses_the_device) {
    const float *in;
    sb_backend table = sb__sim_backend;
    table.scale = scale_and_interrupt;
    scene_reopen_on(f, &table, SB_SIM_LAZY);
    interrupted = f;
    fails(f, SB_SIM_SCALE);
    ignore(sb_blob_scale(f->blob, SB_DATA, 3, &err));
    assert_int_equal(sum_of_another, SB_ERR_DEVICE_LOST);
    assert_int_not_equal(sb_blob_cpu_f32(f->blob, SB_DATA, &in, &err), SB_OK);
    assert_int_equal(sb_context_device_status(f->rig.context), SB_ERR_DEVICE_LOST);
}

static sb_status default_and_interrupt(void *device, sb_error *err) {
    interrupt();
    return SB_OK;
}

static sb_status prepare_and_interrupt(void *device, sb_error *err) {
    const sb_status st = sb__sim_backend.prepare_arithmetic(device, err);
    interrupt();
    return st;
}

TEST_ON(scene, arithmetic_calls_no_slot_after_another_thread_has_lost_the_device) {
    double sum;
    for (int op = SB_SIM_SCALE; op <= SB_SIM_SUMSQ; op++) {
        int64_t calls[SB_SIM_OP_COUNT];
        sb_backend table = sb__sim_backend;
        if (op == SB_SIM_SCALE)
            table.after_default = default_and_interrupt;
        else
            table.prepare_arithmetic = prepare_and_interrupt;
        scene_reopen_on(f, &table, SB_SIM_EAGER);
        device_fail(f->rig.context, SB_SIM_ASUM, 1, SB_SIM_FAIL_STICKY);
        interrupted = f;
        assert_status(SB_ERR_DEVICE_LOST,
                      op == SB_SIM_SCALE  ? sb_blob_scale(f->blob, SB_DATA, 3, &err)
                      : op == SB_SIM_ASUM ? sb_blob_asum(f->blob, SB_DATA, &sum, &err)
                                          : sb_blob_sumsq(f->blob, SB_DATA, &sum, &err));
        assert_int_equal(sum_of_another, SB_ERR_DEVICE_LOST);
        assert_ok(sb_sim_calls(f->rig.context, calls, SB_SIM_OP_COUNT, &err));
        assert_int_equal(calls[op], op == SB_SIM_ASUM); /* the other thread calls asum */
    }
}

static void *number_of_thread(void *arg) {
    return (void *)(intptr_t)sb__thread_number();
}

/* A new thread may have the handle of a thread that has ended. */
TEST(the_number_of_an_ended_thread_is_not_used_again) {
    const int first = on_thread(number_of_thread, NULL);
    assert_int_not_equal(on_thread(number_of_thread, NULL), first);
}

static void pull_on_own(sb_blob *blob) {
    assert_ok(sb_mem_async_cpu_pull(data_of(blob), table_own, &err));
}

static void make_host_old(sb_blob *blob) {
    (void)blob_pointer(blob, SB_DATA, CPU_DATA);
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
}

/* A read of `target` waits for all events that the context keeps. */
TEST_ON(scene, a_copy_behind_the_librarys_arithmetic_reports_the_failure_of_either) {
    const void *in;
    for (int waits = 0; waits < 2; waits++)
        for (int other = 0; other < 2; other++) {
            scene_reopen(f, ON_SIM, SB_SIM_LAZY);
            make_host_old(f->blob);
            pull_on_own(f->target);
            fails(f, other ? SB_SIM_DOWNLOAD : SB_SIM_SCALE);
            assert_ok(sb_blob_scale(other ? f->other : f->blob, SB_DATA, 2, &err));
            pull_on_own(f->blob);
            if (waits)
                ignore(sb_blob_cpu(f->target, SB_DATA, &in, &err));
            assert_int_not_equal(sb_blob_cpu(f->blob, SB_DATA, &in, &err), SB_OK);
        }
}

/* --- a table that makes a wait end while another thread records its next event --- */

static _Atomic int meeting; /* the number of completed steps */

static void meet(int steps) {
    meeting = steps;
    while (meeting == steps)
        (void)sched_yield();
}

static sb_status synchronize_and_meet SLOT_STREAM {
    const sb_status st = sb__sim_backend.stream_synchronize(device, stream, err);
    if (meeting == 1)
        meet(2);
    return st;
}

static sb_status record_and_meet SLOT_RECORD {
    const sb_status st = sb__sim_backend.event_record(device, stream, out, err);
    if (meeting == 2 && stream == table_own)
        meet(3);
    return st;
}

static void *wait_and_meet(void *arg) {
    struct scene *s = arg;
    const sb_status st = sb_context_synchronize(s->rig.context, NULL);
    meeting = 4;
    return (void *)(intptr_t)st;
}

TEST_ON(scene, a_wait_for_arithmetic_hides_no_failure_of_a_later_copy) {
    const void *in;
    pthread_t thread;
    sb_backend table = sb__sim_backend;
    table.stream_synchronize = synchronize_and_meet;
    table.event_record = record_and_meet;
    scene_reopen_on(f, &table, SB_SIM_LAZY);
    make_host_old(f->blob);
    assert_ok(sb_blob_scale(f->other, SB_DATA, 2, &err));
    meeting = 1;
    assert_int_equal(pthread_create(&thread, NULL, wait_and_meet, f), 0);
    while (meeting == 1)
        (void)sched_yield();
    fails(f, SB_SIM_DOWNLOAD);
    pull_on_own(f->blob);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 3; i++) /* three calls report both failures */
        ignore(sb_context_synchronize(f->rig.context, &err));
    assert_int_not_equal(sb_blob_cpu(f->blob, SB_DATA, &in, &err), SB_OK);
}

TEST_ON(scene, waits_that_fail_without_memory_hide_no_failure_of_arithmetic) {
    const void *in;
    for (int before = 0; before < 9; before++) {
        scene_reopen_failing(f, true, false);
        make_host_old(f->blob);
        assert_ok(sb_blob_scale_on(f->target, SB_DATA, 2, table_own, &err));
        assert_ok(sb_mem_async_cpu_pull(data_of(f->target), f->streams[ONE], &err));
        fails(f, SB_SIM_SCALE);
        assert_ok(sb_blob_scale(f->blob, SB_DATA, 2, &err));
        pull_on_own(f->blob);
        assert_ok(sb_blob_scale(f->other, SB_DATA, 2, &err));
        pull_on_own(f->other);
        fail_waits(before, 2, SB_ERR_OUT_OF_MEMORY);
        const sb_status st = sb_blob_cpu(f->target, SB_DATA, &in, &err);
        assert_true(st == SB_OK || err.code == st);
        for (int i = 0; i < 3; i++)
            assert_int_not_equal(sb_blob_cpu(f->blob, SB_DATA, &in, &err), SB_OK);
    }
}

static sb_status wait_after_another SLOT_EVENT {
    interrupt();
    return wait_for_kernel(device, event, err);
}

TEST_ON(scene, a_failure_that_another_wait_returns_meanwhile_counts_for_all_memories) {
    static const int calls[] = {ASUM, COPY_FROM, CPU_DATA};
    void *out = NULL;
    for (int i = 0; i < 3; i++) {
        scene_reopen(f, KERNELS, SB_SIM_LAZY);
        kernel(f);
        f->rig.context->backend.event_wait = wait_after_another;
        interrupted = f;
        assert_status(SB_ERR_DEVICE_FAILURE, ask(f, calls[i], &out, &err));
        assert_null(interrupted);
        assert_int_equal(sum_of_another, SB_ERR_DEVICE_FAILURE);
    }
}

/* Another thread's wait has received the failure from the backend, but has not returned. */
static _Atomic bool is_taken;

static sb_status wait_slowly SLOT_EVENT {
    const struct timespec some = {0, 30000000};
    const bool was_reported = failed_kernel.is_reported;
    const sb_status st = wait_for_kernel(device, event, err);
    if (st == SB_ERR_DEVICE_FAILURE && !was_reported) {
        is_taken = true;
        (void)nanosleep(&some, NULL);
    }
    return st;
}

TEST_ON(scene, a_failure_that_another_wait_is_about_to_return_counts) {
    pthread_t thread;
    const void *in;
    scene_reopen(f, KERNELS, SB_SIM_LAZY);
    kernel(f);
    f->rig.context->backend.event_wait = wait_slowly;
    is_taken = false;
    assert_int_equal(pthread_create(&thread, NULL, sum_other, f), 0);
    while (!is_taken)
        (void)sched_yield();
    assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_cpu(f->blob, SB_DATA, &in, &err));
    assert_int_equal(pthread_join(thread, NULL), 0);
}
