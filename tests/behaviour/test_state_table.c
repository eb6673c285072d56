/* The state table against the rules of tests/support/state_rules.h, cell by cell, and each cell
   replaced by every other: the rules refuse it, so that there is one table that they accept; and no
   order of calls loses the newest bytes, which many of the others do. */
#include "support.h"

#include "state_rules.h"

#include <string.h>

#define HEADS (SB_HEAD_LOST + 1)
#define WORKS (SB__REFUSE + 1)

typedef struct sb__cell cells[HEADS][SB__CALLS];

static void read_table(cells out) {
    for (int32_t head = 0; head < HEADS; head++)
        for (int call = 0; call < SB__CALLS; call++)
            out[head][call] = sb__state(head, (enum sb__call)call);
}

static void test_every_cell_follows_the_rules(void **state) {
    (void)state;
    for (int32_t head = 0; head < HEADS; head++)
        for (int call = 0; call < SB__CALLS; call++)
            if (!state_accepts(head, (enum sb__call)call, sb__state(head, (enum sb__call)call)))
                fail_with("head %d, call %d", head, call);
}

/* --- every order of calls ------------------------------------------------------ */

/* A memory as it is, whatever its head says. What a head that is wrong leads to is found by going
   through all memories that calls can make. */
struct memory {
    int32_t head;
    state_newest newest;
    bool has_bytes; /* somebody gave it some, or asked for its zeros */
};

/* Whether the call hands out bytes that are not the newest, or leaves nobody with them. */
static bool loses(cells table, struct memory *memory, enum sb__call call) {
    const struct sb__cell cell = table[memory->head][call];
    const enum state_purpose purpose = state_purpose(call);
    if (cell.work != SB__REFUSE && (purpose == STATE_READ || purpose == STATE_WRITE)) {
        const state_newest shown =
            state_after(memory->newest, call - (purpose == STATE_WRITE), cell.work);
        if (!(shown & state_side(call)))
            return true;
    }
    if (memory->has_bytes && cell.work == SB__ZERO)
        return true; /* even a side that was stale is taken for the newest then */
    memory->newest = state_after(memory->newest, call, cell.work);
    memory->has_bytes |= memory->newest != STATE_NOBODY;
    memory->head = cell.head;
    return memory->has_bytes && memory->newest == STATE_NOBODY;
}

static size_t place(const struct memory *memory) {
    return ((size_t)memory->head * 4 + memory->newest) * 2 + memory->has_bytes;
}

static bool some_order_loses(cells table) {
    bool seen[HEADS * 4 * 2] = {false};
    struct memory waiting[HEADS * 4 * 2] = {{SB_HEAD_UNINITIALIZED, STATE_NOBODY, false},
                                            {SB_HEAD_LOST, STATE_NOBODY, false}};
    size_t count = 2;
    seen[place(&waiting[0])] = seen[place(&waiting[1])] = true;
    while (count > 0) {
        const struct memory from = waiting[--count];
        for (int call = 0; call < SB__CALLS; call++) {
            struct memory to = from;
            if (loses(table, &to, (enum sb__call)call))
                return true;
            if (!seen[place(&to)])
                waiting[count++] = to;
            seen[place(&to)] = true;
        }
    }
    return false;
}

static void test_no_order_of_calls_loses_bytes(void **state) {
    (void)state;
    cells table;
    read_table(table);
    assert_false(some_order_loses(table));
}

/* --- every mutation ------------------------------------------------------------- */

struct tally {
    int mutations, losses;
};

static void mutate(cells table, int32_t head, int call, struct tally *tally) {
    const struct sb__cell right = table[head][call];
    for (int i = 0; i < WORKS * HEADS; i++) {
        const struct sb__cell cell = {(uint8_t)(i / HEADS), (uint8_t)(i % HEADS)};
        if (cell.work == right.work && cell.head == right.head)
            continue;
        if (state_accepts(head, (enum sb__call)call, cell))
            fail_with("head %d, call %d: work %d, head %d is accepted", head, call, cell.work,
                      cell.head);
        table[head][call] = cell;
        tally->mutations++;
        tally->losses += some_order_loses(table);
    }
    table[head][call] = right;
}

static void test_rules_accept_no_other_cell(void **state) {
    (void)state;
    struct tally tally = {0, 0};
    cells table;
    read_table(table);
    for (int32_t head = 0; head < HEADS; head++)
        for (int call = 0; call < SB__CALLS; call++)
            mutate(table, head, call, &tally);
    print_message("%d mutations refused, of which %d lose bytes\n", tally.mutations, tally.losses);
    assert_int_equal(tally.mutations, HEADS * SB__CALLS * (WORKS * HEADS - 1));
    assert_true(tally.losses > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell_follows_the_rules),
        cmocka_unit_test(test_no_order_of_calls_loses_bytes),
        cmocka_unit_test(test_rules_accept_no_other_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
