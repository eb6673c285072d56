/* Makes every call of OpenCL fail in turn, in every operation. */
#include "blobs.h"
#include "driver.h"
#include "pointers.h"

enum { COUNT = 600 };

struct scene {
    sb_context *context;
    cl_command_queue queue;
    sb_blob *blob;       /* data is 1 and diff is 0.25, both at the device */
    sb_mem *host, *both; /* `host` is current on the host, `both` on both sides */
};

#define ON(scene) ((sb_stream)(scene)->queue)

static sb_status push_and_wait(struct scene *s, sb_error *err) {
    const sb_status st = sb_mem_async_gpu_push(s->host, ON(s), err);
    return st == SB_OK ? sb_mem_synchronize(s->host, err) : st;
}

static sb_status sum(const struct scene *s, double expected, sb_error *err,
                     sb_status (*call)(const sb_blob *, sb_part, double *, sb_error *)) {
    double sum = 0;
    const sb_status st = call(s->blob, SB_DIFF, &sum, err);
    assert_true(st != SB_OK || sum == expected);
    return st;
}

static sb_status end_both(struct scene *s) {
    test_end(s->both);
    s->both = NULL;
    return SB_OK;
}

enum { PREPARED = 1, WRITES = 2, CLEARS = 4 };

#define OPERATIONS(X)                                                                              \
    X(upload, 0, sb_mem_gpu(s->host, &(const void *){NULL}, err))                                  \
    X(upload_on, 0, sb_mem_gpu_on(s->host, ON(s), &(const void *){NULL}, err))                     \
    X(push, 0, push_and_wait(s, err))                                                              \
    X(download, 0, sb_blob_cpu_f32(s->blob, SB_DATA, &(const float *){NULL}, err))                 \
    X(evict, 0, sb_mem_evict_gpu(s->both, err))                                                    \
    X(asum, PREPARED, sum(s, 0.25 * COUNT, err, sb_blob_asum))                                     \
    X(sumsq, PREPARED, sum(s, 0.0625 * COUNT, err, sb_blob_sumsq))                                 \
    X(update, PREPARED | WRITES, sb_blob_update(s->blob, err))                                     \
    X(scale, PREPARED | WRITES, sb_blob_scale(s->blob, SB_DATA, 0.75, err))                        \
    X(clear, CLEARS, sb_mem_clear(s->both, err))                                                   \
    X(copy, 0,                                                                                     \
      sb_blob_copy_from(test_vector(s->context, SB_DTYPE_F32, COUNT), SB_DIFF, s->blob, 0, err))   \
    X(forget, 0, sb_context_forget_stream(s->context, ON(s), err))                                 \
    X(prepare, 0, sb_context_prepare_arithmetic(s->context, err))                                  \
    X(release, 0, end_both(s))                                                                     \
    X(synchronize, 0, sb_context_synchronize(s->context, err))

#define DEFINE(name, kind, ...)                                                                    \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return __VA_ARGS__;                                                                        \
    }
OPERATIONS(DEFINE)

#define ROW(name, kind, ...) {#name, name, kind},
static const struct operation {
    const char *name;
    sb_status (*run)(struct scene *scene, sb_error *err);
    int kind;
} operations[] = {OPERATIONS(ROW)};

static void scene_open(struct scene *s, int32_t memory, int kind) {
    float *out;
    assert_ok(opencl_context(opencl_backend(memory), &s->context, &err));
    s->queue = opencl_queue(s->context, NULL);
    s->blob = test_vector(s->context, SB_DTYPE_F32, COUNT);
    for (int part = SB_DATA; part <= SB_DIFF; part++) {
        assert_ok(sb_blob_mutable_cpu_f32(s->blob, part, &out, &err));
        for (int i = 0; i < COUNT; i++)
            out[i] = part == SB_DATA ? 1 : 0.25F;
        assert_ok(sb_blob_mutable_gpu_f32(s->blob, part, &out, &err));
    }
    s->host = test_filled(s->context, COUNT, 0x11);
    s->both = test_filled(s->context, COUNT, 0x11);
    (void)mem_pointer_on(s->both, GPU_DATA_ON, ON(s));
    if (kind & PREPARED)
        assert_ok(sb_context_prepare_arithmetic(s->context, &err));
}

static void assert_intact(struct scene *s, const struct operation *o, bool done) {
    const float changed = o->kind & WRITES && done ? 0.75F : 1;
    const float *in = blob_pointer(s->blob, SB_DATA, CPU_DATA);
    for (int i = 0; i < COUNT; i++)
        assert_true(in[i] == changed);
    const void *bytes = mem_pointer(s->host, CPU_DATA);
    assert_int_equal(((const char *)bytes)[COUNT - 1], 0x11);
    if (s->both && !(o->kind & CLEARS && done)) {
        assert_ok(sb_mem_cpu(s->both, &bytes, &err));
        assert_int_equal(((const char *)bytes)[0], 0x11);
    }
}

static void scene_close(struct scene *s, size_t owned) {
    test_end_after(owned);
    ignore(sb_context_forget_stream(s->context, ON(s), NULL));
    (void)clReleaseCommandQueue(s->queue);
    sb_context_release(s->context);
}

static bool is_documented(sb_status st, cl_int code) {
    if (st == SB_ERR_DEVICE_LOST)
        return true;
    return st == SB_ERR_DEVICE_FAILURE ||
           (st == SB_ERR_OUT_OF_MEMORY && code == CL_OUT_OF_RESOURCES);
}

static bool try_fault(int32_t memory, const struct operation *o, int64_t nth, cl_int code) {
    struct scene scene;
    const size_t owned = test_num_owned();
    scene_open(&scene, memory, o->kind);
    driver_fail(NULL, nth, DRIVER_NOW, code);
    sb_status st = o->run(&scene, &err);
    const char *fired = driver_fired();
    driver_fail(NULL, 0, DRIVER_NOW, 0);
    if (st != SB_OK && (!fired || !is_documented(st, code)))
        fail_with("%s, call %d, %s: %s", o->name, (int)nth, fired ? fired : "nothing",
                  sb_status_name(st));
    if (sb_context_device_status(scene.context) == SB_OK) {
        const bool done = st == SB_OK;
        assert_intact(&scene, o, done);
        if (!done)
            assert_ok(o->run(&scene, &err));
    } else if (code != CL_DEVICE_NOT_AVAILABLE &&
               !(o->kind & (PREPARED | CLEARS))) { /* these operations work in place */
        fail_with("%s, call %d, %s: the device is lost", o->name, (int)nth, fired);
    }
    scene_close(&scene, owned);
    assert_nothing_is_live();
    return fired != NULL;
}

TEST(no_failing_call_loses_bytes) {
    static const cl_int codes[] = {CL_OUT_OF_RESOURCES, CL_INVALID_VALUE, CL_DEVICE_NOT_AVAILABLE};
    for (int32_t memory = SB_OPENCL_SVM; memory <= SB_OPENCL_FINE_SVM; memory++)
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
            for (int k = 0; k < (test_is_quick() ? 1 : 3); k++)
                for (int64_t n = 1; try_fault(memory, &operations[i], n, codes[k]); n++)
                    assert_true(n < 100);
}
