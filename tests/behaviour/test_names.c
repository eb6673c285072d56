/* Tests the table of layers' names, which must find the same layer as a linear search. */
#include "support.h"

#include "base/hash.h"
#include "model/index.h"

#define MOST 300

static uint64_t seed = 5;

static size_t below(size_t n) {
    return (size_t)(test_random(&seed) % n);
}

struct net {
    struct sb__layer layers[MOST];
    struct sb__named slots[2 * MOST];
    struct sb__names names;
    int64_t num_layers;
    char texts[MOST][8];
};

static void net_open(struct net *net) {
    memset(net, 0, sizeof *net);
}

static void net_close(struct net *net) {
}

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
        char other[9];
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
TEST_ON(net, names_in_nets_of_all_sizes_are_found) {
    for (int layers = 0; layers <= 40; layers++)
        for (int round = 0; round < 5; round++) {
            f->num_layers = 0;
            for (int i = 0; i < layers; i++) {
                char name[4];
                const size_t size = below(4);
                for (size_t k = 0; k < size; k++)
                    name[k] = (char)("ab\0\xff"[below(4)]);
                add(f, name, size);
            }
            fill(f, layers);
            assert_finds_all(f);
            while (f->num_layers > 0 && below(3) > 0) {
                sb__names_take_back(&f->names, f->layers, (uint32_t)--f->num_layers);
                assert_finds_all(f);
            }
        }
}

/* Adds and removes layers. When the table is full, the names move to a larger table. */
TEST_ON(net, names_move_to_a_larger_table) {
    struct sb__named *slots = NULL;
    for (int round = 0; round < 4; round++) {
        int64_t room = 0;
        f->num_layers = 0;
        f->names = (struct sb__names){NULL, 0};
        while (f->num_layers < 300) {
            char name[8];
            size_t bytes;
            if (f->num_layers > 0 && below(5) < 2) {
                sb__names_take_back(&f->names, f->layers, (uint32_t)--f->num_layers);
                if (below(10) == 0)
                    assert_finds_all(f);
                continue;
            }
            if (f->num_layers == room) {
                struct sb__names more;
                room = 2 * room + 4;
                assert_true(sb__names_bytes(room, &bytes));
                struct sb__named *next = calloc(1, bytes);
                assert_non_null(next);
                sb__names_begin(&more, next, room);
                sb__names_move(&more, &f->names);
                free(slots);
                slots = next;
                f->names = more;
            }
            add(f, name, (size_t)snprintf(name, sizeof name, "n%d", (int)below(200)));
            sb__names_add(&f->names, f->layers, (uint32_t)f->num_layers - 1);
            if (below(10) == 0)
                assert_finds_all(f);
        }
        assert_finds_all(f);
        while (f->num_layers > 0)
            sb__names_take_back(&f->names, f->layers, (uint32_t)--f->num_layers);
        for (uint64_t i = 0; i < f->names.room; i++)
            assert_int_equal(slots[i].place, 0);
    }
    free(slots);
}

/* Changes names after they were added, so that a search finds an equal hash, but another name. */
TEST_ON(net, names_with_equal_hashes_are_distinguished) {
    add(f, "conv1", 5);
    add(f, "a", 1);
    fill(f, 2);
    assert_finds(f, "conv1", 5);
    f->texts[1][0] = 'b';
    assert_finds(f, "a", 1);
    f->texts[0][4] = '2';
    assert_finds(f, "conv1", 5);
    f->layers[0].name_size = 4;
    assert_finds(f, "conv1", 5);
    f->texts[0][4] = '1'; /* this byte is past the name */
    assert_finds(f, "conv1", 5);
}

/* If the hash had a known key, an attacker could choose names with equal hashes. */
TEST_ON(net, hashes_have_a_random_key) {
    static const uint64_t zeros[2];
    add(f, "conv1", 5);
    fill(f, 1);
    const struct sb__named *slot = &f->slots[f->slots[0].place ? 0 : 1];
    assert_int_equal(slot->place, 1);
    assert_int_not_equal(slot->hash, (uint32_t)sb__hash(zeros, "conv1", 5));
}
