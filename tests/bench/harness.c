#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE  ((size_t)2 << 20)
#define SAMPLE_NS  20000.0 /* a sample is at least this long */
#define MAX_ROUNDS 2001
#define MIN_ROUNDS (bench.effort == QUICK ? 3 : 11)
#define CONTEST_NS (bench.effort == QUICK ? 1e7 : 8e8)

struct bench bench;

void call_failed(int32_t status) {
    fprintf(stderr, "bench: a call of the library failed with %d\n", status);
    exit(1);
}

void pin(int index) {
    static cpu_set_t allowed; /* before anything was pinned */
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
    c->run(c->state, c->times);
    double end = now();
    if (c->after)
        c->after(c->state);
    return (end - start) / (double)c->times;
}

/* How often the work has to be done for a sample that the clock can tell; warms up, too. */
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

static double median(const double *values, int count) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return sorted[count / 2];
}

static double best(const double *values, int count) {
    double least = values[0];
    for (int i = 1; i < count; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

void contest_add(struct contest *contest, const char *name, void (*run)(void *, int64_t),
                 void (*after)(void *), void *state) {
    struct contestant *c = &contest->contestants[contest->count++];
    *c = (struct contestant){.name = name, .run = run, .after = after, .state = state};
    c->samples = malloc(MAX_ROUNDS * sizeof *c->samples);
    must(c->samples ? 0 : -1);
}

static void record_contest(const struct contest *contest);

void contest_run(struct contest *contest) {
    int n = contest->count;
    for (int i = 0; i < n; i++)
        calibrate(&contest->contestants[i]);
    double end = now() + CONTEST_NS;
    int round = 0;
    for (; round < MAX_ROUNDS && (round < MIN_ROUNDS || now() < end); round++)
        for (int i = 0; i < n; i++) { /* each is first in its turn */
            struct contestant *c = &contest->contestants[(i + round) % n];
            c->samples[round] = sample(c);
        }
    contest->rounds = round;
    for (int i = 0; i < n; i++) {
        struct contestant *c = &contest->contestants[i];
        c->best = best(c->samples, round);
        c->median = median(c->samples, round);
    }
    record_contest(contest);
}

void contest_free(struct contest *contest) {
    for (int i = 0; i < contest->count; i++)
        free(contest->contestants[i].samples);
}

/* --- results ---------------------------------------------------------------------- */

static void separate(FILE *list) {
    fputs(ftell(list) > 0 ? ",\n" : "\n", list);
}

static void record_contest(const struct contest *contest) {
    FILE *f = bench.contests;
    separate(f);
    fprintf(f, "  {\"goal\": %d, \"what\": \"%s\", \"bytes\": %zu, \"threads\": %d, ",
            contest->goal, contest->what, contest->bytes, contest->threads);
    fprintf(f, "\"rounds\": %d, \"contestants\": [", contest->rounds);
    for (int i = 0; i < contest->count; i++) {
        const struct contestant *c = &contest->contestants[i];
        fprintf(f, "%s{\"name\": \"%s\", \"best_ns\": %.4g, \"median_ns\": %.4g}", i ? ", " : "",
                c->name, c->best, c->median);
    }
    fputs("]}", f);
}

static const char *size_text(size_t bytes, char text[24]) {
    const char *units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; bytes /= 1024)
        unit++;
    if (bytes)
        snprintf(text, 24, "%zu %s", bytes, units[unit]);
    return bytes ? text : "";
}

struct goal {
    int goal, threads;
    const char *what, *against, *unit;
    size_t bytes;
    double measured, median, limit; /* measured < 0: not measured */
};

static void record_goal(const struct goal *g) {
    char size[24];
    const char *verdict = g->measured < 0           ? "not measured"
                          : g->measured <= g->limit ? "met"
                                                    : "MISSED";
    int *counter = g->measured < 0           ? &bench.unmeasured
                   : g->measured <= g->limit ? &bench.met
                                             : &bench.missed;
    ++*counter;
    printf("%9.3g %9.3g %9.3g  %-6s %d  %-12s %d. %s%s%s, %s\n", g->measured, g->median, g->limit,
           g->unit, g->threads, verdict, g->goal, g->what, *g->against ? " : " : "", g->against,
           size_text(g->bytes, size));
    fflush(stdout);
    separate(bench.goals);
    fprintf(bench.goals,
            "  {\"goal\": %d, \"what\": \"%s\", \"against\": \"%s\", \"bytes\": %zu, "
            "\"threads\": %d, \"unit\": \"%s\", \"measured\": %.4g, \"median\": %.4g, "
            "\"limit\": %.4g, \"verdict\": \"%s\"}",
            g->goal, g->what, g->against, g->bytes, g->threads, g->unit, g->measured, g->median,
            g->limit, verdict);
}

static const struct contestant *find(const struct contest *contest, const char *name) {
    for (int i = 1; i < contest->count; i++)
        if (strcmp(contest->contestants[i].name, name) == 0)
            return &contest->contestants[i];
    return NULL;
}

static struct goal goal_of(const struct contest *contest, const char *against, const char *unit,
                           double limit) {
    return (struct goal){
        contest->goal, contest->threads, contest->what, against, unit, contest->bytes, -1, -1,
        limit};
}

void goal_ratio(const struct contest *contest, const char *against, double limit) {
    const struct contestant *us = &contest->contestants[0], *other = find(contest, against);
    struct goal g = goal_of(contest, against, "times", limit);
    if (other) {
        double ratios[MAX_ROUNDS];
        for (int i = 0; i < contest->rounds; i++)
            ratios[i] = us->samples[i] / other->samples[i];
        g.measured = us->best / other->best;
        g.median = median(ratios, contest->rounds);
    }
    record_goal(&g);
}

void goal_extra(const struct contest *contest, const char *against, double limit) {
    const struct contestant *us = &contest->contestants[0], *other = find(contest, against);
    struct goal g = goal_of(contest, against, "ns", limit);
    if (other) {
        double more = us->best - other->best;
        g.measured = more > 0 ? more : 0;
        g.median = us->median - other->median;
    }
    record_goal(&g);
}

void goal_value(int goal, const char *what, size_t bytes, int threads, const char *unit,
                double value, double limit) {
    struct goal g = {goal, threads, what, "", unit, bytes, value, value, limit};
    record_goal(&g);
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
