/* Tests that two threads that read the same blob are each as fast as a single thread. */
#include "cases.h"
#include "harness.h"
#include "team.h"

#include <syncblob/syncblob.h>

#define READS 100000 /* per thread and run; enough to neglect the time to wake a thread */
#define WORK  100    /* steps between two reads, about 100 ns */

struct readers {
    sb_blob *blob;
    int64_t threads;
    void (*read)(const sb_blob *blob);
};

static void read_data(const sb_blob *blob) {
    const void *data;
    must(sb_blob_cpu(blob, SB_DATA, &data, NULL));
    keep(data);
}

static void read_value(const sb_blob *blob) {
    const int64_t index[] = {0, 1, 2, 3};
    float value;
    must(sb_blob_at(blob, SB_DATA, index, 4, &value, NULL));
    keep(&value);
}

static void read_sum(const sb_blob *blob) {
    double sum;
    must(sb_blob_asum(blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void task(void *arg, int64_t i) {
    const struct readers *readers = arg;
    (void)i;
    for (int r = 0; r < READS; r++) {
        readers->read(readers->blob);
        for (int w = 0; w < WORK; w++)
            keep(readers);
    }
}

static void run(void *state) {
    struct readers *readers = state;
    team_run(NULL, readers->threads, task, readers);
}

void bench_readers(void) {
    static const struct {
        const char *what;
        void (*read)(const sb_blob *blob);
    } kinds[] = {{"cpu_data of one blob", read_data},
                 {"a value of one blob", read_value},
                 {"asum of one blob, 2 KiB", read_sum}};
    sb_blob *blob;
    void *data;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 4, 8, 8, &blob, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    team_start();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct readers two = {blob, 2, kinds[i].read}, one = {blob, 1, kinds[i].read};
        struct contest c = {.what = kinds[i].what, .threads = 2};
        contest_add(&c, "syncblob, both threads", run, NULL, &two);
        contest_add(&c, "one thread", run, NULL, &one);
        contest_run(&c);
        goal_ratio(&c, "one thread", 1 / 0.95);
        contest_free(&c);
    }
    team_stop();
    sb_blob_destroy(blob);
}
