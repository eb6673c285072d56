/* Many threads use one simulated device, so that ThreadSanitizer can find data races. */
#include "sim_fixture.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 300, VALUES = 64 };

struct worker {
    struct sim *f;
    uint64_t seed;
    bool right;
};

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
static bool round_trip(struct sim *f, sb_stream stream, float value) {
    const sb_backend *t = f->table;
    float values[VALUES];
    double sum = 0;
    void *ptr = NULL;
    void *event = NULL;
    for (int i = 0; i < VALUES; i++)
        values[i] = value;
    bool done = t->alloc(f->device, sizeof values, stream, &ptr, &err) == SB_OK &&
                t->upload(f->device, ptr, values, sizeof values, stream, &err) == SB_OK &&
                t->scale(f->device, SB_DTYPE_F32, VALUES, 2, ptr, stream, &err) == SB_OK;
    struct job job = {f->context, ptr};
    done = done && sb_sim_launch(f->context, stream, add_one, &job, &err) == SB_OK &&
           t->asum(f->device, SB_DTYPE_F32, VALUES, ptr, &sum, stream, &err) == SB_OK &&
           t->download(f->device, values, ptr, sizeof values, stream, &err) == SB_OK &&
           t->event_record(f->device, stream, &event, &err) == SB_OK;
    if (!done)
        return false;
    t->free(f->device, ptr, sizeof values, stream);
    done = t->event_wait(f->device, event, &err) == SB_OK;
    t->event_destroy(f->device, event);
    return done && values[VALUES - 1] == 2 * value + 1 && sum == (double)(VALUES * (2 * value + 1));
}

/* Writes and reads memory of sb_sim_malloc without streams. */
static bool poke_and_peek(struct sim *f, uint64_t value) {
    void *ptr = NULL;
    uint64_t found = 0;
    return sb_sim_malloc(f->context, sizeof value, &ptr, &err) == SB_OK &&
           sb_sim_poke(f->context, ptr, &value, sizeof value, &err) == SB_OK &&
           sb_sim_peek(f->context, &found, ptr, sizeof found, &err) == SB_OK &&
           sb_sim_free(f->context, ptr, &err) == SB_OK && found == value;
}

static void *work(void *user) {
    struct worker *w = user;
    sb_stream mine = NULL;
    w->right = true;
    for (int round = 0; round < ROUNDS && w->right; round++) {
        if (!mine)
            w->right = sb_sim_stream_create(w->f->context, &mine, &err) == SB_OK;
        uint64_t draw = test_random(&w->seed);
        sb_stream streams[] = {mine, w->f->own, NULL};
        w->right = w->right && round_trip(w->f, streams[draw % 3], (float)(draw % 1000)) &&
                   poke_and_peek(w->f, draw);
        if (draw % 16 == 0) {
            w->right = w->right && sb_sim_stream_destroy(w->f->context, mine, &err) == SB_OK;
            mine = NULL;
        }
        if (draw % 32 == 1)
            w->right = w->right && sb_sim_set_schedule(w->f->context, (int32_t)(draw / 64 % 3),
                                                       draw, &err) == SB_OK;
    }
    return NULL;
}

TEST_ON(sim, threads_do_not_disturb_each_other) {
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    set_schedule(f, SB_SIM_RANDOM, 1);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){f, (uint64_t)i + 1, false};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(workers[i].right);
    }
}
