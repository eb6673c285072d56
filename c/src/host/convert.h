/* Floats into doubles and back, in vectors. Neither side need be aligned; they do not overlap. */
#ifndef SB_HOST_CONVERT_H
#define SB_HOST_CONVERT_H

#include <stddef.h>

typedef void sb__convert(const unsigned char *src, unsigned char *dst, size_t count);

struct sb__converts {
    sb__convert *widen;  /* `count` floats become doubles */
    sb__convert *narrow; /* doubles become floats: rounded, infinite beyond a float's range */
};

/* Those that this processor runs, the slowest first; NULL behind the fastest. All give the same
   numbers. */
const struct sb__converts *sb__converts_kind(int i);
void sb__widen(const unsigned char *src, unsigned char *dst, size_t count);
void sb__narrow(const unsigned char *src, unsigned char *dst, size_t count);

#endif
