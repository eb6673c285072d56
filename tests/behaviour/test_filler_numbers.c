/* Tests that the fillers' numbers are the same for every compiler, instruction set and order of
   tasks. CMakeLists.txt compiles this test and the fillers' sources several times. */
#include "blobs.h"
#include "filler/random.h"
#include "host/vectors.h"

#include <math.h>

/* The reference is Philox of Random123 if Random123 is installed, else the library's Philox. */
#if __has_include(<Random123/philox.h>)
#define SYNCBLOB_RANDOM123
#endif
#include "filler/philox.h"

#define SEED_A UINT64_C(1)
#define SEED_B UINT64_C(0xfedcba9876543210)

static const void *fill(sb_blob *blob, const sb_filler *filler, uint64_t seed) {
    assert_ok(sb_blob_fill(blob, filler, seed, &err));
    return host_of(blob, SB_DATA);
}

static sb_filler golden_filler(int i) {
    sb_filler filler = filler_of(i == 7 ? SB_FILLER_GAUSSIAN : i);
    filler.value = 0.1;
    filler.variance_norm = SB_VARIANCE_AVERAGE;
    filler.min = -1.25;
    filler.max = 3;
    filler.mean = 0.5;
    filler.std = 2;
    if (i == 7)
        filler.sparse = 2;
    return filler;
}

static const char *const golden_names[] = {"constant", "uniform", "gaussian", "positive_unitball",
                                           "xavier",   "msra",    "bilinear", "sparse gaussian"};

struct golden {
    int filler;
    int32_t dtype;
    uint64_t seed;
    double values[3]; /* elements 0, 77 and 299 of shape 4 x 3 x 5 x 5 */
    uint64_t hash;    /* the hash of a blob of shape 3 x 2 x 301 x 301 */
};

static const struct golden goldens[] = {
#include "filler_golden.inc"
};

static uint64_t word_of(const char *bytes, int32_t dtype) {
    uint32_t first, second;
    uint64_t word;
    if (dtype == SB_DTYPE_F64) {
        memcpy(&word, bytes, sizeof word);
        return word;
    }
    memcpy(&first, bytes, sizeof first);
    memcpy(&second, bytes + sizeof first, sizeof second);
    return (uint64_t)second << 32 | first;
}

/* Returns the FNV-1a hash of the 64-bit words. */
static uint64_t hash_of(const void *bytes, size_t size, int32_t dtype) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i + 8 <= size; i += 8) {
        const uint64_t word = word_of((const char *)bytes + i, dtype);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    return hash;
}

static struct golden made_now(int filler, int32_t dtype, uint64_t seed) {
    const int64_t small[] = {4, 3, 5, 5}, large[] = {3, 2, 301, 301};
    static const int64_t places[] = {0, 77, 299};
    struct golden golden = {.filler = filler, .dtype = dtype, .seed = seed};
    const sb_filler made = golden_filler(filler);
    sb_blob *blob = test_blob(NULL, dtype, 4, small);
    const void *data = fill(blob, &made, seed);
    for (int i = 0; i < 3; i++)
        golden.values[i] = value_at(dtype, data, places[i]);
    test_end(blob);
    blob = test_blob(NULL, dtype, 4, large);
    data = fill(blob, &made, seed);
    golden.hash = hash_of(data, (size_t)sb_blob_count(blob) * sb_dtype_size(dtype), dtype);
    test_end(blob);
    return golden;
}

/* If a change of the numbers is intended, copy the printed rows to filler_golden.inc. */
TEST(numbers_are_the_golden_ones) {
    bool is_golden = true;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *g = &goldens[i], now = made_now(g->filler, g->dtype, g->seed);
        if (memcmp(now.values, g->values, sizeof now.values) == 0 && now.hash == g->hash)
            continue;
        is_golden = false;
        print_error("%s differs:\n{%d, %d, UINT64_C(0x%llx), {%a, %a, %a}, UINT64_C(0x%llx)},\n",
                    golden_names[g->filler], g->filler, g->dtype, (unsigned long long)g->seed,
                    now.values[0], now.values[1], now.values[2], (unsigned long long)now.hash);
    }
    assert_true(is_golden);
}

