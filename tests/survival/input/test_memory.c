/* Tests that a read allocates no more than its limit. */
#include "blobs.h"
#include "bombs.h"
#include "files.h"
#include "nets.h"

#include <unistd.h>

#define MIB ((size_t)1 << 20)

struct observed {
    struct rig rig;
    size_t before; /* live bytes when the measurement began */
};

static void watch(struct observed *o) {
    o->before = o->rig.counting.peak_bytes = o->rig.counting.live_bytes;
}

static size_t peak(const struct observed *o) {
    return o->rig.counting.peak_bytes - o->before;
}

struct input {
    const struct bomb *bomb;
    struct wire wire;
    char path[40];
};

static void input_open(struct input *input, const struct bomb *bomb, size_t size) {
    *input = (struct input){.bomb = bomb, .path = "/tmp/syncblob-bomb-XXXXXX"};
    bomb_build(bomb, &input->wire, size);
    assert_int_equal(close(mkstemp(input->path)), 0);
    file_write_wire(input->path, &input->wire);
}

static void input_close(struct input *input) {
    (void)unlink(input->path);
    wire_free(&input->wire);
}

static sb_status open_input(const struct input *input, bool in_file, sb_context *context,
                            const sb_limits *limits, sb_model **out, sb_error *err) {
    int32_t format = input->bomb->format;
    if (in_file)
        return sb_model_open_file(context, format, input->path, 0, limits, out, err);
    return open_wire(context, format, &input->wire, limits, out, err);
}

static bool is_the_datas_fault(sb_status st) {
    return st <= SB_ERR_MALFORMED && st >= SB_ERR_DATA_LIMIT;
}

static void check_peak(const struct observed *o, const struct input *input, sb_status st,
                       size_t allowed) {
    if (st != SB_OK && !is_the_datas_fault(st))
        fail_with("%s: %s", input->bomb->name, err.message);
    if (peak(o) > allowed)
        fail_with("%s: %zu bytes, %zu allowed", input->bomb->name, peak(o), allowed);
}

/* The index stays allocated, so its bytes count at each load. */
static void check(const struct input *input, bool in_file, size_t memory) {
    const size_t open_bytes = memory ? memory : input->wire.size + 8 * MIB;
    struct observed o;
    sb_model *model = NULL;
    sb_limits limits = SB_LIMITS_INIT;
    limits.max_memory = memory;
    limits.max_layers = limits.max_blobs = INT64_MAX;
    limits.max_name_bytes = SIZE_MAX;
    rig_open_on(&o.rig, NULL, SB_CONTEXT_NO_HOST_CACHE);
    watch(&o);
    sb_status st = open_input(input, in_file, o.rig.context, memory ? &limits : NULL, &model, &err);
    check_peak(&o, input, st, open_bytes);
    for (int64_t layer = SB_NO_LAYER; model && layer < sb_model_num_layers(model);
         layer += layer < 0 ? 1 : 97)
        for (int64_t i = 0; i < num_blobs(model, layer); i += 997) {
            sb_blob_info info = SB_BLOB_INFO_INIT;
            assert_ok(sb_model_blob_info(model, layer, i, &info, &err));
            const size_t before = o.before, held = o.rig.counting.live_bytes;
            sb_blob *blob = test_unshaped(o.rig.context, SB_DTYPE_F64);
            watch(&o);
            o.before = o.before - held + before;
            st = sb_model_load_blob(model, layer, i, blob, &err);
            const size_t payload = (size_t)info.count * sizeof(double);
            check_peak(&o, input, st, memory ? memory : open_bytes + payload);
            test_end(blob);
            o.before = before;
        }
    sb_model_destroy(model);
    rig_close(&o.rig);
}

static void check_bombs(size_t size, const size_t *limits, size_t num_limits) {
    for (size_t i = 0; i < num_bombs; i++) {
        struct input input;
        input_open(&input, &bombs[i], size);
        for (size_t l = 0; l < 2 * num_limits; l++)
            check(&input, l % 2, limits[l / 2]);
        input_close(&input);
    }
}

TEST(by_default_an_index_is_at_most_the_input_and_8_mib) {
    static const size_t sizes[] = {200, 250000, 1000000, 10000000};
    const size_t count = test_is_quick() ? 2 : test_is_full() ? 4 : 3;
    for (size_t s = 0; s < count; s++)
        check_bombs(sizes[s], (const size_t[]){0}, 1);
}

