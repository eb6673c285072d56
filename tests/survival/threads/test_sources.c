/* Several threads make const calls on one model: they read through one source at once, and each
   thread's progress counts the bytes that the thread reads. */
#include "files.h"
#include "nets.h"
#include "pointers.h"
#include "team.h"

#define MEMBERS 4
#define BLOBS   8

static const int64_t counts[] = {50000};

struct shared {
    struct wire wire;
    struct test_source source;
    sb_model *model;
};

/* This thread's progress, which `report` updates. */
static _Thread_local struct {
    uint64_t done, total;
    bool cancels;
} mine;

static int32_t report(void *user, uint64_t done, uint64_t total) {
    assert_true(done >= mine.done && done <= total);
    mine.done = done;
    mine.total = total;
    return mine.cancels;
}

static void shared_open(struct shared *s) {
    sb_progress progress = SB_PROGRESS_INIT;
    *s = (struct shared){.model = NULL};
    wire_number(&s->wire, 1, 5);
    for (int i = 0; i < BLOBS; i++)
        wire_write(&s->wire, "3:{[%d]%d}", (int)counts[0], i);
    const sb_source source = test_source_of(&s->source, &s->wire);
    assert_ok(sb_model_open_source(NULL, SB_FORMAT_AUTO, &source, NULL, NULL, &s->model, &err));
    progress.report = report;
    assert_ok(sb_model_set_progress(s->model, &progress, &err));
}

static void shared_close(struct shared *s) {
    sb_model_destroy(s->model);
    assert_int_equal(s->source.closes, 1);
    assert_false(s->source.outside);
}

static void check_values(sb_blob *blob, int64_t index) {
    const float *values = blob_pointer(blob, SB_DATA, CPU_DATA);
    for (int64_t i = 0; i < *counts; i++)
        assert_true(values[i] == (float)index + (float)i);
}

/* Thread 1 cancels each of its loads, without effect on other threads. */
static void load_or_cancel(struct shared *s, int member) {
    sb_blob *blob; /* not test_vector(): the lock of its list of objects would order the threads */
    assert_ok(sb_blob_create(NULL, SB_DTYPE_F32, &blob, &err));
    for (int i = 0; i < 4 * BLOBS; i++) {
        const int64_t index = (i + member) % BLOBS;
        sb_blob_info info = SB_BLOB_INFO_INIT;
        mine.done = mine.total = 0;
        assert_ok(sb_model_blob_info(s->model, SB_NO_LAYER, index, &info, &err));
        assert_int_equal(info.count, *counts);
        mine.cancels = member == 1;
        assert_status(mine.cancels ? SB_ERR_CANCELLED : SB_OK,
                      sb_model_load_blob(s->model, SB_NO_LAYER, index, blob, &err));
        assert_int_equal(sb_blob_is_shaped(blob), !mine.cancels);
        if (!mine.cancels) {
            assert_true(mine.total > 0 && mine.done == mine.total);
            check_values(blob, index);
        }
    }
    sb_blob_destroy(blob);
}

static void save(struct shared *s) {
    for (int i = 0; i < 4; i++) {
        struct test_sink got = {.writes = 0};
        const sb_sink sink = test_sink_of(&got);
        mine.done = mine.total = 0;
        assert_ok(sb_model_save_sink(s->model, &sink, &err));
        assert_int_equal(got.got.size, s->wire.size);
        assert_memory_equal(got.got.bytes, s->wire.bytes, got.got.size);
        wire_free(&got.got);
    }
}

static void use(void *arg, int member) {
    if (member == 0)
        save(arg);
    else
        load_or_cancel(arg, member);
}

TEST_ON(shared, threads_load_save_and_cancel_through_one_source) {
    team_run(MEMBERS, use, f);
}
