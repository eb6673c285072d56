#include "model/names.h"

#include "base/checked.h"
#include "base/hash.h"
#include "model/index.h"
#include "port/random.h"
#include "port/threads.h"

#include <string.h>

/* --- the key, different in each process --------------------------------------------------- */

static struct {
    sb__once once;
    uint64_t words[2];
} key = {.once = SB__ONCE_INIT};

/* Draws the key. If the system has no random numbers, uses addresses and times, which other users
   can hardly guess. */
static void draw_key(void) {
    for (int i = 0; i < 2; i++)
        if (!sb__random_number(&key.words[i]))
            key.words[i] = sb__now() ^ (uint64_t)(uintptr_t)&i;
}

/* --- the table: linear probing from a name's home, the first slot of a group --------------- */

/* The number of slots in a cache line. A search compares all hashes of a group before it branches,
   because a processor cannot predict which slot has the name. */
#define GROUP 8

/* Computes the number of slots: at most four slots in five are used, which bounds the length of
   searches; one slot is always free. */
static bool slots_for(int64_t layers, int64_t *out) {
    *out = (layers + (layers + 3) / 4 + GROUP - 1) / GROUP * GROUP;
    return layers < INT32_MAX / 2; /* same: no test has so many layers */
}

bool sb__names_bytes(int64_t layers, size_t *out) {
    int64_t slots;
    return slots_for(layers, &slots) && sb__bytes_of(slots, sizeof(struct sb__named), out);
}

void sb__names_begin(struct sb__names *names, void *slots, int64_t layers) {
    int64_t room;
    (void)slots_for(layers, &room);
    *names = (struct sb__names){slots, (uint64_t)room};
    sb__run_once(&key.once, draw_key);
}

static struct sb__named *home_of(const struct sb__names *names, uint32_t hash) {
    return names->slots + (hash * (names->room / GROUP) >> 32) * GROUP; /* same: other homes work */
}

static struct sb__named *after(const struct sb__names *names, struct sb__named *slot,
                               int distance) {
    return slot + distance < names->slots + names->room ? slot + distance : names->slots;
}

/* These functions return a mask: bit i is set if slot i has the hash (matches), or is free
   (free_slots). */
static uint32_t matches(const struct sb__named *group, uint32_t hash) {
    uint32_t found = 0;
    for (int i = 0; i < GROUP; i++)
        found |= (uint32_t)(group[i].hash == hash) << i;
    return found;
}

static uint32_t free_slots(const struct sb__named *group) {
    uint32_t found = 0;
    for (int i = 0; i < GROUP; i++)
        found |= (uint32_t)(group[i].place == 0) << i;
    return found;
}

static bool has_name(const struct sb__named *slot, const struct sb__layer *layers, const char *name,
                     size_t size) {
    if (slot->place == 0)
        return false;
    const struct sb__layer *layer = &layers[slot->place - 1];
    return layer->name_size == size && (size == 0 || memcmp(layer->name, name, size) == 0);
}

/* Returns the slot of the name or, if the name is absent, the free slot for it. Sets `*hash` to the
   name's hash. */
static struct sb__named *slot_of(const struct sb__names *names, const struct sb__layer *layers,
                                 const char *name, size_t size, uint32_t *hash) {
    *hash = (uint32_t)sb__hash(key.words, name, size);
    struct sb__named *group = home_of(names, *hash);
    for (;; group = after(names, group, GROUP)) {
        for (uint32_t found = matches(group, *hash); found; found &= found - 1)
            if (has_name(&group[__builtin_ctz(found)], layers, name, size))
                return &group[__builtin_ctz(found)];
        const uint32_t unused = free_slots(group);
        if (unused)
            return &group[__builtin_ctz(unused)];
    }
}

void sb__names_add(struct sb__names *names, const struct sb__layer *layers, uint32_t layer) {
    uint32_t hash;
    struct sb__named *slot =
        slot_of(names, layers, layers[layer].name, layers[layer].name_size, &hash);
    if (slot->place == 0)
        *slot = (struct sb__named){hash, layer + 1};
}

/* Moves entries in slot order. The order of the new slots is similar, so access is sequential. */
void sb__names_move(struct sb__names *to, const struct sb__names *from) {
    for (uint64_t i = 0; i < from->room; i++) {
        struct sb__named *slot;
        if (from->slots[i].place == 0)
            continue;
        for (slot = home_of(to, from->slots[i].hash); slot->place != 0; slot = after(to, slot, 1))
            ;
        *slot = from->slots[i];
    }
}

/* Returns the distance from `from` to the slot. If the path wraps around the table, the result is
   too large by a constant, and larger than any distance that does not wrap around. */
static uint64_t distance(const struct sb__named *from, const struct sb__named *slot) {
    return (uint64_t)(slot - from);
}

/* Frees a slot. If probing has placed later entries after the slot, moves these entries closer to
   their homes. */
static void clear_slot(const struct sb__names *names, struct sb__named *slot) {
    struct sb__named *later = after(names, slot, 1);
    for (; later->place != 0; later = after(names, later, 1)) {
        if (distance(home_of(names, later->hash), later) < distance(slot, later))
            continue;
        *slot = *later;
        slot = later;
    }
    slot->place = 0;
}

void sb__names_take_back(struct sb__names *names, const struct sb__layer *layers, uint32_t layer) {
    uint32_t hash;
    struct sb__named *slot =
        slot_of(names, layers, layers[layer].name, layers[layer].name_size, &hash);
    if (slot->place == layer + 1)
        clear_slot(names, slot);
}

int64_t sb__names_find(const struct sb__names *names, const struct sb__layer *layers,
                       const char *name, size_t size) {
    uint32_t hash;
    if (names->room == 0)
        return -1;
    return (int64_t)slot_of(names, layers, name, size, &hash)->place - 1;
}
