/* Memory as each system gives it: pages straight from the kernel, addresses without memory, and
   blocks at a boundary. */
#ifndef SB_PORT_PAGES_H
#define SB_PORT_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* What the kernel takes and gives no less than; a power of two. */
size_t sb__page_size(void);

/* Zero pages on a boundary of `alignment`, a multiple of the page's size, with large pages where
   the system has them for the asking; `bytes` are whole pages. NULL where there are none. */
void *sb__pages_map(size_t bytes, size_t alignment);
/* Addresses that nobody can access. NULL where there are none. */
void *sb__pages_reserve(size_t bytes);
/* What was mapped or reserved, all of it. */
void sb__pages_unmap(void *pages, size_t bytes);

/* Pages full of one byte, which become memory only once they are written, where the system can do
   that. `*kept` is SB__NOTHING_KEPT at first; later calls use what it holds again. */
#define SB__NOTHING_KEPT ((intptr_t)-1)
void *sb__pages_filled(intptr_t *kept, int byte, size_t bytes);
void sb__pages_drop(intptr_t kept);

/* `bytes` are a multiple of `alignment`, a power of two of at least a pointer's size. */
void *sb__aligned_alloc(size_t alignment, size_t bytes);
void sb__aligned_free(void *block);

#endif
