/* The simulated communicator: operations and waits of its ranks. The group's lock protects the
   group and its operations. */
#include "sim_comm.h"

#include "../../src/base/draw.h"
#include "error.h"
#include "port.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/sim_device.h>
#include <time.h>

#define MILLISECOND                1000000u
#define DEFAULT_LIMIT_MILLISECONDS 10000u
#define LONGEST_SLEEP              (100 * (uint64_t)MILLISECOND)

static void break_group(struct sb__sim_group *group, const char *format, ...) SB__COMM_PRINTF(2, 3);

static void break_group(struct sb__sim_group *group, const char *format, ...) {
    va_list args;
    if (group->broken)
        return;
    va_start(args, format);
    (void)vsnprintf(group->cause, sizeof group->cause, format, args);
    va_end(args);
    group->broken = true;
    (void)pthread_cond_broadcast(&group->changed);
}

static sb_status fail_broken(const struct sb__sim_group *group, sb_error *err) {
    return sb__comm_fail(err, SB_ERR_COMM_FAILURE, "%s", group->cause);
}

/* --- operations --------------------------------------------------------------------- */

/* Appends an operation, which becomes the upcoming operation of every rank that has called all
   earlier operations. */
static void append(struct sb__sim_group *group, struct sb__sim_operation *operation) {
    if (group->last)
        group->last->next = operation;
    else
        group->first = operation;
    group->last = operation;
    for (int32_t i = 0; i < group->size; i++)
        if (!group->ranks[i].upcoming)
            group->ranks[i].upcoming = operation;
}

/* Frees the oldest operations, up to the first that some rank has not left. */
static void free_left(struct sb__sim_group *group) {
    while (group->first && group->first->left == group->size) {
        struct sb__sim_operation *operation = group->first;
        group->first = operation->next;
        free(operation);
    }
    if (!group->first)
        group->last = NULL;
}

struct call {
    enum sb__sim_kind kind;
    sb_comm_op op;
    int32_t root;
    sb_comm_buffer buffer;
};

static sb_status make_operation(struct sb__sim_group *group, struct sb__sim_operation **out,
                                sb_error *err) {
    struct sb__sim_operation *operation =
        calloc(1, sizeof *operation + (size_t)group->size * sizeof *operation->parts);
    if (!operation)
        return sb__comm_fail_memory(err); /* the call has sent nothing, and may be retried */
    for (int32_t i = 0; i < group->size; i++)
        operation->parts[i].operation = operation;
    append(group, operation);
    *out = operation;
    return SB_OK;
}

/* Stores the call of the rank that calls first. The other ranks must call with equal arguments. */
static void describe(struct sb__sim_operation *operation, int32_t rank, const struct call *call) {
    operation->kind = call->kind;
    operation->op = call->op;
    operation->root = call->root;
    operation->first = rank;
}

static bool agree(const struct sb__sim_operation *operation, const struct call *call) {
    const sb_comm_buffer *theirs = &operation->parts[operation->first].buffer;
    return operation->kind == call->kind && operation->op == call->op &&
           operation->root == call->root && theirs->dtype == call->buffer.dtype &&
           theirs->count == call->buffer.count;
}

static const char *text_of(enum sb__sim_kind kind, sb_comm_op op, int32_t root,
                           const sb_comm_buffer *buffer, char out[64]) {
    static const char *const kinds[] = {"all-reduces", "broadcasts", "is in a barrier"};
    if (kind == SB__SIM_BARRIER)
        return kinds[kind];
    (void)snprintf(out, 64, "%s %lld %s, %s %d", kinds[kind], (long long)buffer->count,
                   sb_dtype_name(buffer->dtype), kind == SB__SIM_REDUCE ? "op" : "root",
                   kind == SB__SIM_REDUCE ? op : root);
    return out;
}

static void break_by_difference(struct sb__sim_rank *rank, const struct sb__sim_operation *theirs,
                                const struct call *call) {
    char ours[64], other[64];
    break_group(rank->group, "rank %d %s where rank %d %s", rank->rank,
                text_of(call->kind, call->op, call->root, &call->buffer, ours), theirs->first,
                text_of(theirs->kind, theirs->op, theirs->root,
                        &theirs->parts[theirs->first].buffer, other));
}

