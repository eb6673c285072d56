/* Many threads use one simulated device, so that ThreadSanitizer can find data races. */
#include "sim_fixture.h"

#include "../../../tests/survival/threads/team.h"

enum { THREADS = 8, ROUNDS = 300, VALUES = 64 };

struct job {
    const sb_context *context;
    const void *ptr;
};

static void add_one(void *user) {
    const struct job *job = user;
    float *values = sb_sim_address(job->context, job->ptr, VALUES * sizeof(float));
    for (int i = 0; values && i < VALUES; i++)
        values[i] += 1;
}

/* Uploads values, doubles them, adds one in a kernel, and sums and downloads them. Other threads
   may use the same stream. */
static void round_trip(struct sim *f, sb_stream stream, float value) {
    float values[VALUES];
    double sum = 0;
    for (int i = 0; i < VALUES; i++)
        values[i] = value;
    void *ptr = new_memory(f, sizeof values, stream);
    struct job job = {f->context, ptr};
    upload(f, ptr, values, sizeof values, stream);
    assert_ok(f->table->scale(f->device, SB_DTYPE_F32, VALUES, 2, ptr, stream, &err));
    assert_ok(sb_sim_launch(f->context, stream, add_one, &job, &err));
    assert_ok(f->table->asum(f->device, SB_DTYPE_F32, VALUES, ptr, &sum, stream, &err));
    download(f, values, ptr, sizeof values, stream);
    void *event = record(f, stream);
    free_memory(f, ptr, sizeof values, stream);
    event_wait(f, event);
    event_destroy(f, event);
    expect(values[VALUES - 1] == 2 * value + 1 && sum == (double)(VALUES * (2 * value + 1)));
}

/* Writes and reads memory of sb_sim_malloc without streams. */
static void poke_and_peek(struct sim *f, uint64_t value) {
    void *ptr = NULL;
    uint64_t found = 0;
    assert_ok(sb_sim_malloc(f->context, sizeof value, &ptr, &err));
    poke(f, ptr, &value, sizeof value);
    peek(f, &found, ptr, sizeof found);
    assert_ok(sb_sim_free(f->context, ptr, &err));
    expect(found == value);
}

static void work(void *arg, int member) {
    struct sim *f = arg;
    uint64_t seed = (uint64_t)member + 1;
    sb_stream mine = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        mine = mine ? mine : new_stream(f);
        uint64_t draw = test_random(&seed);
        sb_stream streams[] = {mine, f->own, NULL};
        round_trip(f, streams[draw % 3], (float)(draw % 1000));
        poke_and_peek(f, draw);
        if (draw % 16 == 0) {
            assert_ok(sb_sim_stream_destroy(f->context, mine, &err));
            mine = NULL;
        }
        if (draw % 32 == 1)
            set_schedule(f, (int32_t)(draw / 64 % 3), draw);
    }
}

TEST_ON(sim, threads_do_not_disturb_each_other) {
    set_schedule(f, SB_SIM_RANDOM, 1);
    team_run(THREADS, work, f);
}
