/* Makes every call on objects whose deleters make every other call on the same objects. */
#include "every_call.h"

static const struct every_call *inner; /* the call that the first deleter makes */

static void call_once(struct world *world) {
    world->callback = NULL;
    inner->run(world);
}

/* Returns whether a deleter ran and made its call. */
static bool try_pair(const struct every_call *outer, enum world_storage storage, bool has_room) {
    struct world world;
    world_open(&world, storage, has_room, 3);
    world.callback = call_once;
    outer->run(&world);
    const bool called = !world.callback;
    world.callback = NULL;
    world_use(&world);
    world_close(&world);
    return called;
}

/* Tries each outer call with each inner call, which a deleter makes. Skips the remaining inner
   calls if the outer call runs no deleter with this kind of storage. */
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
    char line[256], name[128];
    int functions = 0;
    FILE *map = fopen(SB_SOURCE_DIR "/c/abi/libsyncblob.map", "r");
    assert_non_null(map);
    while (fgets(line, sizeof line, map))
        if (sscanf(line, " sb_%119[a-z0-9_];", name + 3) == 1) {
            memcpy(name, "sb_", 3);
            functions++;
            if (!is_listed(name))
                fail_with("%s is not in every_call.c", name);
        }
    (void)fclose(map);
    assert_true(functions > 100);
}
