/* Tests the tree of a model's edits and the texts of its added layers. Edits that were added in any
   order are found, listed and removed as in a sorted list, and no path through the tree is long.
   Texts do not move, and waste little memory. */
#include "blobs.h"

#include "model/edits.h"
#include "model/texts.h"

/* --- edits ---------------------------------------------------------------------------------- */

#define MANY  100000
#define DEPTH 64 /* a bound far below MANY; the depth is about 40 */

static void put(struct sb__edits *edits, int64_t layer, int64_t index) {
    const struct sb__edit edit = {
        .layer = (int32_t)layer, .index = (int32_t)index, .size = (size_t)(layer + index)};
    assert_ok(sb__edits_reserve(edits, sb__context(NULL), &err));
    sb__edits_add(edits, &edit);
}

/* Checks that `count` edits exist: an edit of blob 0 and an edit of blob 1 of each layer. */
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

/* Returns how many edits a search for `edit` visits. */
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

/* Adds MANY edits in three orders, to MANY layers (kinds 0 to 2) and to one layer (3 to 5). */
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

/* --- texts ---------------------------------------------------------------------------------- */

enum { MOST = 3000 };

struct taken {
    char *at;
    size_t bytes;
    unsigned char fill;
};

static void take(struct sb__texts *texts, sb_context *context, struct taken *taken, size_t bytes,
                 unsigned char fill) {
    *taken = (struct taken){NULL, bytes, fill};
    assert_ok(sb__texts_take(texts, context, bytes, &taken->at, &err));
    memset(taken->at, fill, bytes);
}

static void assert_all_there(const struct taken *taken, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_true(bytes_are(taken[i].at, taken[i].bytes, taken[i].fill));
}

TEST_ON(rig, texts_come_and_go_in_reverse_order) {
    static struct taken taken[MOST];
    uint64_t seed = 11;
    struct sb__texts texts = {NULL, 0};
    const int64_t blocks = f->counting.live_blocks;
    for (int round = 0; round < 6; round++) {
        size_t count = 0, held = 0;
        while (count < MOST) {
            const bool is_long = test_random(&seed) % 500 == 0;
            if (count > 0 && test_random(&seed) % 3 == 0) {
                held -= taken[--count].bytes;
                sb__texts_release(&texts, f->context, taken[count].bytes);
                continue;
            }
            const size_t bytes = 1 + (size_t)(test_random(&seed) % (is_long ? 9000 : 40));
            take(&texts, f->context, &taken[count], bytes, (unsigned char)(1 + count % 251));
            count++;
            held += bytes;
        }
        assert_all_there(taken, count);
        assert_true(f->counting.live_blocks - blocks < 60);
        assert_true(texts.room >= held);
        if (round == 0) { /* frees all texts together, not one by one */
            sb__texts_free(&texts, f->context);
            assert_int_equal(f->counting.live_blocks, blocks);
            continue;
        }
        while (count > 0) {
            sb__texts_release(&texts, f->context, taken[--count].bytes);
            if (count % 100 == 0)
                assert_all_there(taken, count);
        }
        assert_int_equal(f->counting.live_blocks, blocks);
        assert_int_equal(texts.room, 0);
    }
}

/* Many texts need few blocks. They leave a quarter of their size unused at most, and at most the
   4 MiB of one block. */
TEST_ON(rig, texts_leave_little_memory_unused) {
    for (int is_long = 0; is_long < 2; is_long++) {
        const size_t bytes = is_long ? 65536 : 25, all = (size_t)(is_long ? 40 : 3) << 20;
        const size_t ends = is_long ? (size_t)1 << 20 : 3000; /* the ends of full blocks */
        struct taken taken;
        struct sb__texts texts = {NULL, 0};
        const int64_t blocks = f->counting.live_blocks;
        const size_t before = f->counting.live_bytes;
        for (size_t held = bytes; held <= all; held += bytes) {
            take(&texts, f->context, &taken, bytes, 1);
            const size_t unused = f->counting.live_bytes - before - held;
            if (held > 10000)
                assert_true(unused <= held / 4 + ends && unused < (size_t)5 << 20);
        }
        assert_true(f->counting.live_blocks - blocks < 60);
        sb__texts_free(&texts, f->context);
    }
}

TEST_ON(rig, a_text_that_cannot_be_allocated_changes_nothing) {
    struct taken taken;
    struct sb__texts texts = {NULL, 0};
    take(&texts, f->context, &taken, 900, 1);
    const struct sb__texts were = texts;
    const size_t used = texts.last->used;
    f->counting.fail_nth = 1;
    char *at = NULL;
    assert_status(SB_ERR_OUT_OF_MEMORY, sb__texts_take(&texts, f->context, 200, &at, &err));
    assert_null(at);
    assert_memory_equal(&texts, &were, sizeof texts);
    assert_int_equal(texts.last->used, used);
    assert_status(SB_ERR_OUT_OF_MEMORY, sb__texts_take(&texts, f->context, SIZE_MAX, &at, &err));
    assert_memory_equal(&texts, &were, sizeof texts);
    take(&texts, f->context, &taken, 100, 2); /* fits in the last block */
    assert_ptr_equal(texts.last, were.last);
    sb__texts_free(&texts, f->context);
}