static void arrive(struct sb__sim_rank *rank, struct sb__sim_operation *operation,
                   const struct call *call) {
    struct sb__sim_group *group = rank->group;
    struct sb__sim_part *part = &operation->parts[rank->rank];
    if (operation->arrived == 0)
        describe(operation, rank->rank, call);
    part->buffer = call->buffer;
    part->here = true;
    part->due = sb__comm_now();
    if (group->delay)
        part->due += sb__draw(&rank->random) % group->delay;
    if (++operation->arrived < group->size)
        return;
    if (operation->kind != SB__SIM_BARRIER)
        sb__sim_combine(operation, group->size);
    (void)pthread_cond_broadcast(&group->changed);
}

/* Counts the call. Returns whether the planted failure occurs at this call. */
static bool is_due(struct sb__sim_rank *rank) {
    return rank->fail_nth && --rank->fail_nth == 0;
}

static sb_status begin_locked(struct sb__sim_rank *rank, const struct call *call,
                              struct sb__sim_part **out, sb_error *err) {
    struct sb__sim_group *group = rank->group;
    if (group->broken)
        return fail_broken(group, err);
    struct sb__sim_operation *operation = rank->upcoming;
    sb_status st = operation ? SB_OK : make_operation(group, &operation, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_part *part = &operation->parts[rank->rank];
    const bool due = is_due(rank);
    if (due && rank->mode == SB_SIM_COMM_FAIL_NOW)
        return sb__comm_fail(err, SB_ERR_COMM_FAILURE,
                             "operation %llu of rank %d failed as planted",
                             (unsigned long long)rank->number + 1, rank->rank);
    if (operation->arrived && !agree(operation, call)) {
        break_by_difference(rank, operation, call);
        return fail_broken(group, err);
    }
    rank->number++;
    rank->upcoming = operation->next;
    if (!due)
        arrive(rank, operation, call);
    *out = part;
    return SB_OK;
}

static sb_status begin(struct sb__sim_rank *rank, const struct call *call,
                       struct sb__sim_part **out, sb_error *err) {
    (void)pthread_mutex_lock(&rank->group->lock);
    sb_status st = begin_locked(rank, call, out, err);
    (void)pthread_mutex_unlock(&rank->group->lock);
    return st;
}

/* --- waiting --------------------------------------------------------------------------- */

static int32_t first_missing(const struct sb__sim_group *group,
                             const struct sb__sim_operation *operation) {
    int32_t rank = 0;
    while (operation->parts[rank].here)
        rank++;
    for (int32_t i = rank; i < group->size; i++) /* a destroyed rank makes no more calls */
        if (!operation->parts[i].here && group->ranks[i].gone)
            return i;
    return rank;
}

/* Fails the group if a rank has ended without a call of the operation, or has not called the
   operation by the time `until`. */
static void look_for_missing(struct sb__sim_group *group, const struct sb__sim_part *part,
                             uint64_t until) {
    const int32_t missing = first_missing(group, part->operation);
    if (group->ranks[missing].gone)
        break_group(group, "rank %d has ended", missing);
    else if (sb__comm_now() >= until)
        break_group(group, "rank %d did not answer within %llu ms", missing,
                    (unsigned long long)(group->limit / MILLISECOND));
}

static bool is_complete(const struct sb__sim_group *group, const struct sb__sim_part *part) {
    return part->operation->arrived == group->size;
}

static void leave(struct sb__sim_group *group, struct sb__sim_part *part) {
    part->operation->left++;
    free_left(group);
}

/* If the operation is complete for this rank, leaves the operation and sets `*out_done`. Returns
   COMM_FAILURE if the operation cannot complete, or if another rank has not called it by
   `until`. */
static sb_status look(struct sb__sim_group *group, struct sb__sim_part *part, uint64_t until,
                      bool *out_done, sb_error *err) {
    *out_done = false;
    if (!is_complete(group, part)) {
        if (!group->broken)
            look_for_missing(group, part, until);
        return group->broken ? fail_broken(group, err) : SB_OK;
    }
    if (sb__comm_now() < part->due)
        return SB_OK;
    leave(group, part);
    *out_done = true;
    return SB_OK;
}

/* Waits until the group changes or until `due`. The wait may end earlier if the system's clock is
   adjusted, so callers check again. */
static void sleep_until(struct sb__sim_group *group, uint64_t due) {
    const uint64_t now = sb__comm_now(), left = due > now ? due - now : 0;
    const uint64_t wait = left < LONGEST_SLEEP ? left : LONGEST_SLEEP;
    struct timespec at;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    const uint64_t until = (uint64_t)at.tv_nsec + wait;
    at.tv_sec += (time_t)(until / SB__COMM_SECOND);
    at.tv_nsec = (long)(until % SB__COMM_SECOND);
    (void)pthread_cond_timedwait(&group->changed, &group->lock, &at);
}

static sb_status wait_for(struct sb__sim_group *group, struct sb__sim_part *part, sb_error *err) {
    const uint64_t until = sb__comm_now() + group->limit;
    bool done;
    (void)pthread_mutex_lock(&group->lock);
    sb_status st = look(group, part, until, &done, err);
    while (st == SB_OK && !done) {
        sleep_until(group, is_complete(group, part) ? part->due : until);
        st = look(group, part, until, &done, err);
    }
    (void)pthread_mutex_unlock(&group->lock);
    return st;
}

/* --- the table ---------------------------------------------------------------------------- */

static sb_status sim_open(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                          sb_error *err) {
    struct sb__sim_rank *rank = user;
    (void)err;
    *out = rank;
    *out_rank = rank->rank;
    *out_size = rank->group->size;
    return SB_OK;
}

static void end_group(struct sb__sim_group *group) {
    struct sb__sim_operation *operation = group->first;
    while (operation) {
        struct sb__sim_operation *next = operation->next;
        free(operation);
        operation = next;
    }
    (void)pthread_cond_destroy(&group->changed);
    (void)pthread_mutex_destroy(&group->lock);
    free(group);
}

static void sim_close(void *comm, int32_t failed) {
    struct sb__sim_rank *rank = comm;
    struct sb__sim_group *group = rank->group;
    (void)failed;
    (void)pthread_mutex_lock(&group->lock);
    rank->gone = true;
    const int32_t left = --group->alive;
    (void)pthread_cond_broadcast(&group->changed);
    (void)pthread_mutex_unlock(&group->lock);
    if (left == 0)
        end_group(group);
}

static sb_status run(struct sb__sim_rank *rank, const struct call *call, sb_error *err) {
    struct sb__sim_part *part;
    sb_status st = begin(rank, call, &part, err);
    return st == SB_OK ? wait_for(rank->group, part, err) : st;
}

static sb_status sim_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                sb_error *err) {
    const struct call call = {.kind = SB__SIM_REDUCE, .op = op, .buffer = *buffer};
    return run(comm, &call, err);
}

