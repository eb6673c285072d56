/* Layers by their names: a table of hashes under a random key, so that names which
   collide cannot be chosen. It has room for more than all of them and never moves. */
#ifndef SB_MODEL_NAMES_H
#define SB_MODEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb__layer; /* model/index.h */

struct sb__named {
    uint32_t hash, place; /* a layer's index + 1; 0: none */
};

struct sb__names {
    struct sb__named *slots; /* NULL: no layers at all */
    uint64_t room;           /* of slots */
};

/* Bytes of the slots for so many layers; false: they do not fit. */
bool sb__names_bytes(int64_t layers, size_t *out);
/* Begins with slots for so many layers, which are zeros; none where there are no layers. */
void sb__names_begin(struct sb__names *names, void *slots, int64_t layers);
/* Layers come in their order: of one name the first stays. */
void sb__names_add(struct sb__names *names, const struct sb__layer *layers, uint32_t layer);
/* As many as `from` has, into slots of any other room, without a look at the layers. */
void sb__names_move(struct sb__names *to, const struct sb__names *from);
/* Takes the layer that was added last out again. */
void sb__names_take_back(struct sb__names *names, const struct sb__layer *layers, uint32_t layer);
/* The first layer of that name, or -1. */
int64_t sb__names_find(const struct sb__names *names, const struct sb__layer *layers,
                       const char *name, size_t size);

#endif
