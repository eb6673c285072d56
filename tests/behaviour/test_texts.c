/* Tests that texts of added layers do not move, and waste little memory. */
#include "rig.h"

#include "model/texts.h"

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
