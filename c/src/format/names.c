#include "format/names.h"

#include "base/checked.h"
#include "base/hash.h"
#include "format/model_index.h"
#include "port/random.h"
#include "port/threads.h"

#include <string.h>

/* --- the key, another one in each process --------------------------------------------------- */

static struct {
    sb__once once;
    uint64_t words[2];
} key = {.once = SB__ONCE_INIT};

/* Where the system has no random numbers, what others can hardly know. */
static void draw_key(void) {
    for (int i = 0; i < 2; i++)
        if (!sb__random_number(&key.words[i]))
            key.words[i] = sb__now() ^ (uint64_t)(uintptr_t)&i ^ (uint64_t)sb__process() << 40;
}

/* --- the table: each name in the first free slot from that of its hash ---------------------- */

/* Four in five are taken at most, so a search ends, and soon. */
static bool slots_for(int64_t layers, int64_t *out) {
    *out = layers > 0 ? layers + layers / 4 + 1 : 0;
    return layers < UINT32_MAX / 2;
}

bool sb__names_bytes(int64_t layers, size_t *out) {
    int64_t slots;
    return slots_for(layers, &slots) && sb__bytes_of(slots, sizeof(struct sb__named), out);
}

void sb__names_begin(struct sb__names *names, void *slots, int64_t layers) {
    int64_t room;
    (void)slots_for(layers, &room);
    *names = (struct sb__names){room > 0 ? slots : NULL, (uint64_t)room};
    if (room > 0)
        sb__run_once(&key.once, draw_key);
}

/* The slot of that name, or the free one where it belongs, with its hash. */
static struct sb__named *slot_of(const struct sb__names *names, const struct sb__layer *layers,
                                 const char *name, size_t size, uint32_t *hash) {
    const uint64_t whole = sb__hash(key.words, name, size);
    struct sb__named *slot = names->slots + ((whole >> 32) * names->room >> 32),
                     *end = names->slots + names->room;
    *hash = (uint32_t)whole;
    for (; slot->place != 0; slot = slot + 1 < end ? slot + 1 : names->slots) {
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

/* Nobody has gone past its slot since. */
void sb__names_take_back(struct sb__names *names, const struct sb__layer *layers, uint32_t layer) {
    uint32_t hash;
    struct sb__named *slot =
        slot_of(names, layers, layers[layer].name, layers[layer].name_size, &hash);
    if (slot->place == layer + 1)
        *slot = (struct sb__named){0, 0};
}

int64_t sb__names_find(const struct sb__names *names, const struct sb__layer *layers,
                       const char *name, size_t size) {
    uint32_t hash;
    if (!names->slots)
        return -1;
    return (int64_t)slot_of(names, layers, name, size, &hash)->place - 1;
}
