/* Every call of the driver and of cuBLAS fails in turn, in each way, in each
   operation: a status that explains it, current bytes stay, the same call works
   afterwards, nothing leaks, the caller's context stays. */
#include "fixture.h"

#include "context/context.h"

#include <stdio.h>
#include <string.h>

#define COUNT 300
#define BYTES (COUNT * sizeof(float))

struct setting {
    struct stage stage;
    sb_blob *blob;
    CUstream stream;
};

static const void *bytes_of(sb_blob *blob) {
    const void *in = NULL;
    return sb_mem_cpu_data(data_of(blob), &in, NULL) == SB_OK ? in : NULL;
}

/* --- operations ------------------------------------------------------------------------------ */

#define CALL(name, expression)                                                                     \
    static sb_status name(struct setting *s, sb_error *err) {                                      \
        return expression;                                                                         \
    }

CALL(upload, sb_mem_gpu_data(data_of(s->blob), &(const void *){NULL}, err))
CALL(download, sb_mem_cpu_data(data_of(s->blob), &(const void *){NULL}, err))
CALL(upload_on,
     sb_mem_gpu_data_on(data_of(s->blob), (sb_stream)s->stream, &(const void *){NULL}, err))

static sb_status push(struct setting *s, sb_error *err) {
    sb_status st = sb_mem_async_gpu_push(data_of(s->blob), (sb_stream)s->stream, err);
    return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
}

static sb_status pull(struct setting *s, sb_error *err) {
    sb_status st = sb_mem_async_cpu_pull(data_of(s->blob), (sb_stream)s->stream, err);
    return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
}

static sb_status evict(struct setting *s, sb_error *err) {
    sb_status st = upload_on(s, err);
    return st == SB_OK ? sb_mem_evict_gpu(data_of(s->blob), err) : st;
}

CALL(asum, sb_blob_asum_data(s->blob, &(double){0}, err))
CALL(sumsq, sb_blob_sumsq_data(s->blob, &(double){0}, err))

/* It is queued: here its failure is a failure of the call. */
static sb_status waited(struct setting *s, sb_status st, sb_error *err) {
    return st == SB_OK ? sb__own_wait(s->stage.rig.context, err) : st;
}

static sb_status update(struct setting *s, sb_error *err) {
    return waited(s, sb_blob_update(s->blob, err), err); /* the diff reads as zeros */
}

static sb_status scale(struct setting *s, sb_error *err) {
    return waited(s, sb_blob_scale_data(s->blob, 1, err), err);
}

CALL(clear, sb_blob_clear_data(s->blob, err))

static sb_status lend(struct setting *s, sb_error *err) {
    sb_mem *other;
    const void *in;
    sb_status st = sb_mem_create(s->stage.rig.context, BYTES, &other, err);
    if (st == SB_OK) {
        st = sb_mem_gpu_data(data_of(s->blob), &in, err);
        if (st == SB_OK)
            st = sb_mem_set_gpu(other, (void *)(uintptr_t)in, BYTES, SB_READ_ONLY, NULL, NULL, err);
        sb_mem_release(other);
    }
    return st;
}

static sb_status another_context(struct setting *s, sb_error *err) {
    sb_context *context;
    (void)s;
    sb_status st = cuda_context("cuda:0", &context, err);
    if (st == SB_OK)
        sb_context_release(context);
    return st;
}

static const struct operation {
    const char *name;
    sb_status (*run)(struct setting *s, sb_error *err);
    bool on_device; /* the head, before */
    bool writes;    /* current bytes on the device */
} operations[] = {
    {"upload", upload, false, false},
    {"download", download, true, false},
    {"upload on a stream", upload_on, false, false},
    {"push", push, false, false},
    {"pull", pull, true, false},
    {"evict", evict, false, false},
    {"asum", asum, true, false},
    {"sumsq", sumsq, true, false},
    {"scale", scale, true, true},
    {"update", update, true, true},
    {"clear", clear, true, true},
    {"lend", lend, false, false},
    {"another context", another_context, false, false},
};

/* --- a trial -----------------------------------------------------------------------------------
 */

static void open_setting(struct setting *s, const struct operation *o) {
    sb_error err;
    const int64_t shape[] = {COUNT};
    void *out;
    stage_open(&s->stage, SB_CONTEXT_NO_HOST_CACHE);
    s->stream = stage_stream(&s->stage, CU_STREAM_NON_BLOCKING);
    assert_ok(sb_blob_create_shaped(s->stage.rig.context, SB_DTYPE_F32, shape, 1, &s->blob, &err));
    assert_ok(sb_mem_overwrite_cpu(data_of(s->blob), &out, &err));
    memset(out, 0x11, BYTES);
    if (o->on_device)
        assert_ok(sb_mem_mutable_gpu_data(data_of(s->blob), &out, &err));
}

