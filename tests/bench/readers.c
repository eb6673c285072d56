/* Tests that two threads that read the same blob are each as fast as a single thread. */
#include "cases.h"
#include "harness.h"
#include "team.h"

#define READS 100000 /* per thread and run; enough to neglect the time to wake a thread */
#define WORK  100    /* steps between two reads, about 100 ns */

static sb_blob *blob;
static void (*read_blob)(void);

static void read_data(void) {
    const void *data;
    must(sb_blob_cpu(blob, SB_DATA, &data, NULL));
    keep(data);
}

static void read_value(void) {
    const int64_t index[] = {0, 1, 2, 3};
    float value;
    must(sb_blob_at(blob, SB_DATA, index, 4, &value, NULL));
    keep(&value);
}

static void read_sum(void) {
    double sum;
    must(sb_blob_asum(blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void task(void *unused, int64_t i) {
    (void)i;
    for (int r = 0; r < READS; r++) {
        read_blob();
        for (int w = 0; w < WORK; w++)
            keep(unused);
    }
}

static void run_both(void) {
    team_run(NULL, 2, task, NULL);
}

static void run_one(void) {
    team_run(NULL, 1, task, NULL);
}

void bench_readers(void) {
    static const struct {
        const char *what;
        void (*read)(void);
    } kinds[] = {{"cpu_data of one blob", read_data},
                 {"a value of one blob", read_value},
                 {"asum of one blob, 2 KiB", read_sum}};
    void *data;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 4, 8, 8, &blob, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    team_start();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        read_blob = kinds[i].read;
        contest_run(&(struct contest){.what = kinds[i].what,
                                      .contestants = {{"syncblob, both threads", run_both, NULL},
                                                      {"one thread", run_one, NULL}},
                                      .goals = {{"one thread", 1 / 0.95, 0}}},
                    0, 2);
    }
    team_stop();
    sb_blob_destroy(blob);
}
