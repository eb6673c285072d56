/* Tests that callbacks may call the library. */
#include "every_call.h"

static const struct every_call *inner; /* the call that the first deleter makes */

static void call_once(struct world *world) {
    world->callback = NULL;
    inner->run(world);
}

static bool try_pair(const struct every_call *outer, enum world_storage storage, bool has_room) {
    struct world world;
    world_open(&world, storage, has_room, 3, 0);
    world.callback = call_once;
    outer->run(&world);
    const bool called = !world.callback;
    world.callback = NULL;
    world_use(&world);
    world_close(&world);
    return called;
}

static int64_t try_all(enum world_storage storage, bool has_room) {
    const int step = test_is_quick() ? 7 : 1;
    int64_t called = 0;
    for (int i = 0; i < every_call_count; i++)
        for (int j = (i + (int)storage) % step; j < every_call_count; j += step) {
            inner = &every_call[j];
            if (!try_pair(&every_call[i], storage, has_room))
                break;
            called++;
        }
    return called;
}

TEST(every_call_survives_every_other_call_by_its_deleters) {
    for (int storage = 0; storage < WORLD_STORAGES; storage++)
        for (int has_room = 0; has_room <= 1; has_room++) {
            const int64_t called = try_all((enum world_storage)storage, has_room);
            assert_true(called > every_call_count / 7);
        }
}

static bool is_listed(const char *name) {
    for (int i = 0; i < every_call_count; i++)
        if (strcmp(every_call[i].name, name) == 0)
            return true;
    for (const char *const *other = not_in_every_call; *other; other++)
        if (strcmp(*other, name) == 0)
            return true;
    return false;
}

TEST(every_exported_function_is_called_or_left_out_for_a_reason) {
    static const char *const maps[] = {SB_SOURCE_DIR "/c/abi/libsyncblob.map",
                                       SB_SOURCE_DIR "/c/comm/libsyncblob-comm.map"};
    char line[256], name[128];
    int functions = 0;
    for (int i = 0; i < 2; i++) {
        FILE *map = fopen(maps[i], "r");
        assert_non_null(map);
        while (fgets(line, sizeof line, map))
            if (sscanf(line, " sb_%119[a-z0-9_];", name + 3) == 1) {
                memcpy(name, "sb_", 3);
                functions++;
                if (!is_listed(name))
                    fail_with("%s is not in every_call.c", name);
            }
        (void)fclose(map);
    }
    assert_true(functions > 100);
}

#define DEEPEST 3
#define CALLS   24

static const struct every_call *draw(struct world *w) {
    return &every_call[test_random(&w->random) % (uint64_t)every_call_count];
}

static int64_t by_deleters, by_visits[WORLD_COMPUTES + 1];

static bool run_call(struct world *w, const struct every_call *call) {
    if (w->depth >= DEEPEST || (w->keeps && call->ends))
        return false;
    w->depth++;
    call->run(w);
    w->depth--;
    return true;
}

static bool call_any(struct world *w) {
    return run_call(w, draw(w));
}

static bool call_const(struct world *w) {
    const struct every_call *call = draw(w);
    return call->is_const && run_call(w, call);
}

static void call_in_deleter(struct world *w) {
    by_deleters += call_any(w);
}

/* During the inner call, the members of `w` that the outer call uses are NULL. */
static bool call_beside(struct world *w, enum world_visit where) {
    const struct world all = *w;
    w->keeps = true;
    w->blob = NULL;
    w->reducer = NULL;
    w->comm = NULL;
    if (where == WORLD_LOADS)
        w->model = NULL;
    else
        w->other = NULL;
    const bool called = call_any(w);
    w->keeps = all.keeps;
    w->blob = all.blob;
    w->other = all.other;
    w->model = all.model;
    w->reducer = all.reducer;
    w->comm = all.comm;
    return called;
}

static void visit(struct world *w, enum world_visit where) {
    by_visits[where] += where == WORLD_WRITES ? call_const(w) : call_beside(w, where);
}

static void live(uint64_t seed) {
    struct world world;
    uint64_t random = seed;
    const int storage = (int)(test_random(&random) % WORLD_STORAGES);
    const bool has_room = test_random(&random) % 2, is_large = test_random(&random) % 16 == 0;
    world_open(&world, (enum world_storage)storage, has_room, is_large ? 150000 : 3, 0);
    world.random = random;
    world.callback = call_in_deleter;
    world.visit = visit;
    for (int i = 0; i < CALLS; i++)
        draw(&world)->run(&world);
    world.callback = NULL;
    world.visit = NULL;
    world_use(&world);
    world_close(&world);
}

TEST(calls_survive_random_calls_by_their_callbacks) {
    const uint64_t worlds = test_is_full() ? 200000 : test_is_quick() ? 1500 : 15000;
    const char *seed = getenv("SYNCBLOB_TEST_SEED");
    const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    for (uint64_t i = 0; i < worlds; i++)
        live(first + i);
    assert_true(by_deleters > (int64_t)worlds);
    for (int where = WORLD_LOADS; where <= WORLD_COMPUTES; where++)
        assert_true(by_visits[where] > (int64_t)worlds / 100);
}
