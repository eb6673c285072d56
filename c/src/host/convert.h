/* Vectorised conversion of floats to doubles and back. The buffers may be unaligned and do not
   overlap. */
#ifndef SB_HOST_CONVERT_H
#define SB_HOST_CONVERT_H

#include <stddef.h>

typedef void sb__convert(const unsigned char *src, unsigned char *dst, size_t count);

struct sb__converts {
    sb__convert *widen;  /* converts `count` floats to doubles */
    sb__convert *narrow; /* rounds doubles to floats; values out of range become infinite */
};

/* Returns the i-th pair of loops that this processor supports, the slowest first, or NULL if there
   are fewer pairs. All pairs compute the same numbers. */
const struct sb__converts *sb__converts_kind(int i);
void sb__widen(const unsigned char *src, unsigned char *dst, size_t count);
void sb__narrow(const unsigned char *src, unsigned char *dst, size_t count);

#endif
