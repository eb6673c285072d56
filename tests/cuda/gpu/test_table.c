/* The state table of SyncedMemory on a device: every state that can be reached
   and, from each, every call, held against the reference in fuzz/support/table.c. */
#include "gpu.h"
#include "loan.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

/* --- the calls ---------------------------------------------------------------------------------
 */

enum access { NO_POINTER, READS, WRITES, OVERWRITES };

struct move {
    const char *name;
    enum column column;
    enum access access;
    bool on_stream, read_only;
};

static const struct move moves[] = {
    {"cpu_data", CPU_DATA, READS, false, false},
    {"mutable_cpu_data", MUTABLE_CPU, WRITES, false, false},
    {"overwrite_cpu", OVERWRITE_CPU, OVERWRITES, false, false},
    {"gpu_data", GPU_DATA, READS, false, false},
    {"gpu_data_on", GPU_DATA, READS, true, false},
    {"mutable_gpu_data", MUTABLE_GPU, WRITES, false, false},
    {"mutable_gpu_data_on", MUTABLE_GPU, WRITES, true, false},
    {"overwrite_gpu", OVERWRITE_GPU, OVERWRITES, false, false},
    {"overwrite_gpu_on", OVERWRITE_GPU, OVERWRITES, true, false},
    {"set_cpu", SET_CPU, NO_POINTER, false, false},
    {"set_cpu, read-only", SET_CPU, NO_POINTER, false, true},
    {"set_gpu", SET_GPU, NO_POINTER, false, false},
    {"set_gpu, read-only", SET_GPU, NO_POINTER, false, true},
    {"async_gpu_push", ASYNC_PUSH, NO_POINTER, true, false},
    {"async_cpu_pull", ASYNC_PULL, NO_POINTER, true, false},
    {"prefetch_cpu", CPU_DATA, NO_POINTER, true, false},
    {"prefetch_gpu", GPU_DATA, NO_POINTER, true, false},
    {"evict_cpu", EVICT_CPU, NO_POINTER, false, false},
    {"evict_gpu", EVICT_GPU, NO_POINTER, false, false},
    {"clear", CLEAR, NO_POINTER, false, false},
};

enum { MOVES = sizeof moves / sizeof moves[0], LONGEST = 8 };

/* --- one run -----------------------------------------------------------------------------------
 */

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
    bool on_host = move->column == SET_CPU;
    *loan = (struct loan){.bytes = bytes,
                          .device = on_host ? NULL : run->stage->context,
                          .read_only = move->read_only};
    run->value = run->next_value++;
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

static sb_status call_for_pointer(struct run *run, const struct move *move, void **out,
                                  sb_error *err) {
    sb_stream s = (sb_stream)run->stage->stream;
    const void **in = (const void **)out;
    switch (move->column) {
    case CPU_DATA:
        return sb_mem_cpu_data(run->mem, in, err);
    case MUTABLE_CPU:
        return sb_mem_mutable_cpu_data(run->mem, out, err);
    case OVERWRITE_CPU:
        return sb_mem_overwrite_cpu(run->mem, out, err);
    case GPU_DATA:
        return move->on_stream ? sb_mem_gpu_data_on(run->mem, s, in, err)
                               : sb_mem_gpu_data(run->mem, in, err);
    case MUTABLE_GPU:
        return move->on_stream ? sb_mem_mutable_gpu_data_on(run->mem, s, out, err)
                               : sb_mem_mutable_gpu_data(run->mem, out, err);
    default:
        return move->on_stream ? sb_mem_overwrite_gpu_on(run->mem, s, out, err)
                               : sb_mem_overwrite_gpu(run->mem, out, err);
    }
}

static sb_status call(struct run *run, const struct move *move, struct loan *loan, void **out,
                      sb_error *err) {
    sb_stream s = (sb_stream)run->stage->stream;
    uint32_t flags = move->read_only ? SB_READ_ONLY : 0;
    if (move->access != NO_POINTER)
        return call_for_pointer(run, move, out, err);
    switch (move->column) {
    case SET_CPU:
        return sb_mem_set_cpu(run->mem, loan->ptr, loan->bytes, flags, end_loan, loan, err);
    case SET_GPU:
        return sb_mem_set_gpu(run->mem, loan->ptr, loan->bytes, flags, end_loan, loan, err);
    case ASYNC_PUSH:
        return sb_mem_async_gpu_push(run->mem, s, err);
    case ASYNC_PULL:
        return sb_mem_async_cpu_pull(run->mem, s, err);
    case CPU_DATA:
        return sb_mem_prefetch_cpu(run->mem, s, err);
    case GPU_DATA:
        return sb_mem_prefetch_gpu(run->mem, s, err);
    case EVICT_CPU:
        return sb_mem_evict_cpu(run->mem, err);
    case EVICT_GPU:
        return sb_mem_evict_gpu(run->mem, err);
    default:
        return sb_mem_clear(run->mem, err);
    }
}

