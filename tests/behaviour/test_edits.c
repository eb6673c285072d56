/* Tests the tree of a model's edits, and the texts and names of added layers. */
#include "blobs.h"

#include "base/hash.h"
#include "model/edits.h"
#include "model/index.h"
#include "model/texts.h"

#define MANY  100000
#define DEPTH 64 /* the most edits that a search may visit; about 40 are usual */

static void put(struct sb__edits *edits, int64_t layer, int64_t index) {
    const struct sb__edit edit = {
        .layer = (int32_t)layer, .index = (int32_t)index, .size = (size_t)(layer + index)};
    assert_ok(sb__edits_reserve(edits, sb__context(NULL), &err));
    sb__edits_add(edits, &edit);
}

static void check(const struct sb__edits *edits, int64_t count) {
    int64_t place = 0;
    const struct sb__edit *edit = sb__edits_from(edits, 0, 0);
    for (; edit; edit = sb__edits_next(edits, edit), place++) {
        assert_int_equal(edit->layer, place / 2);
        assert_int_equal(edit->index, place % 2);
        assert_int_equal(edit->size, place / 2 + place % 2);
        assert_ptr_equal(sb__edits_find(edits, place / 2, place % 2), edit);
        assert_null(sb__edits_find(edits, place / 2, 2));
    }
    assert_int_equal(place, count);
    for (int64_t layer = 0; layer <= count / 2; layer++) {
        const struct sb__edit *last = sb__edits_last_of(edits, layer);
        const int64_t left = count - 2 * layer;
        assert_int_equal(last ? last->index : -1, (left < 2 ? left : 2) - 1);
    }
    assert_null(sb__edits_last_of(edits, -1));
    assert_ptr_equal(sb__edits_last(edits),
                     sb__edits_find(edits, (count - 1) / 2, (count - 1) % 2));
}

static void pop_all(struct sb__edits *edits, int64_t count) {
    while (count-- > 0) {
        struct sb__edit popped = sb__edits_pop(edits);
        assert_int_equal(2 * popped.layer + popped.index, count);
        check(edits, count);
        put(edits, popped.layer, popped.index);
        check(edits, count + 1);
        popped = sb__edits_pop(edits);
        assert_int_equal(2 * popped.layer + popped.index, count);
    }
    sb__edits_free(edits, sb__context(NULL));
}

TEST(every_order_of_seven_is_sorted) {
    enum { COUNT = 7 };
    int64_t orders = 1;
    for (int64_t i = 2; i <= COUNT; i++)
        orders *= i;
    for (int64_t order = 0; order < orders; order++) {
        struct sb__edits edits = {.count = 0};
        int64_t places[COUNT], rest = order;
        for (int64_t i = 0; i < COUNT; i++)
            places[i] = i;
        for (int64_t i = COUNT; i > 0; rest /= i, i--) {
            const int64_t chosen = rest % i, place = places[chosen];
            places[chosen] = places[i - 1];
            put(&edits, place / 2, place % 2);
        }
        check(&edits, COUNT);
        pop_all(&edits, COUNT);
    }
}

static int64_t depth_of(const struct sb__edits *edits, const struct sb__edit *edit) {
    int64_t depth = 1;
    const struct sb__edit *top = &edits->items[edits->root - 1];
    for (; top != edit; depth++) {
        const bool behind =
            top->layer < edit->layer || (top->layer == edit->layer && top->index < edit->index);
        top = &edits->items[(behind ? top->behind : top->before) - 1];
    }
    return depth;
}

TEST(no_search_is_long) {
    for (int kind = 0; kind < 6; kind++) {
        struct sb__edits edits = {.count = 0};
        for (int64_t i = 0; i < MANY; i++) {
            const int64_t place = kind % 3 == 0   ? i
                                  : kind % 3 == 1 ? MANY - 1 - i
                                                  : i * 1000003 % MANY;
            put(&edits, kind < 3 ? place : -1, kind < 3 ? 0 : place);
        }
        int64_t deepest = 0;
        for (size_t i = 0; i < edits.count; i++) {
            const int64_t depth = depth_of(&edits, &edits.items[i]);
            deepest = depth > deepest ? depth : deepest;
        }
        if (deepest > DEPTH)
            fail_with("order %d: a search looks at %lld of %d edits", kind, (long long)deepest,
                      MANY);
        sb__edits_free(&edits, sb__context(NULL));
    }
}

static char *take(struct sb__texts *texts, sb_context *context, size_t bytes) {
    char *at;
    assert_ok(sb__texts_take(texts, context, bytes, &at, &err));
    memset(at, (int)(bytes % 251), bytes);
    return at;
}

