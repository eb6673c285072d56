#include "simulated.h"

#include "counting_allocator.h"
#include "sim_tables.h"

#include <string.h>

static void make_streams(struct simulated *sim) {
    check_ok(sb_context_stream(sim->context, &sim->streams[1], &call_error));
    for (int i = 2; i < STREAMS; i++)
        check_ok(sb_sim_stream_create(sim->context, &sim->streams[i], &call_error));
}

void simulated_open(struct simulated *sim, struct simulated_options options) {
    sb_context_options how = SB_CONTEXT_OPTIONS_INIT;
    *sim = (struct simulated){.counting = COUNTING_ALLOCATOR_INIT, .options = options};
    how.device = options.host_only ? "cpu" : "sim:0";
    how.backend = options.coherent ? coherent_table() : NULL;
    how.flags = options.no_pinned ? SB_CONTEXT_NO_PINNED : 0;
    how.max_host_bytes = options.max_host;
    how.max_pinned_bytes = options.max_pinned;
    how.max_device_bytes = options.max_device;
    how.allocator = counting_allocator_table(&sim->counting);
    check_ok(sb_context_create(&how, &sim->context, &call_error));
    if (!options.host_only)
        make_streams(sim);
}

void simulated_close(struct simulated *sim) {
    struct counting_allocator *counting = &sim->counting;
    sb_stats stats = simulated_stats(sim);
    check_equal(stats.device_bytes, 0);
    check_equal(stats.pinned_bytes, 0);
    check_equal(stats.borrowed_bytes, 0);
    check_equal(counting->live_buffers, 0);
    for (int i = 2; i < STREAMS && !sim->options.host_only; i++) {
        ignore(sb_context_forget_stream(sim->context, sim->streams[i], NULL));
        ignore(sb_sim_stream_destroy(sim->context, sim->streams[i], NULL));
    }
    sb_context_release(sim->context);
    check_equal(counting->live_blocks, 0);
    check_equal(counting->violations, 0);
    pthread_mutex_destroy(&counting->lock);
}

sb_stats simulated_stats(const struct simulated *sim) {
    sb_stats stats = SB_STATS_INIT;
    fuzz_check(sb_context_stats(sim->context, &stats, NULL) == SB_OK, "no statistics");
    return stats;
}

const char *const work_names[WORKS] = {"uploads",
                                       "downloads",
                                       "copies within the device",
                                       "copies within the host",
                                       "device clears",
                                       "host buffers",
                                       "device buffers"};

struct tally simulated_tally(const struct simulated *sim) {
    const sb_stats stats = simulated_stats(sim);
    int64_t calls[SB_SIM_OP_COUNT] = {0};
    if (!sim->options.host_only)
        ignore(sb_sim_calls(sim->context, calls, SB_SIM_OP_COUNT, NULL));
    return (struct tally){{[UPLOADS] = (int64_t)stats.uploads,
                           [DOWNLOADS] = (int64_t)stats.downloads,
                           [DEVICE_COPIES] = (int64_t)stats.device_copies,
                           [HOST_COPIES] = (int64_t)stats.host_copies,
                           [DEVICE_CLEARS] = calls[SB_SIM_ZERO],
                           [HOST_BUFFERS] = sim->counting.buffer_calls + calls[SB_SIM_ALLOC_PINNED],
                           [DEVICE_BUFFERS] = calls[SB_SIM_ALLOC]}};
}

static int64_t calls_of(const struct simulated *sim, int32_t op) {
    int64_t calls[SB_SIM_OP_COUNT], sum = 0;
    if (sb_sim_calls(sim->context, calls, SB_SIM_OP_COUNT, NULL) != SB_OK)
        return 0;
    for (int i = 0; i < SB_SIM_OP_COUNT; i++)
        if (op == SB_SIM_ANY || op == i)
            sum += calls[i];
    return sum;
}

int64_t simulated_calls(const struct simulated *sim) {
    return sim->options.host_only ? 0 : calls_of(sim, SB_SIM_ANY);
}

void simulated_arm(struct simulated *sim, int32_t op, int64_t nth, int32_t mode) {
    if (sim->options.host_only || simulated_is_lost(sim))
        return;
    check_ok(sb_sim_fail(sim->context, op, nth, mode, &call_error));
    sim->fault = (struct fault){op, mode, nth, calls_of(sim, op)};
}

void simulated_disarm(struct simulated *sim) {
    simulated_arm(sim, SB_SIM_ANY, 0, SB_SIM_FAIL_NOW);
    sim->counting.fail_nth = 0;
}

struct strike simulated_strike(struct simulated *sim) {
    struct strike strike = {.allocator = sim->counting.failures != sim->failures};
    sim->failures = sim->counting.failures;
    const struct fault *fault = &sim->fault;
    if (fault->nth && calls_of(sim, fault->op) - fault->base >= fault->nth) {
        strike.device = true;
        strike.fault = sim->fault;
        sim->fault.nth = 0;
    }
    return strike;
}

bool simulated_is_lost(const struct simulated *sim) {
    return sb_context_device_status(sim->context) == SB_ERR_DEVICE_LOST;
}

static void nothing(void *user) {
    (void)user;
}

/* Under the eager schedule, the launch of a kernel first runs the stream's queued work. */
void simulated_drain(struct simulated *sim) {
    if (sim->options.host_only)
        return;
    ignore(sb_sim_set_schedule(sim->context, SB_SIM_EAGER, 0, NULL));
    for (int i = 0; i < STREAMS; i++)
        ignore(sb_sim_launch(sim->context, sim->streams[i], nothing, NULL, NULL));
}
