/* The correctly rounded square root. Without optimisation the compiler would call MinGW's sqrt,
   which rounds twice. */
#ifndef SB_PORT_ROOT_H
#define SB_PORT_ROOT_H

#include <math.h>

#if defined(__MINGW32__) && !defined(__OPTIMIZE__)
#include <emmintrin.h>

static inline double sb__sqrt(double x) {
    const __m128d value = _mm_set_sd(x);
    return _mm_cvtsd_f64(_mm_sqrt_sd(value, value));
}
#else
#define sb__sqrt(x) sqrt(x)
#endif

#endif
