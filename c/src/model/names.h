/* A hash table of layers by name, with a random key, so that an attacker cannot choose names that
   collide. The table has room for all layers and never grows. */
#ifndef SB_MODEL_NAMES_H
#define SB_MODEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb__layer; /* model/index.h */

struct sb__named {
    uint32_t hash, place; /* `place`: a layer's index + 1; 0: the slot is free */
};

struct sb__names {
    struct sb__named *slots;
    uint64_t room; /* number of slots; 0 if the table has no layers */
};

/* Computes the size of the slots for `layers` layers in bytes; returns false if the size
   overflows. */
bool sb__names_bytes(int64_t layers, size_t *out);
/* Initialises the table for `layers` layers. The caller has zeroed `slots`, which is unused for 0
   layers. */
void sb__names_begin(struct sb__names *names, void *slots, int64_t layers);
/* Adds a layer. Callers add layers in order; the table keeps the first layer of each name. */
void sb__names_add(struct sb__names *names, const struct sb__layer *layers, uint32_t layer);
/* Moves all entries of `from` to a table of another size without reading the layers. */
void sb__names_move(struct sb__names *to, const struct sb__names *from);
/* Removes the last added layer. */
void sb__names_take_back(struct sb__names *names, const struct sb__layer *layers, uint32_t layer);
/* Returns the first layer with the name, or -1 if no layer has the name. */
int64_t sb__names_find(const struct sb__names *names, const struct sb__layer *layers,
                       const char *name, size_t size);

#endif
