/* The generator Philox 4x32 with ten rounds (Salmon, Moraes, Dror and Shaw, "Parallel random
   numbers: as easy as 1, 2, 3", 2011). Random123, or in a build without Random123 the loop below,
   computes the numbers. */
#ifndef SB_FILLER_PHILOX_H
#define SB_FILLER_PHILOX_H

#include <stdint.h>

#ifdef SYNCBLOB_RANDOM123
/* Without this definition, Random123 would check a constant with assert. */
#define R123_ASSERT(condition) ((void)0)
#include <Random123/philox.h>
#endif

/* The paper's multipliers and key increments. */
#define SB__PHILOX_M0     UINT32_C(0xD2511F53)
#define SB__PHILOX_M1     UINT32_C(0xCD9E8D57)
#define SB__PHILOX_W0     UINT32_C(0x9E3779B9)
#define SB__PHILOX_W1     UINT32_C(0xBB67AE85)
#define SB__PHILOX_ROUNDS 10

/* Computes the four output words for a counter and a key. */
static inline void sb__philox(const uint32_t counter[4], uint32_t low_key, uint32_t high_key,
                              uint32_t out[4]) {
#ifdef SYNCBLOB_RANDOM123
    const philox4x32_key_t key = {{low_key, high_key}};
    philox4x32_ctr_t block = {{counter[0], counter[1], counter[2], counter[3]}};
    block = philox4x32(block, key);
    for (int i = 0; i < 4; i++)
        out[i] = block.v[i];
#else
    uint32_t v[4] = {counter[0], counter[1], counter[2], counter[3]};
    for (int i = 0; i < SB__PHILOX_ROUNDS; i++) {
        const uint64_t a = (uint64_t)SB__PHILOX_M0 * v[0], b = (uint64_t)SB__PHILOX_M1 * v[2];
        v[0] = (uint32_t)(b >> 32) ^ v[1] ^ low_key;
        v[2] = (uint32_t)(a >> 32) ^ v[3] ^ high_key;
        v[1] = (uint32_t)b;
        v[3] = (uint32_t)a;
        low_key += SB__PHILOX_W0;
        high_key += SB__PHILOX_W1;
    }
    for (int i = 0; i < 4; i++)
        out[i] = v[i];
#endif
}

#endif
