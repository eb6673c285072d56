/* Calls on two memories cross each other without a deadlock, since none holds
   two locks. A hang ends the program. */
#include "blobs.h"
#include "team.h"

#include "blob/blob.h"

#include <string.h>
#include <unistd.h>

enum { COUNT = 64, ROUNDS = 300, LIMIT = 100 /* seconds */ };

/* Two memories and, for each of two threads, two blobs: left has x as data and y as diff, right
   the other way round. */
struct crossed {
    struct rig rig;
    sb_mem *x, *y;
    sb_blob *left[2], *right[2];
    pthread_mutex_t turn;
    _Atomic int wrong;
};

static sb_mem *mem_of(sb_context *context, float value, int32_t head) {
    sb_mem *mem;
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = value;
    assert_ok(sb_mem_create(context, sizeof values, &mem, &err));
    mem_place(mem, head, values, sizeof values);
    return mem;
}

static sb_blob *blob_over(sb_context *context, sb_mem *data, sb_mem *diff) {
    sb_blob *blob = blob_of_count(context, SB_DTYPE_F32, COUNT);
    sb__replace(&blob->memory[SB_DATA], sb_mem_retain(data));
    sb__replace(&blob->memory[SB_DIFF], sb_mem_retain(diff));
    return blob;
}

static void crossed_open(struct crossed *c, int32_t schedule, float x, int32_t x_head, float y,
                         int32_t y_head) {
    memset(c, 0, sizeof *c);
    rig_open(&c->rig);
    (void)pthread_mutex_init(&c->turn, NULL);
    c->x = mem_of(c->rig.context, x, x_head);
    c->y = mem_of(c->rig.context, y, y_head);
    for (int i = 0; i < 2; i++) {
        c->left[i] = blob_over(c->rig.context, c->x, c->y);
        c->right[i] = blob_over(c->rig.context, c->y, c->x);
    }
    assert_ok(sb_sim_set_schedule(c->rig.context, schedule, 7, &err));
}

static bool all_are(const sb_mem *mem, float value) {
    float values[COUNT];
    mem_look(mem, values, sizeof values);
    for (int i = 0; i < COUNT; i++)
        if (values[i] != value)
            return false;
    return true;
}

static void crossed_close(struct crossed *c, float x, float y) {
    assert_int_equal(atomic_load(&c->wrong), 0);
    assert_true(all_are(c->x, x));
    assert_true(all_are(c->y, y));
    for (int i = 0; i < 2; i++) {
        sb_blob_destroy(c->left[i]);
        sb_blob_destroy(c->right[i]);
    }
    sb_mem_release(c->x);
    sb_mem_release(c->y);
    (void)pthread_mutex_destroy(&c->turn);
    rig_close(&c->rig);
}

static void expect(struct crossed *c, bool right) {
    if (!right)
        atomic_fetch_add_explicit(&c->wrong, 1, memory_order_relaxed);
}

static const int32_t heads[] = {SB_HEAD_AT_CPU, SB_HEAD_AT_GPU, SB_HEAD_SYNCED};

/* Each turn takes (2, 1) to itself: x = (x - y) * 2, or y = (y - x) * -1. */
static void update_in_turns(void *arg, int member) {
    struct crossed *c = arg;
    sb_blob *blob = member ? c->right[1] : c->left[0];
    double sum = 0;
    for (int i = 0; i < ROUNDS / 10; i++) {
        (void)pthread_mutex_lock(&c->turn);
        expect(c, sb_blob_update(blob, NULL) == SB_OK);
        expect(c, sb_blob_scale(blob, SB_DATA, member ? -1 : 2, NULL) == SB_OK);
        expect(c,
               sb_blob_asum(blob, SB_DATA, &sum, NULL) == SB_OK && sum == (member ? 1 : 2) * COUNT);
        (void)pthread_mutex_unlock(&c->turn);
    }
}

TEST(crossed_updates_in_turns_are_exact) {
    for (int32_t schedule = SB_SIM_EAGER; schedule <= SB_SIM_RANDOM; schedule++)
        for (int x = 0; x < 3; x++)
            for (int y = 0; y < 3; y++) {
                struct crossed c;
                crossed_open(&c, schedule, 2, heads[x], 1, heads[y]);
                team_run(2, update_in_turns, &c);
                crossed_close(&c, 2, 1);
            }
}

