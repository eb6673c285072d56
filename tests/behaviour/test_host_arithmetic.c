/* Tests arithmetic, conversions and copies on the host for each kind of vector instructions. */
#include "blobs.h"

#include "host/arithmetic.h"
#include "host/convert.h"
#include "host/vectors.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TILE            ((size_t)4 << 20) /* bytes */

static const struct sb__parallel alone = {NULL, NULL};

/* Maps a file of `tile` bytes repeatedly, as an array of `bytes` bytes that needs little memory.
   Returns NULL, with errno, if the machine cannot map the file. */
static void *map_tiles(size_t tile, size_t bytes) {
    const int file = memfd_create("tile", MFD_CLOEXEC);
    char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool is_mapped = base != MAP_FAILED && file >= 0 && ftruncate(file, (off_t)tile) == 0;
    for (size_t at = 0; is_mapped && at < bytes; at += tile)
        is_mapped = mmap(base + at, bytes - at < tile ? bytes - at : tile, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    if (file >= 0)
        (void)close(file);
    if (!is_mapped && base != MAP_FAILED)
        (void)munmap(base, bytes);
    return is_mapped ? base : NULL;
}

static void put(int32_t dtype, void *x, int64_t i, double v) {
    if (dtype == SB_DTYPE_F32)
        ((float *)x)[i] = (float)v;
    else
        ((double *)x)[i] = v;
}

static double uniform(uint64_t *seed) {
    return (double)(int64_t)(test_random(seed) >> 11) * 0x1p-52 - 1.0;
}

#define MOST 2100 /* more than two blocks of 4 * 256 elements */

static float value_of_any_size(uint64_t *seed) {
    static const float specials[] = {0.0F, -0.0F, 3e38F, -1e-30F, FLT_MIN / 8, 1e19F};
    double v = uniform(seed);
    uint64_t which = test_random(seed) % 64;
    return which < COUNT_OF(specials) ? specials[which] : (float)v;
}

/* Sums of these values are rounded even in double, so another order of additions gives another sum.
   The values of a lane have similar magnitudes: otherwise the largest would hide the others. */
static float value_that_rounds(uint64_t *seed, int i) {
    return ldexpf((float)uniform(seed), (int)(test_random(seed) % 8) + 37 * i % 16 * 4);
}

static void check_sums(const struct sb__vectors *kind, const float *x, int64_t count) {
    const struct sb__vectors *portable = sb__vectors_kinds[0];
    const double sums[2] = {portable->asum(x, count, SB__AT_HAND),
                            portable->sumsq(x, count, SB__AT_HAND)};
    for (enum sb__place place = SB__AT_HAND; place <= SB__IN_MEMORY; place++) {
        const double found[2] = {kind->asum(x, count, place), kind->sumsq(x, count, place)};
        assert_memory_equal(found, sums, sizeof sums);
    }
}

static void check_loops(const struct sb__loops *loops, int32_t dtype, double factor, const void *x,
                        int64_t count) {
    enum { LOOPS = 2 + SB__PLACES };
    double room[LOOPS][MOST + 1];
    const size_t bytes = ((size_t)count + 1) * loops->element_size; /* includes a guard element */
    assert_int_equal(loops->element_size, sb_dtype_size(dtype));
    for (int k = 0; k < LOOPS; k++)
        memcpy(room[k], x, bytes);
    loops->axpy(factor, x, room[0], count);
    loops->set(factor, room[1], room[1], count);
    for (int k = 2; k < LOOPS; k++)
        loops->scale[k - 2](factor, room[k], room[k], count);
    for (int64_t i = 0; i < count; i++) {
        const double v = value_at(dtype, x, i), product = factor * v;
        const float f = (float)factor, short_product = f * (float)v; /* not a fused multiply-add */
        double wanted[3] = {v + product, factor, product};
        if (dtype == SB_DTYPE_F32) {
            wanted[0] = (double)((float)v + short_product);
            wanted[1] = (double)f;
            wanted[2] = (double)short_product;
        }
        for (int k = 0; k < LOOPS; k++) {
            const double found = value_at(dtype, room[k], i), *want = &wanted[k < 2 ? k : 2];
            if (memcmp(&found, want, sizeof found) != 0)
                fail_with("loop %d: element %d of %d is %.17g, not %.17g", k, (int)i, (int)count,
                          found, *want);
        }
    }
    for (int k = 0; k < LOOPS; k++)
        assert_memory_equal((const char *)room[k] + bytes - loops->element_size,
                            (const char *)x + bytes - loops->element_size, loops->element_size);
}

static void check_alias(const struct sb__loops *loops, int32_t dtype, const void *x,
                        int64_t count) {
    double room[MOST];
    memcpy(room, x, (size_t)count * loops->element_size);
    loops->axpy(-1.0, room, room, count);
    for (int64_t i = 0; i < count; i++)
        assert_true(value_at(dtype, room, i) == 0);
}

TEST(every_kind_of_vectors_gives_the_same_numbers) {
    float x[MOST + 4];
    double wide[MOST + 4];
    for (int k = 0; k < sb__num_kinds(); k++)
        for (uint64_t seed = 1; seed < MOST; seed += seed < 600 ? 1 : 13) {
            uint64_t random = seed;
            const int64_t count = (int64_t)seed;
            for (int i = 0; i < MOST + 4; i++)
                wide[i] = (double)(x[i] = seed % 3 ? value_that_rounds(&random, i)
                                                   : value_of_any_size(&random)) /
                          3;
            const struct sb__vectors *kind = sb__vectors_kinds[k];
            check_sums(kind, x + seed % 4, count);
            check_loops(&kind->f32, SB_DTYPE_F32, seed % 2 ? -0.7 : -0.0, x + seed % 4, count);
            check_loops(&kind->f64, SB_DTYPE_F64, seed % 2 ? -0.7 : -0.0, wide + seed % 4, count);
            check_alias(&kind->f32, SB_DTYPE_F32, x + seed % 4, count);
            check_alias(&kind->f64, SB_DTYPE_F64, wide + seed % 4, count);
        }
}

enum { MOST_CONVERTED = 70, OFFSETS = 9 };

static double value_to_convert(uint64_t *seed) {
    static const double specials[] = {
        0.0,    -0.0,  INFINITY, -INFINITY, 1e300,      -1e300,
        5e-324, 1e-40, -1.4e-45, 0.1,       16777217.0, 3.4e38,
    };
    const uint64_t which = test_random(seed) % (2 * COUNT_OF(specials));
    if (which < COUNT_OF(specials))
        return specials[which];
    return ldexp((double)(int64_t)test_random(seed), (int)(test_random(seed) % 300) - 150);
}

/* `from` and `to` are the sizes of a value before and after the conversion. */
struct way {
    sb__convert *run;
    size_t from, to;
};

static void put_sized(double v, size_t size, void *out) {
    const float narrow = (float)v;
    memcpy(out, size == sizeof v ? (const void *)&v : &narrow, size);
}

static void check_conversion(const struct way *way, uint64_t *seed, size_t count, size_t at) {
    unsigned char from[MOST_CONVERTED * sizeof(double) + OFFSETS],
        to[(MOST_CONVERTED + 1) * sizeof(double) + OFFSETS], wanted[sizeof to];
    memset(to, 0xa5, sizeof to);
    memset(wanted, 0xa5, sizeof wanted);
    for (size_t i = 0; i < count; i++) {
        double v = value_to_convert(seed);
        if (way->from == sizeof(float))
            v = (float)v;
        put_sized(v, way->from, from + at + i * way->from);
        put_sized(v, way->to, wanted + OFFSETS - at + i * way->to);
    }
    way->run(from + at, to + OFFSETS - at, count);
    assert_memory_equal(to, wanted, sizeof to);
}

TEST(every_kind_of_vectors_converts_every_value) {
    uint64_t seed = 3;
    for (int k = 0; k < sb__num_kinds(); k++) {
        const struct sb__converts *kind = sb__converts_kinds[k];
        const struct way narrow = {kind->narrow, sizeof(double), sizeof(float)},
                         widen = {kind->widen, sizeof(float), sizeof(double)};
        for (size_t count = 0; count <= MOST_CONVERTED; count++)
            for (size_t at = 0; at < OFFSETS; at++) {
                check_conversion(&narrow, &seed, count, at);
                check_conversion(&widen, &seed, count, at);
            }
    }
}

enum { TWO_PAGES = 8192, LONGEST = 2 * TWO_PAGES + 299, AROUND = 130 };

static void check_copy(const struct sb__vectors *kind, size_t at, size_t bytes) {
    static unsigned char from[LONGEST + AROUND], to[sizeof from], expected[sizeof from];
    const size_t room = bytes + AROUND;
    for (size_t i = 0; i < room; i++)
        from[i] = (unsigned char)(i % 251);
    memset(to, 255, room);
    memset(expected, 255, room);
    memcpy(expected + at, from + 64 - at, bytes);
    kind->stream(to + at, from + 64 - at, bytes);
    assert_memory_equal(to, expected, room);
}

/* A large copy alternates between cache lines of two pages. */
TEST(every_kind_of_vectors_copies_every_byte) {
    static const size_t sizes[] = {
        TWO_PAGES - 1, TWO_PAGES, TWO_PAGES + 63, TWO_PAGES + 128, (size_t)2 * TWO_PAGES, LONGEST};
    for (int k = 0; k < sb__num_kinds(); k++)
        for (size_t at = 0; at < 65; at++) {
            for (size_t bytes = 0; bytes < 300; bytes += at % 7 + 1)
                check_copy(sb__vectors_kinds[k], at, bytes);
            for (size_t i = 0; at % 13 == 0 && i < COUNT_OF(sizes); i++)
                check_copy(sb__vectors_kinds[k], at, sizes[i]);
        }
}

static void spread(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    *(int64_t *)user += tasks;
    for (int64_t i = tasks; i-- > 0;)
        task(arg, i);
}

/* The library changes its method of copying near these sizes. */
TEST(copies_of_every_size_are_complete) {
    static const size_t mib = (size_t)1 << 20;
    const struct {
        size_t bytes;
        int64_t tasks;
    } sizes[] = {{mib - 1, 0},      {mib, 0},      {mib + 1, 2},     {2 * mib, 2},
                 {32 * mib - 1, 8}, {32 * mib, 8}, {32 * mib + 5, 7}};
    int64_t tasks = 0;
    const struct sb__parallel kinds[] = {alone, {spread, &tasks}};
    const size_t most = 32 * mib + 9;
    unsigned char *from = malloc(most), *to = malloc(most);
    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < most; i++)
        from[i] = (unsigned char)(i % 251);
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (size_t k = 0; k < 2; k++) {
            const size_t bytes = sizes[s].bytes;
            tasks = 0;
            memset(to, 255, bytes + 1);
            sb__host_copy(&kinds[k], to, from, bytes);
            assert_true(memcmp(to, from, bytes) == 0 && to[bytes] == 255 && from[1] == 1);
            assert_int_equal(tasks, k ? sizes[s].tasks : 0);
            sb__host_zero(&kinds[k], to, bytes);
            assert_true(to[0] == 0 && memcmp(to, to + 1, bytes - 1) == 0 && to[bytes] == 255);
            assert_int_equal(tasks, k ? 2 * sizes[s].tasks : 0);
        }
    free(from);
    free(to);
}

