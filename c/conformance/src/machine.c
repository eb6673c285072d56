/* Claims about random operations on blobs. Results are compared with the results of plain loops on
   the host. The table in rig.h makes the backend's slots fail. Each round has a new seed and a new
   context. */
#include "rig.h"

#include <syncblob/blob.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BLOBS = 3, MEMORIES = 2 * BLOBS, MAX_COUNT = 1500, STEPS = 60, DEFAULT_ROUNDS = 100 };

/* Operations enlarge no value beyond this limit, so that floats represent all values exactly. */
#define LIMIT 4096

enum level { NO_FAILURES, FAILURES, LOSS };

struct machine {
    struct sb__kit *kit;
    struct sb__rig rig;
    enum level level;
    uint64_t seed, random;
    int32_t step;
    sb_context *context;
    sb_stream streams[2]; /* [0] is NULL; [1] is a stream of the caller, or NULL */
    bool computes;
    sb_dtype dtype, last_dtype;
    int64_t count;
    sb_blob *blobs[BLOBS];
    sb_mem *mems[MEMORIES];             /* data and diff of each blob */
    double values[MEMORIES][MAX_COUNT]; /* the values that a read must return */
    sb_head heads[MEMORIES];            /* the heads before the operation */
    int64_t fired;                      /* number of failures before the operation */
};

/* --- failures of the claim ---------------------------------------------------------------- */

static void fail(struct machine *m, const char *format, ...) SB__KIT_PRINTF(2, 3);

static void fail(struct machine *m, const char *format, ...) {
    char text[320];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sb__kit_fail(m->kit, "seed %llu, step %d: %s", (unsigned long long)m->seed, (int)m->step, text);
}

static uint64_t draw(struct machine *m, uint64_t limit) {
    return sb__kit_random(&m->random) % limit;
}

static bool is_device_ok(const struct machine *m) {
    return sb_context_device_status(m->context) == SB_OK;
}

/* Returns whether a call may fail with `st`. `mem` is the index of the memory that the call uses,
   or -1 if unknown. */
static bool may_fail(const struct machine *m, sb_status st, int mem) {
    if (st == SB_ERR_UNINITIALIZED)
        return m->rig.harmful > 0 && (mem < 0 || m->heads[mem] == SB_HEAD_LOST ||
                                      sb_mem_head(m->mems[mem]) == SB_HEAD_LOST);
    const bool has_cause = m->rig.fired > m->fired || m->rig.late || !is_device_ok(m);
    switch (st) {
    case SB_ERR_OUT_OF_MEMORY:
    case SB_ERR_UNSUPPORTED:
    case SB_ERR_DEVICE_FAILURE:
        return has_cause;
    case SB_ERR_DEVICE_LOST:
        return m->rig.harmful > 0;
    default:
        return false;
    }
}

/* Checks the status of a call. `refusal` is the status that the call must return because of the
   memory's head, or SB_OK. Returns whether the call has succeeded. */
static bool judge(struct machine *m, const char *call, int mem, sb_status refusal, sb_status st,
                  const sb_error *err) {
    if (st == SB_OK && refusal != SB_OK)
        fail(m, "%s returned SB_OK with the head %d", call, (int)m->heads[mem]);
    if (st != SB_OK && st != refusal && !may_fail(m, st, mem))
        fail(m, "%s returned %s without a cause: %.120s", call, sb_status_name(st), err->message);
    return st == SB_OK;
}

