/* Const access from many threads at once: one transfer, the right bytes, and
   (under ThreadSanitizer) no race. */
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 60 };
#define BYTES ((size_t)2048)

struct team {
    sb_mem *mem;
    pthread_barrier_t barrier;
    _Atomic int wrong;
    int32_t side; /* which side the members read; -1: both, in turns */
    void *(*task)(void *);
};

static void run_team_with(struct team *team, void *arg) {
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&team->barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, team->task, arg), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&team->barrier);
    assert_int_equal(atomic_load(&team->wrong), 0);
}

static void run_team(struct team *team) {
    run_team_with(team, team);
}

static void *read_side(void *arg) {
    struct team *team = arg;
    const void *ptr = NULL;
    pthread_barrier_wait(&team->barrier);
    sb_status status = team->side == SB_SIDE_CPU ? sb_mem_cpu_data(team->mem, &ptr, NULL)
                                                 : sb_mem_gpu_data(team->mem, &ptr, NULL);
    if (status != SB_OK || (team->side == SB_SIDE_CPU && !bytes_are(ptr, BYTES, 0x4b)))
        atomic_fetch_add(&team->wrong, 1);
    return NULL;
}

static void concurrent_readers_cause_one_transfer(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    void *out;
    rig_open(&rig, "sim:0", 0);
    struct team team = {.task = read_side};
    for (int round = 0; round < ROUNDS; round++) {
        team.side = round % 2 ? SB_SIDE_CPU : SB_SIDE_GPU;
        assert_ok(sb_sim_set_schedule(rig.context, round % 3, (uint64_t)round, &err));
        assert_ok(sb_mem_create(rig.context, BYTES, &team.mem, &err));
        assert_ok(sb_mem_overwrite_cpu(team.mem, &out, &err));
        memset(out, 0x4b, BYTES);
        if (team.side == SB_SIDE_CPU)
            assert_ok(sb_mem_mutable_gpu_data(team.mem, &out, &err));
        struct tally before = rig_tally(&rig);
        run_team(&team);
        struct tally t = rig_since(&rig, &before);
        assert_int_equal(t.uploads + t.downloads, 1);
        assert_int_equal(sb_mem_head(team.mem), SB_HEAD_SYNCED);
        sb_mem_release(team.mem);
    }
    rig_close(&rig);
}

static void *touch_first(void *arg) {
    struct team *team = arg;
    const void *ptr = NULL;
    pthread_barrier_wait(&team->barrier);
    if (sb_mem_cpu_data(team->mem, &ptr, NULL) != SB_OK || !bytes_are(ptr, BYTES, 0))
        atomic_fetch_add(&team->wrong, 1);
    if (sb_mem_gpu_data(team->mem, &ptr, NULL) != SB_OK)
        atomic_fetch_add(&team->wrong, 1);
    return NULL;
}

static void concurrent_first_touch_allocates_once(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    struct team team = {.task = touch_first};
    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(sb_mem_create(rig.context, BYTES, &team.mem, &err));
        struct tally before = rig_tally(&rig);
        run_team(&team);
        struct tally t = rig_since(&rig, &before);
        assert_int_equal(t.host_allocs, 1);
        assert_int_equal(t.device_allocs, 1);
        assert_int_equal(t.uploads, 1);
        sb_mem_release(team.mem);
    }
    rig_close(&rig);
}

static void *retain_and_release(void *arg) {
    struct team *team = arg;
    const void *ptr;
    sb_stats stats = SB_STATS_INIT;
    pthread_barrier_wait(&team->barrier);
    for (int i = 0; i < ROUNDS; i++) {
        sb_mem *mem = sb_mem_retain(team->mem);
        sb_context *context = sb_context_retain(sb_mem_context(mem));
        if (sb_mem_prefetch_gpu(mem, NULL, NULL) != SB_OK ||
            sb_mem_cpu_data(mem, &ptr, NULL) != SB_OK || !bytes_are(ptr, BYTES, 0x4b) ||
            sb_mem_synchronize(mem, NULL) != SB_OK || sb_mem_is_unique(mem) ||
            sb_context_stats(context, &stats, NULL) != SB_OK)
            atomic_fetch_add(&team->wrong, 1);
        if (i % 8 == 0)
            sb_context_trim(context);
        sb_mem_release(mem);
        sb_context_release(context);
    }
    return NULL;
}

static void references_and_prefetches_from_many_threads(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    void *out;
    rig_open(&rig, "sim:0", 0);
    struct team team = {.task = retain_and_release};
    assert_ok(sb_sim_set_schedule(rig.context, SB_SIM_RANDOM, 5, &err));
    assert_ok(sb_mem_create(rig.context, BYTES, &team.mem, &err));
    assert_ok(sb_mem_overwrite_cpu(team.mem, &out, &err));
    memset(out, 0x4b, BYTES);
    run_team(&team);
    assert_int_equal(sb_mem_is_unique(team.mem), 1);
    sb_mem_release(team.mem);
    rig_close(&rig);
}