#define PIECE ((int64_t)1 << 17) /* elements */

static double sum_of_pieces(int64_t count, double odd) {
    double sum = 0;
    for (int64_t at = 0; at < count; at += PIECE)
        sum += (double)(count - at < PIECE ? count - at : PIECE) * (at / PIECE % 2 ? odd : 1);
    return sum;
}

TEST(sums_of_many_pieces_are_complete) {
    static const struct {
        int64_t count, tasks;
    } sums[] = {{PIECE, 0}, {PIECE + 1, 2}, {3 * PIECE, 3}, {64 * PIECE, 64}, {64 * PIECE + 1, 33}};
    int64_t tasks = 0;
    const struct sb__parallel kinds[] = {alone, {spread, &tasks}};
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) {
        const size_t bytes = ((size_t)64 * PIECE + 1) * sb_dtype_size(dtype);
        void *x = map_tiles(TILE, bytes);
        assert_non_null(x);
        for (int64_t i = 0; i < (int64_t)(TILE / sb_dtype_size(dtype)); i++)
            put(dtype, x, i, i / PIECE % 2 ? -2 : -1);
        for (size_t s = 0; s < COUNT_OF(sums); s++)
            for (size_t k = 0; k < 2; k++) {
                const int64_t count = sums[s].count;
                tasks = 0;
                assert_true(sb__host_asum(&kinds[k], dtype, count, x) == sum_of_pieces(count, 2));
                assert_int_equal(tasks, k ? sums[s].tasks : 0);
                assert_true(sb__host_sumsq(&kinds[k], dtype, count, x) == sum_of_pieces(count, 4));
            }
        assert_int_equal(munmap(x, bytes), 0);
    }
}

