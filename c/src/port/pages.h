/* Memory of each system: pages from the kernel, reserved addresses, and aligned blocks. */
#ifndef SB_PORT_PAGES_H
#define SB_PORT_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Returns the kernel's unit of mapping; a power of two. */
size_t sb__page_size(void);

/* Maps zero pages on a boundary of `alignment`, a multiple of the page size, and advises large
   pages; `bytes` are whole pages. NULL on failure. */
void *sb__pages_map(size_t bytes, size_t alignment);
/* Reserves addresses that cannot be accessed. NULL on failure. */
void *sb__pages_reserve(size_t bytes);
/* Unmaps a whole mapping or reservation. */
void sb__pages_unmap(void *pages, size_t bytes);

/* Maps pages filled with one byte. Where the system supports it, the pages use memory only once
   they are written. `*kept` begins as SB__NOTHING_KEPT, then identifies a file for later calls. */
#define SB__NOTHING_KEPT ((intptr_t)-1)
void *sb__pages_filled(intptr_t *kept, int byte, size_t bytes);
void sb__pages_drop(intptr_t kept);

/* Allocates an aligned block. `bytes` are a multiple of `alignment`, a power of two of at least a
   pointer's size. */
void *sb__aligned_alloc(size_t alignment, size_t bytes);
void sb__aligned_free(void *block);

#endif
