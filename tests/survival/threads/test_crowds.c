/* Many threads make the same calls at once. */
#include "blobs.h"
#include "files.h"
#include "nets.h"
#include "pointers.h"
#include "sim_tables.h"
#include "team.h"

#include "context/account.h"

#define CAP    ((size_t)1 << 20)
#define SMALL  ((size_t)1024)
#define BYTES  ((size_t)2048)
#define ROUNDS (test_is_quick() ? 200 : 5000)

static void touch_first(void *arg, int member) {
    sb_mem *mem = arg;
    const void *ptr = NULL;
    expect(sb_mem_cpu(mem, &ptr, NULL) == SB_OK && bytes_are(ptr, BYTES, 0));
    expect(sb_mem_gpu(mem, &ptr, NULL) == SB_OK);
}

TEST_ON(rig, concurrent_first_touch_allocates_once) {
    rig_reopen_on(f, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    for (int round = 0; round < 60; round++) {
        sb_mem *mem = test_mem(f->context, BYTES);
        struct tally before = rig_tally(f);
        team_run(8, touch_first, mem);
        struct tally t = rig_since(f, &before);
        assert_int_equal(t.host_allocs, 1);
        assert_int_equal(t.device_allocs, 1);
        assert_int_equal(t.uploads, 1);
        test_end(mem);
    }
}

struct race {
    sb_mem *mem;
    sb_stream streams[2];
    int side;
};

static void read_at_once(void *arg, int member) {
    static const enum call readers[2][4] = {{CPU_DATA, PREFETCH_CPU, ASYNC_PULL, CPU_DATA},
                                            {GPU_DATA, PREFETCH_GPU, ASYNC_PUSH, GPU_DATA_ON}};
    const struct race *race = arg;
    const struct call_arguments arguments = {.stream = race->streams[member / 4 % 2]};
    void *out = NULL;
    const enum call call = readers[race->side][member % 4];
    expect(mem_call(race->mem, call, &arguments, &out, NULL) == SB_OK);
    expect(call != CPU_DATA || bytes_are(out, BYTES, 4));
}

static void race_readers(struct rig *f, int64_t transfers) {
    struct race race = {.streams = {rig_stream(f), rig_stream(f)}};
    for (int round = 0; round < (test_is_quick() ? 12 : 120); round++) {
        race.mem = mem_filled(f->context, BYTES, 4);
        race.side = round % 2;
        if (race.side == SB_SIDE_CPU)
            (void)mem_pointer(race.mem, MUTABLE_GPU);
        rig_schedule(f, round % 3, (uint64_t)round);
        const struct tally before = rig_tally(f);
        team_run(16, read_at_once, &race);
        const struct tally since = rig_since(f, &before);
        assert_int_equal(since.uploads, race.side == SB_SIDE_GPU ? transfers : 0);
        assert_int_equal(since.downloads, race.side == SB_SIDE_CPU ? transfers : 0);
        assert_int_equal(sb_mem_head(race.mem), SB_HEAD_SYNCED);
        sb_mem_release(race.mem);
    }
    for (int i = 0; i < 2; i++)
        rig_end_stream(f, race.streams[i]);
}

TEST_ON(rig, readers_of_every_kind_cause_one_transfer) {
    race_readers(f, true);
}

TEST_ON(rig, readers_of_every_kind_of_host_coherent_memory_cause_none) {
    rig_reopen_options(f, CONTEXT_OPTIONS(.device = "sim:0", .backend = coherent_table()));
    race_readers(f, 0);
}

/* All bytes are 0, so the blobs contain 0 after any order of the calls. */
struct crossed {
    sb_blob *left[2], *right[2];
};

static void cross(void *arg, int member) {
    struct crossed *c = arg;
    sb_blob *to = member ? c->right[1] : c->left[0];
    const sb_blob *from = member ? c->left[1] : c->right[0];
    for (int i = 0; i < 300; i++) {
        expect(sb_blob_update(to, NULL) == SB_OK);
        expect(sb_blob_copy_from(to, SB_DATA, from, 0, NULL) == SB_OK);
    }
}

TEST_ON(rig, calls_that_cross_do_not_deadlock) {
    struct crossed c;
    sb_mem *x = test_mem(f->context, BYTES), *y = test_mem(f->context, BYTES);
    for (int i = 0; i < 4; i++) {
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, BYTES / sizeof(float));
        assert_ok(sb_blob_set_mem(blob, SB_DATA, i % 2 ? x : y, &err));
        assert_ok(sb_blob_set_mem(blob, SB_DIFF, i % 2 ? y : x, &err));
        (i % 2 ? c.left : c.right)[i / 2] = blob;
        (void)blob_pointer(blob, SB_DATA, MUTABLE_CPU);
        (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    }
    team_run(2, cross, &c);
    assert_true(bytes_are(mem_pointer(x, MUTABLE_CPU), BYTES, 0));
}

/* Thread 0 always requests more than the cap allows. */
static void ask(void *arg, int member) {
    struct sb__account *account = arg;
    size_t bytes = member ? SMALL : CAP;
    for (int i = 0; i < ROUNDS * 100; i++) {
        sb_status status = sb__account_take(account, bytes, "test memory", NULL);
        expect(status == (member ? SB_OK : SB_ERR_CAP_REACHED));
        if (status == SB_OK)
            sb__account_give(account, bytes);
        expect(sb__counter_read(&account->live) <= CAP);
    }
}

TEST(a_request_that_fits_is_not_refused_because_of_another) {
    struct sb__account account = {.cap = CAP};
    assert_int_equal(sb__account_take(&account, SMALL, "test memory", NULL), SB_OK);
    team_run(4, ask, &account);
    assert_true(sb__counter_read(&account.peak) <= 4 * SMALL);
    assert_int_equal(sb__counter_read(&account.live), SMALL);
}

static void compete(void *arg, int member) {
    for (int i = 0; i < ROUNDS; i++) {
        sb_mem *mem = NULL;
        const void *ptr;
        sb_status status = sb_mem_create(arg, CAP / 3, &mem, NULL);
        if (status == SB_OK)
            status = sb_mem_cpu(mem, &ptr, NULL);
        sb_mem_release(mem);
        expect(status == SB_OK || status == SB_ERR_CAP_REACHED);
    }
}

TEST_ON(rig, the_cap_bounds_the_bytes_that_are_live_at_once) {
    rig_reopen_options(f, CONTEXT_OPTIONS(.max_host_bytes = CAP));
    team_run(8, compete, f->context);
    const sb_stats stats = rig_stats(f);
    assert_true(f->counting.peak_bytes <= CAP && stats.host_peak <= CAP);
    assert_true(stats.host_peak >= CAP / 3);
}

static void *slow_alloc(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    void *block = test_aligned_alloc(alignment, bytes);
    return block && flags & SB_ALLOC_ZEROED ? memset(block, 0, bytes) : block;
}

static void slow_free(void *user, void *block, size_t bytes, size_t alignment, uint32_t flags) {
    sched_yield();
    test_aligned_free(block);
}

struct crowded_cache {
    sb_context *context;
    _Atomic int users;
};

/* Thread 2 trims. Threads 0 and 1 each use one buffer of at most 512 KiB at a time. */
static void use_or_trim(void *arg, int member) {
    struct crowded_cache *c = arg;
    uint64_t seed = (uint64_t)member;
    sb_stats stats = SB_STATS_INIT;
    while (member == 2 && atomic_load(&c->users))
        sb_context_trim(c->context);
    for (int i = 0; i < 2000 && member < 2; i++) {
        const size_t bytes = (size_t)(1 + test_random(&seed) % 8) << 16;
        sb_mem *mem = NULL;
        void *out = NULL;
        expect(sb_mem_create(c->context, bytes, &mem, NULL) == SB_OK &&
               sb_mem_overwrite_cpu(mem, &out, NULL) == SB_OK);
        volatile char *const ends[] = {out, (char *)out + bytes - 1};
        *ends[0] = *ends[1] = (char)member;
        expect(sb_context_stats(c->context, &stats, NULL) == SB_OK && stats.cached_bytes <= CAP);
        expect(*ends[0] == member && *ends[1] == member);
        sb_mem_release(mem);
    }
    if (member < 2)
        atomic_fetch_sub(&c->users, 1);
}

/* Cached buffers must not cause a refusal, nor buffers that another thread is freeing. */
TEST(a_request_that_fits_beside_the_memory_in_use_succeeds) {
    for (int device = 0; device < 2; device++) {
        struct crowded_cache c = {.users = 2};
        c.context =
            test_context(CONTEXT_OPTIONS(.device = device ? "sim:0" : "cpu",
                                         .allocator = {slow_alloc, slow_free, NULL},
                                         .max_host_bytes = CAP + CAP / 4, .max_cache_bytes = CAP));
        team_run(3, use_or_trim, &c);
    }
}

#define BLOBS 8

static const int64_t counts[] = {50000};

struct shared {
    struct wire wire;
    struct test_source source;
    sb_model *model;
};

static _Thread_local struct {
    uint64_t done, total;
    bool cancels;
} mine;

static int32_t report(void *user, uint64_t done, uint64_t total) {
    assert_true(done >= mine.done && done <= total);
    mine.done = done;
    mine.total = total;
    return mine.cancels;
}

static void shared_open(struct shared *s) {
    sb_progress progress = SB_PROGRESS_INIT;
    *s = (struct shared){.model = NULL};
    wire_number(&s->wire, 1, 5);
    for (int i = 0; i < BLOBS; i++)
        wire_write(&s->wire, "3:{[%d]%d}", (int)counts[0], i);
    const sb_source source = test_source_of(&s->source, &s->wire);
    assert_ok(sb_model_open_source(NULL, SB_FORMAT_AUTO, &source, NULL, NULL, &s->model, &err));
    progress.report = report;
    assert_ok(sb_model_set_progress(s->model, &progress, &err));
}

static void shared_close(struct shared *s) {
    sb_model_destroy(s->model);
    assert_int_equal(s->source.closes, 1);
    assert_false(s->source.outside);
}

static void check_values(sb_blob *blob, int64_t index) {
    const float *values = blob_pointer(blob, SB_DATA, CPU_DATA);
    for (int64_t i = 0; i < *counts; i++)
        assert_true(values[i] == (float)index + (float)i);
}

static void load_or_cancel(struct shared *s, int member) {
    sb_blob *blob; /* test_vector() would take a lock, which orders the threads */
    assert_ok(sb_blob_create(NULL, SB_DTYPE_F32, &blob, &err));
    for (int i = 0; i < 4 * BLOBS; i++) {
        const int64_t index = (i + member) % BLOBS;
        sb_blob_info info = SB_BLOB_INFO_INIT;
        mine.done = mine.total = 0;
        assert_ok(sb_model_blob_info(s->model, SB_NO_LAYER, index, &info, &err));
        assert_int_equal(info.count, *counts);
        mine.cancels = member == 1;
        assert_status(mine.cancels ? SB_ERR_CANCELLED : SB_OK,
                      sb_model_load_blob(s->model, SB_NO_LAYER, index, blob, &err));
        assert_int_equal(sb_blob_is_shaped(blob), !mine.cancels);
        if (!mine.cancels) {
            assert_true(mine.total > 0 && mine.done == mine.total);
            check_values(blob, index);
        }
    }
    sb_blob_destroy(blob);
}

static void save(struct shared *s) {
    for (int i = 0; i < 4; i++) {
        struct test_sink got = {.writes = 0};
        const sb_sink sink = test_sink_of(&got);
        mine.done = mine.total = 0;
        assert_ok(sb_model_save_sink(s->model, &sink, &err));
        assert_int_equal(got.got.size, s->wire.size);
        assert_memory_equal(got.got.bytes, s->wire.bytes, got.got.size);
        wire_free(&got.got);
    }
}

static void use(void *arg, int member) {
    if (member == 0)
        save(arg);
    else
        load_or_cancel(arg, member);
}

TEST_ON(shared, threads_load_save_and_cancel_through_one_source) {
    team_run(4, use, f);
}
