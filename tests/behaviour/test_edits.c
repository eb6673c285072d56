/* Tests the tree of a model's edits. Edits that were added in any order are found, listed and
   removed as in a sorted list, and no path through the tree is long. */
#include "model/edits.h"
#include "support.h"

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
