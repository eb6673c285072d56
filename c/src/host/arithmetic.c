#include "host/arithmetic.h"

#include "host/vectors.h"

#include <float.h>
#include <string.h>

/* OpenBLAS sums doubles. A build without OpenBLAS uses plain loops. The loops of vectors.h sum
   floats, because OpenBLAS would add floats in single precision, with errors up to 1e-3.
   Element-wise operations also use the loops of vectors.h. These loops are as fast as BLAS, and
   compute the same numbers on every processor. The loops treat a factor of 0 like any other factor.
   For a factor of 0, BLAS would clear or skip the values. */
#ifdef SYNCBLOB_OPENBLAS
#include <cblas.h>
#endif

#define SUM_F64_BLOCK 1024

/* The division into tasks depends only on the count, so results do not depend on the number of
   threads. */
#define PIECE     (1 << 17)
#define MAX_TASKS 64
/* Copies use few tasks, because a few threads saturate the memory bandwidth. */
#define BYTES_PIECE       (1 << 20)
#define MAX_BYTES_TASKS   8
#define FIRST_CACHE_BYTES ((size_t)32 << 10)
/* Arrays of fewer elements are scaled by a direct call, whether or not a cache holds the array. */
#define SMALL_COUNT (1 << 14)
/* From this size on, copies bypass the caches, and sums prefetch. The function memcpy cannot make
   this choice, because it receives only a piece of the copy. In a virtual machine, memcpy also
   overestimates the caches, which other machines share. */
#define STREAM_BYTES ((size_t)32 << 20)

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Returns the number of elements per task, a multiple of `piece`, for at most `most` tasks. */
static int64_t task_length(int64_t count, int64_t piece, int most) {
    int64_t pieces = (count - 1) / piece + 1;
    return ((pieces - 1) / most + 1) * piece;
}

static void run_tasks(const struct sb__parallel *parallel, int64_t count, int64_t length,
                      void (*task)(void *arg, int64_t i), void *arg) {
    int64_t tasks = count <= length ? 1 : (count - 1) / length + 1; /* avoids the division for small
                                                                       work */
    if (tasks > 1 && parallel->run) {
        parallel->run(parallel->user, tasks, task, arg);
        return;
    }
    for (int64_t i = 0; i < tasks; i++)
        task(arg, i);
}

/* --- sums --------------------------------------------------------------------- */

struct sum_kind {
    double (*block_sum)(const void *x, int n, enum sb__place place);
    int block;
    size_t element_size;
};

static double asum_f32(const void *x, int n, enum sb__place place) {
    double sum = sb__vectors_fastest()->asum(x, n, place);
    return sum <= DBL_MAX ? sum : sb__asum_wide(x, n);
}

/* Not inlined, so that the fast path need not save registers. */
__attribute__((noinline)) static double sumsq_anew(const void *x, int n, enum sb__place place) {
    return sb__vectors_fastest()->asum(x, n, place) == 0 ? 0 : sb__sumsq_wide(x, n);
}

/* Sums again in doubles if the sum has overflowed, or if it is so small that squares may have lost
   bits to underflow. */
static double sumsq_f32(const void *x, int n, enum sb__place place) {
    double sum = sb__vectors_fastest()->sumsq(x, n, place);
    return sum >= 1e-30 && sum <= DBL_MAX ? sum : sumsq_anew(x, n, place);
}

#ifdef SYNCBLOB_OPENBLAS
static double asum_f64(const void *x, int n, enum sb__place place) {
    (void)place; /* OpenBLAS reads cache lines in order */
    return cblas_dasum(n, x, 1);
}

static double sumsq_f64(const void *x, int n, enum sb__place place) {
    (void)place;
    return cblas_ddot(n, x, 1, x, 1);
}
#else
#define LANES 8

