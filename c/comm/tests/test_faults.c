/* Every call of a communicator of one rank, with the n-th allocation or the n-th operation of the
   device failing, for all n: heads and bytes stay, the same call succeeds afterwards, nothing
   leaks. */
#include "blobs.h"
#include "faults.h"

#include <string.h>
#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>

#define COUNT 12
#define BLOBS 2
#define ENDS  3 /* ranks that are made at once */

/* Handles; the rest of the memory is of the context's allocator. Beyond enum fault. */
#define FAULT_HANDLE FAULTS

static int64_t fail_nth_calloc; /* from now on; 0: none fails */
static bool calloc_has_failed;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
    if (fail_nth_calloc && --fail_nth_calloc == 0) {
        calloc_has_failed = true;
        return NULL;
    }
    return __real_calloc(count, size);
}

enum op {
    CREATE,
    CREATE_ENDS,
    CREATE_REDUCER,
    ALL_REDUCE,
    BROADCAST,
    BARRIER,
    STEP,
    STEP_IN_PLACE,
    REDUCE_BLOBS,
    SEND_BLOBS,
    OPS
};

struct world {
    struct rig rig;
    sb_comm *comm, *made[ENDS];
    sb_blob *blobs[BLOBS];
    sb_reducer *reducer, *in_place, *made_reducer;
    bool ready[BLOBS];
    double value;
};