static void *use_own_blobs(void *arg) {
    struct team *team = arg;
    pthread_barrier_wait(&team->barrier);
    for (int i = 0; i < ROUNDS; i++) {
        sb_blob *blob = NULL;
        float *x;
        double sum = 0;
        if (sb_blob_create_shaped(sb_mem_context(team->mem), SB_DTYPE_F32, (int64_t[]){100}, 1,
                                  &blob, NULL) != SB_OK ||
            sb_blob_overwrite_cpu_data_f32(blob, &x, NULL) != SB_OK) {
            atomic_fetch_add(&team->wrong, 1);
            return NULL;
        }
        for (int k = 0; k < 100; k++)
            x[k] = 1;
        if (sb_blob_mutable_gpu_data_f32(blob, &x, NULL) != SB_OK ||
            sb_blob_scale_data(blob, 3, NULL) != SB_OK ||
            sb_blob_asum_data(blob, &sum, NULL) != SB_OK || sum < 299.999 || sum > 300.001)
            atomic_fetch_add(&team->wrong, 1);
        sb_blob_destroy(blob);
    }
    return NULL;
}

static void blobs_of_one_context_on_many_threads(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", 0);
    struct team team = {.task = use_own_blobs};
    assert_ok(sb_mem_create(rig.context, BYTES, &team.mem, &err));
    run_team(&team);
    sb_mem_release(team.mem);
    rig_close(&rig);
}

/* Two blobs updated crosswise, copied both ways: no deadlock. */
struct pair {
    sb_blob *a, *b;
    struct team team;
    _Atomic int turn;
    sb_mem *_Atomic seen;
};

static void *cross(void *arg) {
    struct pair *pair = arg;
    struct team *team = &pair->team;
    bool first = atomic_fetch_add(&pair->turn, 1) % 2 == 0;
    const sb_blob *source = first ? pair->a : pair->b;
    pthread_barrier_wait(&team->barrier);
    for (int i = 0; i < ROUNDS; i++) {
        sb_blob *copy = NULL;
        double sum = 0;
        if (sb_blob_create(sb_blob_context(source), SB_DTYPE_F32, &copy, NULL) != SB_OK ||
            sb_blob_copy_from(copy, source, SB_COPY_RESHAPE, NULL) != SB_OK ||
            sb_blob_share_data(copy, first ? pair->b : pair->a, NULL) != SB_OK ||
            sb_blob_asum_data(copy, &sum, NULL) != SB_OK || sum < 9.99 || sum > 10.01)
            atomic_fetch_add(&team->wrong, 1);
        sb_blob_destroy(copy);
    }
    return NULL;
}

static void blobs_read_crosswise_do_not_deadlock(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    struct pair pair = {.team = {.task = cross}};
    sb_blob **both[] = {&pair.a, &pair.b};
    float *x;
    rig_open(&rig, "sim:0", 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(
            sb_blob_create_shaped(rig.context, SB_DTYPE_F32, (int64_t[]){10}, 1, both[i], &err));
        assert_ok(sb_blob_overwrite_cpu_data_f32(*both[i], &x, &err));
        for (int k = 0; k < 10; k++)
            x[k] = 1;
    }
    run_team_with(&pair.team, &pair);
    sb_blob_destroy(pair.a);
    sb_blob_destroy(pair.b);
    rig_close(&rig);
}

static void *ask_for_memories(void *arg) {
    struct pair *pair = arg;
    sb_mem *data = NULL, *diff = NULL;
    const void *ptr;
    pthread_barrier_wait(&pair->team.barrier);
    if (sb_blob_mutable_data(pair->a, &data, NULL) != SB_OK ||
        sb_blob_mutable_diff(pair->a, &diff, NULL) != SB_OK ||
        sb_blob_cpu_data(pair->a, &ptr, NULL) != SB_OK || !bytes_are(ptr, 40, 0) || data == diff)
        atomic_fetch_add(&pair->team.wrong, 1);
    sb_mem *first = NULL;
    if (!atomic_compare_exchange_strong(&pair->seen, &first, data) && first != data)
        atomic_fetch_add(&pair->team.wrong, 1);
    return NULL;
}

static void concurrent_readers_make_one_memory(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct pair pair = {.team = {.task = ask_for_memories}};
        assert_ok(
            sb_blob_create_shaped(rig.context, SB_DTYPE_F32, (int64_t[]){10}, 1, &pair.a, &err));
        run_team_with(&pair.team, &pair);
        sb_blob_destroy(pair.a);
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concurrent_readers_cause_one_transfer),
        cmocka_unit_test(concurrent_first_touch_allocates_once),
        cmocka_unit_test(references_and_prefetches_from_many_threads),
        cmocka_unit_test(blobs_of_one_context_on_many_threads),
        cmocka_unit_test(blobs_read_crosswise_do_not_deadlock),
        cmocka_unit_test(concurrent_readers_make_one_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
