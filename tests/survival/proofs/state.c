/* The state table: whatever is called in whatever order, the newest bytes are never lost. By
   induction over the calls: the head of any memory says who holds its newest bytes, any call is
   made, and the head says so again; where there were newest bytes, there are.
   --unwind 1: there is no loop */
#include "proof.h"

#include "memory/state.c"

#include "state_rules.h"

int main(void) {
    const int32_t head = any_i32();
    const uint32_t call = any_u32();
    const state_newest newest = any_u32();
    assume(head >= SB_HEAD_UNINITIALIZED && head <= SB_HEAD_LOST && call < SB__CALLS);
    assume(newest == state_said(head));
    const struct sb__cell cell = sb__state(head, call);
    claim(state_accepts(head, call, cell));
    const state_newest after = state_after(newest, call, cell.work);
    claim(after == state_said(cell.head));
    claim(newest == STATE_NOBODY || after != STATE_NOBODY);
}
