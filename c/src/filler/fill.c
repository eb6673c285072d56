/* Implements sb_blob_fill, which checks the filler, then fills the blob in tasks, perhaps on
   several threads. The value of an element does not depend on the division into tasks. */
#include "base/dtype.h"
#include "base/error.h"
#include "base/options.h"
#include "blob/blob.h"
#include "context/context.h"
#include "filler/filler.h"
#include "filler/loops.h"
#include "filler/random.h"
#include "host/vectors.h"
#include "memory/mem.h"

#include <math.h>

/* The number of elements of a task, which fit into a core's cache. */
#define PIECE ((int64_t)1 << 16)
/* The number of elements that a task draws before it sums or scales them. */
#define BATCH ((int64_t)1 << 12)

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* --- tasks -------------------------------------------------------------------------- */

struct job {
    const struct sb__parallel *parallel;
    const sb_filler *filler;
    const struct sb__shape *shape;
    struct sb__random random;
    const struct sb__random_kernels *kernels;
    int32_t dtype;
    size_t element_size;
    char *out;
};

static char *element(const struct job *job, int64_t i) {
    return job->out + (size_t)i * job->element_size;
}

static void draw(const struct job *job, int64_t begin, int64_t count) {
    sb__random_fill(&job->random, job->kernels, begin, count, element(job, begin));
}

static void run_tasks(const struct sb__parallel *parallel, int64_t tasks,
                      void (*task)(void *arg, int64_t i), void *arg) {
    if (tasks > 1 && parallel->run) {
        parallel->run(parallel->user, tasks, task, arg);
        return;
    }
    for (int64_t i = 0; i < tasks; i++)
        task(arg, i);
}

/* --- independent elements ------------------------------------------------------ */

static void piece_task(void *arg, int64_t i) {
    const struct job *job = arg;
    const int64_t begin = i * PIECE, count = smaller(PIECE, job->shape->count - begin);
    switch (job->filler->type) {
    case SB_FILLER_CONSTANT:
        sb__loop_set(job->dtype, element(job, begin), count, job->filler->value);
        break;
    case SB_FILLER_BILINEAR:
        sb__loop_bilinear(job->dtype, element(job, begin), begin, count, job->shape->dims[3]);
        break;
    default:
        draw(job, begin, count);
    }
}

/* --- rows that sum to 1 --------------------------------------------------------------- */

#define MAX_PARTS 64

struct rows_job {
    const struct job *job;
    int64_t length, rows, rows_of_task; /* rows_of_task: rows per task, if rows are short */
    int64_t begin, part;                /* the index of a long row's first element, and the number
                                           of elements per part */
    double sums[MAX_PARTS], factor;
};

static void draw_rows(const struct rows_job *rows, int64_t row, int64_t count) {
    const struct job *job = rows->job;
    draw(job, row * rows->length, count * rows->length);
    for (int64_t end = row + count; row < end; row++) {
        char *x = element(job, row * rows->length);
        const double sum = sb__loop_sum(job->dtype, x, rows->length);
        sb__loop_scale(job->dtype, x, rows->length, 1 / sum);
    }
}

static void rows_task(void *arg, int64_t i) {
    const struct rows_job *rows = arg;
    const int64_t batch = larger(BATCH / rows->length, 1);
    int64_t row = i * rows->rows_of_task;
    const int64_t end = smaller(row + rows->rows_of_task, rows->rows);
    for (; row < end; row += batch)
        draw_rows(rows, row, smaller(batch, end - row));
}

static void sum_task(void *arg, int64_t i) {
    struct rows_job *rows = arg;
    const int64_t end = smaller((i + 1) * rows->part, rows->length);
    rows->sums[i] = 0;
    for (int64_t at = i * rows->part; at < end; at += BATCH) {
        const int64_t count = smaller(BATCH, end - at);
        draw(rows->job, rows->begin + at, count);
        rows->sums[i] +=
            sb__loop_sum(rows->job->dtype, element(rows->job, rows->begin + at), count);
    }
}

static void scale_task(void *arg, int64_t i) {
    const struct rows_job *rows = arg;
    const int64_t at = i * rows->part;
    sb__loop_scale(rows->job->dtype, element(rows->job, rows->begin + at),
                   smaller(rows->part, rows->length - at), rows->factor);
}

static void fill_long_rows(struct rows_job *rows) {
    rows->part = ((rows->length - 1) / PIECE / MAX_PARTS + 1) * PIECE;
    const int64_t parts = (rows->length - 1) / rows->part + 1;
    for (int64_t row = 0; row < rows->rows; row++) {
        double sum = 0;
        rows->begin = row * rows->length;
        run_tasks(rows->job->parallel, parts, sum_task, rows);
        for (int64_t i = 0; i < parts; i++)
            sum += rows->sums[i];
        rows->factor = 1 / sum;
        run_tasks(rows->job->parallel, parts, scale_task, rows);
    }
}

