#ifndef SB_MEMORY_CLEAR_H
#define SB_MEMORY_CLEAR_H

#include "memory/retired.h"

/* Sets the first `bytes` bytes of a memory to zero, on the side where its head is. */
sb_status sb__mem_clear(sb_mem *mem, size_t bytes, struct sb__retired *retired, sb_error *err);

#endif