static void world_open(struct world *w, int32_t head) {
    float values[COUNT];
    memset(w, 0, sizeof *w);
    rig_open_on(&w->rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    assert_ok(sb_sim_comm_create(w->rig.context, 1, NULL, &w->comm, &err));
    for (int i = 0; i < BLOBS; i++) {
        w->blobs[i] = blob_of_count(w->rig.context, SB_DTYPE_F32, COUNT);
        fill_values(SB_DTYPE_F32, COUNT, i, 1, values);
        mem_place(data_of(w->blobs[i]), head, values, sizeof values);
    }
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    options.part = SB_DATA;
    assert_ok(sb_reducer_create(w->comm, w->blobs, BLOBS, &options, &w->reducer, &err));
    options.bucket_bytes = 0;
    assert_ok(sb_reducer_create(w->comm, w->blobs, BLOBS, &options, &w->in_place, &err));
    w->value = 5;
}

static void world_close(struct world *w) {
    sb_reducer_destroy(w->reducer);
    sb_reducer_destroy(w->in_place);
    sb_reducer_destroy(w->made_reducer);
    for (int i = 0; i < ENDS; i++)
        sb_comm_destroy(w->made[i]);
    sb_comm_destroy(w->comm);
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(w->blobs[i]);
    rig_close(&w->rig);
}

static sb_status slot_open(void *user, void **out, int32_t *rank, int32_t *size, sb_error *err) {
    *out = user;
    *rank = 0;
    *size = 1;
    return SB_OK;
}

static void slot_close(void *comm, int32_t failed) {
}

static sb_status slot_collective(void *comm, int32_t how, const sb_comm_buffer *buffer,
                                 sb_error *err) {
    return SB_OK;
}

static sb_status create(struct world *w, sb_error *err) {
    static const sb_comm_engine engine = {
        .struct_size = sizeof engine,
        .abi_version = SB_COMM_ENGINE_ABI_VERSION,
        .name = "none",
        .open = slot_open,
        .close = slot_close,
        .all_reduce = slot_collective,
        .broadcast = slot_collective,
    };
    return sb_comm_create(w->rig.context, &engine, NULL, w->made, err);
}

/* The second time it goes on where the first has failed. */
static sb_status step(struct world *w, sb_reducer *reducer, sb_error *err) {
    for (int i = 0; i < BLOBS; i++) {
        sb_status st = w->ready[i] ? SB_OK : sb_reducer_ready(reducer, w->blobs[i], err);
        if (st != SB_OK)
            return st;
        w->ready[i] = true;
    }
    return sb_reducer_wait(reducer, err);
}

static sb_status call(struct world *w, enum op op, sb_error *err) {
    switch (op) {
    case CREATE:
        return create(w, err);
    case CREATE_ENDS:
        return sb_sim_comm_create(w->rig.context, ENDS, NULL, w->made, err);
    case CREATE_REDUCER:
        return sb_reducer_create(w->comm, w->blobs, BLOBS, NULL, &w->made_reducer, err);
    case STEP:
        return step(w, w->reducer, err);
    case STEP_IN_PLACE:
        return step(w, w->in_place, err);
    case ALL_REDUCE:
        return sb_comm_all_reduce(w->comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &w->value, err);
    case BROADCAST:
        return sb_comm_broadcast(w->comm, 0, &w->value, sizeof w->value, err);
    case BARRIER:
        return sb_comm_barrier(w->comm, err);
    case REDUCE_BLOBS:
        return sb_comm_all_reduce_blobs(w->comm, w->blobs, BLOBS, SB_DATA, SB_COMM_MEAN, err);
    default:
        return sb_comm_broadcast_blobs(w->comm, w->blobs, BLOBS, SB_DATA, 0, err);
    }
}

static bool is_as_before(struct world *w, int32_t head) {
    for (int i = 0; i < BLOBS; i++) {
        float values[COUNT];
        fill_values(SB_DTYPE_F32, COUNT, i, 1, values);
        if (head != SB_HEAD_UNINITIALIZED &&
            !mem_holds(data_of(w->blobs[i]), values, sizeof values))
            return false;
    }
    return w->value == 5;
}

/* False: the n-th step does not exist. */
static bool fail_step(enum op op, int32_t head, enum fault fault, int64_t nth) {
    struct world w;
    world_open(&w, head);
    const bool is_handle = fault == FAULT_HANDLE;
    struct armed armed = fault_arm(&w.rig, is_handle ? FAULT_ALLOC : fault, is_handle ? 0 : nth);
    calloc_has_failed = false;
    fail_nth_calloc = is_handle ? nth : 0;
    support_poison_error(&err);
    const sb_status st = call(&w, op, &err);
    fail_nth_calloc = 0;
    const bool fired = is_handle ? calloc_has_failed : fault_disarm(&armed);
    if (st == SB_OK && fired && fault != FAULT_NOW && op != STEP && op != STEP_IN_PLACE)
        fail_with("op %d, head %s, %lld: nobody was told", op, head_name(head), (long long)nth);
    /* Page-locked memory that is not to be had is ordinary instead. After the first blob the ranks
       do not agree any more on what is next. */
    const bool is_broken = st == SB_ERR_COMM_FAILURE && op >= REDUCE_BLOBS;
    if (st != SB_OK && (!fired || err.code != st ||
                        !(is_broken || fault_explains(is_handle ? FAULT_ALLOC : fault, st, false))))
        fail_with("op %d, head %s, %s %lld: %s", op, head_name(head), fault_name(fault),
                  (long long)nth, sb_status_name(st));
    if (!is_as_before(&w, head))
        fail_with("op %d, head %s, %s %lld: bytes", op, head_name(head), fault_name(fault),
                  (long long)nth);
    if (st != SB_OK)
        assert_status(is_broken ? st : SB_OK, call(&w, op, &err));
    assert_true(is_as_before(&w, head));
    world_close(&w);
    return fired;
}

TEST(each_step_of_each_call_may_fail) {
    int64_t steps = 0;
    for (enum op op = CREATE; op < OPS; op++)
        for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++)
            for (int f = 0; f < 3; f++) {
                static const enum fault faults[] = {FAULT_ALLOC, FAULT_NOW, FAULT_HANDLE};
                for (int64_t nth = 1; fail_step(op, head, faults[f], nth); nth++)
                    steps++;
            }
    assert_true(steps > 50);
}
