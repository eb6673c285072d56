/* Tests the table of layers' names, which must find the same layer as a linear search. */
#include "support.h"

#include "base/hash.h"
#include "model/index.h"

#define MOST  300
#define GUARD 16 /* slots past a table, which stay free */

static uint64_t seed = 5;

static size_t below(size_t n) {
    return (size_t)(test_random(&seed) % n);
}

struct net {
    struct sb__layer layers[MOST];
    struct sb__named slots[8 + GUARD];
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

/* Makes a table of all layers of `net`. */
static void fill(struct net *net) {
    memset(net->slots, 0, sizeof net->slots);
    sb__names_begin(&net->names, net->slots, net->num_layers);
    for (int64_t i = 0; i < net->num_layers; i++)
        sb__names_add(&net->names, net->layers, (uint32_t)i);
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
        const size_t place = below(size + 1);
        other[place] = (char)(other[place] ^ 1 << below(8));
        assert_finds(net, other, size);
    }
    assert_finds(net, "", 0);
    for (uint64_t i = 0; i < GUARD; i++)
        assert_int_equal(net->names.slots[net->names.room + i].place, 0);
}

/* Adds and removes layers. When the table is full, the names move to a larger table. The names are
   short and use few letters, so many names are equal. */
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
                if (room > 0)
                    assert_finds_all(f);
                room = 2 * room + 8; /* a table of 8 layers has more than 8 slots */
                assert_true(sb__names_bytes(room, &bytes));
                struct sb__named *next = calloc(1, bytes + GUARD * sizeof *next);
                assert_non_null(next);
                sb__names_begin(&more, next, room);
                sb__names_move(&more, &f->names);
                free(slots);
                slots = next;
                f->names = more;
            }
            const size_t size = below(5);
            for (size_t k = 0; k < size; k++)
                name[k] = (char)("ab\0\xff"[below(4)]);
            add(f, name, size);
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
    fill(f);
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
    fill(f);
    const struct sb__named *slot = &f->slots[f->slots[0].place ? 0 : 1];
    assert_int_equal(slot->place, 1);
    assert_int_not_equal(slot->hash, (uint32_t)sb__hash(zeros, "conv1", 5));
}
