/* Tests that protobuf-c's packer and the library's packer write random values as the same bytes. */
#include "support.h"

#include "proto/pack.h"

/* The functions of pack_plain.c, renamed, because pack_protobuf_c.c has the original names. */
size_t plain_shape(const int64_t *dims, size_t num_axes, uint8_t out[SB__MAX_SHAPE_BYTES]);
void plain_floats(struct sb__sink *sink, const float *data, size_t data_count, const float *diff,
                  size_t diff_count);
void plain_doubles(struct sb__sink *sink, const double *data, size_t data_count, const double *diff,
                   size_t diff_count);
void plain_layer(struct sb__sink *sink, sb_text name, sb_text type);
void plain_net(struct sb__sink *sink, sb_text name);
void plain_solver(struct sb__sink *sink, const sb_solver_info *solver);

#define ROOM 4096

static uint64_t seed = 71;

static size_t below(size_t n) {
    return (size_t)(test_random(&seed) % n);
}

/* The outputs of two packers. */
struct pair {
    unsigned char bytes[2][ROOM];
    struct sb__sink sink[2];
};

static void begin(struct pair *pair) {
    memset(pair->bytes[0], 0x55, ROOM);
    memset(pair->bytes[1], 0x55, ROOM);
    for (int i = 0; i < 2; i++)
        pair->sink[i] = sb__sink_memory(pair->bytes[i], ROOM);
}

static void assert_same(const struct pair *pair) {
    assert_int_equal(pair->sink[0].written, pair->sink[1].written);
    assert_in_range(pair->sink[0].written, 0, ROOM);
    assert_memory_equal(pair->bytes[0], pair->bytes[1], ROOM);
}

/* Returns a random number, whose varint may have any length. */
static int64_t any_number(void) {
    return (int64_t)(test_random(&seed) >> below(64));
}

static sb_text any_text(const char *from, size_t most) {
    return (sb_text){from, below(most + 1)};
}

TEST(packers_write_the_same_shapes) {
    for (int round = 0; round < 20000; round++) {
        struct pair pair;
        int64_t dims[SB_MAX_AXES];
        const size_t axes = 1 + below(SB_MAX_AXES);
        for (size_t i = 0; i < axes; i++)
            dims[i] = any_number();
        begin(&pair);
        pair.sink[0].written = sb__pack_shape(dims, axes, pair.bytes[0]);
        pair.sink[1].written = plain_shape(dims, axes, pair.bytes[1]);
        assert_same(&pair);
        assert_in_range(pair.sink[0].written, 0, SB__MAX_SHAPE_BYTES);
    }
}

TEST(packers_write_the_same_values) {
    uint64_t bits[4][40];
    for (int round = 0; round < 20000; round++) {
        struct pair pair;
        const size_t data = below(41), diff = below(2) ? data : 0;
        for (int i = 0; i < 4 * 40; i++)
            bits[i / 40][i % 40] = test_random(&seed);
        begin(&pair);
        sb__pack_floats(&pair.sink[0], (float *)bits[0], data, (float *)bits[1], diff);
        plain_floats(&pair.sink[1], (float *)bits[0], data, (float *)bits[1], diff);
        sb__pack_doubles(&pair.sink[0], (double *)bits[2], data, (double *)bits[3], diff);
        plain_doubles(&pair.sink[1], (double *)bits[2], data, (double *)bits[3], diff);
        assert_same(&pair);
    }
}

TEST(packers_write_the_same_texts_and_numbers) {
    char text[300];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)below(256);
    for (int round = 0; round < 20000; round++) {
        struct pair pair;
        const sb_text name = any_text(text, sizeof text), type = any_text(text, 5);
        sb_solver_info solver = SB_SOLVER_INFO_INIT;
        solver.learned_net = any_text(text, round % 2 ? 3 : 200);
        solver.iter = (int32_t)any_number();
        solver.current_step = (int32_t)any_number();
        begin(&pair);
        sb__pack_layer(&pair.sink[0], name, type);
        plain_layer(&pair.sink[1], name, type);
        sb__pack_net(&pair.sink[0], name);
        plain_net(&pair.sink[1], name);
        sb__pack_solver(&pair.sink[0], &solver);
        plain_solver(&pair.sink[1], &solver);
        assert_same(&pair);
    }
}
