/* Tests the table of layers' names, which must find the same layer as a linear search. */
#include "support.h"

#include "base/hash.h"
#include "model/index.h"

#define MOST 600

static uint64_t seed = 5;

static size_t below(size_t n) {
    return (size_t)(test_random(&seed) % n);
}

struct net {
    struct sb__layer layers[MOST];
    struct sb__named slots[2 * MOST];
    struct sb__names names;
    int64_t num_layers;
    char texts[MOST][80];
};

static void add(struct net *net, const char *name, size_t size) {
    const int64_t i = net->num_layers++;
    assert_true(i < MOST && size <= sizeof net->texts[i]);
    memcpy(net->texts[i], name, size);
    net->layers[i] = (struct sb__layer){.name = net->texts[i], .name_size = (uint32_t)size};
}

/* Makes a table with space for all layers of `net` and adds the first `most` layers. */
static void fill(struct net *net, int64_t most) {
    size_t bytes;
    assert_true(sb__names_bytes(net->num_layers, &bytes) && bytes <= sizeof net->slots);
    memset(net->slots, 0, sizeof net->slots);
    sb__names_begin(&net->names, net->slots, net->num_layers);
    net->num_layers = most;
    for (int64_t i = 0; i < most; i++)
        sb__names_add(&net->names, net->layers, (uint32_t)i);
    for (size_t i = bytes / sizeof *net->slots; i < 2 * MOST; i++) /* slots past the table */
        assert_int_equal(net->slots[i].place, 0);
}

static int64_t search(const struct net *net, const char *name, size_t size) {
    for (int64_t i = 0; i < net->num_layers; i++)
        if (net->layers[i].name_size == size && memcmp(net->layers[i].name, name, size) == 0)
            return i;
    return -1;
}

static void assert_finds(const struct net *net, const char *name, size_t size) {
    assert_int_equal(sb__names_find(&net->names, net->layers, name, size), search(net, name, size));
}

/* Searches for each layer's name, and for similar names, which need not be names of layers. */
static void assert_finds_all(const struct net *net) {
    for (int64_t i = 0; i < net->num_layers; i++) {
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

/* The names are short and use few letters, so many names are equal. */
TEST(names_in_nets_of_all_sizes_are_found) {
    struct net *net = calloc(1, sizeof *net);
    assert_non_null(net);
    for (int layers = 0; layers <= 40; layers++)
        for (int round = 0; round < 5; round++) {
            net->num_layers = 0;
            for (int i = 0; i < layers; i++) {
                char name[4];
                const size_t size = below(4);
                for (size_t k = 0; k < size; k++)
                    name[k] = (char)("ab\0\xff"[below(4)]);
                add(net, name, size);
            }
            fill(net, layers);
            assert_finds_all(net);
            while (net->num_layers > 0 && below(3) > 0) {
                sb__names_take_back(&net->names, net->layers, (uint32_t)--net->num_layers);
                assert_finds_all(net);
            }
        }
    free(net);
}

TEST(names_with_a_common_prefix_are_found) {
    struct net *net = calloc(1, sizeof *net);
    assert_non_null(net);
    for (int i = 0; i < MOST; i++) {
        char name[80];
        const int size = snprintf(name, sizeof name, "%060d_%d", 0, (int)below(MOST));
        add(net, name, (size_t)size);
    }
    fill(net, MOST);
    assert_finds_all(net);
    free(net);
}

/* Adds and removes layers. When the table is full, the names move to a larger table. */
TEST(names_move_to_a_larger_table) {
    struct net *net = calloc(1, sizeof *net);
    struct sb__named *slots = NULL;
    assert_non_null(net);
    for (int round = 0; round < 4; round++) {
        int64_t room = 0;
        net->num_layers = 0;
        net->names = (struct sb__names){NULL, 0};
        while (net->num_layers < 300) {
            char name[8];
            size_t bytes;
            if (net->num_layers > 0 && below(5) < 2) {
                sb__names_take_back(&net->names, net->layers, (uint32_t)--net->num_layers);
                if (below(10) == 0)
                    assert_finds_all(net);
                continue;
            }
            if (net->num_layers == room) {
                struct sb__names more;
                room = 2 * room + 4;
                assert_true(sb__names_bytes(room, &bytes));
                struct sb__named *next = calloc(1, bytes);
                assert_non_null(next);
                sb__names_begin(&more, next, room);
                sb__names_move(&more, &net->names);
                free(slots);
                slots = next;
                net->names = more;
            }
            add(net, name, (size_t)snprintf(name, sizeof name, "n%d", (int)below(200)));
            sb__names_add(&net->names, net->layers, (uint32_t)net->num_layers - 1);
            if (below(10) == 0)
                assert_finds_all(net);
        }
        assert_finds_all(net);
        while (net->num_layers > 0)
            sb__names_take_back(&net->names, net->layers, (uint32_t)--net->num_layers);
        for (uint64_t i = 0; i < net->names.room; i++)
            assert_int_equal(slots[i].place, 0);
    }
    free(slots);
    free(net);
}

/* Changes names after they were added, so that a search finds an equal hash, but another name. */
TEST(names_with_equal_hashes_are_distinguished) {
    struct net *net = calloc(1, sizeof *net);
    assert_non_null(net);
    add(net, "conv1", 5);
    add(net, "a", 1);
    fill(net, 2);
    assert_finds(net, "conv1", 5);
    net->texts[1][0] = 'b';
    assert_finds(net, "a", 1);
    net->texts[0][4] = '2';
    assert_finds(net, "conv1", 5);
    net->layers[0].name_size = 4;
    assert_finds(net, "conv1", 5);
    net->texts[0][4] = '1'; /* this byte is past the name */
    assert_finds(net, "conv1", 5);
    free(net);
}

/* If the hash had a known key, an attacker could choose names with equal hashes. */
TEST(hashes_have_a_random_key) {
    static const uint64_t zeros[2];
    struct net *net = calloc(1, sizeof *net);
    assert_non_null(net);
    add(net, "conv1", 5);
    fill(net, 1);
    const struct sb__named *slot = &net->slots[net->slots[0].place ? 0 : 1];
    assert_int_equal(slot->place, 1);
    assert_int_not_equal(slot->hash, (uint32_t)sb__hash(zeros, "conv1", 5));
    free(net);
}
