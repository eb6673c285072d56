/* How files begin that are no message of Caffe's: the rows of foreign.txt, which the tests of the
   crates and of the Python module read, too. */
#ifndef SB_TESTS_FOREIGN_H
#define SB_TESTS_FOREIGN_H

#include <stddef.h>

/* The bytes in [from, to) are the sign; `shorter` are the words for a beginning that holds less of
 * it. */
struct foreign {
    const char *words, *shorter; /* NULL: none */
    size_t from, to;
    const unsigned char *bytes;
    size_t size;
};

struct foreign_list {
    char *text; /* which the rows point into */
    struct foreign rows[64];
    size_t count;
};

struct foreign_list foreign_list(void);
void foreign_free(struct foreign_list *list);

#endif
