/* The state table of SyncedMemory on a device: every state that can be reached
   and, from each, every call, held against the reference in tests/support/state_table.c. */
#include "gpu.h"
#include "state_table.h"

#include <stdio.h>
#include <string.h>

struct move {
    enum call call;
    bool read_only;
};

enum { MOVES = CALLS + 2, LONGEST = 8 };

/* Each call; then the two that lend, read-only. */
static struct move move_of(int i) {
    static const enum call again[] = {SET_CPU, SET_GPU};
    return i < CALLS ? (struct move){(enum call)i, false} : (struct move){again[i - CALLS], true};
}

struct loan {
    sb_context *device; /* NULL: host memory */
    void *ptr;
    size_t bytes;
    bool read_only;
    bool due; /* the reference says that it has ended */
    bool ended;
    int value; /* of its bytes when it was lent */
};

/* --- one run --------------------------------------------------------------------------------- */

struct run {
    struct stage *stage;
    sb_mem *mem;
    struct memory_state state;
    struct loan loans[LONGEST];
    int loan_count;
    int value, next_value; /* of every current byte; of the next write */
};

static void end_loan(void *user, void *ptr) {
    struct loan *loan = user;
    assert_ptr_equal(ptr, loan->ptr);
    assert_false(loan->ended);
    loan->ended = true;
}

static struct loan *lend(struct run *run, const struct move *move) {
    struct loan *loan = &run->loans[run->loan_count++];
    size_t bytes = run->state.bytes;
    bool on_host = move->call == SET_CPU;
    *loan = (struct loan){.bytes = bytes,
                          .device = on_host ? NULL : run->stage->context,
                          .read_only = move->read_only};
    run->value = loan->value = run->next_value++;
    if (on_host) {
        assert_int_equal(posix_memalign(&loan->ptr, 64, bytes), 0);
        memset(loan->ptr, run->value, bytes);
    } else {
        loan->ptr = device_make(run->stage, bytes);
        queue_fill(run->stage, NULL, loan->ptr, run->value, bytes);
        stream_wait(run->stage, NULL);
    }
    return loan;
}

static void return_loan(const struct stage *stage, struct loan *loan) {
    assert_true(loan->ended);
    if (loan->device)
        device_end(stage, loan->ptr);
    else
        free(loan->ptr);
}

static sb_status make_call(struct run *run, const struct move *move, struct loan *loan, void **out,
                           sb_error *err) {
    struct call_arguments arguments = {.stream = (sb_stream)run->stage->stream};
    if (loan)
        arguments = (struct call_arguments){
            NULL, loan->ptr, loan->bytes, move->read_only ? SB_READ_ONLY : 0, end_loan, loan};
    return mem_call(run->mem, move->call, &arguments, out, err);
}

/* As who called does: the named stream, or the legacy default one, works on the device. */
static void use_pointer(struct run *run, const struct move *move, int32_t side, void *ptr) {
    const struct call_kind *kind = &call_kinds[move->call];
    size_t bytes = run->state.bytes;
    sb__cu_stream stream = kind->queued ? run->stage->stream : NULL;
    if (kind->purpose == WRITE && side == SB_SIDE_CPU)
        assert_true(bytes_are(ptr, bytes, run->value));
    if (kind->purpose != WRITE && kind->purpose != OVERWRITE)
        return;
    run->value = run->next_value++;
    if (side == SB_SIDE_CPU)
        memset(ptr, run->value, bytes);
    else
        queue_fill(run->stage, stream, ptr, run->value, bytes);
}

/* A device pointer for writing shows what was there. */
static void look_before_writing(struct run *run, const struct move *move, int32_t side,
                                const void *ptr) {
    const struct call_kind *kind = &call_kinds[move->call];
    if (kind->purpose != WRITE || side != SB_SIDE_GPU)
        return;
    if (kind->queued)
        stream_wait(run->stage, run->stage->stream);
    assert_true(device_holds(run->stage, ptr, run->state.bytes, run->value));
}

/* --- the comparison -------------------------------------------------------------------------- */

static struct copies expected_copies(const struct plan *plan, size_t bytes) {
    struct copies c = {0};
    bool on_host = plan->side == SB_SIDE_CPU;
    c.uploads = plan->copies && !on_host;
    c.downloads = plan->copies && on_host;
    c.device_copies = plan->moves && !on_host;
    c.host_copies = plan->moves && on_host;
    c.upload_bytes = c.uploads * (int64_t)bytes;
    c.download_bytes = c.downloads * (int64_t)bytes;
    c.device_copy_bytes = c.device_copies * (int64_t)bytes;
    c.host_copy_bytes = c.host_copies * (int64_t)bytes;
    return c;
}

static void check_storage(const struct run *run) {
    size_t bytes = run->state.bytes;
    sb_stats stats = stats_of(run->stage->context);
    assert_int_equal(sb_mem_head(run->mem), run->state.head);
    for (int32_t side = 0; side < 2; side++)
        assert_int_equal(sb_mem_storage(run->mem, side), run->state.side[side].kind);
    bool on_device = run->state.side[SB_SIDE_GPU].kind == SB_STORAGE_OWNED;
    assert_int_equal(stats.device_bytes, on_device ? bytes : 0);
    for (int i = 0; i < run->loan_count; i++)
        assert_int_equal(run->loans[i].ended, run->loans[i].due);
}