TEST(the_callers_limit_is_never_exceeded) {
    static const size_t limits[] = {1,      100,     300,     400,      500,     1000,
                                    3000,   10000,   30000,   100000,   300000,  400001,
                                    800000, 1000000, 3000000, 10000000, SIZE_MAX};
    check_bombs(test_is_quick() ? 5000 : 30000, limits, sizeof limits / sizeof *limits);
}

TEST(a_net_of_a_million_empty_layers_is_refused) {
    for (size_t i = 0; i < 3; i++) { /* one bomb for each generation of the format */
        static const size_t bytes[] = {3, 2, 4};
        struct input input;
        sb_model *model;
        input_open(&input, &bombs[i], bytes[i] * 1000000);
        for (int in_file = 0; in_file < 2; in_file++) {
            struct observed o;
            rig_open_on(&o.rig, NULL, SB_CONTEXT_NO_HOST_CACHE);
            watch(&o);
            assert_status(SB_ERR_DATA_LIMIT,
                          open_input(&input, in_file, o.rig.context, NULL, &model, &err));
            assert_int_equal(err.offset, bytes[i] * 100000); /* the first layer beyond the limit */
            assert_non_null(strstr(err.message, "100000"));
            assert_true(peak(&o) < 4096);
            rig_close(&o.rig);
        }
        input_close(&input);
    }
}

/* Returns the allocated bytes, or 0 if the read is refused. */
static size_t taken_by_read(const char *device, int64_t count, bool diff, size_t memory) {
    struct observed o;
    struct wire wire = {0};
    sb_limits limits = SB_LIMITS_INIT;
    limits.max_memory = memory;
    float *values = calloc((size_t)count, sizeof *values);
    wire_blob(&wire, &count, 1, 0);
    if (diff)
        wire_floats(&wire, 6, values, (size_t)count);
    rig_open_on(&o.rig, device, 0);
    sb_blob *blob = test_unshaped(o.rig.context, SB_DTYPE_F32);
    watch(&o);
    const sb_status st =
        sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, &limits, &err);
    if (st != SB_OK)
        assert_int_equal(st, SB_ERR_DATA_LIMIT);
    const uint64_t taken = peak(&o) + rig_stats(&o.rig).pinned_peak;
    assert_true(st == SB_OK || taken == 0);
    rig_close(&o.rig);
    wire_free(&wire);
    free(values);
    return (size_t)taken;
}

/* For page-locked memory, the limit counts the bytes of the size class. */
TEST(the_limit_counts_what_a_read_allocates) {
    static const int64_t counts[] = {1, 1000, 16385, 20480, 300000};
    for (int device = 0; device < 2; device++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int diff = 0; diff < 2; diff++) {
                const char *name = device ? "sim:0" : NULL;
                const size_t taken = taken_by_read(name, counts[i], diff, SIZE_MAX);
                assert_true(taken > (size_t)counts[i] * sizeof(float));
                assert_int_equal(taken_by_read(name, counts[i], diff, taken), taken);
                assert_int_equal(taken_by_read(name, counts[i], diff, taken - 1), 0);
            }
}

TEST(the_limits_of_a_context_apply_unless_a_read_has_its_own) {
    sb_limits of_context = SB_LIMITS_INIT, of_read = SB_LIMITS_INIT;
    const struct wire net = wire_of("100:{1:'n'} 100:{1:'n'} 100:{1:'n'} 100:{1:'n'} 100:{1:'n'}");
    sb_model *model = NULL;
    of_context.max_layers = 4;
    of_read.max_layers = 5;
    sb_context *context = test_context(CONTEXT_OPTIONS(.limits = &of_context));
    assert_status(SB_ERR_DATA_LIMIT, open_wire(context, SB_FORMAT_AUTO, &net, NULL, &model, &err));
    assert_ok(open_wire(context, SB_FORMAT_AUTO, &net, &of_read, &model, &err));
    sb_model_destroy(model);
}

TEST_ON(rig, an_empty_model_allocates_only_its_object) {
    const struct wire none = {0};
    sb_limits limits = SB_LIMITS_INIT;
    sb_model *model = NULL;
    rig_reopen_on(f, NULL, SB_CONTEXT_NO_HOST_CACHE);
    const size_t before = f->counting.live_bytes;
    while (!model && limits.max_memory++ < 4000)
        ignore(open_wire(f->context, SB_FORMAT_CAFFEMODEL, &none, &limits, &model, &err));
    assert_int_equal(f->counting.live_bytes - before, limits.max_memory);
    sb_model_destroy(model);
}
