/* Allocates device memory. Addresses come from reserved ranges, which the host cannot access; bytes
   are in ordinary memory, and a table maps the addresses to the bytes. In host-coherent memory a
   device address is the host address of the same byte. */
#include "base/checked.h"
#include "port/pages.h"
#include "sim/device.h"

#include <stdlib.h>
#include <string.h>

#define RUBBISH 0xCB
#define GRANULE ((size_t)256) /* alignment of addresses, and the gap between blocks */
#define SEGMENT_SIZE                                                                               \
    ((size_t)1 << (sizeof(size_t) > 4 ? 32 : 26)) /* the smallest segment's size                   \
                                                   */
#define ALIGNMENT ((size_t)64)                    /* the alignment of small backings */
#define LARGE     ((size_t)16 << 20)              /* backings of at least this size are mapped */

void sb__sim_scribble(void *host, size_t bytes) {
    memset(host, RUBBISH, bytes);
}

/* --- bytes ---------------------------------------------------------------------- */

void *sb__sim_backing_alloc(struct sb__sim *sim, size_t bytes) {
    if (bytes >= LARGE)
        return sb__pages_filled(&sim->rubbish, RUBBISH, bytes);
    void *backing = sb__aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (backing)
        sb__sim_scribble(backing, bytes);
    return backing;
}

void sb__sim_backing_free(void *backing, size_t bytes) {
    if (bytes >= LARGE)
        sb__pages_unmap(backing, bytes);
    else
        sb__aligned_free(backing);
}

/* --- addresses ------------------------------------------------------------------ */

/* Returns the index of the first block whose address is above `ptr`. */
static size_t blocks_until(const struct sb__sim *sim, const void *ptr) {
    size_t low = 0;
    size_t high = sim->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)sim->blocks[middle]->address <= (uintptr_t)ptr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the number of addresses for a block: whole granules, and a gap. Cannot overflow, because
   the block's bytes are allocated. */
static size_t span_of(size_t bytes) {
    return (bytes - 1) / GRANULE * GRANULE + 2 * GRANULE;
}

static size_t end_of(const struct sb__sim_segment *segment, const struct sb__sim_block *block) {
    return (size_t)(block->address - segment->base) + span_of(block->bytes);
}

/* Returns a free range of `need` bytes at `from` or later in the segment. */
static char *find_gap(const struct sb__sim *sim, const struct sb__sim_segment *segment, size_t from,
                      size_t need) {
    size_t i = blocks_until(sim, segment->base + from);
    size_t at = from;
    if (i > 0 && sim->blocks[i - 1]->address >= segment->base) {
        size_t end = end_of(segment, sim->blocks[i - 1]);
        at = end > from ? end : from;
    }
    for (; at + need <= segment->size; at = end_of(segment, sim->blocks[i++]))
        if (i == sim->block_count || sim->blocks[i]->address >= segment->base + at + need)
            return segment->base + at;
    return NULL;
}

static struct sb__sim_segment *add_segment(struct sb__sim *sim, size_t need) {
    if (sim->segment_count == SB__SIM_MAX_SEGMENTS)
        return NULL;
    struct sb__sim_segment *segment = &sim->segments[sim->segment_count];
    size_t size = need > SEGMENT_SIZE ? need : SEGMENT_SIZE;
    void *base = sb__pages_reserve(size);
    if (!base)
        return NULL;
    *segment = (struct sb__sim_segment){.base = base, .size = size};
    sim->segment_count++;
    return segment;
}

static char *reserve(struct sb__sim *sim, size_t bytes) {
    size_t need = span_of(bytes);
    char *address = NULL;
    struct sb__sim_segment *segment = NULL;
    for (int32_t i = 0; i < sim->segment_count && !address; i++) {
        segment = &sim->segments[i];
        address = find_gap(sim, segment, segment->next, need);
        if (!address)
            address = find_gap(sim, segment, 0, need);
    }
    if (!address) {
        segment = add_segment(sim, need);
        address = segment ? segment->base : NULL;
    }
    if (address)
        segment->next = (size_t)(address - segment->base) + need;
    return address;
}

