/* Memory functions of each system: pages from the kernel, reserved addresses, aligned blocks. */
#ifndef SB_PORT_PAGES_H
#define SB_PORT_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Returns the size of the kernel's pages, a power of two. */
size_t sb__page_size(void);

/* Maps zeroed pages at a multiple of `alignment` and advises the kernel to use large pages. `bytes`
   and `alignment` are multiples of the page size. Returns NULL on failure. */
void *sb__pages_map(size_t bytes, size_t alignment);
/* Reserves addresses that cannot be accessed. Returns NULL on failure. */
void *sb__pages_reserve(size_t bytes);
/* Unmaps a whole mapping or reservation. */
void sb__pages_unmap(void *pages, size_t bytes);

/* Maps pages filled with the value `byte`. If the system supports it, the pages use no memory until
   they are written. `*kept` is initially SB__NOTHING_KEPT, and then identifies a file that later
   calls reuse. */
#define SB__NOTHING_KEPT ((intptr_t)-1)
void *sb__pages_filled(intptr_t *kept, int byte, size_t bytes);
void sb__pages_drop(intptr_t kept);

/* Allocates an aligned block. `bytes` is a multiple of `alignment`, which is a power of two and at
   least a pointer's size. */
void *sb__aligned_alloc(size_t alignment, size_t bytes);
void sb__aligned_free(void *block);

#endif
