/* A keyed hash of bytes: SipHash-1-3 (Aumasson and Bernstein, 2012). As in CPython and Rust, the
   hash runs one round per word and three rounds at the end. An attacker who does not know the key
   cannot choose names that collide. */
#ifndef SB_BASE_HASH_H
#define SB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash depends on the host's byte order. */
uint64_t sb__hash(const uint64_t key[2], const void *bytes, size_t size);

#endif
