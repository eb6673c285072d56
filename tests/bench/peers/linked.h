/* The library as a contestant, linked statically and optimised with its caller. linked.c and the
   static library form a module that exports this table as linked_peer. */
#ifndef SB_BENCH_LINKED_H
#define SB_BENCH_LINKED_H

struct linked_peer {
    /* Returns a blob of floats that were written; NULL if out of memory. */
    void *(*create)(void);
    void (*destroy)(void *blob);
    /* Makes CALLS calls, in a loop that the linker optimises as a whole. */
    void (*access)(void *blob);
};

#endif