bool sb__sim_is_device_address(const struct sb__sim *sim, const void *ptr) {
    for (int32_t i = 0; i < sim->segment_count; i++) {
        const struct sb__sim_segment *segment = &sim->segments[i];
        if ((uintptr_t)ptr - (uintptr_t)segment->base < segment->size)
            return true;
    }
    return false;
}

/* --- the table ------------------------------------------------------------------ */

static bool make_room(struct sb__sim *sim) {
    if (sim->block_count < sim->block_capacity)
        return true;
    struct sb__sim_block **blocks = NULL;
    size_t capacity;
    size_t bytes;
    if (sb__mul_size(sim->block_capacity, 2, &capacity) && sb__add_size(capacity, 16, &capacity) &&
        sb__mul_size(capacity, sizeof(struct sb__sim_block *), &bytes))
        blocks = realloc(sim->blocks, bytes);
    if (!blocks)
        return false;
    sim->blocks = blocks;
    sim->block_capacity = capacity;
    return true;
}

static void insert(struct sb__sim *sim, struct sb__sim_block *block) {
    size_t at = blocks_until(sim, block->address);
    memmove(&sim->blocks[at + 1], &sim->blocks[at],
            (sim->block_count - at) * sizeof(struct sb__sim_block *));
    sim->blocks[at] = block;
    sim->block_count++;
}

struct sb__sim_block *sb__sim_block_create(struct sb__sim *sim, size_t bytes) {
    struct sb__sim_block *block = make_room(sim) ? calloc(1, sizeof *block) : NULL;
    if (!block)
        return NULL;
    block->bytes = bytes;
    block->backing = sb__sim_backing_alloc(sim, bytes);
    block->ready = sim->is_coherent;
    if (block->backing)
        block->address = sim->is_coherent ? block->backing : reserve(sim, bytes);
    if (!block->address) {
        if (block->backing)
            sb__sim_backing_free(block->backing, bytes);
        free(block);
        return NULL;
    }
    block->reach.embedded = block->release.embedded = true;
    block->reach.work = (struct sb__sim_work){.op = SB__SIM_READY, .block = block};
    block->release.work = (struct sb__sim_work){.op = SB__SIM_FREE, .block = block};
    insert(sim, block);
    return block;
}

void sb__sim_block_remove(struct sb__sim *sim, struct sb__sim_block *block) {
    size_t at = blocks_until(sim, block->address) - 1;
    sim->block_count--;
    memmove(&sim->blocks[at], &sim->blocks[at + 1],
            (sim->block_count - at) * sizeof(struct sb__sim_block *));
}

void sb__sim_block_free(struct sb__sim_block *block) {
    sb__sim_backing_free(block->backing, block->bytes);
    free(block);
}

struct sb__sim_block *sb__sim_block_find(const struct sb__sim *sim, const void *ptr, size_t bytes) {
    size_t after = blocks_until(sim, ptr);
    if (after == 0)
        return NULL;
    struct sb__sim_block *block = sim->blocks[after - 1];
    size_t offset = (uintptr_t)ptr - (uintptr_t)block->address;
    return offset <= block->bytes && bytes <= block->bytes - offset ? block : NULL;
}

void *sb__sim_translate(const struct sb__sim *sim, const void *ptr, size_t bytes) {
    const struct sb__sim_block *block = sb__sim_block_find(sim, ptr, bytes);
    return block ? (char *)block->backing + ((uintptr_t)ptr - (uintptr_t)block->address) : NULL;
}

void sb__sim_memory_close(struct sb__sim *sim) {
    for (size_t i = 0; i < sim->block_count; i++)
        sb__sim_block_free(sim->blocks[i]);
    free(sim->blocks);
    for (int32_t i = 0; i < sim->segment_count; i++)
        sb__pages_unmap(sim->segments[i].base, sim->segments[i].size);
    sb__pages_drop(sim->rubbish);
}
