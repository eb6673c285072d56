/* Compares the library's state table with the reference. By induction over the calls, no sequence
   of calls may lose the newest bytes. */
#include "support.h"

#include "state_library.h"

TEST(test_every_cell_equals_the_references) {
    for (int32_t head = 0; head <= SB_HEAD_LOST; head++)
        for (int number = 0; number < SB__CALLS; number++) {
            const struct sb__cell cell = sb__state(head, (enum sb__call)number);
            const enum call call = calls_of_library[number];
            const struct state_cell expected = state_cell(head, call);
            if (works_of_library[cell.work] != expected.work || cell.head != expected.head)
                fail_with("head %d, %s: work %d, head %d; expected %d, %d", head,
                          call_kinds[call].name, works_of_library[cell.work], cell.head,
                          expected.work, expected.head);
        }
}

/* If the head before a call names the sides that hold the newest bytes, so does the head after the
   call; a read returns the newest bytes, and zeros do not replace them. */
TEST(test_no_order_of_calls_loses_bytes) {
    for (int32_t head = 0; head <= SB_HEAD_LOST; head++)
        for (int number = 0; number < SB__CALLS; number++) {
            const struct sb__cell cell = sb__state(head, (enum sb__call)number);
            const struct call_kind *kind = &call_kinds[calls_of_library[number]];
            const enum work work = works_of_library[cell.work];
            const state_newest before = sides_of_head(head);
            const state_newest after = state_after(before, calls_of_library[number], work);
            assert_int_equal(after, sides_of_head(cell.head));
            assert_true(before == NOBODY || (after != NOBODY && work != ZERO));
            if ((kind->purpose == READ || kind->purpose == WRITE) && work != REFUSE)
                assert_true(after & (kind->side == SB_SIDE_CPU ? HOST : DEVICE));
        }
}