static sb_status sim_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                               sb_error *err) {
    const struct call call = {.kind = SB__SIM_BROADCAST, .root = root, .buffer = *buffer};
    return run(comm, &call, err);
}

static sb_status sim_barrier(void *comm, sb_error *err) {
    const struct call call = {.kind = SB__SIM_BARRIER};
    return run(comm, &call, err);
}

static int32_t sim_takes(void *comm, sb_context *context) {
    const void *table;
    void *device;
    (void)comm;
    return sb_context_extension(context, SB_SIM_DEVICE, &table, &device, NULL) == SB_OK;
}

static sb_status sim_start(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                           sb_error *err) {
    const struct call call = {.kind = SB__SIM_REDUCE, .op = op, .buffer = *buffer};
    struct sb__sim_part *part = NULL;
    sb_status st = begin(comm, &call, &part, err);
    if (st == SB_OK)
        *out = part;
    return st;
}

static sb_status sim_test(void *comm, void *request, int32_t *out_done, sb_error *err) {
    struct sb__sim_group *group = ((struct sb__sim_rank *)comm)->group;
    bool done;
    (void)pthread_mutex_lock(&group->lock);
    sb_status st = look(group, request, UINT64_MAX, &done, err);
    (void)pthread_mutex_unlock(&group->lock);
    *out_done = done;
    return st;
}

static sb_status sim_wait(void *comm, void *request, sb_error *err) {
    return wait_for(((struct sb__sim_rank *)comm)->group, request, err);
}

static int32_t sim_abandon(void *comm, void *request) {
    struct sb__sim_rank *rank = comm;
    (void)request; /* freed when the group is freed */
    (void)pthread_mutex_lock(&rank->group->lock);
    break_group(rank->group, "rank %d abandoned a request", rank->rank);
    (void)pthread_mutex_unlock(&rank->group->lock);
    return 1;
}