/* Defines a function that sums `term` over the values v of a block, in lanes for vectorisation. */
#define DEFINE_SUM(name, term)                                                                     \
    static double name(const void *block, int n, enum sb__place place) {                           \
        const double *x = block;                                                                   \
        double lanes[LANES] = {0};                                                                 \
        double sum = 0;                                                                            \
        int i = 0;                                                                                 \
        (void)place; /* the loop reads cache lines in order */                                     \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int lane = 0; lane < LANES; lane++) {                                             \
                const double v = x[i + lane];                                                      \
                lanes[lane] += (term);                                                             \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            const double v = x[i];                                                                 \
            sum += (term);                                                                         \
        }                                                                                          \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            sum += lanes[lane];                                                                    \
        return sum;                                                                                \
    }

DEFINE_SUM(asum_f64, __builtin_fabs(v))
DEFINE_SUM(sumsq_f64, v *v)
#endif

/* Not inlined, so that small sums need not save registers. */
__attribute__((noinline)) static double sum_piece(const struct sum_kind *kind, const char *x,
                                                  int64_t count, enum sb__place place) {
    double sum = 0;
    size_t step = (size_t)kind->block * kind->element_size;
    for (; count > kind->block; count -= kind->block, x += step)
        sum += kind->block_sum(x, kind->block, place);
    return sum + kind->block_sum(x, (int)count, place);
}

/* Returns the fastest place that can hold `bytes` bytes. */
static inline enum sb__place place_of(size_t bytes) {
    if (bytes <= FIRST_CACHE_BYTES)
        return SB__AT_HAND;
    return bytes < STREAM_BYTES ? SB__IN_CACHE : SB__IN_MEMORY;
}

struct sum_job {
    const struct sum_kind *kind;
    const char *x;
    int64_t count, length;
    enum sb__place place;
    double sums[MAX_TASKS];
};

static void sum_task(void *arg, int64_t i) {
    struct sum_job *job = arg;
    int64_t end = smaller((i + 1) * job->length, job->count);
    double sum = 0;
    for (int64_t at = i * job->length; at < end; at += PIECE)
        sum += sum_piece(job->kind, job->x + (size_t)at * job->kind->element_size,
                         smaller(PIECE, end - at), job->place);
    job->sums[i] = sum;
}

/* Not inlined: keeps the stack frame of small sums small. */
__attribute__((noinline)) static double sum_many(const struct sb__parallel *parallel,
                                                 const struct sum_kind *kind, int64_t count,
                                                 const void *x) {
    double sum = 0;
    const size_t bytes = (size_t)count * kind->element_size;
    /* The sums begin as zeros, so that a task that parallel_for omits adds nothing. */
    struct sum_job job = {.kind = kind,
                          .x = x,
                          .count = count,
                          .length = task_length(count, PIECE, MAX_TASKS),
                          .place = place_of(bytes)};
    run_tasks(parallel, count, job.length, sum_task, &job);
    for (int64_t i = 0; i * job.length < count; i++)
        sum += job.sums[i];
    return sum;
}

/* Inline, so that a small sum is one direct call. */
static inline double sum_all(const struct sb__parallel *parallel, const struct sum_kind *kind,
                             int64_t count, const void *x) {
    if (count > PIECE)
        return sum_many(parallel, kind, count, x);
    const enum sb__place place = place_of((size_t)count * kind->element_size);
    return count <= kind->block ? kind->block_sum(x, (int)count, place)
                                : sum_piece(kind, x, count, place);
}

double sb__host_asum(const struct sb__parallel *parallel, int32_t dtype, int64_t count,
                     const void *x) {
    static const struct sum_kind f32 = {asum_f32, PIECE, sizeof(float)};
    static const struct sum_kind f64 = {asum_f64, SUM_F64_BLOCK, sizeof(double)};
    return dtype == SB_DTYPE_F32 ? sum_all(parallel, &f32, count, x)
                                 : sum_all(parallel, &f64, count, x);
}

double sb__host_sumsq(const struct sb__parallel *parallel, int32_t dtype, int64_t count,
                      const void *x) {
    static const struct sum_kind f32 = {sumsq_f32, PIECE, sizeof(float)};
    static const struct sum_kind f64 = {sumsq_f64, SUM_F64_BLOCK, sizeof(double)};
    return dtype == SB_DTYPE_F32 ? sum_all(parallel, &f32, count, x)
                                 : sum_all(parallel, &f64, count, x);
}

