/* The cap of a context under many threads: never exceeded, and a request that
   fits is never refused because of another that does not. */
#include "rig.h"
#include "team.h"

#include "context/context.h"

#define CAP    ((size_t)1 << 20)
#define SMALL  ((size_t)1024)
#define ROUNDS (test_is_quick() ? 200 : 5000)

struct crowd {
    sb_context *context;
    struct sb__account account;
    _Atomic int refused, over;
};

/* Member 0 asks for too much, over and over; the others for little, all of them together far less
   than the cap. */
static void ask(void *arg, int member) {
    struct crowd *crowd = arg;
    size_t bytes = member ? SMALL : CAP;
    for (int i = 0; i < ROUNDS * 100; i++) {
        sb_status status = sb__account_take(&crowd->account, bytes, "test memory", NULL);
        if (status != (member ? SB_OK : SB_ERR_CAP_REACHED))
            atomic_fetch_add(&crowd->refused, 1);
        if (status == SB_OK)
            sb__account_give(&crowd->account, bytes);
        if (sb__counter_read(&crowd->account.live) > CAP)
            atomic_fetch_add(&crowd->over, 1);
    }
}

TEST(a_request_that_fits_is_not_refused_for_another_s_sake) {
    struct crowd crowd = {.account = {.cap = CAP}};
    assert_int_equal(sb__account_take(&crowd.account, SMALL, "test memory", NULL), SB_OK);
    team_run(4, ask, &crowd);
    assert_int_equal(atomic_load(&crowd.refused), 0);
    assert_int_equal(atomic_load(&crowd.over), 0);
    assert_true(sb__counter_read(&crowd.account.peak) <= 4 * SMALL);
    assert_int_equal(sb__counter_read(&crowd.account.live), SMALL);
}

static sb_status touch(sb_context *context, size_t bytes) {
    sb_mem *mem = NULL;
    const void *ptr;
    sb_status status = sb_mem_create(context, bytes, &mem, NULL);
    if (status == SB_OK)
        status = sb_mem_cpu(mem, &ptr, NULL);
    sb_mem_release(mem);
    return status;
}

/* Everybody wants a third; the peak is what was live at once, and that is within the cap. */
static void compete(void *arg, int member) {
    struct crowd *crowd = arg;
    (void)member;
    for (int i = 0; i < ROUNDS; i++) {
        sb_status status = touch(crowd->context, CAP / 3);
        if (status != SB_OK && status != SB_ERR_CAP_REACHED)
            atomic_fetch_add(&crowd->refused, 1);
    }
}

TEST(the_cap_holds_for_what_is_live_at_once) {
    struct crowd crowd = {.context = NULL};
    sb_stats stats = SB_STATS_INIT;
    struct counting_allocator counting = COUNTING_ALLOCATOR_INIT;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.max_host_bytes = CAP;
    options.allocator = counting_allocator_table(&counting);
    assert_ok(sb_context_create(&options, &crowd.context, &err));
    team_run(8, compete, &crowd);
    assert_int_equal(atomic_load(&crowd.refused), 0);
    assert_ok(sb_context_stats(crowd.context, &stats, &err));
    assert_true(counting.peak_bytes <= CAP && stats.host_peak <= CAP);
    assert_true(stats.host_peak >= CAP / 3);
    sb_context_release(crowd.context);
    counting_allocator_assert_clean(&counting);
}
