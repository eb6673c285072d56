/* Contests: the library against others doing the same, timed in turns, so that what disturbs the
   machine disturbs all of them. All times are nanoseconds. */
#ifndef SB_BENCH_HARNESS_H
#define SB_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_CONTESTANTS 6

struct contestant {
    const char *name;
    void (*run)(void *state, int64_t n); /* does the work n times; this is timed */
    void (*after)(void *state);          /* [nullable] tidies up after a sample, untimed */
    void *state;
    int64_t times; /* the work is done in one sample */
    double *samples;
    double best, median;
};

/* The first contestant is the library, which the others are compared with. */
struct contest {
    int goal, threads;
    const char *what;
    size_t bytes; /* of the payload; 0: the size does not matter */
    int count, rounds;
    struct contestant contestants[MAX_CONTESTANTS];
};

enum effort { QUICK, NORMAL, FULL };

struct bench {
    enum effort effort;
    const char *folder;             /* for files */
    const struct caffe_peer *caffe; /* [nullable] */
    const char *caffe_path;
    const struct linked_peer *linked; /* [nullable] */
    FILE *contests, *goals;           /* JSON's two lists */
    int met, missed, unmeasured;
};

extern struct bench bench;

/* Pins the calling thread to the index-th of the processors that it may use. */
void pin(int index);

void contest_add(struct contest *contest, const char *name, void (*run)(void *, int64_t),
                 void (*after)(void *), void *state);
/* Times all of them and records it. */
void contest_run(struct contest *contest);
/* Goals, judged by the best samples: our time at most `limit` times the other's, or at most
   `limit` nanoseconds more. `against` that did not take part is shown as not measured. */
void goal_ratio(const struct contest *contest, const char *against, double limit);
void goal_extra(const struct contest *contest, const char *against, double limit);
/* A figure that is no time of a contest. */
void goal_value(int goal, const char *what, size_t bytes, int threads, const char *unit,
                double value, double limit);
void contest_free(struct contest *contest);

/* The eight sizes of every plot, from 1 KiB to 1 GiB, as far as the effort goes. */
int bench_sizes(const size_t **out);

/* Memory on 2 MiB boundaries with huge pages advised, as the library's own, from 2 MiB on; below
   that malloc's. Not touched. */
void *fresh_memory(size_t bytes);
void fresh_memory_free(void *memory, size_t bytes);
/* The same, filled with random floats in (-1, 1) that are not 0. */
float *random_floats(size_t count, uint64_t seed);

_Noreturn void call_failed(int32_t status);

/* Ends the program with a word when a call of the library failed. */
static inline void must(int32_t status) {
    if (status != 0)
        call_failed(status);
}

/* Keeps the compiler from leaving out the work that made `p`. */
static inline void keep(const void *p) {
    __asm__ volatile("" : : "r"(p) : "memory");
}

#endif
