/* Large arrays in little memory: one small file, the tile, is mapped many times in a row. */
#ifndef SB_TESTS_TILES_H
#define SB_TESTS_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps tiles at consecutive addresses; the last tile may be cut off. Returns NULL, with errno, if
   the machine cannot map the tiles. Free the tiles with munmap. */
static inline void *map_tiles(size_t tile, size_t bytes) {
    const int file = memfd_create("tile", MFD_CLOEXEC);
    char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool is_mapped = base != MAP_FAILED && file >= 0 && ftruncate(file, (off_t)tile) == 0;
    for (size_t at = 0; is_mapped && at < bytes; at += tile)
        is_mapped = mmap(base + at, bytes - at < tile ? bytes - at : tile, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    if (file >= 0)
        (void)close(file);
    if (!is_mapped && base != MAP_FAILED)
        (void)munmap(base, bytes);
    return is_mapped ? base : NULL;
}

#endif
