/* Compares the library's state table with the reference. With the library's table, no sequence of
   calls may lose the newest bytes. */
#include "support.h"

#include "state_library.h"

#define HEADS (SB_HEAD_LOST + 1)

/* A state table: a row for each head, and a column for each of the library's calls. */
typedef struct state_cell cells[HEADS][SB__CALLS];

static void read_table(cells out) {
    for (int32_t head = 0; head < HEADS; head++)
        for (int call = 0; call < SB__CALLS; call++) {
            struct sb__cell cell = sb__state(head, (enum sb__call)call);
            out[head][call] = (struct state_cell){works_of_library[cell.work], cell.head};
        }
}

TEST(test_every_cell_equals_the_references) {
    cells table;
    read_table(table);
    for (int32_t head = 0; head < HEADS; head++)
        for (int call = 0; call < SB__CALLS; call++) {
            struct state_cell found = table[head][call];
            struct state_cell expected = state_cell(head, calls_of_library[call]);
            if (found.work != expected.work || found.head != expected.head)
                fail_with("head %d, %s: work %d, head %d; expected %d, %d", head,
                          call_kinds[calls_of_library[call]].name, found.work, found.head,
                          expected.work, expected.head);
        }
}

/* --- every order of calls ------------------------------------------------------ */

/* A memory whose head may be wrong: `newest` are the sides with the newest bytes. The test visits
   all states that calls can reach, so it finds the consequences of a wrong head. */
struct memory {
    int32_t head;
    state_newest newest;
    bool has_bytes; /* the caller has stored bytes or requested zeros */
};

/* Returns whether the call returns stale bytes, or discards the newest bytes. */
static bool loses(cells table, struct memory *memory, int number) {
    const struct state_cell cell = table[memory->head][number];
    const enum call call = calls_of_library[number];
    const enum purpose purpose = call_kinds[call].purpose;
    if (cell.work != REFUSE && (purpose == READ || purpose == WRITE)) {
        const bool host = call_kinds[call].side == SB_SIDE_CPU;
        const enum call read = host ? CPU_DATA : GPU_DATA;
        if (!(state_after(memory->newest, read, cell.work) & (host ? HOST : DEVICE)))
            return true;
    }
    if (memory->has_bytes && cell.work == ZERO)
        return true; /* the zeros would replace the newest bytes */
    memory->newest = state_after(memory->newest, call, cell.work);
    memory->has_bytes |= memory->newest != NOBODY;
    memory->head = cell.head;
    return memory->has_bytes && memory->newest == NOBODY;
}

static size_t place(const struct memory *memory) {
    return ((size_t)memory->head * 4 + memory->newest) * 2 + memory->has_bytes;
}

static bool some_order_loses(cells table) {
    bool seen[HEADS * 4 * 2] = {false};
    struct memory waiting[HEADS * 4 * 2] = {{SB_HEAD_UNINITIALIZED, NOBODY, false},
                                            {SB_HEAD_LOST, NOBODY, false}};
    size_t count = 2;
    seen[place(&waiting[0])] = seen[place(&waiting[1])] = true;
    while (count > 0) {
        const struct memory from = waiting[--count];
        for (int call = 0; call < SB__CALLS; call++) {
            struct memory to = from;
            if (loses(table, &to, call))
                return true;
            if (!seen[place(&to)])
                waiting[count++] = to;
            seen[place(&to)] = true;
        }
    }
    return false;
}

TEST(test_no_order_of_calls_loses_bytes) {
    cells table;
    read_table(table);
    assert_false(some_order_loses(table));
}

/* Without the copy to the host, a host write after a device write loses the device's bytes. */
TEST(test_a_table_with_another_cell_loses_bytes) {
    cells table;
    read_table(table);
    table[SB_HEAD_AT_GPU][SB__WRITE_CPU].work = NOTHING;
    assert_true(some_order_loses(table));
}