/* From here on the threads do not exclude each other, as the contract asks for the sake of the
   bytes: the bytes are such that every order of the work gives the same. */

static void update_at_once(void *arg, int member) {
    struct crossed *c = arg;
    sb_blob *blob = member ? c->right[1] : c->left[0];
    for (int i = 0; i < ROUNDS; i++)
        expect(c, sb_blob_update(blob, NULL) == SB_OK);
}

TEST(crossed_updates_at_once_end) {
    struct crossed c;
    crossed_open(&c, SB_SIM_EAGER, 0, SB_HEAD_AT_GPU, 0, SB_HEAD_AT_GPU);
    team_run(2, update_at_once, &c);
    crossed_close(&c, 0, 0);
}

static void copy_at_once(void *arg, int member) {
    struct crossed *c = arg;
    sb_blob *to = member ? c->right[1] : c->left[0];
    const sb_blob *from = member ? c->left[1] : c->right[0];
    for (int i = 0; i < ROUNDS; i++)
        expect(c, sb_blob_copy_from(to, SB_DATA, from, 0, NULL) == SB_OK);
}

TEST(crossed_copies_at_once_end) {
    struct crossed c;
    crossed_open(&c, SB_SIM_EAGER, 5, SB_HEAD_AT_GPU, 5, SB_HEAD_AT_GPU);
    team_run(2, copy_at_once, &c);
    crossed_close(&c, 5, 5);
}

static void update_with_itself(void *arg, int member) {
    struct crossed *c = arg;
    for (int i = 0; i < ROUNDS; i++)
        expect(c, sb_blob_update(c->left[member], NULL) == SB_OK);
}

TEST(data_shared_with_diff_updates_to_zero) {
    struct crossed c;
    crossed_open(&c, SB_SIM_EAGER, 9, SB_HEAD_AT_GPU, 3, SB_HEAD_AT_GPU);
    for (int i = 0; i < 2; i++)
        sb__replace(&c.left[i]->memory[SB_DIFF], sb_mem_retain(c.x));
    team_run(2, update_with_itself, &c);
    crossed_close(&c, 0, 3);
}

/* The same blob, and two blobs over one memory. */
static void copy_to_itself(void *arg, int member) {
    struct crossed *c = arg;
    double sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        expect(c, sb_blob_copy_from(c->left[member], SB_DATA, c->left[member], 0, NULL) == SB_OK);
        expect(c, sb_blob_copy_from(c->left[member], SB_DIFF, c->left[member], 0, NULL) == SB_OK);
        expect(c, sb_blob_asum(c->left[member], SB_DATA, &sum, NULL) == SB_OK && sum == 9 * COUNT);
    }
}

static void copy_to_sharer(void *arg, int member) {
    struct crossed *c = arg;
    double sum = 0;
    sb_blob *blob = member ? c->right[0] : c->left[0], *sharer = member ? c->right[1] : c->left[1];
    for (int i = 0; i < ROUNDS; i++) {
        expect(c, sb_blob_copy_from(blob, SB_DATA, sharer, 0, NULL) == SB_OK);
        expect(c, sb_blob_sumsq(blob, SB_DIFF, &sum, NULL) == SB_OK);
        expect(c, sum == (member ? 81 : 9) * COUNT);
    }
}

TEST(copies_to_themselves_change_nothing) {
    for (int x = 0; x < 3; x++) {
        struct crossed c;
        crossed_open(&c, SB_SIM_LAZY, 9, heads[x], 3, SB_HEAD_AT_CPU);
        struct tally before = rig_tally(&c.rig);
        team_run(2, copy_to_itself, &c);
        team_run(2, copy_to_sharer, &c);
        struct tally since = rig_since(&c.rig, &before);
        assert_int_equal(since.host_copies + since.device_copies + since.uploads, 0);
        assert_int_equal(since.downloads, 0);
        crossed_close(&c, 9, 3);
    }
}

int main(void) {
    (void)alarm(LIMIT);
    return run_all_tests();
}