static void fill_rows(const struct job *job) {
    const int64_t count = job->shape->count, first = job->shape->dims[0];
    struct rows_job rows = {.job = job, .length = count / first, .rows = first};
    if (rows.length > PIECE) {
        fill_long_rows(&rows);
        return;
    }
    rows.rows_of_task = PIECE / rows.length;
    run_tasks(job->parallel, (rows.rows - 1) / rows.rows_of_task + 1, rows_task, &rows);
}

/* --- the call ------------------------------------------------------------------------- */

static sb_status adopt(sb_filler *own, const sb_filler *filler, sb_error *err) {
    static const sb_filler defaults = SB_FILLER_INIT;
    struct sb__filler_fault fault;
    *own = defaults;
    sb_status st = sb__adopt_struct(own, sizeof *own, SB__FIRST_FILLER_SIZE, filler,
                                    filler->struct_size, "sb_filler", err);
    if (st != SB_OK)
        return st;
    if (own->reserved)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "reserved is %d, not 0", own->reserved);
    if (!sb__filler_check(own, &fault))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%s", fault.text);
    return SB_OK;
}

/* Not inlined, so that a small fill with a constant has a small stack frame. */
__attribute__((noinline)) static void fill_tasks(const sb_blob *blob, const sb_filler *filler,
                                                 uint64_t seed, void *out) {
    struct job job = {.parallel = &blob->context->parallel,
                      .filler = filler,
                      .shape = &blob->shape,
                      .random = sb__filler_random(filler, &blob->shape, blob->dtype, seed),
                      .kernels = sb__random_kinds[sb__num_kinds() - 1],
                      .dtype = blob->dtype,
                      .element_size = blob->element_size,
                      .out = out};
    if (filler->type == SB_FILLER_POSITIVE_UNITBALL)
        fill_rows(&job);
    else
        run_tasks(job.parallel, (blob->shape.count - 1) / PIECE + 1, piece_task, &job);
}

static void fill(const sb_blob *blob, const sb_filler *filler, uint64_t seed, void *out) {
    if (filler->type == SB_FILLER_CONSTANT && blob->shape.count <= PIECE)
        sb__loop_set(blob->dtype, out, blob->shape.count, filler->value);
    else
        fill_tasks(blob, filler, seed, out);
}

/* Not inlined: keeps the fast path's stack frame small. */
__attribute__((noinline)) static sb_status fill_side(sb_blob *blob, const sb_filler *filler,
                                                     uint64_t seed, sb_error *err) {
    struct sb__load_side load;
    struct sb__retired retired = {NULL, NULL};
    sb_status st =
        sb__load_side_begin(&load, blob, SB_DATA, &blob->shape, SB_SIDE_CPU, &retired, err);
    if (st == SB_OK) {
        fill(blob, filler, seed, load.write.ptr);
        sb__load_side_commit(&load, blob, SB_DATA, &retired);
    }
    sb__retired_end(&retired);
    return st;
}

/* The general path. Not inlined, so that a small fill with a constant has a small stack frame. */
__attribute__((noinline)) static sb_status fill_checked(sb_blob *blob, const sb_filler *filler,
                                                        uint64_t seed, sb_error *err) {
    sb_filler own;
    if (!blob || !filler)
        return sb__fail_null(err, blob ? "filler" : "blob");
    sb_status st = adopt(&own, filler, err);
    if (st != SB_OK)
        return st;
    if (!sb__is_float(blob->dtype))
        return sb__fail(err, SB_ERR_UNSUPPORTED, "fillers write f32 and f64, the blob holds %s",
                        sb_dtype_name(blob->dtype));
    if (blob->shape.count == 0)
        return SB_OK;
    st = sb__filler_check_shape(&own, &blob->shape, err);
    if (st != SB_OK)
        return st;
    const sb_mem *mem = sb__blob_memory_or_none(blob, SB_DATA);
    if (!sb__is_written_at_host(mem))
        return fill_side(blob, &own, seed, err);
    fill(blob, &own, seed, sb__host_bytes(mem));
    return SB_OK;
}

/* Returns whether the filler is a valid constant filler, in a struct of this version's size. A
   constant filler suits every shape. */
static bool is_constant(const sb_filler *f) {
    return f->struct_size == sizeof *f && f->type == SB_FILLER_CONSTANT && f->sparse == -1 &&
           !f->reserved && f->variance_norm >= SB_VARIANCE_FAN_IN &&
           f->variance_norm <= SB_VARIANCE_AVERAGE && !isnan(f->value);
}

/* Returns whether the elements are floating-point numbers and few enough for one thread. */
static bool is_small(const sb_blob *blob) {
    const int64_t count = blob->shape.count;
    return count > 0 && count <= PIECE && sb__is_float(blob->dtype);
}

sb_status sb_blob_fill(sb_blob *blob, const sb_filler *filler, uint64_t seed, sb_error *err) {
    if (blob && filler && is_small(blob) && is_constant(filler)) {
        const sb_mem *mem = sb__blob_memory_or_none(blob, SB_DATA);
        if (sb__is_written_at_host(mem)) {
            sb__loop_set(blob->dtype, sb__host_bytes(mem), blob->shape.count, filler->value);
            return SB_OK;
        }
    }
    return fill_checked(blob, filler, seed, err);
}
