/* Many threads make the same calls at once. An object that is created at its first use is created
   once. A cap is never exceeded, and a request that fits is not refused because of another request.
   All readers together cause one transfer, and calls on two memories do not wait for each other. */
#include "blobs.h"
#include "pointers.h"
#include "sim_tables.h"
#include "team.h"

#include "context/account.h"

#define CAP    ((size_t)1 << 20)
#define SMALL  ((size_t)1024)
#define BYTES  ((size_t)2048)
#define ROUNDS (test_is_quick() ? 200 : 5000)

/* --- first uses ------------------------------------------------------------------------------ */

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

/* The side of a memory to read, and streams for its readers. */
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

/* --- two memories at once -------------------------------------------------------------------- */

/* One memory is the left blobs' data and the right blobs' diff; the other memory is the left blobs'
   diff and the right blobs' data. All bytes are 0, so that every order of the work gives 0. */
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

/* No call holds the locks of both memories, so the calls cannot deadlock. */
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

/* --- a cap ----------------------------------------------------------------------------------- */

/* Thread 0 repeatedly requests too much. The other threads' requests together are far below the
   cap. */
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

/* Every thread requests a third of the cap. */
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

/* --- the host cache -------------------------------------------------------------------------- */

static void churn(void *arg, int member) {
    static const size_t large[] = {64 << 10, 128 << 10, 256 << 10};
    sb_stats stats = SB_STATS_INIT;
    for (int i = 0; i < 100; i++) {
        size_t bytes = large[(i + member) % 3];
        sb_mem *mem = mem_filled(arg, bytes, member + 1);
        const void *ptr;
        expect(sb_mem_cpu(mem, &ptr, NULL) == SB_OK && bytes_are(ptr, bytes, member + 1));
        expect(sb_context_stats(arg, &stats, NULL) == SB_OK && stats.cached_bytes <= 600 << 10);
        sb_mem_release(mem);
        if (i % 16 == member)
            sb_context_trim(arg);
    }
}

TEST_ON(rig, many_threads_share_one_bounded_cache) {
    for (int device = 0; device < 2; device++) {
        rig_reopen_options(
            f, CONTEXT_OPTIONS(.device = device ? "sim:0" : "cpu", .max_cache_bytes = 600 << 10));
        team_run(8, churn, f->context);
    }
}
