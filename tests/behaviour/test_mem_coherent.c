/* Tests memories whose two sides share one storage, and devices without a default stream. */
#include "blobs.h"
#include "plain.h"
#include "pointers.h"
#include "scene.h"
#include "sim_tables.h"

#include "sim/table.h"

#include <syncblob/dlpack.h>

#define COUNT ((int64_t)48)
#define BYTES ((size_t)COUNT * sizeof(float))

static void reopen_on(struct rig *f, const sb_backend *table) {
    rig_reopen_options(
        f, CONTEXT_OPTIONS(.device = "sim:0", .backend = table, .flags = SB_CONTEXT_NO_HOST_CACHE));
    rig_schedule(f, SB_SIM_LAZY, 0);
}

static void reopen(struct rig *f) {
    reopen_on(f, coherent_table());
}

TEST_ON(rig, the_sides_are_one_storage_that_counts_once) {
    reopen(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    void *host = mem_pointer(mem, OVERWRITE_CPU);
    assert_true(bytes_are(host, BYTES, 0)); /* the memory must not show bytes of other programs */
    memset(host, 1, BYTES);
    const struct tally before = rig_tally(f);
    assert_ptr_equal(mem_pointer(mem, GPU_DATA), host);
    const struct tally since = rig_since(f, &before);
    assert_no_work(&since);
    assert_int_equal(rig_stats(f).host_copies, 0);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_OWNED);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_GPU), SB_STORAGE_OWNED);
    assert_true(sb_mem_is_unique(mem));
    assert_int_equal(rig_stats(f).device_bytes, BYTES);
    assert_int_equal(rig_stats(f).pinned_bytes, 0);
    assert_int_equal(f->counting.live_buffers, 0);
}

static uint32_t lacks_coherence(void *device) {
    return SB_DEVICE_LACKS_HOST_COHERENT;
}

TEST_ON(rig, one_device_of_the_backend_may_lack_it) {
    static sb_backend table;
    table = *coherent_table();
    table.lacks = lacks_coherence;
    reopen_on(f, &table);
    sb_mem *mem = test_filled(f->context, BYTES, 1);
    assert_ptr_not_equal(mem_pointer(mem, CPU_DATA), mem_pointer(mem, GPU_DATA));
    assert_int_equal(rig_stats(f).uploads, 1);
}

struct kernel {
    void *ptr;
    int fill, found; /* `found` is -1 if the bytes are not all equal */
    bool writes, ran;
};

static void run_kernel(void *user) {
    struct kernel *kernel = user;
    const unsigned char *bytes = kernel->ptr;
    kernel->found = bytes_are(bytes, BYTES, *bytes) ? *bytes : -1;
    if (kernel->writes)
        memset(kernel->ptr, kernel->fill, BYTES);
    kernel->ran = true;
}

static sb_stream another_default;

static sb_status after_default(void *device, sb_error *err) {
    void *event = NULL;
    const sb_stream own = sb__sim_backend.own_stream(device);
    sb_status st = sb__sim_backend.event_record(device, another_default, &event, err);
    if (st == SB_OK)
        st = sb__sim_backend.stream_wait(device, own, event, err);
    if (event)
        sb__sim_backend.event_destroy(device, event);
    return st;
}

TEST_ON(rig, the_host_writes_after_readers_on_other_default_streams) {
    static sb_backend table;
    struct kernel kernel = {.found = -1};
    table = *coherent_table();
    table.after_default = after_default;
    reopen_on(f, &table);
    another_default = rig_stream(f);
    sb_mem *mem = test_filled(f->context, BYTES, 5);
    kernel.ptr = mem_pointer(mem, GPU_DATA);
    assert_ok(sb_sim_launch(f->context, another_default, run_kernel, &kernel, &err));
    (void)mem_pointer(mem, MUTABLE_CPU);
    assert_int_equal(kernel.found, 5);
}

static sb_blob *synced_blob(struct rig *f) {
    float values[COUNT];
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
    fill_values(SB_DTYPE_F32, COUNT, 3, 0, values);
    mem_place(data_of(blob), SB_HEAD_SYNCED, values, BYTES);
    return blob;
}

