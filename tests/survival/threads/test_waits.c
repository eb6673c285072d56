/* Tests the waits of arithmetic on a device that runs its work late. Without one of these waits a
   call would return too early or miss a failure. */
#include "blobs.h"
#include "pointers.h"

#define BYTES ((size_t)512)
#define COUNT ((int64_t)128) /* floats in BYTES */

/* Creates a blob whose data are 4 and whose diff is 1. */
static sb_blob *four_and_one(struct rig *rig) {
    sb_blob *blob = test_vector(rig->context, SB_DTYPE_F32, COUNT);
    fill_values(SB_DTYPE_F32, COUNT, 4, 0, blob_pointer(blob, SB_DATA, OVERWRITE_CPU));
    fill_values(SB_DTYPE_F32, COUNT, 1, 0, blob_pointer(blob, SB_DIFF, OVERWRITE_CPU));
    return blob;
}

static sb_blob *on_device(struct rig *rig) {
    sb_blob *blob = four_and_one(rig);
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    (void)blob_pointer(blob, SB_DIFF, GPU_DATA);
    return blob;
}

static bool host_is(sb_blob *blob, sb_part part, float value) {
    const float *host = blob_pointer(blob, part, CPU_DATA);
    for (int64_t i = 0; i < COUNT; i++)
        if (host[i] != value)
            return false;
    return true;
}

/* A kernel that writes nines. */
static void write_nines(void *user) {
    const struct look *look = user;
    float *x = sb_sim_address(look->context, look->ptr, look->bytes);
    for (int64_t i = 0; x && i < COUNT; i++)
        x[i] = 9;
}

/* Creates a blob on the device without requesting a plain pointer. */
static sb_blob *only_on_device(struct rig *rig) {
    sb_blob *blob = four_and_one(rig);
    sb_stream stream = rig_stream(rig);
    assert_ok(sb_mem_prefetch_gpu(data_of(blob), stream, &err));
    assert_ok(sb_mem_prefetch_gpu(diff_of(blob), stream, &err));
    assert_ok(sb_mem_synchronize(data_of(blob), &err));
    assert_ok(sb_mem_synchronize(diff_of(blob), &err));
    rig_end_stream(rig, stream);
    return blob;
}

static void write_nines_on(struct rig *rig, sb_stream stream, struct look *look, void *out) {
    *look = (struct look){.context = rig->context, .ptr = out, .bytes = BYTES};
    assert_ok(sb_sim_launch(rig->context, stream, write_nines, look, &err));
    assert_ok(sb_context_forget_stream(rig->context, stream, &err)); /* waits for this stream */
}

/* A queued update reads the diff before the next writer changes the diff. The writer uses the
   library's stream, the caller's stream or a plain pointer, or writes after a host access. */
TEST_ON(rig, an_update_reads_the_diff_before_its_next_writer) {
    enum { OWN, NAMED, HOST_BETWEEN, PLAIN, WAYS };
    for (int way = 0; way < WAYS; way++) {
        static const enum call writers[] = {MUTABLE_GPU_ON, MUTABLE_GPU_ON, OVERWRITE_GPU_ON,
                                            MUTABLE_GPU};
        struct look look;
        rig_reopen_on(f, "sim:0", 0);
        sb_blob *blob = way == PLAIN ? on_device(f) : only_on_device(f);
        sb_stream stream = rig_stream(f), other = rig_stream(f);
        if (way == PLAIN)
            (void)blob_pointer(blob, SB_DIFF, MUTABLE_GPU);
        rig_schedule(f, SB_SIM_LAZY, 0);
        assert_ok(way == NAMED ? sb_blob_update_on(blob, other, &err) : sb_blob_update(blob, &err));
        if (way == HOST_BETWEEN)
            (void)blob_pointer(blob, SB_DIFF, MUTABLE_CPU);
        void *out = blob_pointer_on(blob, SB_DIFF, writers[way], stream);
        if (way == PLAIN)
            device_fill(f->context, out, BYTES, 9);
        else
            write_nines_on(f, stream, &look, out);
        assert_true(host_is(blob, SB_DATA, 3));
        rig_end_stream(f, stream);
        rig_end_stream(f, other);
    }
}

/* --- failures -------------------------------------------------------------------------------- */

/* Arithmetic writes in place, so its failure loses the device. A failed copy or sum does not lose
   the device, provided that the library knows that no arithmetic has failed. */
TEST_ON(rig, a_failure_outside_arithmetic_does_not_lose_the_device) {
    for (int named = 0; named < 2; named++) {
        double sum = -1;
        const void *in;
        rig_reopen_on(f, "sim:0", 0);
        sb_blob *blob = on_device(f);
        sb_stream stream = rig_stream(f);
        assert_ok(named ? sb_blob_scale_on(blob, SB_DATA, 2, stream, &err)
                        : sb_blob_scale(blob, SB_DATA, 2, &err));
        if (!named)
            assert_ok(sb_context_synchronize(f->context, &err));
        device_fail(f->context, SB_SIM_DOWNLOAD, 1, SB_SIM_FAIL_LATER);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_cpu(blob, SB_DATA, &in, &err));
        device_fail(f->context, SB_SIM_SUMSQ, 1, SB_SIM_FAIL_NOW);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_sumsq(blob, SB_DATA, &sum, &err));
        assert_true(sum == -1);
        assert_int_equal(sb_context_device_status(f->context), SB_OK);
        rig_end_stream(f, stream);
    }
}
