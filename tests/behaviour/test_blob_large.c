/* Tests arithmetic, reads and copies of more than 2^31 elements. The blobs borrow memory that maps
   one small file, the chunk, many times in a row. */
#include "blobs.h"
#include "tiles.h"

#include <errno.h>

#define CHUNK_BYTES ((size_t)32 << 20)
#define CHUNK       ((int64_t)(CHUNK_BYTES / sizeof(float)))
#define MAPS        257                         /* 2^31 elements are 256 chunks */
#define PART        1001                        /* elements of the blob in the last chunk */
#define COUNT       (CHUNK * (MAPS - 1) + PART) /* 2^31 + 1001 */

/* Maps the same CHUNK_BYTES of memory at MAPS consecutive addresses, or skips the test. */
static float *map_over_and_over(void) {
    float *base = map_tiles(CHUNK_BYTES, CHUNK_BYTES * MAPS);
    if (base)
        return base;
    print_message("skipped: this machine cannot map %zu MiB: %s\n", CHUNK_BYTES * MAPS >> 20,
                  strerror(errno));
    test_skip();
}

static void unmap(void *user, void *ptr) {
    ++*(int *)user;
    (void)munmap(ptr, CHUNK_BYTES * MAPS);
}

struct large {
    sb_blob *blob;
    float *x;
    int unmapped, diffs, diffs_unmapped;
};

static void large_open(struct large *large) {
    skip_when_quick();
    skip_without_memory(2 * CHUNK_BYTES, 2 * CHUNK_BYTES * MAPS);
    *large = (struct large){.x = map_over_and_over()};
    assert_true(COUNT > INT64_C(1) << 31);
    large->blob = blob_of_count(NULL, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_set_cpu(large->blob, SB_DATA, large->x, CHUNK_BYTES * MAPS, 0, unmap,
                              &large->unmapped, &err));
}

static void large_close(struct large *large) {
    sb_blob_destroy(large->blob);
    assert_int_equal(large->unmapped, 1);
    assert_int_equal(large->diffs_unmapped, large->diffs);
}

static void fill_chunk(float *x, float value) {
    for (int64_t i = 0; i < CHUNK; i++)
        x[i] = value;
}

TEST_ON(large, sums_reach_past_two_to_the_31) {
    double sum = 0;
    fill_chunk(f->x, -1);
    f->x[PART - 1] = 3; /* sets MAPS elements, including the blob's last element */
    f->x[PART] = 5;     /* sets MAPS - 1 elements of the blob */
    assert_ok(sb_blob_asum(f->blob, SB_DATA, &sum, &err));
    double expected = (double)COUNT + 2.0 * MAPS + 4.0 * (MAPS - 1);
    assert_true(sum > expected * (1 - 1e-6) && sum < expected * (1 + 1e-6));
    assert_ok(sb_blob_sumsq(f->blob, SB_DATA, &sum, &err));
    expected = (double)COUNT + 8.0 * MAPS + 24.0 * (MAPS - 1);
    assert_true(sum > expected * (1 - 1e-6) && sum < expected * (1 + 1e-6));
}

/* The blob contains the chunk 256 times, so scaling by -1 flips each sign 256 times, which restores
   the sign. The first PART elements are in the blob 257 times, so their signs end flipped. */
TEST_ON(large, scaling_touches_each_element_once) {
    fill_chunk(f->x, 1);
    assert_ok(sb_blob_scale(f->blob, SB_DATA, -1, &err));
    for (int64_t i = 0; i < CHUNK; i++)
        if (f->x[i] != (i < PART ? -1.0f : 1.0f))
            fail_with("element %lld of a chunk is %g", (long long)i, (double)f->x[i]);
}

TEST_ON(large, update_touches_each_element_once) {
    float *diff = map_over_and_over();
    f->diffs++;
    fill_chunk(f->x, 1000);
    fill_chunk(diff, 2);
    assert_ok(sb_mem_set_cpu(diff_of(f->blob), diff, (size_t)COUNT * sizeof(float), 0, unmap,
                             &f->diffs_unmapped, &err));
    assert_ok(sb_blob_update(f->blob, &err));
    for (int64_t i = 0; i < CHUNK; i++)
        if (f->x[i] != 1000.0f - 2.0f * (float)(i < PART ? MAPS : MAPS - 1))
            fail_with("element %lld of a chunk is %g", (long long)i, (double)f->x[i]);
}

TEST_ON(large, elements_past_two_to_the_31_are_read) {
    float value = 0;
    f->x[PART - 1] = 42;
    const int64_t last = COUNT - 1;
    assert_ok(sb_blob_at_f32(f->blob, SB_DATA, &last, 1, &value, &err));
    assert_true(value == 42);
    assert_ok(sb_blob_data_at_legacy(f->blob, last, 0, 0, 0, &value, &err));
    assert_true(value == 42);
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE,
                  sb_blob_at_f32(f->blob, SB_DATA, &(int64_t){COUNT}, 1, &value, &err));
}

TEST_ON(large, clearing_reaches_past_two_to_the_31) {
    double sum = -1;
    fill_chunk(f->x, 7);
    assert_ok(sb_blob_clear(f->blob, SB_DATA, &err));
    assert_ok(sb_blob_asum(f->blob, SB_DATA, &sum, &err));
    assert_true(sum == 0);
}

/* The target's last chunk is separate memory, so its bytes show how many elements were copied. */
TEST_ON(large, copying_reaches_past_two_to_the_31) {
    enum { WINDOW = 65536 };
    struct large to;
    skip_without_memory(3 * CHUNK_BYTES, 4 * CHUNK_BYTES * MAPS);
    large_open(&to);
    fill_chunk(f->x, 7);
    float *end = mmap(to.x + CHUNK * (MAPS - 1), WINDOW, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(end, to.x + CHUNK * (MAPS - 1));
    assert_ok(sb_blob_copy_from(to.blob, SB_DATA, f->blob, 0, &err));
    for (size_t i = 0; i < WINDOW / sizeof(float); i++)
        assert_true(end[i] == (i < PART ? 7 : 0));
    large_close(&to);
}