struct drawn {
    uint32_t w[4];
};

static struct drawn words_of(uint64_t seed, uint64_t i, uint64_t per_lane) {
    const uint64_t counter = i / (8 * per_lane) * 8 + i % 8;
    const uint32_t at[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    struct drawn drawn;
    sb__philox(at, (uint32_t)seed, (uint32_t)(seed >> 32), drawn.w);
    return drawn;
}

static long double unit(uint64_t bits, int size) {
    return ((long double)bits + 0.5L) / powl(2, size);
}

static long double uniform_reference(uint64_t seed, int32_t dtype, uint64_t i) {
    const uint64_t per_lane = dtype == SB_DTYPE_F32 ? 4 : 2, j = i / 8 % per_lane;
    const struct drawn d = words_of(seed, i, per_lane);
    if (dtype == SB_DTYPE_F32)
        return unit(d.w[j], 32);
    return unit(((uint64_t)d.w[2 * j] << 32 | d.w[2 * j + 1]) >> 12, 52);
}

/* The Box-Muller method, in long double. */
static long double normal_reference(uint64_t seed, int32_t dtype, uint64_t i) {
    const uint64_t per_lane = dtype == SB_DTYPE_F32 ? 4 : 2, j = i / 8 % per_lane;
    const struct drawn d = words_of(seed, i, per_lane);
    const uint32_t *pair = &d.w[dtype == SB_DTYPE_F32 ? j / 2 * 2 : 0];
    const bool single = dtype == SB_DTYPE_F32;
    const uint64_t turn = single ? pair[1] : (uint64_t)d.w[2] << 32 | d.w[3];
    const long double u =
        single ? unit(pair[0], 32) : unit(((uint64_t)d.w[0] << 32 | d.w[1]) >> 12, 52);
    const long double t = ((single ? unit(turn, 32) : unit(turn >> 12, 52)) - 0.5L) / 4;
    const long double radius = sqrtl(-2 * logl(u)), angle = 2 * acosl(-1) * t;
    const long double c = (turn & 1 ? -1 : 1) * cosl(angle), s = sinl(angle);
    return radius * ((j % 2 == 0) == ((turn & 2) == 0) ? s : c);
}

static void assert_near(long double expected, double found, long double relative, uint64_t i) {
    if (fabsl(expected - (long double)found) > relative * (1e-3L + fabsl(expected)))
        fail_with("element %llu is %.17g, not %.17Lg", (unsigned long long)i, found, expected);
}

TEST(numbers_are_those_of_philox) {
    const sb_filler fillers[] = {filler_of(SB_FILLER_UNIFORM), filler_of(SB_FILLER_GAUSSIAN)};
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++)
        for (int is_normal = 0; is_normal < 2; is_normal++) {
            const void *data = fill(test_vector(NULL, dtype, 1003), &fillers[is_normal], SEED_B);
            for (uint64_t i = 0; i < 1003; i++)
                assert_near((is_normal ? normal_reference : uniform_reference)(SEED_B, dtype, i),
                            value_at(dtype, data, (int64_t)i),
                            dtype == SB_DTYPE_F32 ? 1e-7L : 1e-15L, i);
        }
}

static const struct sb__random sequences[] = {
    {SEED_B, SB_DTYPE_F32, false, -1, 2, 1},  {SEED_B, SB_DTYPE_F64, false, -1, 2, 1},
    {SEED_B, SB_DTYPE_F32, true, 1, 3, 1},    {SEED_B, SB_DTYPE_F64, true, 1, 3, 1},
    {SEED_A, SB_DTYPE_F32, true, 0, 1, 0.25}, {SEED_A, SB_DTYPE_F64, true, 0, 1, 0.25},
    {SEED_A, SB_DTYPE_F32, false, 1, 1, 0.5}, {SEED_A, SB_DTYPE_F64, false, 1, 1, 0.5},
};

