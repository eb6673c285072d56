/* Maps the constants of the library's state table to the constants of state_table.h. */
#ifndef SB_TESTS_STATE_LIBRARY_H
#define SB_TESTS_STATE_LIBRARY_H

#include "memory/state.h"
#include "state_table.h"

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

#endif