/* What a lost device keeps is not counted: its context takes it along. */
static void close_setting(struct setting *s, bool lost) {
    sb_blob_destroy(s->blob);
    (void)sb_context_forget_stream(s->stage.rig.context, (sb_stream)s->stream, NULL);
    if (lost) {
        rig_close(&s->stage.rig);
        standin_heal();
    } else {
        stage_stream_destroy(&s->stage, s->stream);
        stage_close(&s->stage);
    }
}

static const char *const mode_names[] = {"now", "late", "for good", "in passing", "at exit"};

static void check(struct setting *s, const struct operation *o, enum standin_mode mode,
                  const char *fired, sb_status st) {
    sb_error err;
    bool lost = sb_context_device_status(s->stage.rig.context) == SB_ERR_DEVICE_LOST;
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE &&
        st != SB_ERR_DEVICE_LOST && st != SB_ERR_NO_DEVICE)
        fail_with("%s with %s failing %s: %s", o->name, fired, mode_names[mode],
                  sb_status_name(st));
    bool may_lose = mode == STANDIN_LATE || mode == STANDIN_STICKY || mode == STANDIN_EXIT ||
                    (o->writes && st == SB_ERR_DEVICE_LOST);
    if (lost && !may_lose)
        fail_with("%s with %s failing %s lost the device", o->name, fired, mode_names[mode]);
    if (mode == STANDIN_EXIT)
        return; /* what was queued counts as done: nobody reads it any more */
    const void *now = bytes_of(s->blob);
    int fill = st == SB_OK && o->run == clear ? 0 : 0x11;
    if (now && !bytes_are(now, BYTES, fill))
        fail_with("%s with %s failing %s: other bytes", o->name, fired, mode_names[mode]);
    if (!now && !o->on_device)
        fail_with("%s with %s failing %s: host bytes are gone", o->name, fired, mode_names[mode]);
    if (lost || mode == STANDIN_LATE || mode == STANDIN_STICKY)
        return;
    if (!now)
        fail_with("%s with %s failing %s: no bytes", o->name, fired, mode_names[mode]);
    if (st != SB_OK && o->run != pull)
        assert_ok(o->run(s, &err));
}

static int64_t trials;

/* False when there was no nth call. */
static bool trial(const struct operation *o, enum standin_mode mode, unsigned int code,
                  int64_t nth) {
    struct setting s;
    sb_error err;
    standin_forgive();
    open_setting(&s, o);
    standin_fail(NULL, nth, mode, code);
    support_poison_error(&err);
    sb_status st = o->run(&s, &err);
    const char *fired = standin_fired();
    standin_fail(NULL, 0, STANDIN_NOW, 0);
    support_check_status(st, st, &err, o->name, __FILE__, __LINE__);
    if (fired)
        check(&s, o, mode, fired, st);
    trials += fired != NULL;
    bool kept = !fired || (strcmp(fired, "cuCtxPopCurrent_v2") != 0) || mode == STANDIN_NOW;
    if (kept && mode != STANDIN_EXIT && standin_depth())
        fail_with("%s with %s failing %s leaves a context current", o->name, fired,
                  mode_names[mode]);
    if (standin_violations())
        fail_with("%s with %s failing %s breaks a rule of the driver", o->name, fired,
                  mode_names[mode]);
    close_setting(&s, mode == STANDIN_LATE || mode == STANDIN_STICKY || mode == STANDIN_EXIT ||
                          sb_context_device_status(s.stage.rig.context) != SB_OK);
    return fired != NULL;
}

static void every_call_fails(enum standin_mode mode, unsigned int code) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        for (int64_t nth = 1; trial(&operations[i], mode, code, nth); nth++)
            ;
}

static void at_once(void **state) {
    (void)state;
    every_call_fails(STANDIN_NOW, CUDA_ERROR_UNKNOWN);
    every_call_fails(STANDIN_NOW, CUDA_ERROR_OUT_OF_MEMORY);
}

static void late(void **state) {
    (void)state;
    every_call_fails(STANDIN_LATE, CUDA_ERROR_LAUNCH_FAILED);
}

static void for_good(void **state) {
    (void)state;
    every_call_fails(STANDIN_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void in_passing(void **state) {
    (void)state;
    every_call_fails(STANDIN_PASSING, CUDA_ERROR_UNKNOWN);
}

static void as_the_process_ends(void **state) {
    (void)state;
    every_call_fails(STANDIN_EXIT, CUDA_ERROR_DEINITIALIZED);
    print_message("%lld calls failed\n", (long long)trials);
    assert_true(trials > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_once),
        cmocka_unit_test(late),
        cmocka_unit_test(for_good),
        cmocka_unit_test(in_passing),
        cmocka_unit_test(as_the_process_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