/* Both sides, where they are current: asking for them costs no copy. */
static void check_bytes(const struct run *run) {
    struct copies before = copies_so_far(run->stage->context);
    if (table_is_current(run->state.head, SB_SIDE_CPU))
        assert_true(host_holds(run->mem, run->value));
    if (table_is_current(run->state.head, SB_SIDE_GPU))
        assert_true(device_holds(run->stage, gpu_pointer(run->mem), run->state.bytes, run->value));
    assert_transfers(run->stage->context, &before, 0, 0, 0);
    for (int i = 0; i < run->loan_count; i++) {
        const struct loan *loan = &run->loans[i];
        if (loan->read_only)
            assert_true(loan->device ? device_holds(run->stage, loan->ptr, loan->bytes, loan->value)
                                     : bytes_are(loan->ptr, loan->bytes, loan->value));
    }
}

static struct side fresh_side(const struct plan *plan, struct loan *loan) {
    bool pinned = plan->side == SB_SIDE_CPU;

    if (plan->adopts)
        return (struct side){loan->read_only ? SB_STORAGE_BORROWED_READ_ONLY : SB_STORAGE_BORROWED,
                             loan};
    return (struct side){pinned ? SB_STORAGE_PINNED : SB_STORAGE_OWNED, NULL};
}

static void do_move(struct run *run, const struct move *move) {
    struct plan plan = table_plan(&run->state, move->call);
    struct loan *loan = plan.adopts ? lend(run, move) : NULL;
    struct copies before = copies_so_far(run->stage->context);
    void *out = NULL;
    assert_status(plan.status, make_call(run, move, loan, &out, &err));
    struct copies since = copies_since(run->stage->context, &before);
    struct copies expected = expected_copies(&plan, run->state.bytes);
    assert_memory_equal(&since, &expected, sizeof since);
    if (plan.status == SB_OK) {
        if (plan.zeroes)
            run->value = 0;
        struct loan *ended = table_commit(&run->state, &plan, fresh_side(&plan, loan));
        if (ended)
            ended->due = true;
        look_before_writing(run, move, plan.side, out);
        use_pointer(run, move, plan.side, out);
    }
    check_storage(run);
    check_bytes(run);
}

static void run_path(struct stage *stage, size_t bytes, const int *path, int length) {
    struct run run = {.stage = stage, .mem = mem_make(stage->context, bytes), .next_value = 1};
    run.state.bytes = bytes;
    for (int i = 0; i < length; i++) {
        struct move move = move_of(path[i]);
        do_move(&run, &move);
    }
    sb_mem_release(run.mem);
    for (int i = 0; i < run.loan_count; i++)
        return_loan(stage, &run.loans[i]);
}

/* --- all states ------------------------------------------------------------------------------ */

struct node {
    struct memory_state state;
    int path[LONGEST], length;
};

enum { STATES_MAX = 128 };

static struct node nodes[STATES_MAX];

static bool is_known(const struct memory_state *state, int count) {
    for (int i = 0; i < count; i++)
        if (nodes[i].state.head == state->head &&
            nodes[i].state.side[0].kind == state->side[0].kind &&
            nodes[i].state.side[1].kind == state->side[1].kind)
            return true;
    return false;
}

static struct memory_state after(const struct memory_state *state, const struct move *move) {
    static struct loan loan;
    struct memory_state next = *state;
    struct plan plan = table_plan(state, move->call);
    loan.read_only = move->read_only;
    if (plan.status == SB_OK)
        (void)table_commit(&next, &plan, fresh_side(&plan, &loan));
    return next;
}

/* Every state by the shortest way there, found with the reference alone. */
static int find_states(void) {
    int count = 1;
    nodes[0] = (struct node){.length = 0};
    for (int n = 0; n < count; n++)
        for (int m = 0; m < MOVES; m++) {
            struct move move = move_of(m);
            struct memory_state next = after(&nodes[n].state, &move);
            if (is_known(&next, count))
                continue;
            assert_true(count < STATES_MAX && nodes[n].length + 1 < LONGEST);
            nodes[count] = nodes[n];
            nodes[count].state = next;
            nodes[count].path[nodes[count].length++] = m;
            count++;
        }
    return count;
}

static void run_every_call(size_t bytes) {
    struct stage stage;
    int states = find_states();
    stage_open(&stage, NULL);
    for (int n = 0; n < states; n++)
        for (int m = 0; m < MOVES; m++) {
            int path[LONGEST];
            memcpy(path, nodes[n].path, sizeof path);
            path[nodes[n].length] = m;
            run_path(&stage, bytes, path, nodes[n].length + 1);
        }
    print_message("%d states, %d calls from each, %zu bytes\n", states, (int)MOVES, bytes);
    stage_close(&stage);
}

TEST(every_call_in_every_state_is_as_the_table_says) {
    run_every_call(1000);
}

TEST(so_with_buffers_that_the_cache_keeps) {
    skip_when_quick();
    run_every_call(100001);
}

int main(void) {
    int missing = gpu_begin();
    return missing ? missing : run_all_tests();
}
