/* The library, linked statically into a program and optimised with it, as a contestant: the table
   that a module of linked.c and the static library exports as linked_peer. */
#ifndef SB_BENCH_LINKED_H
#define SB_BENCH_LINKED_H

struct linked_peer {
    /* A blob of written floats; NULL without memory. */
    void *(*create)(void);
    void (*destroy)(void *blob);
    /* CALLS calls, in a loop that the linker optimises as a whole. */
    void (*access)(void *blob);
};

#endif