TEST(updates_of_many_pieces_change_each_element_once) {
    enum { MORE = 4, SMALL = 1 << 14 }; /* a direct call scales smaller arrays */
    static const struct {
        int64_t count, tasks;
    } updates[] = {{SMALL - 1, 0}, {SMALL, 0}, {PIECE, 0}, {PIECE + 1, 2}, {3 * PIECE, 3}};
    int64_t tasks = 0;
    const struct sb__parallel kinds[] = {alone, {spread, &tasks}};
    double *x = malloc((size_t)(3 * PIECE + MORE) * sizeof *x);
    double *y = malloc((size_t)(3 * PIECE + MORE) * sizeof *y);
    assert_non_null(x);
    assert_non_null(y);
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++)
        for (size_t u = 0; u < COUNT_OF(updates); u++)
            for (size_t k = 0; k < 2; k++) {
                const int64_t count = updates[u].count;
                tasks = 0;
                for (int64_t i = 0; i < count + MORE; i++) {
                    put(dtype, x, i, 1);
                    put(dtype, y, i, 2);
                }
                sb__host_axpy(&kinds[k], dtype, count, 4, x, y);
                assert_int_equal(tasks, k ? updates[u].tasks : 0);
                sb__host_scale(&kinds[k], dtype, count, -3, y);
                for (int64_t i = 0; i < count + MORE; i++)
                    assert_true(value_at(dtype, x, i) == 1 &&
                                value_at(dtype, y, i) == (i < count ? -18 : 2));
            }
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) { /* 0 times NaN is NaN */
        put(dtype, x, PIECE, NAN);
        sb__host_axpy(&alone, dtype, PIECE + 1, 0, x, y);
        sb__host_scale(&alone, dtype, PIECE + 1, 0, x);
        assert_true(isnan(value_at(dtype, x, PIECE)) && isnan(value_at(dtype, y, PIECE)));
        assert_true(isnan(sb__host_asum(&alone, dtype, PIECE + 1, y)));
        assert_true(isnan(sb__host_sumsq(&alone, dtype, PIECE + 1, y)));
    }
    free(x);
    free(y);
}