static const sb_comm_engine engine = {
    .struct_size = sizeof engine,
    .abi_version = SB_COMM_ENGINE_ABI_VERSION,
    .flags = SB_COMM_ENGINE_HALF,
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .all_reduce = sim_all_reduce,
    .broadcast = sim_broadcast,
    .barrier = sim_barrier,
    .takes = sim_takes,
    .start = sim_start,
    .test = sim_test,
    .wait = sim_wait,
    .abandon = sim_abandon,
};

#define FIRST_OPTIONS_SIZE                                                                         \
    (offsetof(sb_sim_comm_options, limit_milliseconds) +                                           \
     sizeof(((sb_sim_comm_options *)0)->limit_milliseconds))

/* --- the public calls ------------------------------------------------------------------------ */

static sb_status make_group(int32_t size, const sb_sim_comm_options *options,
                            struct sb__sim_group **out, sb_error *err) {
    struct sb__sim_group *group = calloc(1, sizeof *group + (size_t)size * sizeof *group->ranks);
    if (!group)
        return sb__comm_fail_memory(err);
    const uint32_t limit =
        options->limit_milliseconds ? options->limit_milliseconds : DEFAULT_LIMIT_MILLISECONDS;
    uint64_t seed = options->seed;
    (void)pthread_mutex_init(&group->lock, NULL);
    (void)pthread_cond_init(&group->changed, NULL);
    group->size = group->alive = size;
    group->delay = (uint64_t)options->delay_microseconds * 1000u;
    group->limit = (uint64_t)limit * MILLISECOND;
    for (int32_t i = 0; i < size; i++)
        group->ranks[i] =
            (struct sb__sim_rank){.group = group, .rank = i, .random = sb__draw(&seed)};
    *out = group;
    return SB_OK;
}

/* Creates the ranks' communicators. On failure closes all ranks, which frees the group. */
static sb_status make_ends(sb_context *context, struct sb__sim_group *group, sb_comm **ends,
                           sb_error *err) {
    const int32_t size = group->size;
    for (int32_t i = 0; i < size; i++) {
        sb_status st = sb_comm_create(context, &engine, &group->ranks[i], &ends[i], err);
        if (st == SB_OK)
            continue;
        for (int32_t rest = i; rest < size; rest++)
            sim_close(&group->ranks[rest], true);
        while (i--)
            sb_comm_destroy(ends[i]);
        return st;
    }
    return SB_OK;
}

sb_status sb_sim_comm_create(sb_context *context, int32_t size, const sb_sim_comm_options *options,
                             sb_comm **out, sb_error *err) {
    sb_sim_comm_options ours = SB_SIM_COMM_OPTIONS_INIT;
    struct sb__sim_group *group = NULL;
    sb_status st = SB_OK;
    if (!out)
        return sb__comm_fail_null(err, "out");
    if (size < 1 || size > SB_SIM_COMM_MAX)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "the number of ranks is %d, not 1 to %d",
                             size, SB_SIM_COMM_MAX);
    if (options)
        st = sb__comm_adopt_struct(&ours, sizeof ours, FIRST_OPTIONS_SIZE, options,
                                   options->struct_size, "sb_sim_comm_options", err);
    if (st != SB_OK)
        return st;
    sb_comm **ends = calloc((size_t)size, sizeof(sb_comm *));
    if (!ends)
        return sb__comm_fail_memory(err);
    st = make_group(size, &ours, &group, err);
    if (st == SB_OK)
        st = make_ends(context, group, ends, err);
    if (st == SB_OK)
        memcpy(out, ends, (size_t)size * sizeof *ends);
    free(ends);
    return st;
}

sb_status sb_sim_comm_fail(sb_comm *comm, int64_t nth, sb_sim_comm_failure mode, sb_error *err) {
    sb_status st = sb__comm_check_process(comm, err);
    if (st != SB_OK)
        return st;
    if (nth < 0 || (mode != SB_SIM_COMM_FAIL_NOW && mode != SB_SIM_COMM_STOP))
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT,
                             "the operation %lld or the mode %d is invalid", (long long)nth, mode);
    if (comm->engine.open != sim_open)
        return sb__comm_fail(err, SB_ERR_UNSUPPORTED, "the communicator's engine is %s, not sim",
                             comm->engine.name);
    struct sb__sim_rank *rank = comm->end;
    rank->fail_nth = nth;
    rank->mode = mode;
    return SB_OK;
}
