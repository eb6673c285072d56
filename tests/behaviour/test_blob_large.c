/* Tests arithmetic, reads and copies of more than 2^31 elements. The blobs borrow memory that maps
   one small file, the chunk, many times in a row. */
#include "blobs.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)32 << 20)
#define CHUNK       ((int64_t)(CHUNK_BYTES / sizeof(float)))
#define MAPS        257                         /* 2^31 elements are 256 chunks */
#define PART        1001                        /* elements of the blob in the last chunk */
#define COUNT       (CHUNK * (MAPS - 1) + PART) /* 2^31 + 1001 */

/* Skips the running test and prints why. The test must not have allocated memory yet. */
static void skip_without_map(void) {
    print_message("skipped: this machine cannot map %zu MiB: %s\n", CHUNK_BYTES * MAPS >> 20,
                  strerror(errno));
    test_skip();
}

/* Maps the same CHUNK_BYTES of memory at MAPS consecutive addresses. */
static float *map_over_and_over(void) {
    int fd = memfd_create("large", 0);
    if (fd < 0 || ftruncate(fd, (off_t)CHUNK_BYTES) != 0)
        skip_without_map();
    size_t span = CHUNK_BYTES * MAPS;
    char *base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; base != MAP_FAILED && i < MAPS; i++)
        if (mmap(base + i * CHUNK_BYTES, CHUNK_BYTES, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
            (void)munmap(base, span);
            base = MAP_FAILED;
        }
    (void)close(fd);
    if (base == MAP_FAILED)
        skip_without_map();
    return (float *)(void *)base;
}

static void unmap(void *user, void *ptr) {
    ++*(int *)user;
    (void)munmap(ptr, CHUNK_BYTES * MAPS);
}

struct large {
    sb_blob *blob;
    float *x;
    int unmapped;
};

static void large_open(struct large *large, float *x) {
    *large = (struct large){.x = x};
    assert_true(COUNT > INT64_C(1) << 31);
    large->blob = blob_of_count(NULL, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_set_cpu(large->blob, SB_DATA, large->x, CHUNK_BYTES * MAPS, 0, unmap,
                              &large->unmapped, &err));
}

static void large_close(struct large *large) {
    sb_blob_destroy(large->blob);
    assert_int_equal(large->unmapped, 1);
}

static void fill_chunk(float *x, float value) {
    for (int64_t i = 0; i < CHUNK; i++)
        x[i] = value;
}

TEST(sums_reach_past_two_to_the_31) {
    skip_when_quick();
    skip_without_memory(2 * CHUNK_BYTES, 2 * CHUNK_BYTES * MAPS);
    struct large large;
    double sum = 0;
    large_open(&large, map_over_and_over());
    fill_chunk(large.x, -1);
    large.x[PART - 1] = 3; /* in the blob MAPS times; the last time it is the last element */
    large.x[PART] = 5;     /* in the blob MAPS - 1 times */
    assert_ok(sb_blob_asum(large.blob, SB_DATA, &sum, &err));
    double expected = (double)COUNT + 2.0 * MAPS + 4.0 * (MAPS - 1);
    assert_true(sum > expected * (1 - 1e-6) && sum < expected * (1 + 1e-6));
    assert_ok(sb_blob_sumsq(large.blob, SB_DATA, &sum, &err));
    expected = (double)COUNT + 8.0 * MAPS + 24.0 * (MAPS - 1);
    assert_true(sum > expected * (1 - 1e-6) && sum < expected * (1 + 1e-6));
    large_close(&large);
}

/* The blob contains the chunk 256 times, so scaling by -1 flips each sign 256 times, which restores
   the sign. The first PART elements are in the blob 257 times, so their signs end flipped. */
TEST(scaling_touches_each_element_once) {
    skip_when_quick();
    skip_without_memory(2 * CHUNK_BYTES, 2 * CHUNK_BYTES * MAPS);
    struct large large;
    large_open(&large, map_over_and_over());
    fill_chunk(large.x, 1);
    assert_ok(sb_blob_scale(large.blob, SB_DATA, -1, &err));
    for (int64_t i = 0; i < CHUNK; i++)
        if (large.x[i] != (i < PART ? -1.0f : 1.0f))
            fail_with("element %lld of a chunk is %g", (long long)i, (double)large.x[i]);
    large_close(&large);
}

TEST(update_touches_each_element_once) {
    skip_when_quick();
    skip_without_memory(2 * CHUNK_BYTES, 2 * CHUNK_BYTES * MAPS);
    struct large large;
    int unmapped = 0;
    float *x = map_over_and_over(), *diff = map_over_and_over();
    large_open(&large, x);
    fill_chunk(large.x, 1000);
    fill_chunk(diff, 2);
    assert_ok(sb_mem_set_cpu(diff_of(large.blob), diff, (size_t)COUNT * sizeof(float), 0, unmap,
                             &unmapped, &err));
    assert_ok(sb_blob_update(large.blob, &err));
    for (int64_t i = 0; i < CHUNK; i++)
        if (large.x[i] != 1000.0f - 2.0f * (float)(i < PART ? MAPS : MAPS - 1))
            fail_with("element %lld of a chunk is %g", (long long)i, (double)large.x[i]);
    large_close(&large);
    assert_int_equal(unmapped, 1);
}

TEST(elements_past_two_to_the_31_are_read) {
    skip_when_quick();
    skip_without_memory(2 * CHUNK_BYTES, 2 * CHUNK_BYTES * MAPS);
    struct large large;
    float value = 0;
    large_open(&large, map_over_and_over());
    large.x[PART - 1] = 42;
    const int64_t last = COUNT - 1;
    assert_ok(sb_blob_at_f32(large.blob, SB_DATA, &last, 1, &value, &err));
    assert_true(value == 42);
    assert_ok(sb_blob_data_at_legacy(large.blob, last, 0, 0, 0, &value, &err));
    assert_true(value == 42);
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE,
                  sb_blob_at_f32(large.blob, SB_DATA, &(int64_t){COUNT}, 1, &value, &err));
    large_close(&large);
}

TEST(clearing_reaches_past_two_to_the_31) {
    skip_when_quick();
    skip_without_memory(2 * CHUNK_BYTES, 2 * CHUNK_BYTES * MAPS);
    struct large large;
    double sum = -1;
    large_open(&large, map_over_and_over());
    fill_chunk(large.x, 7);
    assert_ok(sb_blob_clear(large.blob, SB_DATA, &err));
    assert_ok(sb_blob_asum(large.blob, SB_DATA, &sum, &err));
    assert_true(sum == 0);
    large_close(&large);
}

/* The target's last chunk is separate memory, so its bytes show how many elements were copied. */
TEST(copying_reaches_past_two_to_the_31) {
    enum { WINDOW = 65536 };
    skip_when_quick();
    skip_without_memory(3 * CHUNK_BYTES, 4 * CHUNK_BYTES * MAPS);
    struct large from, to;
    float *x = map_over_and_over(), *y = map_over_and_over();
    large_open(&from, x);
    large_open(&to, y);
    fill_chunk(from.x, 7);
    float *end = mmap(to.x + CHUNK * (MAPS - 1), WINDOW, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(end, to.x + CHUNK * (MAPS - 1));
    assert_ok(sb_blob_copy_from(to.blob, SB_DATA, from.blob, 0, &err));
    for (size_t i = 0; i < WINDOW / sizeof(float); i++)
        assert_true(end[i] == (i < PART ? 7 : 0));
    large_close(&from);
    large_close(&to);
}