/* A block's sum has the rounding errors of at most six float additions. */
TEST(the_error_of_a_block_is_at_most_its_roundings) {
    enum { COUNT = 1024 };
    float x[COUNT];
    double worst = 0;
    for (int k = 0; k < sb__num_kinds(); k++)
        for (uint64_t seed = 1; seed < 200; seed++) {
            uint64_t random = seed;
            double asum = 0, sumsq = 0;
            for (int i = 0; i < COUNT; i++) {
                x[i] = 1.0F + FLT_EPSILON * (float)(test_random(&random) % (seed * seed));
                asum += (double)x[i];
                sumsq += (double)x[i] * (double)x[i];
            }
            const struct sb__vectors *kind = sb__vectors_kinds[k];
            const double off = fabs(kind->asum(x, COUNT, SB__AT_HAND) / asum - 1);
            const double off_square = fabs(kind->sumsq(x, COUNT, SB__AT_HAND) / sumsq - 1);
            assert_true(off <= 6 * 0x1p-24);
            assert_true(off_square <= 7 * 0x1p-24);
            worst = off > worst ? off : worst;
        }
    assert_true(worst > 0);
}

#define CHUNK_BYTES ((size_t)32 << 20)
#define CHUNK       ((int64_t)(CHUNK_BYTES / sizeof(float)))
#define MAPS        257                         /* 2^31 elements are 256 chunks */
#define PART        1001                        /* elements of the blob in the last chunk */
#define ELEMENTS    (CHUNK * (MAPS - 1) + PART) /* 2^31 + 1001 */

