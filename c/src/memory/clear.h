#ifndef SB_MEMORY_CLEAR_H
#define SB_MEMORY_CLEAR_H

#include "memory/retired.h"

/* Zeroes the first `bytes` bytes on the side with the current bytes, or on the device if both sides
   are current. Does nothing if the memory was never written; fails if the memory is LOST. */
sb_status sb__mem_clear(sb_mem *mem, size_t bytes, struct sb__retired *retired, sb_error *err);

#endif