/* As who called does: the named stream, or the legacy default one, works on the device. */
static void use_pointer(struct run *run, const struct move *move, int32_t side, void *ptr) {
    size_t bytes = run->state.bytes;
    sb__cu_stream stream = move->on_stream ? run->stage->stream : NULL;
    if (move->access == WRITES && side == SB_SIDE_CPU)
        assert_true(bytes_are(ptr, bytes, run->value));
    if (move->access == READS || move->access == NO_POINTER)
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
    if (move->access != WRITES || side != SB_SIDE_GPU)
        return;
    if (move->on_stream)
        stream_wait(run->stage, run->stage->stream);
    assert_true(device_holds(run->stage, ptr, run->state.bytes, run->value));
}

/* --- the comparison ----------------------------------------------------------------------------
 */

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
            assert_true(loan->device
                            ? device_holds(run->stage, loan->ptr, loan->bytes, loan->before[0])
                            : bytes_are(loan->ptr, loan->bytes, loan->before[0]));
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
    static unsigned char values[256][1];
    struct plan plan = table_plan(&run->state, move->column);
    struct loan *loan = plan.adopts ? lend(run, move) : NULL;
    struct copies before = copies_so_far(run->stage->context);
    sb_error err;
    void *out = NULL;
    if (loan) {
        values[run->value][0] = (unsigned char)run->value;
        loan->before = values[run->value];
    }
    assert_status(plan.status, call(run, move, loan, &out, &err));
    struct copies since = copies_since(run->stage->context, &before);
    struct copies expected = expected_copies(&plan, run->state.bytes);
    assert_memory_equal(&since, &expected, sizeof since);
    if (plan.status == SB_OK) {
        if (plan.zeroes)
            run->value = 0;
        table_commit(&run->state, &plan, fresh_side(&plan, loan));
        look_before_writing(run, move, plan.side, out);
        use_pointer(run, move, plan.side, out);
    }
    check_storage(run);
    check_bytes(run);
}

static void run_path(struct stage *stage, size_t bytes, const int *path, int length) {
    struct run run = {.stage = stage, .mem = mem_make(stage->context, bytes), .next_value = 1};
    run.state.bytes = bytes;
    for (int i = 0; i < length; i++)
        do_move(&run, &moves[path[i]]);
    sb_mem_release(run.mem);
    for (int i = 0; i < run.loan_count; i++)
        return_loan(stage, &run.loans[i]);
}

/* --- all states ---------------------------------------------------------------------------------
 */

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
    struct plan plan = table_plan(state, move->column);
    loan.read_only = move->read_only;
    if (plan.status == SB_OK)
        table_commit(&next, &plan, fresh_side(&plan, &loan));
    return next;
}

/* Every state by the shortest way there, found with the reference alone. */
static int find_states(void) {
    int count = 1;
    nodes[0] = (struct node){.length = 0};
    for (int n = 0; n < count; n++)
        for (int m = 0; m < MOVES; m++) {
            struct memory_state next = after(&nodes[n].state, &moves[m]);
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

static void every_call_in_every_state_is_as_the_table_says(void **state) {
    (void)state;
    run_every_call(1000);
}

static void so_with_buffers_that_the_cache_keeps(void **state) {
    (void)state;
    skip_when_quick();
    run_every_call(100001);
}

/* --- Caffe's own sequence ----------------------------------------------------------------------
 */

static void caffes_sequence_copies_four_times(void **state) {
    (void)state;
    static const struct {
        enum column column;
        int uploads, downloads;
    } steps[] = {{GPU_DATA, 1, 0},    {CPU_DATA, 0, 0},    {MUTABLE_GPU, 0, 0},
                 {MUTABLE_GPU, 0, 0}, {CPU_DATA, 0, 1},    {GPU_DATA, 0, 0},
                 {MUTABLE_CPU, 0, 0}, {MUTABLE_GPU, 1, 0}, {MUTABLE_CPU, 0, 1}};
    struct stage stage;
    const size_t bytes = 1000003;
    stage_open(&stage, NULL);
    struct run run = {.stage = &stage, .mem = mem_on_host(stage.context, bytes, 7)};
    struct copies start = copies_so_far(stage.context);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct move move = {"", steps[i].column, READS, false, false};
        struct copies before = copies_so_far(stage.context);
        sb_error err;
        void *out;
        assert_ok(call_for_pointer(&run, &move, &out, &err));
        assert_transfers(stage.context, &before, steps[i].uploads, steps[i].downloads, bytes);
    }
    assert_transfers(stage.context, &start, 2, 2, bytes);
    assert_true(host_holds(run.mem, 7));
    sb_mem_release(run.mem);
    stage_close(&stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_in_every_state_is_as_the_table_says),
        cmocka_unit_test(so_with_buffers_that_the_cache_keeps),
        cmocka_unit_test(caffes_sequence_copies_four_times),
    };
    int missing = gpu_begin();
    return missing ? missing : cmocka_run_group_tests(tests, NULL, NULL);
}