/* Lends `mem` one chunk of floats, mapped MAPS times. Skips the test if the mapping fails. */
static float *lend_chunks(sb_mem *mem, float value) {
    float *base = map_tiles(CHUNK_BYTES, CHUNK_BYTES * MAPS);
    if (!base) {
        print_message("skipped: this machine cannot map %zu MiB: %s\n", CHUNK_BYTES * MAPS >> 20,
                      strerror(errno));
        test_skip();
    }
    fill_values(SB_DTYPE_F32, CHUNK, (double)value, 0, base);
    assert_ok(sb_mem_set_cpu(mem, base, (size_t)ELEMENTS * sizeof(float), 0, NULL, NULL, &err));
    return base;
}

static void check_large_sum(double expected, double sum) {
    assert_true(sum > expected * (1 - 1e-6) && sum < expected * (1 + 1e-6));
}

/* The blob contains each float of the chunk 256 or 257 times. */
TEST(calls_reach_past_two_to_the_31) {
    enum { WINDOW = 65536 };
    const int64_t last = ELEMENTS - 1;
    double sum = 0;
    float value = 0;
    skip_when_quick();
    if (IS_TSAN) {
        print_message("skipped: ThreadSanitizer needs more than 100 GiB\n");
        test_skip();
    }
    assert_true(ELEMENTS > INT64_C(1) << 31);
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, ELEMENTS);
    sb_blob *copy = test_vector(NULL, SB_DTYPE_F32, ELEMENTS);
    float *x = lend_chunks(data_of(blob), -1), *diff = lend_chunks(diff_of(blob), 2);
    float *target = lend_chunks(data_of(copy), 0);
    x[PART - 1] = 3; /* sets MAPS elements, including the blob's last element */
    x[PART] = 5;     /* sets MAPS - 1 elements of the blob */
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    check_large_sum((double)ELEMENTS + 2.0 * MAPS + 4.0 * (MAPS - 1), sum);
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
    check_large_sum((double)ELEMENTS + 8.0 * MAPS + 24.0 * (MAPS - 1), sum);
    assert_ok(sb_blob_at_f32(blob, SB_DATA, &last, 1, &value, &err));
    assert_true(value == 3);
    assert_ok(sb_blob_data_at_legacy(blob, last, 0, 0, 0, &value, &err));
    assert_true(value == 3);
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE,
                  sb_blob_at_f32(blob, SB_DATA, &(int64_t){ELEMENTS}, 1, &value, &err));

    fill_values(SB_DTYPE_F32, CHUNK, 1000, 0, x);
    assert_ok(sb_blob_update(blob, &err));
    assert_ok(sb_blob_scale(blob, SB_DATA, -1, &err));
    for (int64_t i = 0; i < CHUNK; i++)
        if (x[i] != (i < PART ? -(1000.0f - 2.0f * MAPS) : 1000.0f - 2.0f * (MAPS - 1)))
            fail_with("element %lld of a chunk is %g", (long long)i, (double)x[i]);

    /* Separate memory for the copy's last chunk shows how many elements were copied. */
    float *end = mmap(target + CHUNK * (MAPS - 1), WINDOW, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(end, target + CHUNK * (MAPS - 1));
    assert_ok(sb_blob_copy_from(copy, SB_DATA, blob, 0, &err));
    for (size_t i = 0; i < WINDOW / sizeof(float); i++)
        assert_true(end[i] == (i < PART ? x[i] : 0));
    assert_ok(sb_blob_clear(blob, SB_DATA, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 0);
    for (int i = 0; i < 3; i++)
        (void)munmap(i == 0 ? x : i == 1 ? diff : target, CHUNK_BYTES * MAPS);
}
