#include "table.h"

#include "loan.h"

enum work { NONE, ZERO, COPY, ADOPT, ALLOC, FREE, WRONG, NEVER };

struct cell {
    enum work work;
    int32_t head;
};

#define U SB_HEAD_UNINITIALIZED
#define C SB_HEAD_AT_CPU
#define G SB_HEAD_AT_GPU
#define S SB_HEAD_SYNCED
#define L SB_HEAD_LOST

/* Row: the head before. The design's "free spare" is FREE, its "error" is WRONG where the bytes
   are on the wrong side and NEVER where there are none. */
static const struct cell cells[5][CLEAR] = {
    [U] = {[CPU_DATA] = {ZERO, C},
           [MUTABLE_CPU] = {ZERO, C},
           [GPU_DATA] = {ZERO, G},
           [MUTABLE_GPU] = {ZERO, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {ALLOC, C},
           [OVERWRITE_GPU] = {ALLOC, G},
           [ASYNC_PUSH] = {NEVER, U},
           [ASYNC_PULL] = {NEVER, U},
           [EVICT_CPU] = {FREE, U},
           [EVICT_GPU] = {FREE, U}},
    [C] = {[CPU_DATA] = {NONE, C},
           [MUTABLE_CPU] = {NONE, C},
           [GPU_DATA] = {COPY, S},
           [MUTABLE_GPU] = {COPY, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {NONE, C},
           [OVERWRITE_GPU] = {ALLOC, G},
           [ASYNC_PUSH] = {COPY, S},
           [ASYNC_PULL] = {WRONG, C},
           [EVICT_CPU] = {WRONG, C},
           [EVICT_GPU] = {FREE, C}},
    [G] = {[CPU_DATA] = {COPY, S},
           [MUTABLE_CPU] = {COPY, C},
           [GPU_DATA] = {NONE, G},
           [MUTABLE_GPU] = {NONE, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {ALLOC, C},
           [OVERWRITE_GPU] = {NONE, G},
           [ASYNC_PUSH] = {WRONG, G},
           [ASYNC_PULL] = {COPY, S},
           [EVICT_CPU] = {FREE, G},
           [EVICT_GPU] = {WRONG, G}},
    [S] = {[CPU_DATA] = {NONE, S},
           [MUTABLE_CPU] = {NONE, C},
           [GPU_DATA] = {NONE, S},
           [MUTABLE_GPU] = {NONE, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {NONE, C},
           [OVERWRITE_GPU] = {NONE, G},
           [ASYNC_PUSH] = {NONE, S},
           [ASYNC_PULL] = {NONE, S},
           [EVICT_CPU] = {FREE, G},
           [EVICT_GPU] = {FREE, C}},
    [L] = {[CPU_DATA] = {NEVER, L},
           [MUTABLE_CPU] = {NEVER, L},
           [GPU_DATA] = {NEVER, L},
           [MUTABLE_GPU] = {NEVER, L},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {ALLOC, C},
           [OVERWRITE_GPU] = {ALLOC, G},
           [ASYNC_PUSH] = {NEVER, L},
           [ASYNC_PULL] = {NEVER, L},
           [EVICT_CPU] = {NEVER, L},
           [EVICT_GPU] = {NEVER, L}},
};

static int32_t side_of(enum column call) {
    switch (call) {
    case CPU_DATA:
    case MUTABLE_CPU:
    case SET_CPU:
    case OVERWRITE_CPU:
    case ASYNC_PULL:
    case EVICT_CPU:
        return SB_SIDE_CPU;
    default:
        return SB_SIDE_GPU;
    }
}

bool table_is_current(int32_t head, int32_t side) {
    return head == SB_HEAD_SYNCED ||
           head == (side == SB_SIDE_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU);
}

bool table_is_borrowed(int32_t kind) {
    return kind == SB_STORAGE_BORROWED || kind == SB_STORAGE_BORROWED_READ_ONLY;
}

static bool gives_overwrite(enum column call) {
    return call == OVERWRITE_CPU || call == OVERWRITE_GPU;
}

/* Whoever gets a pointer for writing, and every copy, needs storage that may be written. */
static bool needs_writable(enum column call, enum work work) {
    return work == ZERO || work == COPY || work == ALLOC || call == MUTABLE_CPU ||
           call == MUTABLE_GPU || gives_overwrite(call);
}

static struct plan plan_cell(const struct memory_state *state, enum column call) {
    struct cell cell = cells[state->head][call];
    struct plan plan = {.head = cell.head, .side = side_of(call)};
    const struct side *now = &state->side[plan.side];
    bool read_only = now->kind == SB_STORAGE_BORROWED_READ_ONLY;
    if (cell.work == WRONG || cell.work == NEVER) {
        plan.status = cell.work == WRONG ? SB_ERR_INVALID_ARGUMENT : SB_ERR_UNINITIALIZED;
        return plan;
    }
    plan.zeroes = cell.work == ZERO;
    plan.copies = cell.work == COPY;
    plan.adopts = cell.work == ADOPT;
    if (needs_writable(call, cell.work)) {
        plan.allocates = read_only || now->kind == SB_STORAGE_NONE;
        plan.moves = read_only && cell.work == NONE && !gives_overwrite(call);
    }
    plan.drops =
        now->kind != SB_STORAGE_NONE && (cell.work == ADOPT || cell.work == FREE || plan.allocates);
    return plan;
}

/* An overwrite on the head's side, then zeros. */
static struct plan plan_clear(const struct memory_state *state) {
    if (state->head == SB_HEAD_UNINITIALIZED)
        return (struct plan){.head = state->head, .side = SB_SIDE_CPU};
    if (state->head == SB_HEAD_LOST)
        return (struct plan){.status = SB_ERR_UNINITIALIZED, .head = state->head};
    struct plan plan =
        plan_cell(state, state->head == SB_HEAD_AT_CPU ? OVERWRITE_CPU : OVERWRITE_GPU);
    plan.zeroes = true;
    return plan;
}

struct plan table_plan(const struct memory_state *state, enum column call) {
    return call == CLEAR ? plan_clear(state) : plan_cell(state, call);
}

void table_commit(struct memory_state *state, const struct plan *plan, struct side fresh) {
    struct side *side = &state->side[plan->side];
    if (plan->drops && side->loan)
        side->loan->due = true;
    if (plan->allocates || plan->adopts)
        *side = fresh;
    else if (plan->drops)
        *side = (struct side){SB_STORAGE_NONE, NULL};
    state->head = plan->head;
}