TEST_ON(rig, bytes_that_a_failing_device_overwrote_are_lost_on_both_sides) {
    static const int32_t modes[] = {SB_SIM_FAIL_NOW, SB_SIM_FAIL_STICKY};
    for (int i = 0; i < 2; i++) {
        const void *in;
        reopen(f);
        sb_blob *blob = synced_blob(f);
        device_fail(f->context, SB_SIM_SCALE, 1, modes[i]);
        assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_LOST);
        assert_status(SB_ERR_UNINITIALIZED, sb_blob_cpu(blob, SB_DATA, &in, &err));
        void *out = blob_pointer(blob, SB_DATA, OVERWRITE_CPU);
        memset(out, 1, BYTES);
        assert_true(mem_holds(data_of(blob), out, BYTES));
    }
}

TEST_ON(rig, zeros_that_are_still_queued_do_not_reach_the_host_s_bytes) {
    reopen(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    device_fail_run(f->context, SB_SIM_EVENT_RECORD, 1, 2);
    device_fail_run(f->context, SB_SIM_STREAM_SYNCHRONIZE, 1, 2);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_prefetch_gpu(mem, rig_stream(f), &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
    (void)mem_pointer(mem, CPU_DATA);
    void *out = mem_pointer(mem, MUTABLE_CPU);
    memset(out, 7, BYTES);
    assert_ok(sb_context_synchronize(f->context, &err));
    assert_true(bytes_are(out, BYTES, 7));
}

TEST_ON(rig, tensors_of_both_sides_share_the_storage) {
    for (int order = 0; order < 2; order++) {
        sb_dl_managed_versioned *tensors[2];
        reopen(f);
        sb_blob *blob = synced_blob(f);
        for (sb_side side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
            assert_ok(sb_blob_to_dlpack(blob, SB_DATA, side, &tensors[side], &err));
        assert_int_equal(tensors[0]->dl_tensor.device.device_type, SB_DL_DEVICE_CPU);
        assert_int_equal(tensors[1]->dl_tensor.device.device_type, SB_DL_DEVICE_EXTENSION);
        assert_ptr_equal(tensors[0]->dl_tensor.data, tensors[1]->dl_tensor.data);
        test_end(blob);
        tensors[order]->deleter(tensors[order]);
        sb_dl_managed_versioned *last = tensors[1 - order];
        assert_true(((const float *)last->dl_tensor.data)[COUNT - 1] == 3);
        last->deleter(last);
        assert_int_equal(rig_stats(f).device_bytes, 0);
    }
}

TEST_ON(rig, an_import_of_the_host_side_waits_for_the_device) {
    for (int is_written = 0; is_written < 2; is_written++) {
        struct kernel kernel = {.writes = is_written, .fill = 9, .found = -1};
        sb_dl_managed_versioned *tensor;
        sb_blob *copy;
        float *values;
        reopen(f);
        const sb_stream stream = rig_stream(f);
        sb_blob *blob = synced_blob(f);
        assert_ok(sb_blob_to_mutable_dlpack(blob, SB_DATA, SB_SIDE_CPU, &tensor, &err));
        assert_ok(sb_blob_mutable_gpu_on(blob, SB_DATA, stream, &kernel.ptr, &err));
        assert_ok(sb_sim_launch(f->context, stream, run_kernel, &kernel, &err));
        test_end(blob);
        device_fail(f->context, SB_SIM_EVENT_RECORD, 1, SB_SIM_FAIL_NOW);
        assert_status(SB_ERR_DEVICE_FAILURE,
                      sb_blob_create_from_dlpack(f->context, tensor, &copy, &err));
        assert_ok(sb_blob_create_from_dlpack(f->context, tensor, &copy, &err));
        assert_true(kernel.ran);
        assert_ok(sb_blob_overwrite_cpu_f32(copy, SB_DATA, &values, &err));
        memset(values, 1, COUNT * sizeof *values);
        assert_ok(sb_context_synchronize(f->context, &err));
        assert_true(bytes_are(values, COUNT * sizeof *values, 1));
        sb_blob_destroy(copy);
    }
}

#define SLOT(slot, parameters, ...)                                                                \
    static sb_status slot parameters {                                                             \
        assert_non_null(stream);                                                                   \
        return sb__sim_backend.slot(device, stream, __VA_ARGS__);                                  \
    }
SLOT(check_stream, SLOT_STREAM, err)
SLOT(stream_synchronize, SLOT_STREAM, err)
SLOT(event_record, SLOT_RECORD, out, err)

static sb_stream read_stream(void *device) {
    const sb_sim_device *sim = sb__sim_backend.extension(device, SB_SIM_DEVICE);
    sb_stream stream;
    sim->lock(device);
    assert_ok(sim->stream_create(device, &stream, &err));
    sim->unlock(device);
    return stream;
}

static void reopen_without_default(struct rig *rig) {
    sb_backend table = sb__sim_backend;
    table.flags |= SB_BACKEND_NO_DEFAULT_STREAM;
    table.check_stream = check_stream;
    table.stream_synchronize = stream_synchronize;
    table.event_record = event_record;
    table.read_stream = read_stream;
    rig_reopen_options(rig, CONTEXT_OPTIONS(.device = "sim:0", .backend = &table));
}

static sb_stream own_stream(struct rig *rig) {
    sb_stream own;
    assert_ok(sb_context_stream(rig->context, &own, &err));
    return own;
}

TEST_ON(rig, null_is_the_librarys_stream) {
    reopen_without_default(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    (void)mem_pointer_on(mem, OVERWRITE_GPU_ON, NULL);
    const sb_stream own = own_stream(f);
    const struct tally before = rig_tally(f);
    (void)mem_pointer_on(mem, GPU_DATA_ON, own);
    (void)mem_pointer_on(mem, MUTABLE_GPU_ON, NULL);
    (void)mem_pointer_on(mem, MUTABLE_GPU_ON, own);
    const struct tally since = rig_since(f, &before);
    assert_int_equal(since.calls[SB_SIM_EVENT_RECORD] + since.calls[SB_SIM_STREAM_WAIT], 0);
    assert_ok(sb_context_forget_stream(f->context, NULL, &err));
    assert_ok(sb_context_synchronize(f->context, &err));
}

static void make_busy(struct rig *rig, struct look *look) {
    const void *in = mem_pointer(test_mem(rig->context, BYTES), GPU_DATA);
    rig_schedule(rig, SB_SIM_LAZY, 0);
    rig_look(look, rig, own_stream(rig), in, BYTES);
}

TEST_ON(rig, a_read_does_not_wait_for_other_work_of_the_library) {
    struct look busy, look;
    reopen_without_default(f);
    make_busy(f, &busy);
    const sb_stream stream = rig_stream(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    rig_look(&look, f, stream, mem_pointer_on(mem, OVERWRITE_GPU_ON, stream), BYTES);
    device_fail(f->context, SB_SIM_STREAM_WAIT, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_cpu(mem, &(const void *){NULL}, &err));
    (void)mem_pointer(mem, CPU_DATA);
    assert_true(look.ran);
    assert_false(busy.ran);
    assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
    assert_ok(sb_context_synchronize(f->context, &err));
    assert_true(busy.ran);
}

TEST_ON(rig, a_read_waits_for_writes_on_the_librarys_stream) {
    struct look busy;
    for (int exposed = 0; exposed < 2; exposed++) {
        reopen_without_default(f);
        sb_mem *mem = test_mem(f->context, BYTES);
        if (exposed)
            (void)mem_pointer(mem, MUTABLE_GPU);
        else
            (void)mem_pointer_on(mem, MUTABLE_GPU_ON, NULL);
        make_busy(f, &busy);
        assert_false(busy.ran);
        assert_true(bytes_are(mem_pointer(mem, CPU_DATA), BYTES, 0));
        assert_true(busy.ran);
    }
}

TEST_ON(rig, storage_of_a_read_that_may_still_run_is_not_freed) {
    const void *in;
    for (int waits = 0; waits <= 2; waits++) { /* the number of failing waits for a stream */
        reopen_without_default(f);
        rig_schedule(f, SB_SIM_LAZY, 0);
        sb_mem *mem = test_mem(f->context, BYTES);
        (void)mem_pointer(mem, MUTABLE_GPU);
        device_fail(f->context, SB_SIM_EVENT_RECORD, 1, SB_SIM_FAIL_NOW);
        device_fail_run(f->context, SB_SIM_STREAM_SYNCHRONIZE, 1, waits);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_cpu(mem, &in, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_GPU);
        assert_true(bytes_are(mem_pointer(mem, CPU_DATA), BYTES, 0));
        test_end(mem);
        device_fail_no_more(f->context);
        assert_ok(sb_context_synchronize(f->context, &err));
    }
}
