/* Layers by name: what a search through all of them finds, whatever the names. */
#include "support.h"

#include "format/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 600

static uint64_t seed = 5;

static uint64_t below(uint64_t n) {
    return test_random(&seed) % n;
}

struct net {
    struct sb__layer layers[MOST];
    struct sb__named by_name[MOST];
    struct sb__model_index index;
    char texts[MOST][80];
};

static void add(struct net *net, const char *name, size_t size) {
    const int64_t i = net->index.num_layers++;
    assert_true(i < MOST && size <= sizeof net->texts[i]);
    memcpy(net->texts[i], name, size);
    net->layers[i] = (struct sb__layer){.name = net->texts[i], .name_size = (uint32_t)size};
}

static void sort(struct net *net) {
    net->index.layers = net->layers;
    net->index.by_name = net->by_name;
    sb__names_sort(net->layers, net->index.num_layers, net->by_name);
}

static int64_t search(const struct net *net, const char *name, size_t size) {
    for (int64_t i = 0; i < net->index.num_layers; i++)
        if (net->layers[i].name_size == size && memcmp(net->layers[i].name, name, size) == 0)
            return i;
    return -1;
}

static void assert_finds(const struct net *net, const char *name, size_t size) {
    assert_int_equal(sb__names_find(&net->index, name, size), search(net, name, size));
}

/* Every layer, and neighbours of its name that need not be there. */
static void assert_finds_all(const struct net *net) {
    for (int64_t i = 0; i < net->index.num_layers; i++) {
        const size_t size = net->layers[i].name_size;
        char other[81];
        memcpy(other, net->layers[i].name, size);
        assert_finds(net, other, size);
        other[size] = 'x';
        assert_finds(net, other, size + 1);
        if (size > 0)
            assert_finds(net, other, size - 1);
        if (size > 0)
            other[below(size)] ^= (char)(1 << below(8));
        assert_finds(net, other, size);
    }
    assert_finds(net, "", 0);
}

/* Short names over few letters, of which many are the same. */
static void nets_of_all_sizes(void **state) {
    struct net *net = calloc(1, sizeof *net);
    (void)state;
    assert_non_null(net);
    for (int layers = 0; layers <= 40; layers++)
        for (int round = 0; round < 20; round++) {
            net->index.num_layers = 0;
            for (int i = 0; i < layers; i++) {
                char name[4];
                const size_t size = below(4);
                for (size_t k = 0; k < size; k++)
                    name[k] = (char)("ab\0\xff"[below(4)]);
                add(net, name, size);
            }
            sort(net);
            assert_finds_all(net);
        }
    free(net);
}

static void names_of_one_beginning(void **state) {
    struct net *net = calloc(1, sizeof *net);
    (void)state;
    assert_non_null(net);
    for (int i = 0; i < MOST; i++) {
        char name[80];
        const int size = snprintf(name, sizeof name, "%060d_%d", 0, (int)below(MOST));
        add(net, name, (size_t)size);
    }
    sort(net);
    assert_finds_all(net);
    free(net);
}

/* Among so many names a few have the same hash. */
static void names_of_one_hash(void **state) {
    enum { MANY = 300000, SIZE = 24 };
    struct sb__layer *layers = calloc(MANY, sizeof *layers);
    struct sb__named *by_name = calloc(MANY, sizeof *by_name);
    char(*texts)[SIZE] = calloc(MANY, sizeof *texts);
    int same = 0;
    (void)state;
    assert_true(layers && by_name && texts);
    for (int i = 0; i < MANY; i++) {
        const int size = snprintf(texts[i], SIZE, "layer_%d/conv", i);
        layers[i] = (struct sb__layer){.name = texts[i], .name_size = (uint32_t)size};
    }
    const struct sb__model_index index = {.layers = layers, .by_name = by_name, .num_layers = MANY};
    sb__names_sort(layers, MANY, by_name);
    for (int i = 0; i < MANY; i++) {
        const struct sb__layer *layer = &layers[by_name[i].layer];
        same += i > 0 && by_name[i].hash == by_name[i - 1].hash;
        assert_int_equal(sb__names_find(&index, layer->name, layer->name_size), by_name[i].layer);
    }
    assert_true(same > 0);
    free(layers);
    free(by_name);
    free(texts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nets_of_all_sizes),
        cmocka_unit_test(names_of_one_beginning),
        cmocka_unit_test(names_of_one_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
