/* Random numbers of a counter-based generator (Philox4x32-10): element i of a sequence depends only
   on the seed and i. Uses only IEEE + - * / and square root on doubles, so that all machines and
   instruction sets compute the same bits. */
#ifndef SB_FILLER_RANDOM_H
#define SB_FILLER_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Uniform: low + span * u, u in (0, 1). Normal: mean + deviation * z, z standard normal. */
struct sb__random {
    uint64_t seed;
    int32_t dtype; /* F32 or F64 */
    bool normal;
    double origin, scale; /* low and span (uniform), or mean and deviation (normal) */
    double keep;          /* each element becomes zero with the probability 1 - keep */
};

/* Writes `groups` groups from index `group` on. A group is SB__GROUP_BYTES bytes of elements. */
#define SB__GROUP_BYTES 128
typedef void sb__random_kernel(const struct sb__random *random, uint64_t group, int64_t groups,
                               void *out);

struct sb__random_kernels {
    sb__random_kernel *uniform_f32, *uniform_f64, *normal_f32, *normal_f64;
};

/* The kernels for each kind of processor. All kernels write the same bits. See sb__num_kinds. */
extern const struct sb__random_kernels *const sb__random_kinds[];

/* Writes `count` > 0 elements of the sequence, from index `begin` on, to `out`. */
void sb__random_fill(const struct sb__random *random, const struct sb__random_kernels *kernels,
                     int64_t begin, int64_t count, void *out);

#endif
