/* Bombs: small inputs for which a careless reader needs far too much memory or time. */
#ifndef SB_TESTS_BOMBS_H
#define SB_TESTS_BOMBS_H

#include "wire_builder.h"

struct bomb {
    const char *name;
    int32_t format;       /* SB_FORMAT_* */
    uint32_t repeated_in; /* the field that contains the repeated bytes, or 0 */
    const void *unit;     /* bytes that are repeated */
    size_t unit_size;
    const void *head, *tail; /* bytes before and after the repeated bytes */
    size_t head_size, tail_size;
    int64_t count;      /* elements of the shape in the message, or a constant of bombs.c */
    uint32_t within[2]; /* fields that enclose the message, innermost first (0: no field) */
};

extern const struct bomb bombs[];
extern const size_t num_bombs;

/* Appends the bomb to `wire`, as a message of about `size` bytes. */
void bomb_build(const struct bomb *bomb, struct wire *wire, size_t size);

#endif
