#include "simulated.h"

#include "coherent.h"
#include "ignore.h"

#include <string.h>

static void must(sb_status status, const sb_error *err, const char *what) {
    fuzz_check(status == SB_OK, "%s: %s", what, err->message);
}

static void make_streams(struct simulated *sim) {
    sb_error err;
    if (sim->options.host_only)
        return;
    must(sb_context_stream(sim->context, &sim->streams[1], &err), &err, "the own stream");
    for (int i = 2; i < STREAMS; i++)
        must(sb_sim_stream_create(sim->context, &sim->streams[i], &err), &err, "a stream");
}

void simulated_open(struct simulated *sim, struct simulated_options options) {
    sb_error err;
    sb_context_options how = SB_CONTEXT_OPTIONS_INIT;
    *sim = (struct simulated){.counting = COUNTING_ALLOCATOR_INIT, .options = options};
    how.device = options.host_only ? "cpu" : "sim:0";
    how.backend = options.coherent ? coherent_table() : NULL;
    how.flags = options.no_pinned ? SB_CONTEXT_NO_PINNED : 0;
    how.max_host_bytes = options.max_host;
    how.max_pinned_bytes = options.max_pinned;
    how.max_device_bytes = options.max_device;
    how.allocator = counting_allocator_table(&sim->counting);
    must(sb_context_create(&how, &sim->context, &err), &err, "a context");
    make_streams(sim);
}

void simulated_close(struct simulated *sim) {
    struct counting_allocator *counting = &sim->counting;
    sb_stats stats = simulated_stats(sim);
    fuzz_check(stats.device_bytes == 0, "%llu device bytes stay",
               (unsigned long long)stats.device_bytes);
    fuzz_check(stats.pinned_bytes == 0, "%llu pinned bytes stay",
               (unsigned long long)stats.pinned_bytes);
    fuzz_check(stats.borrowed_bytes == 0, "%llu borrowed bytes stay",
               (unsigned long long)stats.borrowed_bytes);
    fuzz_check(counting->live_buffers == 0, "%lld buffers stay", (long long)counting->live_buffers);
    for (int i = 2; i < STREAMS && !sim->options.host_only; i++) {
        ignore(sb_context_forget_stream(sim->context, sim->streams[i], NULL));
        ignore(sb_sim_stream_destroy(sim->context, sim->streams[i], NULL));
    }
    sb_context_release(sim->context);
    fuzz_check(counting->live_blocks == 0, "%lld blocks leak", (long long)counting->live_blocks);
    fuzz_check(counting->violations == 0, "%lld calls break the allocator's contract",
               (long long)counting->violations);
    pthread_mutex_destroy(&counting->lock);
}

sb_stats simulated_stats(const struct simulated *sim) {
    sb_error err;
    sb_stats stats = SB_STATS_INIT;
    must(sb_context_stats(sim->context, &stats, &err), &err, "statistics");
    return stats;
}

struct tally simulated_tally(const struct simulated *sim) {
    struct tally tally = {.calls = {0}};
    sb_stats stats = simulated_stats(sim);
    if (!sim->options.host_only)
        ignore(sb_sim_calls(sim->context, tally.calls, SB_SIM_OP_COUNT, NULL));
    tally.host_buffers = sim->counting.buffer_calls + tally.calls[SB_SIM_ALLOC_PINNED];
    tally.uploads = (int64_t)stats.uploads;
    tally.downloads = (int64_t)stats.downloads;
    tally.device_copies = (int64_t)stats.device_copies;
    tally.host_copies = (int64_t)stats.host_copies;
    return tally;
}

struct tally simulated_since(const struct simulated *sim, const struct tally *before) {
    struct tally tally = simulated_tally(sim);
    for (int op = 0; op < SB_SIM_OP_COUNT; op++)
        tally.calls[op] -= before->calls[op];
    tally.host_buffers -= before->host_buffers;
    tally.uploads -= before->uploads;
    tally.downloads -= before->downloads;
    tally.device_copies -= before->device_copies;
    tally.host_copies -= before->host_copies;
    return tally;
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
    sb_error err;
    if (sim->options.host_only || simulated_is_lost(sim))
        return;
    must(sb_sim_fail(sim->context, op, nth, mode, &err), &err, "a fault");
    sim->fault = (struct fault){op, mode, nth, calls_of(sim, op)};
}

void simulated_arm_allocator(struct simulated *sim, int64_t nth) {
    sim->counting.fail_nth = nth;
}

void simulated_disarm(struct simulated *sim) {
    simulated_arm(sim, SB_SIM_ANY, 0, SB_SIM_FAIL_NOW);
    simulated_arm_allocator(sim, 0);
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

/* Launches an empty kernel on each stream; by the eager schedule all earlier work runs first. */
void simulated_drain(struct simulated *sim) {
    if (sim->options.host_only)
        return;
    ignore(sb_sim_set_schedule(sim->context, SB_SIM_EAGER, 0, NULL));
    for (int i = 0; i < STREAMS; i++)
        ignore(sb_sim_launch(sim->context, sim->streams[i], nothing, NULL, NULL));
}
