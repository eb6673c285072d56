/* The layers of an opened file by their names, so that looking up each of a stranger's is not
   quadratic. */
#ifndef SB_FORMAT_NAMES_H
#define SB_FORMAT_NAMES_H

#include "format/model_index.h"

/* Puts all layers in the order that sb__names_find needs. Some 2 x count x log2(count)
   comparisons, however the names were chosen. */
void sb__names_sort(const struct sb__layer *layers, int64_t count, struct sb__named *out);
/* The first layer of that name, or -1. */
int64_t sb__names_find(const struct sb__model_index *index, const char *name, size_t size);

#endif
