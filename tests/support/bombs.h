/* Inputs that would make a careless reader take far more memory or time than their size: as large
   as asked for, and made without the library. */
#ifndef SB_TESTS_BOMBS_H
#define SB_TESTS_BOMBS_H

#include "wire_builder.h"

struct bomb {
    const char *name;
    int32_t format;       /* SB_FORMAT_* */
    uint32_t repeated_in; /* the field that holds the repeated bytes; 0: the message itself */
    const void *unit;     /* bytes that are repeated */
    size_t unit_size;
    const void *head, *tail; /* of the message */
    size_t head_size, tail_size;
    int64_t count;      /* elements of the shape behind it; PER_UNIT: of each unit one; NO_SHAPE */
    uint32_t within[2]; /* fields around the message, from the inner one; 0: none */
};

extern const struct bomb bombs[];
extern const size_t num_bombs;

/* Appends about `size` bytes. */
void bomb_build(const struct bomb *bomb, struct wire *wire, size_t size);

#endif
