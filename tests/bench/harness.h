/* Measures contests, in which the library and other contestants do the same work in turns. */
#ifndef SB_BENCH_HARNESS_H
#define SB_BENCH_HARNESS_H

#include <syncblob/syncblob.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

struct contestant {
    const char *name;
    void (*run)(void);
    void (*after)(void); /* [nullable] runs after each sample, and is not timed */
};

/* The library's best time may be at most `limit` times the best time of `against`. */
struct goal {
    const char *against;
    double limit;
    size_t bytes; /* the payload's size to which the goal applies (0: any size) */
};

/* The first contestant is the library. A name of NULL ends a list. */
struct contest {
    const char *what;
    struct contestant contestants[6];
    struct contestant caffe[3]; /* take part only if Caffe is loaded */
    struct goal goals[4];
};

struct result {
    double best, median;
    double ratio; /* the median of (the library's time / the contestant's time) */
};

struct bench {
    bool quick;
    int rounds; /* 0: as many rounds as CONTEST_NS allows */
    /* [nullable] returns the longest time of all processes; all must call the function */
    double (*slowest)(double ns);
    const char *folder;
    const struct caffe_peer *caffe; /* [nullable] */
    FILE *goals, *times;            /* [nullable] */
    int met, missed, unmeasured;
};

extern struct bench bench;

/* Pins the calling thread to the index-th of the processors that the thread may use. */
void pin(int index);

/* Times all contestants and checks the goals. The results are valid until the next contest. */
const struct result *contest_run(const struct contest *contest, size_t bytes, int threads);
/* Checks that `value`, which need not be a time, is at most `limit`. */
void goal_value(const char *what, size_t bytes, const char *unit, double value, double limit);

void each_size(void (*run)(size_t bytes));

/* Returns unwritten memory. Blocks from 2 MiB on are in huge pages, like the library's memory. */
void *fresh_memory(size_t bytes);
void fresh_memory_free(void *memory, size_t bytes);

sb_context *make_context(uint32_t flags, sb_parallel_for parallel_for);
size_t host_bytes(sb_context *context);
sb_blob *make_blob(sb_context *context, int32_t dtype, size_t count);
/* Fills the data or diff with random nonzero floats from -1 to 1. Returns the floats. */
float *fill_randomly(sb_blob *blob, int32_t part, uint64_t seed);

/* An sb_parallel_for with two pinned threads: the caller and a helper. */
void team_run(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg);

void loop_update(float *data, const float *diff, size_t count);
float loop_asum(const float *x, size_t count);
float loop_sumsq(const float *x, size_t count);
/* Compilers use memset for loop_fill only if the value's bytes are equal. */
void loop_fill(float *x, float value, size_t count);
void loop_scale(float *x, float factor, size_t count);
void loop_widen(const float *from, double *to, size_t count);
void loop_narrow(const double *from, float *to, size_t count);

void bench_allocation(void);
void bench_messages(void);
void bench_files(void);
void bench_arithmetic(void);
void bench_fillers(void);
void bench_growth(void);

_Noreturn void call_failed(int32_t status);

static inline void must(int32_t status) {
    if (status != 0)
        call_failed(status);
}

/* Prevents the compiler from removing the computation of the bytes at `p`. */
static inline void keep(const void *p) {
    __asm__ volatile("" : : "r"(p) : "memory");
}

#endif
