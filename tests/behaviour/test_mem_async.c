/* Queued transfers and streams: on a device that runs its work late or in a
   random order, copies read their source late and their target holds rubbish
   until then, so a missing wait shows as wrong bytes. */
#include "mem_calls.h"
#include "rig.h"

#include <string.h>

#define BYTES ((size_t)512)
#define OLD   0x11
#define NEW   0x22

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

TEST(a_queued_copy_reports_synced_and_moves_the_bytes) {
    for (int32_t source = 0; source < 2; source++)
        for (int32_t kind = SB_SIM_EAGER; kind <= SB_SIM_RANDOM; kind++) {
            struct pending p;
            const void *out;
            pending_open(&p, source);
            rig_schedule(&p.rig, kind, 7);
            assert_ok(queue_copy(&p, &err));
            assert_int_equal(sb_mem_head(p.mem), SB_HEAD_SYNCED);
            assert_ok(sb_mem_cpu(p.mem, &out, &err));
            assert_true(bytes_are(out, BYTES, OLD));
            assert_ok(sb_mem_gpu(p.mem, &out, &err));
            assert_true(device_bytes_are(p.rig.context, out, BYTES, OLD));
            assert_int_equal(sb_mem_head(p.mem), SB_HEAD_SYNCED);
            assert_ok(queue_copy(&p, &err)); /* SYNCED: nothing to do */
            pending_close(&p);
        }
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

/* The copy reads its source late: a host write must not overtake it. */
TEST(a_host_write_does_not_overtake_a_push) {
    for (int overwrite = 0; overwrite < 2; overwrite++) {
        struct pending p;
        void *out;
        pending_open(&p, SB_SIDE_CPU);
        pending_start(&p);
        assert_ok(overwrite ? sb_mem_overwrite_cpu(p.mem, &out, &err)
                            : sb_mem_mutable_cpu(p.mem, &out, &err));
        memset(out, NEW, BYTES);
        assert_ok(sb_context_synchronize(p.rig.context, &err));
        assert_ok(sb_context_forget_stream(p.rig.context, p.stream, &err));
        assert_true(device_bytes_are(p.rig.context, p.device, BYTES, OLD));
        assert_int_equal(sb_mem_head(p.mem), SB_HEAD_AT_CPU);
        const void *in;
        assert_ok(sb_mem_gpu(p.mem, &in, &err));
        assert_true(device_bytes_are(p.rig.context, in, BYTES, NEW));
        pending_close(&p);
    }
}

TEST(a_device_write_does_not_overtake_a_pull) {
    for (int form = 0; form < 4; form++) {
        struct pending p;
        struct job job;
        void *out;
        sb_stream other;
        pending_open(&p, SB_SIDE_GPU);
        other = rig_stream(&p.rig);
        pending_start(&p);
        if (form == 0)
            assert_ok(sb_mem_mutable_gpu(p.mem, &out, &err));
        else if (form == 1)
            assert_ok(sb_mem_mutable_gpu_on(p.mem, other, &out, &err));
        else if (form == 2)
            assert_ok(sb_mem_overwrite_gpu(p.mem, &out, &err));
        else
            assert_ok(sb_mem_overwrite_gpu_on(p.mem, other, &out, &err));
        assert_int_equal(sb_mem_head(p.mem), SB_HEAD_AT_GPU);
        /* plain calls: ready for any stream */
        launch(&job, p.rig.context, form % 2 ? other : NULL, out, form < 2 ? OLD : -1, NEW);
        assert_ok(sb_context_forget_stream(p.rig.context, other, &err));
        assert_ok(sb_context_synchronize(p.rig.context, &err));
        assert_ok(sb_context_forget_stream(p.rig.context, p.stream, &err));
        assert_true(bytes_are(p.host, BYTES, OLD)); /* the pull ended before the kernel wrote */
        const void *in;
        assert_ok(sb_mem_cpu(p.mem, &in, &err));
        assert_true(job.ran && job.right);
        assert_true(bytes_are(in, BYTES, NEW));
        sb_mem_release(p.mem);
        p.mem = NULL;
        rig_end_stream(&p.rig, other);
        pending_close(&p);
    }
}

/* --- giving storage up while a copy is pending ------------------------------------ */

struct witness {
    struct pending *pending;
    bool copied;
    int runs;
};

static void witness_deleter(void *user, void *ptr) {
    struct witness *w = user;
    (void)ptr;
    w->runs++;
    w->copied = copy_has_run(w->pending);
}

/* Lends the host side again with a deleter that looks whether the copy has run. */
static void lend_with_witness(struct pending *p, struct witness *w) {
    void *out;
    assert_ok(sb_mem_set_cpu(p->mem, p->lent.ptr, BYTES, 0, witness_deleter, w, &err));
    p->lent.deleted = 1;
    memset(p->lent.ptr, OLD, BYTES);
    if (p->source == SB_SIDE_GPU) {
        assert_ok(sb_mem_mutable_gpu(p->mem, &out, &err));
        assert_ptr_equal(out, p->device);
        memset(p->lent.ptr, 0, BYTES);
    } else {
        device_fill(p->rig.context, (void *)(uintptr_t)p->device, BYTES, 0);
    }
}

TEST(storage_is_given_up_after_the_copy) {
    enum { EVICTS, SETS, RELEASES, WAYS };
    for (int32_t source = 0; source < 2; source++)
        for (int way = 0; way < WAYS; way++) {
            struct pending p;
            struct witness w = {&p, false, 0};
            struct lent next = lend_host(BYTES, NEW);
            struct lent device = {0};
            pending_open(&p, source);
            if (way == RELEASES) { /* the device side outlives the memory, so that one can look */
                device = lend_device(p.rig.context, BYTES, OLD);
                assert_ok(sb_mem_set_gpu(p.mem, device.ptr, BYTES, 0, lent_deleter, &device, &err));
                p.device = device.ptr;
            }
            lend_with_witness(&p, &w);
            pending_start(&p);
            if (way == EVICTS)
                assert_ok(sb_mem_evict_cpu(p.mem, &err));
            else if (way == SETS)
                assert_ok(sb_mem_set_cpu(p.mem, next.ptr, BYTES, 0, lent_deleter, &next, &err));
            else
                sb_mem_release(p.mem);
            if (way == RELEASES)
                p.mem = NULL;
            assert_int_equal(w.runs, 1);
            assert_true(w.copied);
            if (way == EVICTS)
                assert_int_equal(sb_mem_head(p.mem), SB_HEAD_AT_GPU);
            if (p.mem)
                sb_mem_release(p.mem);
            p.mem = NULL;
            assert_int_equal(w.runs, 1);
            assert_int_equal(next.deleted, way == SETS);
            lent_free(&next);
            if (device.ptr)
                lent_free(&device);
            pending_close(&p);
        }
}

TEST(evicting_the_device_side_waits_for_its_push) {
    struct pending p;
    const void *out;
    pending_open(&p, SB_SIDE_CPU);
    struct lent device = lend_device(p.rig.context, BYTES, 0);
    void *ptr;
    assert_ok(sb_mem_set_gpu(p.mem, device.ptr, BYTES, 0, lent_deleter, &device, &err));
    assert_ok(sb_mem_mutable_cpu(p.mem, &ptr, &err));
    memset(ptr, OLD, BYTES);
    p.device = device.ptr;
    pending_start(&p);
    assert_ok(sb_mem_evict_gpu(p.mem, &err));
    assert_int_equal(device.deleted, 1);
    assert_true(copy_has_run(&p));
    assert_int_equal(sb_mem_head(p.mem), SB_HEAD_AT_CPU);
    assert_ok(sb_mem_cpu(p.mem, &out, &err));
    assert_true(bytes_are(out, BYTES, OLD));
    lent_free(&device);
    pending_close(&p);
}

/* --- a copy that fails late ----------------------------------------------------------- */

struct finding {
    struct pending p;
    struct lent host, device;
};

static sb_status find(struct finding *f, enum call finder, sb_error *err) {
    struct lent *lent = finder == SET_CPU ? &f->host : &f->device;
    const struct call_arguments arguments = {NULL, lent->ptr, BYTES, 0, lent_deleter, lent};
    void *out;
    return mem_call(f->p.mem, finder, &arguments, &out, err);
}

/* MUST: has to wait for the copy and so finds the failure. NEED_NOT: reads the source alone. MAY:
   could be ordered on the device without a look. */
enum need { MUST, NEED_NOT, MAY };

static enum need need_of(int32_t source, enum call finder) {
    const struct call_kind *kind = &call_kinds[finder];
    if (kind->purpose == READ && kind->side == source)
        return NEED_NOT;
    bool writes = kind->purpose == OVERWRITE || (kind->purpose == WRITE && source == SB_SIDE_GPU);
    return kind->purpose == WIPE || (kind->side == SB_SIDE_GPU && writes) ? MAY : MUST;
}

/* The call that evicts the only current side stays an error. */
static sb_status second_status(int32_t source, enum call finder) {
    bool last = finder == (source == SB_SIDE_CPU ? EVICT_CPU : EVICT_GPU);
    return last ? SB_ERR_INVALID_ARGUMENT : SB_OK;
}

static void find_failure(int32_t source, enum call finder, int32_t kind) {
    struct finding f;
    struct pending *p = &f.p;
    int32_t home = source == SB_SIDE_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU;
    pending_open(p, source);
    f.host = lend_host(BYTES, NEW);
    f.device = lend_device(p->rig.context, BYTES, NEW);
    rig_schedule(&p->rig, kind, 3);
    device_fail(p->rig.context, source == SB_SIDE_CPU ? SB_SIM_UPLOAD : SB_SIM_DOWNLOAD, 1,
                SB_SIM_FAIL_LATER);
    assert_ok(queue_copy(p, &err));
    assert_int_equal(sb_mem_head(p->mem), SB_HEAD_SYNCED);

    sb_status first = find(&f, finder, NULL);
    enum need need = need_of(source, finder);
    bool found = first == SB_ERR_DEVICE_FAILURE;
    if (need == MUST ? !found : need == NEED_NOT ? first != SB_OK : !found && first != SB_OK)
        fail_with("source %d, %s, schedule %d: %s", source, call_kinds[finder].name, kind,
                  sb_status_name(first));
    if (found) {
        assert_int_equal(sb_mem_head(p->mem), home);
        assert_int_equal(f.host.deleted + f.device.deleted, 0);
        assert_int_equal(sb_context_device_status(p->rig.context), SB_OK);
        /* told once, and the source's bytes are intact */
        assert_ok(sb_mem_synchronize(p->mem, &err));
        assert_true(source == SB_SIDE_CPU
                        ? bytes_are(p->host, BYTES, OLD)
                        : device_bytes_are(p->rig.context, p->device, BYTES, OLD));
        assert_status(second_status(source, finder), find(&f, finder, &err));
    }
    sb_mem_release(p->mem);
    p->mem = NULL;
    assert_int_equal(p->lent.deleted, 1);
    assert_int_equal(f.host.deleted, finder == SET_CPU);
    assert_int_equal(f.device.deleted, finder == SET_GPU);
    lent_free(&f.host);
    lent_free(&f.device);
    ignore(sb_context_forget_stream(p->rig.context, p->stream, NULL));
    pending_close(p);
}

TEST(a_failed_copy_goes_back_to_its_source_and_is_told_once) {
    for (int32_t source = 0; source < 2; source++)
        for (enum call finder = 0; finder < CALLS; finder++)
            for (int32_t kind = SB_SIM_EAGER; kind <= SB_SIM_RANDOM; kind++)
                if (!call_kinds[finder].queued)
                    find_failure(source, finder, kind);
}

/* A wait that fails is no copy that failed: the second answer counts. The copy has ended before its
   source goes. */
TEST(a_wait_that_fails_does_not_let_the_copy_loose) {
    for (int32_t source = 0; source < 2; source++) {
        struct pending p;
        struct witness w = {&p, false, 0};
        struct lent next = lend_host(BYTES, NEW);
        pending_open(&p, source);
        lend_with_witness(&p, &w);
        pending_start(&p);
        device_fail(p.rig.context, SB_SIM_EVENT_WAIT, 1, SB_SIM_FAIL_NOW);
        assert_ok(sb_mem_synchronize(p.mem, &err));
        assert_true(copy_has_run(&p));
        assert_int_equal(sb_mem_head(p.mem), SB_HEAD_SYNCED);
        assert_ok(sb_mem_set_cpu(p.mem, next.ptr, BYTES, 0, lent_deleter, &next, &err));
        assert_int_equal(w.runs, 1);
        assert_true(w.copied);
        sb_mem_release(p.mem);
        p.mem = NULL;
        lent_free(&next);
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

/* A write in place that fails makes the library give the device up, though the device may well go
   on: by the time that lent memory is given back it must have ended. */
TEST(giving_the_device_up_ends_its_work) {
    struct pending p;
    sb_mem *spoiled;
    struct job job;
    pending_open(&p, SB_SIDE_GPU);
    struct lent device = lend_device(p.rig.context, BYTES, OLD);
    assert_ok(sb_mem_create(p.rig.context, BYTES, &spoiled, &err));
    assert_ok(sb_mem_set_gpu(spoiled, device.ptr, BYTES, 0, lent_deleter, &device, &err));
    pending_start(&p);
    device_fail(p.rig.context, SB_SIM_STREAM_SYNCHRONIZE, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_LOST, sb_mem_clear(spoiled, &err));
    sb_mem_release(spoiled);
    sb_mem_release(p.mem);
    assert_int_equal(device.deleted, 1);
    assert_int_equal(p.lent.deleted, 1);
    device_fill(p.rig.context, device.ptr, BYTES, NEW);
    memset(p.lent.ptr, NEW, BYTES);
    rig_schedule(&p.rig, SB_SIM_EAGER, 0); /* what is still queued runs before what comes now */
    launch(&job, p.rig.context, p.stream, device.ptr, NEW, -1);
    launch(&job, p.rig.context, NULL, device.ptr, NEW, -1);
    assert_true(lent_holds(&device, NEW));
    assert_true(lent_holds(&p.lent, NEW));
    lent_free(&device);
    lent_free(&p.lent);
    assert_ok(sb_sim_stream_destroy(p.rig.context, p.stream, &err));
    rig_close(&p.rig);
}

/* Read-only device bytes move to new storage, which is ready for the named stream. */
TEST(read_only_bytes_are_moved_for_a_named_stream) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rig rig;
        struct job job;
        sb_mem *mem;
        void *out;
        const void *in;
        rig_open(&rig);
        sb_stream stream = rig_stream(&rig);
        struct lent lent = lend_device(rig.context, BYTES, OLD);
        assert_ok(sb_mem_create(rig.context, BYTES, &mem, &err));
        assert_ok(sb_mem_set_gpu(mem, lent.ptr, BYTES, SB_READ_ONLY, lent_deleter, &lent, &err));
        rig_schedule(&rig, seed ? SB_SIM_RANDOM : SB_SIM_LAZY, seed);
        assert_ok(sb_mem_mutable_gpu_on(mem, stream, &out, &err));
        launch(&job, rig.context, stream, out, OLD, NEW);
        assert_ok(sb_mem_cpu(mem, &in, &err));
        assert_true(job.ran && job.right && bytes_are(in, BYTES, NEW));
        assert_int_equal(lent.deleted, 1);
        assert_true(lent_holds(&lent, OLD));
        sb_mem_release(mem);
        rig_end_stream(&rig, stream);
        lent_free(&lent);
        rig_close(&rig);
    }
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

/* What is queued on a recorded stream runs before the bytes it uses go. */
TEST(later_work_is_ordered_after_recorded_streams) {
    enum { DOWNLOAD, PULL, UPLOAD, WRITES, EVICTS, SETS, RELEASES, REUSES, WAYS };
    for (int way = 0; way < WAYS; way++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct rig rig;
            struct job reader, writer;
            sb_mem *mem, *second = NULL;
            void *out;
            const void *in;
            rig_open(&rig);
            sb_stream one = rig_stream(&rig), two = rig_stream(&rig);
            mem = test_mem(rig.context, BYTES);
            assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
            memset(out, OLD, BYTES);
            rig_schedule(&rig, seed ? SB_SIM_RANDOM : SB_SIM_LAZY, seed);
            assert_ok(sb_mem_mutable_gpu_on(mem, one, &out, &err));
            launch(&writer, rig.context, one, out, OLD, NEW);
            assert_ok(sb_mem_gpu_on(mem, two, &in, &err));
            launch(&reader, rig.context, two, in, NEW, -1);
            struct lent next = lend_device(rig.context, BYTES, 0x44);
            switch (way) {
            case DOWNLOAD:
                assert_ok(sb_mem_cpu(mem, &in, &err));
                assert_true(bytes_are(in, BYTES, NEW));
                break;
            case PULL:
                assert_ok(sb_mem_async_cpu_pull(mem, two, &err));
                assert_ok(sb_mem_cpu(mem, &in, &err));
                assert_true(bytes_are(in, BYTES, NEW));
                break;
            case UPLOAD:
                assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
                memset(out, 0x55, BYTES);
                assert_ok(sb_mem_async_gpu_push(mem, NULL, &err));
                break;
            case WRITES: /* a plain pointer, whose bytes nobody uses any more */
                assert_ok(sb_mem_overwrite_gpu(mem, &out, &err));
                device_fill(rig.context, out, BYTES, 0x66);
                break;
            case EVICTS:
                assert_ok(sb_mem_async_cpu_pull(mem, one, &err));
                assert_ok(sb_mem_evict_gpu(mem, &err));
                break;
            case SETS:
                assert_ok(sb_mem_set_gpu(mem, next.ptr, BYTES, 0, NULL, NULL, &err));
                break;
            case RELEASES:
                test_end(mem);
                mem = NULL;
                break;
            default: /* freed device memory may come back at once */
                test_end(mem);
                mem = NULL;
                second = test_mem(rig.context, BYTES);
                assert_ok(sb_mem_gpu(second, &in, &err));
                break;
            }
            assert_ok(sb_context_forget_stream(rig.context, one, &err));
            assert_ok(sb_context_forget_stream(rig.context, two, &err));
            assert_ok(sb_context_synchronize(rig.context, &err));
            assert_ok(sb_sim_stream_destroy(rig.context, one, &err));
            assert_ok(sb_sim_stream_destroy(rig.context, two, &err));
            if (!writer.ran || !writer.right || !reader.ran || !reader.right)
                fail_with("way %d, seed %d: writer %d %d, reader %d %d", way, (int)seed, writer.ran,
                          writer.right, reader.ran, reader.right);
            rig_close(&rig);
        }
}

/* Code on the legacy default stream is ordered as in Caffe, unnamed. */
TEST(plain_calls_are_ordered_with_the_default_stream) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rig rig;
        struct job jobs[4];
        void *out;
        const void *in;
        rig_open(&rig);
        sb_stream named = rig_stream(&rig);
        rig_schedule(&rig, seed ? SB_SIM_RANDOM : SB_SIM_LAZY, seed);
        sb_mem *mem = test_mem(rig.context, BYTES);
        assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
        launch(&jobs[0], rig.context, NULL, out, 0, OLD);
        assert_ok(sb_mem_gpu_on(mem, named, &in, &err)); /* after what is queued unnamed */
        launch(&jobs[3], rig.context, named, in, OLD, -1);
        assert_ok(sb_mem_cpu(mem, &in, &err));
        assert_true(bytes_are(in, BYTES, OLD));
        assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
        memset(out, NEW, BYTES);
        assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
        launch(&jobs[1], rig.context, NULL, out, NEW, OLD);
        assert_ok(sb_mem_clear(mem, &err));
        assert_ok(sb_mem_gpu(mem, &in, &err));
        launch(&jobs[2], rig.context, NULL, in, 0, -1);
        test_end(mem);
        assert_ok(sb_context_synchronize(rig.context, &err));
        rig_end_stream(&rig, named);
        for (int i = 0; i < 4; i++)
            assert_true(jobs[i].ran && jobs[i].right);
        rig_close(&rig);
    }
}

TEST_ON(rig, a_forgotten_stream_may_be_destroyed) {
    struct job job;
    void *out;
    const void *in;
    rig_schedule(f, SB_SIM_LAZY, 0);
    sb_stream stream = rig_stream(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_mutable_gpu_on(mem, stream, &out, &err));
    launch(&job, f->context, stream, out, 0, NEW);
    assert_ok(sb_context_forget_stream(f->context, stream, &err));
    assert_true(job.ran && job.right); /* forgetting waits */
    assert_ok(sb_sim_stream_destroy(f->context, stream, &err));
    assert_ok(sb_mem_cpu(mem, &in, &err));
    assert_true(bytes_are(in, BYTES, NEW));
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    assert_ok(sb_mem_evict_cpu(mem, &err));
    assert_ok(sb_mem_clear(mem, &err));
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
