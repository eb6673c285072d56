/* One thread loses the device, or trims, while other threads wait. */
#include "blobs.h"
#include "pointers.h"
#include "team.h"
#include "tiny.h"

#define BYTES ((size_t)512)
#define COUNT ((int64_t)128)

struct waiting {
    struct tiny tiny;
    sb_blob *blob; /* scaling this blob loses the device */
    int waits;
};

static void lose_device(void *arg, int member) {
    const struct waiting *w = arg;
    assert_int_equal(sb_blob_scale(w->blob, SB_DATA, 2, NULL), SB_ERR_DEVICE_LOST);
}

/* Loses the device on another thread, during the first wait. */
static sb_status lose_meanwhile(void *user) {
    struct waiting *w = user;
    if (w->waits++ == 0)
        team_run(1, lose_device, w);
    return SB_OK;
}

TEST(a_wait_that_a_loss_interrupts_does_not_succeed) {
    struct waiting w = {.tiny = {.fails_scale = true}};
    sb_backend table = tiny_table(&w.tiny);
    sb_context *context = tiny_context(&table);
    w.blob = blob_of_count(context, SB_DTYPE_F32, COUNT);
    (void)blob_pointer(w.blob, SB_DATA, OVERWRITE_GPU);
    w.tiny.user = &w;
    w.tiny.on_event_wait = lose_meanwhile;
    assert_status(SB_ERR_DEVICE_LOST, sb_context_synchronize(context, &err));
    assert_int_equal(w.waits, 1); /* the library waits for only one of the two streams */
    sb_blob_destroy(w.blob);
    sb_context_release(context);
}

/* --- two quarantined contexts, one of which owns the other ------------------------------------ */

struct chained {
    sb_context *other; /* the deleter releases the last reference to this context */
    _Atomic int deleted;
};

static void end_chained(void *user, void *ptr) {
    struct chained *chained = user;
    atomic_fetch_add(&chained->deleted, 1);
    sb_context_release(chained->other);
}

/* Retires memory lent to the context while every wait fails, so the memory is quarantined. */
static void leave_waiting(sb_context *context, void *bytes, struct chained *chained) {
    sb_mem *mem;
    assert_ok(sb_mem_create(context, BYTES, &mem, &err));
    assert_ok(sb_mem_set_cpu(mem, bytes, BYTES, 0, end_chained, chained, &err));
    (void)mem_pointer(mem, MUTABLE_GPU);
    mem_fail_wait(mem);
    sb_mem_release(mem);
}

static void trim_often(void *arg, int member) {
    for (int i = 0; i < 40; i++) /* until no armed fault is left */
        sb_context_trim(NULL);
}

TEST(threads_that_trim_end_each_quarantined_loan_once) {
    static char bytes[2][BYTES];
    for (int round = 0; round < 50; round++) {
        const sb_context_options options =
            CONTEXT_OPTIONS(.device = "sim:0", .flags = SB_CONTEXT_NO_PINNED);
        sb_context *contexts[2];
        sb_stats stats = SB_STATS_INIT;
        for (int i = 0; i < 2; i++)
            assert_ok(sb_context_create(&options, &contexts[i], &err));
        struct chained first = {.other = contexts[1]}, second = {.other = NULL};
        leave_waiting(contexts[0], bytes[0], &first);
        leave_waiting(contexts[1], bytes[1], &second);
        sb_context_release(contexts[0]);
        team_run(3, trim_often, NULL);
        assert_int_equal(first.deleted, 1);
        assert_int_equal(second.deleted, 1);
        assert_ok(sb_context_stats(NULL, &stats, &err));
        assert_int_equal(stats.leaked_bytes, 0);
    }
}