/* --- updates in place --------------------------------------------------------- */

struct update_job {
    sb__loop *loop;
    double factor;
    const char *x;
    char *y;
    int64_t count, length;
    size_t element_size;
};

static void update_task(void *arg, int64_t i) {
    const struct update_job *job = arg;
    const int64_t at = i * job->length;
    const size_t offset = (size_t)at * job->element_size;
    job->loop(job->factor, job->x + offset, job->y + offset, smaller(job->length, job->count - at));
}

/* Not inlined, so that small calls need not save registers. */
__attribute__((noinline)) static void update_many(const struct sb__parallel *parallel,
                                                  const struct sb__loops *loops, sb__loop *loop,
                                                  int64_t count, double factor, const void *x,
                                                  void *y) {
    struct update_job job = {.loop = loop,
                             .factor = factor,
                             .x = x,
                             .y = y,
                             .count = count,
                             .length = task_length(count, PIECE, MAX_TASKS),
                             .element_size = loops->element_size};
    run_tasks(parallel, count, job.length, update_task, &job);
}

void sb__host_axpy(const struct sb__parallel *parallel, int32_t dtype, int64_t count, double alpha,
                   const void *x, void *y) {
    const struct sb__loops *loops = sb__loops_of(sb__vectors_fastest(), dtype);
    if (count <= PIECE)
        loops->axpy(alpha, x, y, count);
    else
        update_many(parallel, loops, loops->axpy, count, alpha, x, y);
}

void sb__host_scale(const struct sb__parallel *parallel, int32_t dtype, int64_t count, double alpha,
                    void *x) {
    const struct sb__loops *loops = sb__loops_of(sb__vectors_fastest(), dtype);
    if (count < SMALL_COUNT)
        loops->scale[SB__AT_HAND](alpha, x, x, count);
    else
        update_many(parallel, loops, loops->scale[place_of((size_t)count * loops->element_size)],
                    count, alpha, x, x);
}

/* --- bytes -------------------------------------------------------------------- */

struct bytes_job {
    void (*copy)(void *dst, const void *src, size_t bytes);
    char *dst;
    const char *src;
    int64_t bytes, length;
};

static void bytes_task(void *arg, int64_t i) {
    const struct bytes_job *job = arg;
    const int64_t at = i * job->length;
    job->copy(job->dst + at, job->src + at, (size_t)smaller(job->length, job->bytes - at));
}

static void copy_cached(void *dst, const void *src, size_t bytes) {
    memcpy(dst, src, bytes);
}

/* Ignores `src`, which is equal to `dst`. */
static void clear(void *dst, const void *src, size_t bytes) {
    (void)src;
    memset(dst, 0, bytes);
}

/* Runs a few tasks of at least 1 MiB. Without parallel_for runs only one task, because memcpy and
   memset choose their method by the length. */
static void run_bytes(const struct sb__parallel *parallel, struct bytes_job *job) {
    job->length =
        parallel->run ? task_length(job->bytes, BYTES_PIECE, MAX_BYTES_TASKS) : job->bytes;
    run_tasks(parallel, job->bytes, job->length, bytes_task, job);
}

void sb__host_copy_large(const struct sb__parallel *parallel, void *dst, const void *src,
                         size_t bytes) {
    struct bytes_job job = {.copy =
                                bytes >= STREAM_BYTES ? sb__vectors_fastest()->stream : copy_cached,
                            .dst = dst,
                            .src = src,
                            .bytes = (int64_t)bytes};
    run_bytes(parallel, &job);
}

void sb__host_zero(const struct sb__parallel *parallel, void *dst, size_t bytes) {
    struct bytes_job job = {.copy = clear, .dst = dst, .src = dst, .bytes = (int64_t)bytes};
    if (bytes <= SB__SMALL_BYTES)
        memset(dst, 0, bytes);
    else
        run_bytes(parallel, &job);
}
