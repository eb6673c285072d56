#include "state_table.h"

static state_newest side_of(enum call call) {
    return call_kinds[call].side == SB_SIDE_CPU ? HOST : DEVICE;
}

state_newest sides_of_head(int32_t head) {
    return head == SB_HEAD_AT_CPU   ? HOST
           : head == SB_HEAD_AT_GPU ? DEVICE
           : head == SB_HEAD_SYNCED ? BOTH_SIDES
                                    : NOBODY;
}

state_newest state_after(state_newest newest, enum call call, enum work work) {
    const state_newest side = side_of(call);
    const enum purpose purpose = call_kinds[call].purpose;
    if (work == REFUSE)
        return newest;
    if (work == COPY) /* the side gets the other side's bytes, even stale bytes */
        newest = newest & ~side ? newest | side : NOBODY;
    else if (work == ZERO)
        newest = newest == NOBODY ? side : newest & ~side;
    else if (work != NOTHING)
        newest &= ~side;
    /* The bytes that the caller lends, or is about to write, become the newest bytes. */
    if ((purpose == SET && work == ADOPT) || purpose == OVERWRITE)
        return side;
    return purpose == WRITE ? newest & side : newest;
}

static enum work work_needed(int32_t head, enum call call) {
    const state_newest newest = sides_of_head(head);
    const bool is_there = newest & side_of(call), is_new = head == SB_HEAD_UNINITIALIZED;
    switch (call_kinds[call].purpose) {
    case SET:
        return ADOPT;
    case OVERWRITE:
        return is_there ? NOTHING : ALLOC;
    case EVICT: /* the only copy of the newest bytes is never freed */
        return head == SB_HEAD_LOST || newest == side_of(call) ? REFUSE : FREE;
    case MOVE: /* copies the newest bytes, which must be on the other side */
        return newest == BOTH_SIDES ? NOTHING : newest == NOBODY || is_there ? REFUSE : COPY;
    default:
        return head == SB_HEAD_LOST ? REFUSE : is_new ? ZERO : is_there ? NOTHING : COPY;
    }
}

struct state_cell state_cell(int32_t head, enum call call) {
    static const int32_t heads[] = {
        [HOST] = SB_HEAD_AT_CPU, [DEVICE] = SB_HEAD_AT_GPU, [BOTH_SIDES] = SB_HEAD_SYNCED};
    const enum work work = work_needed(head, call);
    const state_newest after = state_after(sides_of_head(head), call, work);
    return (struct state_cell){work, after == NOBODY ? head : heads[after]};
}

bool table_is_current(int32_t head, int32_t side) {
    return sides_of_head(head) & (side == SB_SIDE_CPU ? HOST : DEVICE);
}

bool table_is_borrowed(int32_t kind) {
    return kind == SB_STORAGE_BORROWED || kind == SB_STORAGE_BORROWED_READ_ONLY;
}

bool table_is_one(const struct memory_state *state) {
    return state->is_coherent && !state->is_apart &&
           state->side[SB_SIDE_CPU].kind == SB_STORAGE_OWNED &&
           state->side[SB_SIDE_GPU].kind == SB_STORAGE_OWNED;
}

static bool needs_writable(enum purpose purpose, enum work work) {
    return work == ZERO || work == COPY || work == ALLOC || purpose == WRITE ||
           purpose == OVERWRITE;
}

static struct plan plan_cell(const struct memory_state *state, enum call call) {
    struct state_cell cell = state_cell(state->head, call);
    enum purpose purpose = call_kinds[call].purpose;
    struct plan plan = {.head = cell.head, .side = call_kinds[call].side};
    const struct side *now = &state->side[plan.side];
    bool read_only = now->kind == SB_STORAGE_BORROWED_READ_ONLY;
    if (cell.work == REFUSE) {
        /* The newest bytes, if any, are not on the side that the call requires. */
        bool has_bytes = sides_of_head(state->head) != NOBODY;
        plan.status = has_bytes ? SB_ERR_INVALID_ARGUMENT : SB_ERR_UNINITIALIZED;
        return plan;
    }
    plan.zeroes = cell.work == ZERO;
    plan.copies = cell.work == COPY && !table_is_one(state);
    plan.waits = cell.work == COPY && table_is_one(state) && plan.side == SB_SIDE_CPU;
    plan.adopts = cell.work == ADOPT;
    if (needs_writable(purpose, cell.work)) {
        plan.allocates = read_only || now->kind == SB_STORAGE_NONE;
        plan.moves = read_only && cell.work == NOTHING && purpose != OVERWRITE;
    }
    plan.on_device =
        plan.side == SB_SIDE_GPU || (state->is_coherent && now->kind == SB_STORAGE_NONE &&
                                     state->side[SB_SIDE_GPU].kind == SB_STORAGE_NONE);
    plan.drops =
        now->kind != SB_STORAGE_NONE &&
        (cell.work == ADOPT || (cell.work == FREE && !table_is_one(state)) || plan.allocates);
    return plan;
}

/* Plans a clear: an overwrite on the head's side, then zeros. */
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

struct plan table_plan(const struct memory_state *state, enum call call) {
    if (call == SYNCHRONIZE)
        return (struct plan){.head = state->head};
    return call == CLEAR ? plan_clear(state) : plan_cell(state, call);
}

static void share(struct memory_state *state, bool was_one) {
    struct side *host = &state->side[SB_SIDE_CPU], *device = &state->side[SB_SIDE_GPU];
    if (was_one && device->kind != SB_STORAGE_OWNED)
        host->kind = SB_STORAGE_NONE;
    if (host->kind == SB_STORAGE_NONE)
        state->is_apart = false;
    if (host->kind == SB_STORAGE_NONE && device->kind == SB_STORAGE_OWNED)
        host->kind = SB_STORAGE_OWNED;
}

struct loan *table_commit(struct memory_state *state, const struct plan *plan, struct side fresh) {
    const bool was_one = table_is_one(state);
    struct side *side = &state->side[plan->allocates && plan->on_device ? SB_SIDE_GPU : plan->side];
    struct loan *ended = plan->drops ? side->loan : NULL;
    if (plan->allocates || plan->adopts)
        *side = fresh;
    else if (plan->drops)
        *side = (struct side){SB_STORAGE_NONE, NULL};
    if (plan->allocates && side == &state->side[SB_SIDE_CPU])
        state->is_apart = true;
    if (state->is_coherent)
        share(state, was_one);
    state->head = plan->head;
    return ended;
}
