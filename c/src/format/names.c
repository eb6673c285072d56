#include "format/names.h"

#include "base/sort.h"

#include <string.h>

/* It only makes comparing cheap: names of one hash are told apart by their bytes. */
static uint32_t hash_of(const char *name, size_t size) {
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash = size * odd, word;
    for (; size >= sizeof word; size -= sizeof word, name += sizeof word) {
        memcpy(&word, name, sizeof word);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
    }
    word = 0;
    if (size > 0)
        memcpy(&word, name, size);
    return (uint32_t)((hash ^ word) * odd >> 32);
}

static int compare_texts(const char *a, size_t a_size, const char *b, size_t b_size) {
    if (a_size != b_size)
        return a_size < b_size ? -1 : 1;
    return a_size == 0 ? 0 : memcmp(a, b, a_size);
}

/* Of one name the first layer comes first. */
static bool is_before(const void *layers, const void *a, const void *b) {
    const struct sb__named *one = a, *other = b;
    const struct sb__layer *x = (const struct sb__layer *)layers + one->layer,
                           *y = (const struct sb__layer *)layers + other->layer;
    if (one->hash != other->hash)
        return one->hash < other->hash;
    const int order = compare_texts(x->name, x->name_size, y->name, y->name_size);
    return order != 0 ? order < 0 : one->layer < other->layer;
}

void sb__names_sort(const struct sb__layer *layers, int64_t count, struct sb__named *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = (struct sb__named){hash_of(layers[i].name, layers[i].name_size), (uint32_t)i};
    sb__sort(out, count, sizeof *out, is_before, layers);
}

/* Where the first hash is that is not below. Of two halves one is taken without a jump, which no
   processor could foretell. */
static int64_t first_of(const struct sb__named *by_name, int64_t count, uint64_t hash) {
    const struct sb__named *at = by_name;
    if (count == 0)
        return 0;
    while (count > 1) {
        const int64_t half = count / 2;
        at += at[half - 1].hash < hash ? half : 0;
        count -= half;
    }
    return at - by_name + (at->hash < hash);
}

static int compare_at(const struct sb__model_index *index, int64_t at, const char *name,
                      size_t size) {
    const struct sb__layer *layer = &index->layers[index->by_name[at].layer];
    return compare_texts(layer->name, layer->name_size, name, size);
}

/* Names of one hash, which are rare unless somebody wants them. */
static int64_t find_between(const struct sb__model_index *index, int64_t low, int64_t high,
                            const char *name, size_t size) {
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (compare_at(index, middle, name, size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == end || compare_at(index, low, name, size) != 0)
        return -1;
    return index->by_name[low].layer;
}

int64_t sb__names_find(const struct sb__model_index *index, const char *name, size_t size) {
    const uint64_t hash = hash_of(name, size);
    const int64_t first = first_of(index->by_name, index->num_layers, hash);
    if (first == index->num_layers || index->by_name[first].hash != hash)
        return -1;
    if (compare_at(index, first, name, size) == 0)
        return index->by_name[first].layer;
    return find_between(index, first + 1, first_of(index->by_name, index->num_layers, hash + 1),
                        name, size);
}
