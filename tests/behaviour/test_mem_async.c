/* Queued transfers: which calls wait for them and which do not. The fuzzer for memories checks the
   order of copies, kernels and releases; faults.mem_faults what a failed copy leaves. */
#include "rig.h"

#include <string.h>

#define BYTES ((size_t)512)
#define OLD   0x11

/* --- kernels ---------------------------------------------------------------- */

struct job {
    sb_context *context;
    const void *ptr;
    size_t bytes;
    int before, after; /* what it must find, what it writes; -1: neither */
    bool ran, right;
};

static void kernel(void *user) {
    struct job *job = user;
    void *p = sb_sim_address(job->context, job->ptr, job->bytes);
    job->ran = true;
    job->right = p && (job->before < 0 || bytes_are(p, job->bytes, job->before));
    if (p && job->after >= 0)
        memset(p, job->after, job->bytes);
}

static void launch(struct job *job, sb_context *context, sb_stream stream, const void *ptr,
                   int before, int after) {
    *job = (struct job){context, ptr, BYTES, before, after, false, false};
    assert_ok(sb_sim_launch(context, stream, kernel, job, &err));
}

/* --- a memory with a copy pending ---------------------------------------------- */

struct pending {
    struct rig rig;
    sb_mem *mem;
    sb_stream stream;
    int32_t source; /* the side copied from */
    const void *host, *device;
    struct lent lent; /* the host side */
};

/* OLD bytes on `source`, and nothing of the copy to the other side has run. */
static void pending_open(struct pending *p, int32_t source) {
    void *out;
    *p = (struct pending){.source = source};
    rig_open(&p->rig);
    p->stream = rig_stream(&p->rig);
    assert_ok(sb_mem_create(p->rig.context, BYTES, &p->mem, &err));
    p->lent = lend_host(BYTES, OLD);
    assert_ok(sb_mem_set_cpu(p->mem, p->lent.ptr, BYTES, 0, lent_deleter, &p->lent, &err));
    p->host = p->lent.ptr;
    assert_ok(sb_mem_gpu(p->mem, &p->device, &err));
    if (source == SB_SIDE_CPU) {
        assert_ok(sb_mem_mutable_cpu(p->mem, &out, &err));
        device_fill(p->rig.context, (void *)(uintptr_t)p->device, BYTES, 0);
    } else {
        assert_ok(sb_mem_mutable_gpu(p->mem, &out, &err));
        memset(p->lent.ptr, 0, BYTES);
    }
}

static sb_status queue_copy(struct pending *p, sb_error *err) {
    return p->source == SB_SIDE_CPU ? sb_mem_async_gpu_push(p->mem, p->stream, err)
                                    : sb_mem_async_cpu_pull(p->mem, p->stream, err);
}

static bool copy_has_run(struct pending *p) {
    return p->source == SB_SIDE_CPU ? device_bytes_are(p->rig.context, p->device, BYTES, OLD)
                                    : bytes_are(p->host, BYTES, OLD);
}

static void pending_start(struct pending *p) {
    rig_schedule(&p->rig, SB_SIM_LAZY, 0);
    struct tally before = rig_tally(&p->rig);
    assert_ok(queue_copy(p, &err));
    struct tally t = rig_since(&p->rig, &before);
    assert_int_equal(t.uploads + t.downloads, 1);
    assert_int_equal(t.calls[SB_SIM_EVENT_WAIT] + t.calls[SB_SIM_STREAM_SYNCHRONIZE], 0);
    assert_int_equal(sb_mem_head(p->mem), SB_HEAD_SYNCED);
    assert_false(copy_has_run(p));
}

static void pending_close(struct pending *p) {
    if (p->mem)
        sb_mem_release(p->mem);
    assert_int_equal(p->lent.deleted, 1);
    if (p->lent.ptr)
        lent_free(&p->lent);
    if (p->stream)
        rig_end_stream(&p->rig, p->stream);
    rig_close(&p->rig);
}

TEST(whoever_needs_only_the_source_does_not_wait) {
    for (int32_t source = 0; source < 2; source++) {
        struct pending p;
        const void *out;
        pending_open(&p, source);
        pending_start(&p);
        if (source == SB_SIDE_CPU) {
            struct tally before = rig_tally(&p.rig);
            assert_ok(sb_mem_cpu(p.mem, &out, &err));
            struct tally t = rig_since(&p.rig, &before);
            for (int op = 0; op < SB_SIM_OP_COUNT; op++)
                assert_int_equal(t.calls[op], 0);
            assert_true(bytes_are(out, BYTES, OLD));
        } else {
            assert_ok(sb_mem_gpu_on(p.mem, p.stream, &out, &err));
        }
        assert_false(copy_has_run(&p));
        pending_close(&p);
    }
}

