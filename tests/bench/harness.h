/* Contests: the library and others do the same work in turns, so that other load on the machine
   slows all of them. All times are nanoseconds. */
#ifndef SB_BENCH_HARNESS_H
#define SB_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_CONTESTANTS 6
#define KIB             ((size_t)1 << 10)
#define MIB             ((size_t)1 << 20)

struct contestant {
    const char *name;
    void (*run)(void *state);   /* the work, timed */
    void (*after)(void *state); /* [nullable] after a sample, untimed */
    void *state;
    int64_t times; /* runs in a sample */
    double *samples;
    double best, median;
};

/* The first contestant is the library. */
struct contest {
    const char *what;
    size_t bytes; /* of the payload; 0 if the work has no payload */
    int threads, count, rounds;
    struct contestant contestants[MAX_CONTESTANTS];
};

enum effort { QUICK, NORMAL, FULL };

struct bench {
    enum effort effort;
    const char *folder;             /* for files */
    const struct caffe_peer *caffe; /* [nullable] */
    const char *caffe_path;
    FILE *goals, *times; /* [nullable] results as CSV */
    int met, missed, unmeasured;
};

extern struct bench bench;

/* Pins the calling thread to the index-th of the processors that it may use. */
void pin(int index);

void contest_add(struct contest *contest, const char *name, void (*run)(void *state),
                 void (*after)(void *state), void *state);
/* Times all contestants and writes their times. */
void contest_run(struct contest *contest);
/* Checks the goal that the library's best time is at most `limit` times the best time of the
   contestant `against`. If there is no such contestant, counts the goal as not measured. */
void goal_ratio(const struct contest *contest, const char *against, double limit);
/* Checks the goal that `value`, which is not the time of a contest, is at most `limit`. */
void goal_value(const char *what, size_t bytes, const char *unit, double value, double limit);
void contest_free(struct contest *contest);

/* Sets `out` to the payload sizes that the effort allows, from 1 KiB on; returns their number. */
int bench_sizes(const size_t **out);

/* Returns unwritten memory. Memory below 2 MiB comes from malloc. Larger memory begins at a
   multiple of 2 MiB and is advised to use huge pages, as the library's memory is. */
void *fresh_memory(size_t bytes);
void fresh_memory_free(void *memory, size_t bytes);
/* Returns memory from fresh_memory, filled with random floats between -1 and 1 that are not 0. */
float *random_floats(size_t count, uint64_t seed);

_Noreturn void call_failed(int32_t status);

/* Ends the program if `status` is not 0. */
static inline void must(int32_t status) {
    if (status != 0)
        call_failed(status);
}

/* Prevents the compiler from removing the work whose result is at `p`. */
static inline void keep(const void *p) {
    __asm__ volatile("" : : "r"(p) : "memory");
}

#endif