/* The last two sequences start shortly before the counter exceeds 32 bits. */
static const int64_t starts[] = {0, ((int64_t)1 << 34) - 150, ((int64_t)1 << 33) - 150};

static void check_parts(const struct sb__random_kernels *kind, const struct sb__random *sequence,
                        int64_t start, const double *whole) {
    const size_t size = sb_dtype_size(sequence->dtype);
    double part[300];
    for (int64_t begin = 0; begin < 300; begin += 7)
        for (int64_t count = 1; begin + count <= 300; count += 1 + count / 3) {
            sb__random_fill(sequence, kind, start + begin, count, part);
            assert_memory_equal(part, (const char *)whole + (size_t)begin * size,
                                (size_t)count * size);
        }
}

TEST(every_kind_of_vectors_computes_the_same_parts) {
    double whole[300];
    for (int k = 0; k < sb__num_kinds(); k++)
        for (size_t s = 0; s < sizeof sequences / sizeof *sequences; s++)
            for (size_t b = 0; b < sizeof starts / sizeof *starts; b++) {
                sb__random_fill(&sequences[s], sb__random_kinds[0], starts[b], 300, whole);
                check_parts(sb__random_kinds[k], &sequences[s], starts[b], whole);
            }
}

static void run_backwards(void *user, int64_t tasks, void (*task)(void *arg, int64_t i),
                          void *arg) {
    *(int64_t *)user += tasks;
    for (int64_t i = tasks; i-- > 0;)
        task(arg, i);
}

static const int64_t large_shapes[][4] = {
    {3, 1, 301, 301},   /* several tasks for each row */
    {65537, 1, 1, 1},   /* the last task has one element */
    {30011, 1, 3, 3},   /* short rows */
    {1, 1, 515, 515},   /* one row */
    {2, 1, 256, 256},   /* one task for each row */
    {1, 1, 2051, 2051}, /* a row of more than 64 * 65536 elements */
};

static void check_tasks(const int64_t *shape, int filler, int32_t dtype) {
    int64_t tasks = 0;
    sb_context *context =
        test_context(CONTEXT_OPTIONS(.parallel_for = run_backwards, .parallel_for_user = &tasks));
    sb_blob *alone = test_blob(NULL, dtype, 4, shape),
            *shared = test_blob(context, dtype, 4, shape);
    const sb_filler made = golden_filler(filler);
    if (made.sparse <= shape[0]) {
        const void *a = fill(alone, &made, SEED_A), *b = fill(shared, &made, SEED_A);
        if (memcmp(a, b, (size_t)sb_blob_count(alone) * sb_dtype_size(dtype)) != 0)
            fail_with("%s of %lld rows: numbers depend on the order of tasks", golden_names[filler],
                      (long long)shape[0]);
        if (made.type != SB_FILLER_POSITIVE_UNITBALL) /* this filler runs a task for each row */
            assert_int_equal(tasks, (sb_blob_count(alone) - 1) / 65536 + 1);
    }
    test_end(shared);
    test_end(context);
}

TEST(numbers_do_not_depend_on_the_order_of_tasks) {
    const size_t shapes = test_is_quick() ? 2 : sizeof large_shapes / sizeof *large_shapes;
    for (size_t s = 0; s < shapes; s++)
        for (int filler = 0; filler < 8; filler++)
            if (large_shapes[s][2] < 2000 ||
                filler == SB_FILLER_POSITIVE_UNITBALL) /* the largest shape takes seconds */
                check_tasks(large_shapes[s], filler, filler % 2 ? SB_DTYPE_F32 : SB_DTYPE_F64);
}
