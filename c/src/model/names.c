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

/* --- the table: linear probing from a name's home, the slot of its hash ----------- */

/* Computes the number of slots: at most four slots in five are used, which bounds the length of
   searches; one slot is always free. */
static bool slots_for(int64_t layers, int64_t *out) {
    *out = layers + (layers + 3) / 4;
    return layers < UINT32_MAX / 2; /* same: no test has so many layers */
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
    return names->slots + (hash * names->room >> 32); /* same: other homes work, too */
}

static struct sb__named *next_to(const struct sb__names *names, struct sb__named *slot) {
    return slot + 1 < names->slots + names->room ? slot + 1 : names->slots;
}

/* Returns the slot of the name, or the free slot for the name; sets `*hash` to the name's hash. */
static struct sb__named *slot_of(const struct sb__names *names, const struct sb__layer *layers,
                                 const char *name, size_t size, uint32_t *hash) {
    *hash = (uint32_t)sb__hash(key.words, name, size);
    struct sb__named *slot = home_of(names, *hash);
    for (; slot->place != 0; slot = next_to(names, slot)) {
        if (slot->hash != *hash)
            continue;
        const struct sb__layer *layer = &layers[slot->place - 1];
        if (layer->name_size == size && (size == 0 || memcmp(layer->name, name, size) == 0))
            break;
    }
    return slot;
}

void sb__names_add(struct sb__names *names, const struct sb__layer *layers, uint32_t layer) {
    uint32_t hash;
    struct sb__named *slot =
        slot_of(names, layers, layers[layer].name, layers[layer].name_size, &hash);
    if (slot->place == 0)
        *slot = (struct sb__named){hash, layer + 1};
}

/* Moves entries in slot order, nearly the order of the new slots, for sequential access. */
void sb__names_move(struct sb__names *to, const struct sb__names *from) {
    for (uint64_t i = 0; i < from->room; i++) {
        struct sb__named *slot;
        if (from->slots[i].place == 0)
            continue;
        for (slot = home_of(to, from->slots[i].hash); slot->place != 0; slot = next_to(to, slot))
            ;
        *slot = from->slots[i];
    }
}

/* Returns the distance from `from` to the slot. If the distance wraps around, the result is too
   large by a constant, and larger than any distance that does not. */
static uint64_t distance(const struct sb__named *from, const struct sb__named *slot) {
    return (uint64_t)(slot - from);
}

/* Frees a slot; moves entries that were displaced past it closer to their homes. */
static void clear_slot(const struct sb__names *names, struct sb__named *slot) {
    struct sb__named *later = next_to(names, slot);
    for (; later->place != 0; later = next_to(names, later)) {
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
