#include "harness.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE   ((size_t)2 << 20)
#define SAMPLE_NS   20000.0
#define MAX_ROUNDS  2001
#define MAX_PLAYERS 7
#define MIN_ROUNDS  (bench.quick ? 3 : 11)
#define CONTEST_NS  (bench.quick ? 1e7 : 8e8)

struct bench bench;

void call_failed(int32_t status) {
    fprintf(stderr, "bench: a call failed with %d\n", status);
    exit(1);
}

void pin(int index) {
    static cpu_set_t allowed;
    static int known;
    cpu_set_t one;
    if (!known)
        known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && index-- == 0)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one))
        (void)sched_setaffinity(0, sizeof one, &one);
}

/* --- timing ----------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct player {
    const struct contestant *contestant;
    int64_t runs;
    double samples[MAX_ROUNDS];
} players[MAX_PLAYERS];
static struct result results[MAX_PLAYERS];

static double sample(const struct player *p) {
    if (bench.slowest)
        (void)bench.slowest(0);
    double start = now();
    for (int64_t i = 0; i < p->runs; i++)
        p->contestant->run();
    double end = now();
    if (p->contestant->after)
        p->contestant->after();
    double ns = (end - start) / (double)p->runs;
    return bench.slowest ? bench.slowest(ns) : ns;
}

static void calibrate(struct player *p) {
    for (p->runs = 1;; p->runs *= 4) {
        (void)sample(p);
        if (sample(p) * (double)p->runs >= SAMPLE_NS)
            return;
    }
}

static int measure(int count) {
    int round = 0, most = bench.rounds ? bench.rounds : MAX_ROUNDS;
    for (int i = 0; i < count; i++)
        calibrate(&players[i]);
    double end = bench.rounds ? HUGE_VAL : now() + CONTEST_NS;
    for (; round < most && (round < MIN_ROUNDS || now() < end); round++)
        for (int i = 0; i < count; i++) {
            struct player *p = &players[(i + round) % count];
            p->samples[round] = sample(p);
        }
    return round;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void summarize(int count, int rounds) {
    static double ratios[MAX_ROUNDS];
    for (int i = 0; i < count; i++) {
        for (int round = 0; round < rounds; round++)
            ratios[round] = players[0].samples[round] / players[i].samples[round];
        results[i].ratio = median(ratios, rounds);
    }
    for (int i = 0; i < count; i++) {
        results[i].median = median(players[i].samples, rounds);
        results[i].best = players[i].samples[0];
    }
}

/* --- goals ------------------------------------------------------------------------ */

static const char *name_goal(const char *what, size_t bytes, const char *against) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    static char text[160];
    int unit = 0, at = snprintf(text, sizeof text, "%s", what);
    for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; bytes /= 1024)
        unit++;
    if (bytes)
        at += snprintf(text + at, sizeof text - (size_t)at, ", %zu %s", bytes, units[unit]);
    if (against)
        snprintf(text + at, sizeof text - (size_t)at, ", to %s", against);
    return text;
}

static void judge(const char *name, int threads, const char *unit, double best, double median,
                  double limit) {
    bool met = best <= limit;
    bench.met += met;
    bench.missed += !met;
    printf("%9.3g %9.3g %9.3g  %-6s %d  %-6s  %s\n", best, median, limit, unit, threads,
           met ? "met" : "MISSED", name);
    fflush(stdout);
    if (bench.goals)
        fprintf(bench.goals, "\"%s\",%d,%.3g,%.3g,%s\n", name, threads, best, limit, unit);
}

void goal_value(const char *what, size_t bytes, const char *unit, double value, double limit) {
    judge(name_goal(what, bytes, NULL), 1, unit, value, value, limit);
}

static void check_goal(const struct contest *contest, const struct goal *goal, size_t bytes,
                       int threads, int count) {
    for (int i = 1; i < count; i++)
        if (strcmp(players[i].contestant->name, goal->against) == 0) {
            judge(name_goal(contest->what, bytes, goal->against), threads, "times",
                  results[0].best / results[i].best, results[i].ratio, goal->limit);
            return;
        }
    bench.unmeasured++;
}

static int enter(const struct contestant *list, int count) {
    for (; list->name; list++)
        players[count++].contestant = list;
    return count;
}

const struct result *contest_run(const struct contest *contest, size_t bytes, int threads) {
    int count = enter(contest->contestants, 0);
    if (bench.caffe)
        count = enter(contest->caffe, count);
    summarize(count, measure(count));
    for (int i = 0; bench.times && i < count; i++)
        fprintf(bench.times, "\"%s\",%zu,%d,\"%s\",%.4g,%.4g\n", contest->what, bytes, threads,
                players[i].contestant->name, results[i].best, results[i].median);
    for (const struct goal *goal = contest->goals; goal->against; goal++)
        if (goal->bytes == 0 || goal->bytes == bytes)
            check_goal(contest, goal, bytes, threads, count);
    return results;
}

/* --- sizes and memory --------------------------------------------------------------- */

void each_size(void (*run)(size_t bytes)) {
    static const size_t sizes[] = {KIB, 16 * KIB, 128 * KIB, MIB, 8 * MIB, 64 * MIB, 256 * MIB};
    for (int i = 0; i < (bench.quick ? 5 : 7); i++)
        run(sizes[i]);
}

static size_t huge_length(size_t bytes) {
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

void *fresh_memory(size_t bytes) {
    if (bytes < HUGE_PAGE)
        return aligned_alloc(64, (bytes + 63) / 64 * 64);
    size_t length = huge_length(bytes);
    char *base =
        mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(base == MAP_FAILED ? -1 : 0);
    size_t before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        (void)munmap(base, before);
    (void)munmap(base + before + length, HUGE_PAGE - before);
    (void)madvise(base + before, length, MADV_HUGEPAGE);
    return base + before;
}

void fresh_memory_free(void *memory, size_t bytes) {
    if (memory && bytes >= HUGE_PAGE)
        (void)munmap(memory, huge_length(bytes));
    else
        free(memory);
}

/* --- blobs ------------------------------------------------------------------------- */

sb_context *make_context(uint32_t flags, sb_parallel_for parallel_for) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    options.flags = flags;
    options.parallel_for = parallel_for;
    must(sb_context_create(&options, &context, NULL));
    return context;
}

size_t host_bytes(sb_context *context) {
    sb_stats stats = SB_STATS_INIT;
    must(sb_context_stats(context, &stats, NULL));
    return stats.host_bytes;
}

sb_blob *make_blob(sb_context *context, int32_t dtype, size_t count) {
    const int64_t shape = (int64_t)count;
    sb_blob *blob;
    must(sb_blob_create_shaped(context, dtype, &shape, 1, &blob, NULL));
    return blob;
}

float *fill_randomly(sb_blob *blob, int32_t part, uint64_t seed) {
    float *values;
    must(sb_blob_overwrite_cpu_f32(blob, part, &values, NULL));
    for (int64_t i = 0; i < sb_blob_count(blob); i++) { /* Marsaglia's xorshift */
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        values[i] =
            (float)((double)(seed >> 40 | 1) / (double)(1 << 24)) * (seed & 1 ? 1.0F : -1.0F);
    }
    return values;
}
