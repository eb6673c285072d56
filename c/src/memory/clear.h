#ifndef SB_MEMORY_CLEAR_H
#define SB_MEMORY_CLEAR_H

#include <syncblob/mem.h>

/* Zeros the first `bytes` of a memory where its head is. */
sb_status sb__mem_clear(sb_mem *mem, size_t bytes, sb_error *err);

#endif
