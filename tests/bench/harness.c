#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE  ((size_t)2 << 20)
#define SAMPLE_NS  20000.0 /* the minimum time of a sample */
#define MAX_ROUNDS 2001
#define MIN_ROUNDS (bench.effort == QUICK ? 3 : 11)
#define CONTEST_NS (bench.effort == QUICK ? 1e7 : 8e8)

struct bench bench;

void call_failed(int32_t status) {
    fprintf(stderr, "bench: a call failed with %d\n", status);
    exit(1);
}

void pin(int index) {
    static cpu_set_t allowed; /* the processors that the process could use at the first call */
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

static double sample(struct contestant *c) {
    double start = now();
    for (int64_t i = 0; i < c->times; i++)
        c->run(c->state);
    double end = now();
    if (c->after)
        c->after(c->state);
    return (end - start) / (double)c->times;
}

/* Sets the number of runs of a sample, which must be long enough for the clock. Warms caches. */
static void calibrate(struct contestant *c) {
    for (c->times = 1;; c->times *= 4) {
        (void)sample(c);
        if (sample(c) * (double)c->times >= SAMPLE_NS)
            return;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median, and stores the least value in `best`. */
static double median(const double *values, int count, double *best) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    if (best)
        *best = sorted[0];
    return sorted[count / 2];
}

void contest_add(struct contest *contest, const char *name, void (*run)(void *state),
                 void (*after)(void *state), void *state) {
    struct contestant *c = &contest->contestants[contest->count++];
    *c = (struct contestant){.name = name, .run = run, .after = after, .state = state};
    c->samples = malloc(MAX_ROUNDS * sizeof *c->samples);
    must(c->samples ? 0 : -1);
}

void contest_run(struct contest *contest) {
    int n = contest->count, round = 0;
    for (int i = 0; i < n; i++)
        calibrate(&contest->contestants[i]);
    double end = now() + CONTEST_NS;
    for (; round < MAX_ROUNDS && (round < MIN_ROUNDS || now() < end); round++)
        for (int i = 0; i < n; i++) { /* rotates the order */
            struct contestant *c = &contest->contestants[(i + round) % n];
            c->samples[round] = sample(c);
        }
    contest->rounds = round;
    for (int i = 0; i < n; i++) {
        struct contestant *c = &contest->contestants[i];
        c->median = median(c->samples, round, &c->best);
        if (bench.times)
            fprintf(bench.times, "\"%s\",%zu,%d,\"%s\",%.4g,%.4g\n", contest->what, contest->bytes,
                    contest->threads, c->name, c->best, c->median);
    }
}

void contest_free(struct contest *contest) {
    for (int i = 0; i < contest->count; i++)
        free(contest->contestants[i].samples);
}

/* --- goals ------------------------------------------------------------------------ */

struct goal {
    const char *what, *against, *unit;
    size_t bytes;
    int threads;
    double best, median, limit; /* best < 0: not measured */
};

/* Writes a text such as "asum, 1 MiB, to Caffe". */
static void name_goal(const struct goal *g, char *text, size_t room) {
    const char *units[] = {"B", "KiB", "MiB", "GiB"};
    size_t bytes = g->bytes;
    int unit = 0, at = snprintf(text, room, "%s", g->what);
    for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; bytes /= 1024)
        unit++;
    if (bytes)
        at += snprintf(text + at, room - (size_t)at, ", %zu %s", bytes, units[unit]);
    if (*g->against)
        snprintf(text + at, room - (size_t)at, ", to %s", g->against);
}

static void judge(const struct goal *g) {
    char name[160];
    name_goal(g, name, sizeof name);
    if (g->best < 0) {
        bench.unmeasured++;
        return;
    }
    int met = g->best <= g->limit;
    bench.met += met;
    bench.missed += !met;
    printf("%9.3g %9.3g %9.3g  %-6s %d  %-6s  %s\n", g->best, g->median, g->limit, g->unit,
           g->threads, met ? "met" : "MISSED", name);
    fflush(stdout);
    if (bench.goals)
        fprintf(bench.goals, "\"%s\",%d,%.3g,%.3g,%s\n", name, g->threads, g->best, g->limit,
                g->unit);
}

static const struct contestant *find(const struct contest *contest, const char *name) {
    for (int i = 1; i < contest->count; i++)
        if (strcmp(contest->contestants[i].name, name) == 0)
            return &contest->contestants[i];
    return NULL;
}

void goal_ratio(const struct contest *contest, const char *against, double limit) {
    const struct contestant *us = &contest->contestants[0], *other = find(contest, against);
    struct goal g = {contest->what,    against, "times", contest->bytes,
                     contest->threads, -1,      -1,      limit};
    if (other) {
        double ratios[MAX_ROUNDS];
        for (int i = 0; i < contest->rounds; i++)
            ratios[i] = us->samples[i] / other->samples[i];
        g.best = us->best / other->best;
        g.median = median(ratios, contest->rounds, NULL);
    }
    judge(&g);
}

void goal_value(const char *what, size_t bytes, const char *unit, double value, double limit) {
    judge(&(struct goal){what, "", unit, bytes, 1, value, value, limit});
}

/* --- sizes and memory --------------------------------------------------------------- */

int bench_sizes(const size_t **out) {
    static const size_t sizes[] = {(size_t)1 << 10,   (size_t)16 << 10, (size_t)128 << 10,
                                   (size_t)1 << 20,   (size_t)8 << 20,  (size_t)64 << 20,
                                   (size_t)256 << 20, (size_t)1 << 30};
    *out = sizes;
    return bench.effort == QUICK ? 5 : bench.effort == NORMAL ? 7 : 8;
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

float *random_floats(size_t count, uint64_t seed) {
    float *values = fresh_memory(count * sizeof *values);
    for (size_t i = 0; i < count; i++) { /* Marsaglia's xorshift */
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        values[i] =
            (float)((double)(seed >> 40 | 1) / (double)(1 << 24)) * (seed & 1 ? 1.0F : -1.0F);
    }
    return values;
}
