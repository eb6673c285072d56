/* Inputs that would make a careless reader take far more memory or time than
   their size: as large as asked for, and made without the library. */
#ifndef SB_TESTS_BOMBS_H
#define SB_TESTS_BOMBS_H

#include "wire_builder.h"

struct bomb {
    const char *name;
    int32_t format; /* SB_FORMAT_* */
    /* Appends about `size` bytes. */
    void (*build)(struct wire *wire, size_t size);
};

extern const struct bomb bombs[];
extern const size_t num_bombs;

#endif
