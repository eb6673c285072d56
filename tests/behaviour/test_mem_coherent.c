/* Tests host-coherent memory: both sides share one storage, calls copy nothing, and an import waits
   for the device. The device runs its work as late as possible. The fuzz target synced_memory tests
   that the host waits for the device before it writes. */
#include "blobs.h"
#include "pointers.h"
#include "scene.h"
#include "sim_tables.h"

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

static void assert_no_copies(struct rig *f) {
    const sb_stats stats = rig_stats(f);
    assert_int_equal(stats.uploads + stats.downloads + stats.device_copies + stats.host_copies, 0);
}

/* --- one storage ---------------------------------------------------------------------- */

TEST_ON(rig, the_sides_are_one_storage_that_counts_once) {
    reopen(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    void *host = mem_pointer(mem, OVERWRITE_CPU);
    assert_true(bytes_are(host, BYTES, 0)); /* no bytes of other programs */
    memset(host, 1, BYTES);
    const struct tally before = rig_tally(f);
    assert_ptr_equal(read_gpu(mem), host);
    const struct tally since = rig_since(f, &before);
    assert_no_work(&since); /* no operation, not even a wait */
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_OWNED);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_GPU), SB_STORAGE_OWNED);
    assert_true(sb_mem_is_unique(mem));
    assert_int_equal(rig_stats(f).device_bytes, BYTES);
    assert_int_equal(rig_stats(f).pinned_bytes, 0);
    assert_int_equal(f->counting.live_buffers, 0);
    assert_no_copies(f);
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
    assert_ptr_not_equal(read_cpu(mem), read_gpu(mem));
    assert_int_equal(rig_stats(f).uploads, 1);
}

/* --- waits ---------------------------------------------------------------------------- */

/* A kernel that may fill a memory with nines. */
struct kernel {
    void *ptr;
    bool writes, ran;
};

static void run_kernel(void *user) {
    struct kernel *kernel = user;
    if (kernel->writes)
        memset(kernel->ptr, 9, BYTES);
    kernel->ran = true;
}

/* The importing blob has a separate memory, which has no record of the exporter's queued work. */
TEST_ON(rig, an_import_of_the_host_side_waits_for_the_device) {
    for (int is_written = 0; is_written < 2; is_written++) {
        struct kernel kernel = {.writes = is_written};
        sb_dl_managed_versioned *tensor;
        sb_blob *copy;
        float *values;
        reopen(f);
        const sb_stream stream = rig_stream(f);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
        (void)blob_pointer(blob, SB_DATA, CPU_DATA);
        (void)blob_pointer(blob, SB_DATA, GPU_DATA);
        assert_ok(sb_blob_to_mutable_dlpack(blob, SB_DATA, SB_SIDE_CPU, &tensor, &err));
        assert_ok(sb_blob_mutable_gpu_on(blob, SB_DATA, stream, &kernel.ptr, &err));
        assert_ok(sb_sim_launch(f->context, stream, run_kernel, &kernel, &err));
        test_end(blob);
        device_fail(f->context, SB_SIM_EVENT_RECORD, 1, SB_SIM_FAIL_NOW);
        assert_status(SB_ERR_DEVICE_FAILURE,
                      sb_blob_create_from_dlpack(f->context, tensor, &copy, &err));
        assert_ok(sb_blob_create_from_dlpack(f->context, tensor, &copy, &err)); /* a retry */
        assert_true(kernel.ran);
        assert_ok(sb_blob_overwrite_cpu_f32(copy, SB_DATA, &values, &err));
        memset(values, 1, COUNT * sizeof *values);
        assert_ok(sb_context_synchronize(f->context, &err));
        assert_true(bytes_are(values, COUNT * sizeof *values, 1));
        sb_blob_destroy(copy);
    }
}