TEST_ON(rig, texts_come_and_go_in_reverse_order) {
    enum { MOST = 3000 };
    static struct {
        char *at;
        size_t bytes;
    } taken[MOST];
    uint64_t seed = 11;
    struct sb__texts texts = {NULL, 0};
    const int64_t blocks = f->counting.live_blocks;
    for (int round = 0; round < 6; round++) {
        size_t count = 0, held = 0;
        while (count < MOST) {
            const size_t bytes = 1 + (size_t)(test_random(&seed) % (count % 500 ? 40 : 9000));
            taken[count].bytes = bytes;
            taken[count++].at = take(&texts, f->context, bytes);
            held += bytes;
            if (test_random(&seed) % 2 && count < MOST) {
                held -= taken[--count].bytes;
                sb__texts_release(&texts, f->context, taken[count].bytes);
            }
        }
        assert_true(f->counting.live_blocks - blocks < 60 && texts.room >= held);
        for (size_t i = 0; i < count; i++)
            assert_true(bytes_are(taken[i].at, taken[i].bytes, (int)(taken[i].bytes % 251)));
        while (round > 0 && count > 0)
            sb__texts_release(&texts, f->context, taken[--count].bytes);
        assert_true(round == 0 || texts.room == 0);
        sb__texts_free(&texts, f->context);
        assert_int_equal(f->counting.live_blocks, blocks);
        texts = (struct sb__texts){NULL, 0};
    }
}

TEST_ON(rig, texts_leave_little_memory_unused) {
    for (int is_long = 0; is_long < 2; is_long++) {
        const size_t bytes = is_long ? 65536 : 25, all = (size_t)(is_long ? 40 : 3) << 20;
        const size_t ends = is_long ? (size_t)1 << 20 : 3000;
        struct sb__texts texts = {NULL, 0};
        const int64_t blocks = f->counting.live_blocks;
        const size_t before = f->counting.live_bytes;
        for (size_t held = bytes; held <= all; held += bytes) {
            (void)take(&texts, f->context, bytes);
            const size_t unused = f->counting.live_bytes - before - held;
            if (held > 10000)
                assert_true(unused <= held / 4 + ends && unused < (size_t)5 << 20);
        }
        assert_true(f->counting.live_blocks - blocks < 60);
        sb__texts_free(&texts, f->context);
    }
}

TEST_ON(rig, a_text_that_cannot_be_allocated_changes_nothing) {
    struct sb__texts texts = {NULL, 0};
    (void)take(&texts, f->context, 900);
    const struct sb__texts were = texts;
    f->counting.fail_nth = 1;
    char *at = NULL;
    for (int i = 0; i < 2; i++)
        assert_status(SB_ERR_OUT_OF_MEMORY,
                      sb__texts_take(&texts, f->context, i ? SIZE_MAX : 200, &at, &err));
    assert_null(at);
    assert_memory_equal(&texts, &were, sizeof texts);
    (void)take(&texts, f->context, 100);
    assert_ptr_equal(texts.last, were.last);
    sb__texts_free(&texts, f->context);
}

/* The test changes a name after its hash was stored, so that two names have equal hashes. */
TEST(names_with_equal_hashes_are_distinguished_and_hashes_have_a_random_key) {
    static const uint64_t zeros[2];
    char text[] = "conv1";
    struct sb__layer layer = {.name = text, .name_size = 5};
    struct sb__named slots[8] = {{0}};
    struct sb__names names;
    sb__names_begin(&names, slots, 1);
    sb__names_add(&names, &layer, 0);
    assert_int_equal(names.room, 8);
    assert_int_equal(slots[0].place, 1);
    assert_int_not_equal(slots[0].hash, (uint32_t)sb__hash(zeros, text, 5));
    assert_int_equal(sb__names_find(&names, &layer, "conv1", 5), 0);
    text[4] = '2';
    assert_int_equal(sb__names_find(&names, &layer, "conv1", 5), -1);
    text[4] = '1'; /* the shorter name below ends before this byte */
    layer.name_size = 4;
    assert_int_equal(sb__names_find(&names, &layer, "conv1", 5), -1);
}

TEST(names_stay_in_their_table) {
    enum { LAYERS = 12, ROOM = 16 };
    for (int round = 0; round < 100; round++) {
        struct sb__layer layers[LAYERS];
        struct sb__named slots[2 * ROOM] = {{0}};
        struct sb__names names;
        char texts[LAYERS][8];
        sb__names_begin(&names, slots, LAYERS);
        assert_int_equal(names.room, ROOM);
        for (uint32_t i = 0; i < LAYERS; i++) {
            const int size =
                snprintf(texts[i], sizeof texts[i], "%u", (unsigned)round * LAYERS + i);
            layers[i] = (struct sb__layer){.name = texts[i], .name_size = (uint32_t)size};
            sb__names_add(&names, layers, i);
        }
        for (uint32_t i = 0; i < LAYERS; i++)
            assert_int_equal(sb__names_find(&names, layers, texts[i], layers[i].name_size), i);
        sb__names_take_back(&names, layers, 0);
        for (uint32_t i = 0; i < LAYERS; i++)
            assert_int_equal(sb__names_find(&names, layers, texts[i], layers[i].name_size),
                             i > 0 ? (int)i : -1);
        for (int i = ROOM; i < 2 * ROOM; i++)
            assert_int_equal(slots[i].place, 0);
    }
}
