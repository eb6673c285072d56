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

/* All kinds compute the same numbers; see sb__num_kinds. */
extern const struct sb__converts *const sb__converts_kinds[];

void sb__widen(const unsigned char *src, unsigned char *dst, size_t count);
void sb__narrow(const unsigned char *src, unsigned char *dst, size_t count);

#endif