#define CALL(m, mem, refusal, function, ...)                                                       \
    judge(m, #function, mem, refusal, function(__VA_ARGS__, &err), &err)

/* --- values ----------------------------------------------------------------------------------- */

static double value_at(const struct machine *m, const void *bytes, int64_t i) {
    return m->dtype == SB_DTYPE_F32 ? (double)((const float *)bytes)[i]
                                    : ((const double *)bytes)[i];
}

static double largest(const struct machine *m, int mem) {
    double found = 0;
    for (int64_t i = 0; i < m->count; i++)
        found = fmax(found, fabs(m->values[mem][i]));
    return found;
}

static void write_values(struct machine *m, int mem, void *bytes) {
    for (int64_t i = 0; i < m->count; i++) {
        const double value = (double)draw(m, 201) - 100;
        m->values[mem][i] = value;
        if (m->dtype == SB_DTYPE_F32)
            ((float *)bytes)[i] = (float)value;
        else
            ((double *)bytes)[i] = value;
    }
}

static void check_values(struct machine *m, int mem, const void *bytes) {
    for (int64_t i = 0; i < m->count && sb__kit_goes(m->kit); i++)
        if (value_at(m, bytes, i) != m->values[mem][i])
            fail(m, "value %lld of %lld of memory %d is %g, not %g", (long long)i,
                 (long long)m->count, mem, value_at(m, bytes, i), m->values[mem][i]);
}

static void check_sum(struct machine *m, int mem, bool of_squares, double found) {
    double expected = 0;
    for (int64_t i = 0; i < m->count; i++)
        expected += of_squares ? m->values[mem][i] * m->values[mem][i] : fabs(m->values[mem][i]);
    if (!(fabs(found - expected) <= 1e-6 * expected))
        fail(m, "a sum of memory %d is %.17g, not %.17g", mem, found, expected);
}

/* --- operations ------------------------------------------------------------------------ */

static void read_host(struct machine *m, int mem) {
    const void *bytes = NULL;
    sb_error err;
    if (CALL(m, mem, SB_OK, sb_mem_cpu, m->mems[mem], &bytes))
        check_values(m, mem, bytes);
    else if (m->heads[mem] == SB_HEAD_AT_CPU)
        fail(m, "sb_mem_cpu returned %s, although only the host has the bytes",
             sb_status_name(err.code));
}

static void write_host(struct machine *m, int mem) {
    void *bytes = NULL;
    sb_error err;
    if (m->heads[mem] == SB_HEAD_LOST || draw(m, 2)) {
        if (CALL(m, mem, SB_OK, sb_mem_overwrite_cpu, m->mems[mem], &bytes))
            write_values(m, mem, bytes);
    } else if (CALL(m, mem, SB_OK, sb_mem_mutable_cpu, m->mems[mem], &bytes)) {
        check_values(m, mem, bytes);
        write_values(m, mem, bytes);
    }
}

static void use_device(struct machine *m, int mem) {
    const void *bytes = NULL;
    void *to_write = NULL;
    sb_error err;
    if (draw(m, 2))
        (void)CALL(m, mem, SB_OK, sb_mem_gpu, m->mems[mem], &bytes);
    else
        (void)CALL(m, mem, SB_OK, sb_mem_mutable_gpu, m->mems[mem], &to_write);
}

static sb_status refusal_of(const struct machine *m, int mem, sb_head wrong) {
    const sb_head head = m->heads[mem];
    return head == SB_HEAD_UNINITIALIZED || head == SB_HEAD_LOST ? SB_ERR_UNINITIALIZED
           : head == wrong                                       ? SB_ERR_INVALID_ARGUMENT
                                                                 : SB_OK;
}

static void queue_copy(struct machine *m, int mem) {
    sb_stream stream = m->streams[draw(m, 2)];
    sb_error err;
    switch (draw(m, 4)) {
    case 0:
        (void)CALL(m, mem, refusal_of(m, mem, SB_HEAD_AT_GPU), sb_mem_async_gpu_push, m->mems[mem],
                   stream);
        return;
    case 1:
        (void)CALL(m, mem, refusal_of(m, mem, SB_HEAD_AT_CPU), sb_mem_async_cpu_pull, m->mems[mem],
                   stream);
        return;
    case 2:
        (void)CALL(m, mem, SB_OK, sb_mem_prefetch_gpu, m->mems[mem], stream);
        return;
    default:
        (void)CALL(m, mem, SB_OK, sb_mem_prefetch_cpu, m->mems[mem], stream);
    }
}

static void evict(struct machine *m, int mem) {
    sb_error err;
    const sb_head head = m->heads[mem];
    const sb_status lost = head == SB_HEAD_LOST ? SB_ERR_UNINITIALIZED : SB_OK;
    if (draw(m, 2))
        (void)CALL(m, mem, head == SB_HEAD_AT_CPU ? SB_ERR_INVALID_ARGUMENT : lost,
                   sb_mem_evict_cpu, m->mems[mem]);
    else
        (void)CALL(m, mem, head == SB_HEAD_AT_GPU ? SB_ERR_INVALID_ARGUMENT : lost,
                   sb_mem_evict_gpu, m->mems[mem]);
}

static void clear(struct machine *m, int mem) {
    sb_error err;
    if (CALL(m, mem, SB_OK, sb_mem_clear, m->mems[mem]))
        memset(m->values[mem], 0, sizeof m->values[mem]);
}

static void copy_blob(struct machine *m, int mem) {
    const int from = (mem + 2 * (1 + (int)draw(m, BLOBS - 1))) % MEMORIES;
    sb_error err;
    const sb_status st = sb_blob_copy_from(m->blobs[mem / 2], mem % 2, m->blobs[from / 2], 0, &err);
    /* the source or the target may be LOST */
    if (judge(m, "sb_blob_copy_from", st == SB_ERR_UNINITIALIZED ? -1 : mem, SB_OK, st, &err))
        memcpy(m->values[mem], m->values[from], sizeof m->values[mem]);
}

static void scale(struct machine *m, int mem) {
    const double factor = largest(m, mem) < LIMIT && draw(m, 2) ? 2 : -1;
    sb_blob *blob = m->blobs[mem / 2];
    sb_error err;
    const bool is_done = draw(m, 2) ? CALL(m, mem, SB_OK, sb_blob_scale, blob, mem % 2, factor)
                                    : CALL(m, mem, SB_OK, sb_blob_scale_on, blob, mem % 2, factor,
                                           m->streams[draw(m, 2)]);
    for (int64_t i = 0; is_done && i < m->count; i++)
        m->values[mem][i] *= factor;
}

static void update(struct machine *m, int mem) {
    const int data = mem / 2 * 2;
    sb_blob *blob = m->blobs[mem / 2];
    sb_error err;
    if (largest(m, data) + largest(m, data + 1) >= LIMIT)
        return;
    const bool is_new = m->heads[data] == SB_HEAD_UNINITIALIZED;
    sb_status st = draw(m, 2) ? sb_blob_update(blob, &err)
                              : sb_blob_update_on(blob, m->streams[draw(m, 2)], &err);
    const sb_status refusal = is_new ? (sb_status)SB_ERR_UNINITIALIZED : (sb_status)SB_OK;
    if (judge(m, "sb_blob_update", st == SB_ERR_UNINITIALIZED ? -1 : data, refusal, st, &err))
        for (int64_t i = 0; i < m->count; i++)
            m->values[data][i] -= m->values[data + 1][i];
}

static void sum(struct machine *m, int mem) {
    const bool of_squares = draw(m, 2);
    double found = -1;
    sb_error err;
    sb_blob *blob = m->blobs[mem / 2];
    if (of_squares ? CALL(m, mem, SB_OK, sb_blob_sumsq, blob, mem % 2, &found)
                   : CALL(m, mem, SB_OK, sb_blob_asum, blob, mem % 2, &found))
        check_sum(m, mem, of_squares, found);
}

static void wait(struct machine *m, int mem) {
    sb_error err;
    switch (draw(m, 4)) {
    case 0:
        (void)CALL(m, mem, SB_OK, sb_context_synchronize, m->context);
        return;
    case 1:
        sb_context_trim(m->context);
        return;
    case 2:
        (void)CALL(m, mem, SB_OK, sb_context_forget_stream, m->context, m->streams[draw(m, 2)]);
        return;
    default:
        (void)CALL(m, mem, SB_OK, sb_mem_synchronize, m->mems[mem]);
    }
}

/* Arithmetic is last, so that devices without arithmetic use only the operations before it. */
static void (*const operations[])(struct machine *m, int mem) = {
    read_host,  read_host,  write_host, write_host, use_device, use_device,
    queue_copy, queue_copy, evict,      clear,      copy_blob,  copy_blob,
    wait,       scale,      update,     update,     sum,
};
enum { WITHOUT_ARITHMETIC = 13 };

/* --- rounds ---------------------------------------------------------------------------- */

/* Plants, at random, a failure of one of the next calls. */
static void plant(struct machine *m) {
    static const sb_status statuses[] = {SB_ERR_OUT_OF_MEMORY, SB_ERR_DEVICE_FAILURE,
                                         SB_ERR_UNSUPPORTED};
    struct sb__rig *rig = &m->rig;
    if (m->level == NO_FAILURES || rig->countdown || draw(m, 3))
        return;
    rig->slot = draw(m, 2) ? SB__RIG_ANY : (enum sb__rig_slot)(2 + draw(m, SB__RIG_SLOT_COUNT - 2));
    rig->countdown = 1 + (int64_t)draw(m, 3);
    rig->status = statuses[draw(m, SB__KIT_COUNT_OF(statuses))];
    rig->is_late = draw(m, 2);
    if (m->level == LOSS && m->step > STEPS / 2) {
        rig->status = SB_ERR_DEVICE_LOST;
        rig->is_late = false;
    }
}

/* Fails the claim if the operation has made memory LOST although no failure justifies it. */
static void check_heads(struct machine *m) {
    /* If memory is host-coherent, a lost device may have overwritten the host's bytes. */
    const bool may_lose = sb__kit_is_coherent(m->kit) && !is_device_ok(m);
    for (int i = 0; i < MEMORIES; i++) {
        const sb_head now = sb_mem_head(m->mems[i]);
        if (now != SB_HEAD_LOST || m->heads[i] == SB_HEAD_LOST)
            continue;
        if (!m->rig.harmful)
            fail(m, "memory %d is LOST, although no work has failed", i);
        if (m->heads[i] == SB_HEAD_AT_CPU && !may_lose)
            fail(m, "memory %d is LOST, although the host had the bytes", i);
    }
}

static void remember_heads(struct machine *m) {
    m->fired = m->rig.fired;
    for (int i = 0; i < MEMORIES; i++)
        m->heads[i] = sb_mem_head(m->mems[i]);
}

static void run_steps(struct machine *m) {
    const size_t count = m->computes ? SB__KIT_COUNT_OF(operations) : WITHOUT_ARITHMETIC;
    for (m->step = 0; m->step < STEPS && sb__kit_goes(m->kit); m->step++) {
        remember_heads(m);
        plant(m);
        operations[draw(m, count)](m, (int)draw(m, MEMORIES));
        if (sb__kit_goes(m->kit))
            check_heads(m);
    }
    m->rig.countdown = 0;
}

/* After the last failure, checks that the host can read the memory, unless it is LOST or only a
   lost device has its bytes. The first read may return the failure of earlier work. */
static void check_memory(struct machine *m, int mem) {
    const void *bytes = NULL;
    sb_error err;
    sb_status st = SB_ERR_DEVICE_FAILURE;
    for (int tries = 0; tries < 3 && st != SB_OK; tries++) {
        remember_heads(m);
        st = sb_mem_cpu(m->mems[mem], &bytes, &err);
        if (!judge(m, "the last sb_mem_cpu", mem, SB_OK, st, &err) &&
            m->heads[mem] == SB_HEAD_AT_CPU)
            fail(m, "the host's bytes of memory %d cannot be read", mem);
    }
    const sb_head head = sb_mem_head(m->mems[mem]);
    if (st == SB_OK)
        check_values(m, mem, bytes);
    else if (head != SB_HEAD_LOST && is_device_ok(m))
        fail(m, "memory %d cannot be read after the last failure: %.120s", mem, err.message);
}

static void check_nothing_is_live(struct machine *m) {
    sb_stats stats = SB_STATS_INIT;
    sb_error err;
    for (int tries = 0; tries < 3; tries++) { /* a call may fail because earlier work failed */
        const sb_status st = sb_context_synchronize(m->context, &err);
        (void)st;
    }
    SB__KIT_TRY(m->kit, sb_context_stats, m->context, &stats);
    if (stats.device_bytes || stats.pinned_bytes || stats.borrowed_bytes || stats.quarantined_bytes)
        fail(m,
             "%llu bytes of the device, %llu of page-locked memory and %llu in quarantine are live",
             (unsigned long long)stats.device_bytes, (unsigned long long)stats.pinned_bytes,
             (unsigned long long)stats.quarantined_bytes);
}

static void check_balance(struct machine *m) {
    const struct sb__rig *rig = &m->rig;
    if (rig->blocks || rig->pinned || rig->events || rig->devices)
        fail(m, "%lld blocks, %lld page-locked blocks, %lld events and %lld devices are left",
             (long long)rig->blocks, (long long)rig->pinned, (long long)rig->events,
             (long long)rig->devices);
}

static void begin_round(struct machine *m) {
    static const int64_t counts[] = {1, 5, 130, MAX_COUNT};
    struct sb__kit *kit = m->kit;
    memset(m->values, 0, sizeof m->values);
    sb__rig_make(&m->rig, &kit->table);
    m->dtype = draw(m, 2) ? SB_DTYPE_F32 : m->last_dtype;
    m->count = counts[draw(m, SB__KIT_COUNT_OF(counts))];
    m->context = sb__kit_context(kit, &m->rig.table, kit->table.name);
    m->streams[1] = kit->options.stream_create && kit->table.own_stream && m->context
                        ? sb__kit_stream_create_on(kit, m->rig.device, m->rig.own)
                        : NULL;
    for (int i = 0; i < MEMORIES; i++) {
        if (i % 2 == 0)
            SB__KIT_TRY(kit, sb_blob_create_shaped, m->context, m->dtype, &m->count, 1,
                        &m->blobs[i / 2]);
        SB__KIT_TRY(kit, sb_blob_mutable_mem, m->blobs[i / 2], i % 2, &m->mems[i]);
    }
}

static void end_round(struct machine *m) {
    sb_error err;
    for (int i = 0; i < MEMORIES && sb__kit_goes(m->kit); i++)
        check_memory(m, i);
    for (int i = 0; i < BLOBS; i++) {
        sb_blob_destroy(m->blobs[i]);
        m->blobs[i] = NULL;
    }
    if (sb__kit_goes(m->kit))
        check_nothing_is_live(m);
    if (m->streams[1]) {
        sb_status st = SB_ERR_DEVICE_FAILURE;
        for (int tries = 0; tries < 3 && st != SB_OK && st != SB_ERR_DEVICE_LOST; tries++)
            st = sb_context_forget_stream(m->context, m->streams[1], &err);
        m->kit->options.stream_destroy(m->kit->options.user, m->rig.device, m->streams[1]);
    }
    if (m->context)
        sb_context_release(m->context);
    if (sb__kit_goes(m->kit))
        check_balance(m);
}

static void run(struct sb__kit *kit, enum level level) {
    const bool computes = sb__kit_computes(kit);
    const sb_dtype last = computes ? sb__kit_last_dtype(kit) : SB_DTYPE_F64;
    const time_t start = time(NULL);
    struct machine *m = sb__kit_memory(kit, sizeof *m);
    for (uint64_t round = 0; sb__kit_goes(kit); round++) {
        if (kit->options.seconds ? difftime(time(NULL), start) >= kit->options.seconds
                                 : round == DEFAULT_ROUNDS)
            break;
        *m = (struct machine){.kit = kit,
                              .level = level,
                              .seed = kit->options.seed + round,
                              .computes = computes,
                              .last_dtype = last};
        m->random = m->seed;
        begin_round(m);
        if (sb__kit_goes(kit))
            run_steps(m);
        end_round(m);
    }
    sb__kit_memory_free(kit, m);
}

static void operations_have_results(struct sb__kit *kit) {
    run(kit, NO_FAILURES);
}

static void failures_lose_nothing(struct sb__kit *kit) {
    run(kit, FAILURES);
}

static void loss_keeps_the_host(struct sb__kit *kit) {
    run(kit, LOSS);
}

const struct sb__claim sb__kit_machine_claims[] = {
    {"Random operations on blobs have the results of plain loops", operations_have_results},
    {"Random operations lose no byte while slots and queued work fail", failures_lose_nothing},
    {"Random operations lose no byte of the host when the device is lost", loss_keeps_the_host},
    {NULL, NULL},
};
