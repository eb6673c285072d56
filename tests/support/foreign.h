/* Beginnings of files that are not messages of Caffe: the rows of foreign.txt, which the tests of
   the crates and of the Python module also read. */
#ifndef SB_TESTS_FOREIGN_H
#define SB_TESTS_FOREIGN_H

#include "wire_builder.h"

/* The bytes in [from, to) identify the kind of a file. An error describes the file with `words`, or
   with `shorter` if some of these bytes are missing. */
struct foreign {
    const char *words, *shorter; /* `shorter` may be NULL */
    size_t from, to;
    struct wire wire;
};

/* The rows refer to text that exists until the test ends. */
struct foreign_list {
    struct foreign rows[64];
    size_t count;
};

struct foreign_list foreign_list(void);

#endif
