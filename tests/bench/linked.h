/* The library linked statically into a program and optimised with it, as a contestant: what a
   shared library made of linked.c and the static library exports under the name linked_peer. */
#ifndef SB_BENCH_LINKED_H
#define SB_BENCH_LINKED_H

#include <stdint.h>

struct linked_peer {
    /* A blob of floats that was written; NULL where there is no memory. */
    void *(*create)(void);
    void (*destroy)(void *blob);
    /* n times, in a loop that the linker sees whole. */
    void (*access)(void *blob, int64_t n);
};

#endif
