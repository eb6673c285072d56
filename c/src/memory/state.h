/* The state table of a memory: the work and the new head for each head and call. */
#ifndef SB_MEMORY_STATE_H
#define SB_MEMORY_STATE_H

#include <stdint.h>

enum sb__call {
    SB__READ_CPU,      /* cpu_data, prefetch_cpu */
    SB__WRITE_CPU,     /* mutable_cpu_data */
    SB__READ_GPU,      /* gpu_data, prefetch_gpu */
    SB__WRITE_GPU,     /* mutable_gpu_data */
    SB__SET_CPU,       /* set_cpu */
    SB__SET_GPU,       /* set_gpu */
    SB__OVERWRITE_CPU, /* overwrite_cpu */
    SB__OVERWRITE_GPU, /* overwrite_gpu */
    SB__PUSH,          /* async_gpu_push */
    SB__PULL,          /* async_cpu_pull */
    SB__EVICT_CPU,     /* evict_cpu */
    SB__EVICT_GPU,     /* evict_gpu */
    SB__CALLS
};

enum sb__work {
    SB__NOTHING,
    SB__ZERO,     /* allocate zeroed storage on the call's side */
    SB__ALLOC,    /* allocate storage on the call's side */
    SB__TRANSFER, /* copy from the other side to the call's side; allocate storage if necessary */
    SB__ADOPT,    /* the caller's storage replaces the side's storage */
    SB__FREE,     /* the side's storage is retired */
    SB__REFUSE    /* the call fails */
};

struct sb__cell {
    uint8_t work; /* enum sb__work */
    uint8_t head; /* SB_HEAD_* afterwards */
};

struct sb__cell sb__state(int32_t head, enum sb__call call);

#endif
