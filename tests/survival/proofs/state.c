/* The state table: no sequence of calls loses the newest bytes. The proof is by induction over the
   calls.
   --unwind 1: there is no loop
   planted: "{SB__TRANSFER, BOTH}, {SB__TRANSFER, CPU}, {SB__NOTHING, GPU}"
        -> "{SB__NOTHING, BOTH}, {SB__TRANSFER, CPU}, {SB__NOTHING, GPU}"
   planted: "{SB__NOTHING, BOTH},  {SB__NOTHING, CPU},  {SB__NOTHING, BOTH}"
        -> "{SB__NOTHING, BOTH},  {SB__NOTHING, BOTH},  {SB__NOTHING, BOTH}"
   planted: "{SB__REFUSE, GPU},    {SB__TRANSFER, BOTH}, {SB__FREE, GPU},     {SB__REFUSE, GPU}"
        -> "{SB__REFUSE, GPU},    {SB__TRANSFER, BOTH}, {SB__FREE, GPU},     {SB__FREE, GPU}" */
#include "proof.h"

#include "memory/state.c"

#include "mem_calls.c"
#include "state_table.c"

static const enum call calls_of_library[SB__CALLS] = {
    [SB__READ_CPU] = CPU_DATA,
    [SB__WRITE_CPU] = MUTABLE_CPU,
    [SB__READ_GPU] = GPU_DATA,
    [SB__WRITE_GPU] = MUTABLE_GPU,
    [SB__SET_CPU] = SET_CPU,
    [SB__SET_GPU] = SET_GPU,
    [SB__OVERWRITE_CPU] = OVERWRITE_CPU,
    [SB__OVERWRITE_GPU] = OVERWRITE_GPU,
    [SB__PUSH] = ASYNC_PUSH,
    [SB__PULL] = ASYNC_PULL,
    [SB__EVICT_CPU] = EVICT_CPU,
    [SB__EVICT_GPU] = EVICT_GPU,
};

static const enum work works_of_library[] = {
    [SB__NOTHING] = NOTHING, [SB__ZERO] = ZERO, [SB__ALLOC] = ALLOC,   [SB__TRANSFER] = COPY,
    [SB__ADOPT] = ADOPT,     [SB__FREE] = FREE, [SB__REFUSE] = REFUSE,
};

void state(void) {
    const int32_t head = any_i32();
    const uint32_t number = any_u32();
    const state_newest newest = any_u32();
    assume(head >= SB_HEAD_UNINITIALIZED && head <= SB_HEAD_LOST && number < SB__CALLS);
    assume(newest == sides_of_head(head));
    const struct sb__cell cell = sb__state(head, number);
    const enum call call = calls_of_library[number];
    const struct state_cell expected = state_cell(head, call);
    claim(cell.work <= SB__REFUSE && works_of_library[cell.work] == expected.work);
    claim(cell.head == expected.head);
    const state_newest after = state_after(newest, call, works_of_library[cell.work]);
    claim(after == sides_of_head(cell.head));
    claim(newest == NOBODY || after != NOBODY);
}