/* And for nothing that was queued behind it. */
TEST(synchronize_waits_for_the_copy) {
    for (int32_t source = 0; source < 2; source++) {
        struct pending p;
        struct job next;
        pending_open(&p, source);
        pending_start(&p);
        launch(&next, p.rig.context, p.stream, p.device, OLD, -1);
        assert_ok(sb_mem_synchronize(p.mem, &err));
        assert_true(copy_has_run(&p));
        assert_false(next.ran);
        assert_int_equal(sb_mem_head(p.mem), SB_HEAD_SYNCED);
        pending_close(&p);
    }
}

/* Storage that a failed call left behind belongs to the stream that it was allocated on. */
TEST_ON(rig, spare_storage_is_zeroed_after_its_allocation) {
    const void *out;
    sb_stream first = rig_stream(f), second = rig_stream(f);
    rig_schedule(f, SB_SIM_LAZY, 0);
    sb_mem *mem = test_mem(f->context, BYTES);
    device_fail(f->context, SB_SIM_ZERO, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_gpu_on(mem, first, &out, &err));
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_GPU), SB_STORAGE_OWNED);
    device_fail(f->context, SB_SIM_STREAM_WAIT, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_gpu_on(mem, second, &out, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
    assert_ok(sb_mem_gpu_on(mem, second, &out, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_true(device_bytes_are(f->context, out, BYTES, 0));
    test_end(mem);
    rig_end_stream(f, first);
    rig_end_stream(f, second);
}

/* --- streams -------------------------------------------------------------------------- */

TEST(a_named_stream_waits_instead_of_the_host) {
    struct pending p;
    struct job job;
    const void *out;
    pending_open(&p, SB_SIDE_CPU);
    sb_stream other = rig_stream(&p.rig);
    pending_start(&p);
    assert_ok(sb_mem_gpu_on(p.mem, other, &out, &err));
    assert_ptr_equal(out, p.device);
    assert_false(copy_has_run(&p)); /* the host did not wait */
    launch(&job, p.rig.context, other, out, OLD, -1);
    assert_ok(sb_context_forget_stream(p.rig.context, other, &err));
    assert_true(job.ran && job.right);
    assert_ok(sb_sim_stream_destroy(p.rig.context, other, &err));
    pending_close(&p);
}

/* More than there are bits in a memory's set of streams. */
TEST_ON(rig, a_memory_waits_for_any_number_of_streams) {
    enum { MANY = 100 };
    const void *in = NULL;
    sb_stream streams[MANY];
    struct job jobs[MANY];
    rig_schedule(f, SB_SIM_LAZY, 0);
    sb_mem *mem = test_mem(f->context, BYTES);
    sb_mem *other = test_mem(f->context, BYTES);
    for (int i = 0; i < MANY; i++) {
        streams[i] = rig_stream(f);
        assert_ok(sb_mem_gpu_on(i % 2 ? mem : other, streams[i], &in, &err));
        launch(&jobs[i], f->context, streams[i], in, 0, -1);
    }
    test_end(mem);
    test_end(other);
    assert_ok(sb_context_synchronize(f->context, &err));
    for (int i = 0; i < MANY; i++)
        if (!jobs[i].ran || !jobs[i].right)
            fail_with("the memory went before the work on stream %d", i);
    for (int i = 0; i < MANY; i++)
        rig_end_stream(f, streams[i]);
}

/* Forgotten ones leave room: their slots are taken again. */
TEST_ON(rig, forgotten_streams_cost_nothing) {
    const void *in;
    uint64_t first = 0;
    sb_mem *mem = test_mem(f->context, BYTES);
    for (int i = 0; i < 100; i++) {
        sb_stream stream = rig_stream(f);
        assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
        rig_end_stream(f, stream);
        if (i == 0)
            first = rig_stats(f).host_bytes;
    }
    assert_int_equal(rig_stats(f).host_bytes, first);
}

TEST(prefetch_starts_what_the_read_would_do) {
    struct pending p;
    for (int32_t source = 0; source < 2; source++) {
        pending_open(&p, source);
        rig_schedule(&p.rig, SB_SIM_LAZY, 0);
        struct tally before = rig_tally(&p.rig);
        assert_ok(source == SB_SIDE_CPU ? sb_mem_prefetch_gpu(p.mem, p.stream, &err)
                                        : sb_mem_prefetch_cpu(p.mem, p.stream, &err));
        assert_int_equal(sb_mem_head(p.mem), SB_HEAD_SYNCED);
        assert_false(copy_has_run(&p));
        const void *out;
        if (source == SB_SIDE_CPU)
            assert_ok(sb_mem_gpu(p.mem, &out, &err));
        else
            assert_ok(sb_mem_cpu(p.mem, &out, &err));
        assert_true(copy_has_run(&p));
        struct tally t = rig_since(&p.rig, &before);
        assert_int_equal(t.uploads + t.downloads, 1);
        pending_close(&p);
    }
}
