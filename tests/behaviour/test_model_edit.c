/* Tests saves of edited models and of announced blobs. */
#include "blobs.h"

#include "files.h"
#include "nets.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

static sb_blob *new_four(double first) {
    float values[4];
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 4);
    fill_values(SB_DTYPE_F32, 4, first, 1, values);
    mem_place(data_of(blob), SB_HEAD_AT_CPU, values, sizeof values);
    return blob;
}

static void set_four(sb_model *model, int64_t layer, int64_t index, double first) {
    assert_ok(sb_model_set_blob(model, layer, index, new_four(first), 0, &err));
}

static void add_four(sb_model *model, int64_t layer, double first) {
    assert_ok(sb_model_add_blob(model, layer, new_four(first), 0, &err));
}

static struct wire save(const sb_model *model) {
    struct wire wire = {0};
    size_t size, written = 0;
    assert_ok(sb_model_size(model, &size, &err));
    unsigned char *bytes = malloc(size ? size : 1);
    assert_ok(sb_model_save(model, bytes, size, &written, &err));
    assert_int_equal(written, size);
    wire_raw(&wire, bytes, size);
    free(bytes);
    return wire;
}

static void assert_saved(const sb_model *model, const struct wire *expected) {
    const struct wire found = save(model);
    assert_wire(&found, expected);
}

/* Makes a net with unknown fields, groups and overlong numbers around the blobs of its layer. Blob
   k has four values if bit k of `replaced` is set, else two. */
static struct wire odd_net(int32_t generation, unsigned replaced, int added) {
    const bool is_v1 = generation == SB_LAYER_V1, is_current = generation == SB_LAYER_CURRENT;
    const int field = is_current ? 7 : is_v1 ? 6 : 50;
    struct wire net = wire_of("900:5 1:'odd'"), outer = wire_of("2:'bottom'");
    struct wire layer = wire_of(is_v1 ? "4:'name'" : "1:'name'");
    wire_write(&layer, replaced & 1 ? "%d:{[4]50}" : "%d:{[2]1}", field);
    wire_raw(&layer, "\x9b\x4b\x08\x01\x9c\x4b", 6); /* group 1203 */
    wire_tag(&layer, 77, 0);
    wire_overlong(&layer, 3, 7);
    wire_write(&layer, replaced & 2 ? "%d:{[4]60}" : "%d:{[2]2}", field);
    wire_write(&layer, "901:'unknown'");
    for (int i = 0; i < added; i++)
        wire_write(&layer, "%d:{[4]%d}", field, 70 + i);
    wire_message(&outer, 1, &layer);
    wire_write(&outer, "3:'top'");
    wire_message(&net, is_current ? 100 : 2, generation == SB_LAYER_V0 ? &outer : &layer);
    wire_tag(&net, 902, 1);
    wire_raw(&net, "8 bytes.", 8);
    return net;
}

TEST(test_edits_leave_every_other_byte) {
    for (int32_t generation = SB_LAYER_V0; generation <= SB_LAYER_CURRENT; generation++)
        for (unsigned replaced = 0; replaced < 4; replaced++)
            for (int added = 0; added < 3; added++) {
                const struct wire wire = odd_net(generation, 0, 0);
                const struct wire expected = odd_net(generation, replaced, added);
                sb_model *model = test_model_of(&wire, SB_FORMAT_AUTO);
                if (replaced & 2)
                    set_four(model, 0, 1, 60);
                if (replaced & 1)
                    set_four(model, 0, 0, 50);
                for (int i = 0; i < added; i++)
                    add_four(model, 0, 70 + i);
                assert_int_equal(num_blobs(model, 0), 2 + added);
                assert_saved(model, &expected);
            }
}

enum { NAMES = 340, MOST = 120 };

static sb_text numbered(int64_t n, char *bytes) {
    size_t size = 0;
    for (; n > 0; n = (n - 1) / 4)
        bytes[size++] = "ab\0\xff"[(n - 1) % 4];
    return (sb_text){bytes, size};
}

struct added {
    int64_t name, blobs;
};

static void check_added(const sb_model *model, int64_t first, const struct added *added,
                        int64_t count) {
    char bytes[8];
    for (int64_t n = count % 8; n < NAMES; n += 8) {
        const sb_text name = numbered(n, bytes);
        int64_t found = -7, i = 0;
        while (i < count && added[i].name != n)
            i++;
        assert_status(i < count ? SB_OK : SB_ERR_NOT_FOUND,
                      sb_model_find_layer(model, name.bytes, name.size, &found, &err));
        assert_int_equal(found, i < count ? first + i : -7);
    }
    assert_int_equal(sb_model_num_layers(model), first + count);
    assert_int_equal(num_blobs(model, first + count), 0);
    for (int64_t i = 0; i < count; i++) {
        const sb_layer_info info = layer_of(model, first + i);
        const sb_text name = numbered(added[i].name, bytes);
        assert_int_equal(info.name.size, name.size);
        assert_memory_equal(info.name.bytes, name.bytes, name.size);
        assert_int_equal(info.name.bytes[name.size], 0);
        assert_string_equal(info.type.bytes, "Scale");
        assert_int_equal(info.num_blobs, added[i].blobs);
        if (added[i].blobs > 0 && i + 3 > count)
            assert_loads(model, first + i, added[i].blobs - 1, "4 (4)", (double)i);
    }
}

TEST_ON(rig, added_layers_come_and_go) {
    struct added added[MOST];
    char name[8];
    size_t bytes = 0;
    rig_reopen_on(f, "cpu", 0);
    const struct wire wire = small_net(SB_LAYER_CURRENT);
    sb_model *model = test_own_model(small_model(f->context));
    const int64_t first = sb_model_num_layers(model);
    for (uint64_t round = 0, seed = 11; round < 5; round++) {
        int64_t count = 0;
        while (count < MOST) {
            const uint64_t what = count == 0 ? 0 : test_random(&seed) % 5;
            if (what == 4) {
                assert_ok(sb_model_pop_layer(model, &err));
                count--;
            } else if (what == 3) {
                add_four(model, first + count - 1, (double)(count - 1));
                added[count - 1].blobs++;
            } else {
                const int64_t n = (int64_t)(test_random(&seed) % NAMES);
                assert_ok(sb_model_add_layer(model, name, numbered(n, name).size, "Scale", 5, NULL,
                                             &err));
                added[count++] = (struct added){.name = n};
            }
            check_added(model, first, added, count);
        }
        for (; count > 0; count--)
            assert_ok(sb_model_pop_layer(model, &err));
        assert_status(SB_ERR_UNSUPPORTED, sb_model_pop_layer(model, &err));
        assert_saved(model, &wire);
        assert_true(round == 0 || f->counting.live_bytes == bytes);
        bytes = f->counting.live_bytes;
    }
}

TEST(test_a_solver_state_is_edited) {
    const struct wire wire = wire_of("1:10 2:'old' 3:{[2]1} 4:1 55:1");
    struct wire expected = wire_of("1:-99");
    sb_solver_info info = SB_SOLVER_INFO_INIT;
    wire_bytes(&expected, 2, "n\0t", 3);
    wire_write(&expected, "4:-7 3:{[2]1} 55:1");
    sb_model *model = test_model_of(&wire, SB_FORMAT_AUTO);
    char text[] = "n\0t";
    sb_model *net = test_model(NULL, SB_FORMAT_CAFFEMODEL);
    const sb_solver_info set = {
        .struct_size = sizeof set, .learned_net = {text, 3}, .iter = -99, .current_step = -7};
    assert_ok(sb_model_set_name(net, text, 3, &err));
    assert_ok(sb_model_set_solver_info(model, &set, &err));
    memset(text, 'x', 3);
    assert_memory_equal(name_of(net).bytes, "n\0t", 4);
    assert_ok(sb_model_solver_info(model, &info, &err));
    assert_int_equal(info.iter, -99);
    assert_int_equal(info.current_step, -7);
    assert_memory_equal(info.learned_net.bytes, "n\0t", 4);
    assert_ok(sb_model_set_solver_info(model, &info, &err)); /* the model owns these texts */
    assert_saved(model, &expected);
}

TEST(test_edits_that_do_not_apply_are_refused) {
    sb_blob *blob = new_four(0);
    sb_solver_info info = {.struct_size = sizeof info, .iter = 1};
    int64_t layer = -9;
    sb_model *net = test_model(NULL, SB_FORMAT_CAFFEMODEL);
    sb_model *solver = test_model(NULL, SB_FORMAT_SOLVERSTATE);
    sb_model *file = test_model(NULL, SB_FORMAT_BLOB);
    sb_blob *ints = test_unshaped(NULL, SB_DTYPE_I32);
    assert_status(SB_ERR_UNSUPPORTED, sb_model_add_layer(solver, "a", 1, "b", 1, &layer, &err));
    assert_int_equal(layer, -9);
    assert_status(SB_ERR_UNSUPPORTED, sb_model_set_name(solver, "a", 1, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_set_solver_info(net, &info, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_solver_info(net, &info, &err));
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE, sb_model_add_blob(net, -2, blob, 0, &err));
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE, sb_model_set_blob(net, 0, -1, blob, 0, &err));
    assert_int_equal(num_blobs(net, -2), 0);
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE, sb_model_add_blob(net, 0, blob, 0, &err));
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE, sb_model_set_blob(net, 0, 0, blob, 0, &err));
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE,
                  sb_model_set_blob(file, SB_NO_LAYER, 0, blob, 0, &err));
    assert_ok(sb_model_add_blob(file, SB_NO_LAYER, blob, 0, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_add_blob(file, SB_NO_LAYER, blob, 0, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_set_blob(file, SB_NO_LAYER, 0, ints, 0, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_model_save(file, NULL, 1, NULL, &err));
    assert_reports(SB_ERR_UNSUPPORTED, sb_model_set_name(file, "x", 1, &err), "a blob has no ");
    assert_loads(file, SB_NO_LAYER, 0, "4 (4)", 0);
    assert_error(SB_ERR_UNSUPPORTED, sb_model_add_blob(net, SB_NO_LAYER, blob, 0, &err),
                 "a caffemodel has blobs in layers only");
    assert_error(SB_ERR_UNSUPPORTED, sb_model_add_blob(solver, 0, blob, 0, &err),
                 "a solverstate has blobs outside layers");
    static const size_t sizes[] = {(size_t)INT32_MAX + 1, SIZE_MAX};
    for (int i = 0; i < 2; i++) {
        const size_t size = sizes[i];
        info.learned_net = (sb_text){"x", size}; /* no call reads the text */
        assert_status(SB_ERR_OVER_LIMIT, sb_model_set_name(net, "x", size, &err));
        assert_status(SB_ERR_OVER_LIMIT, sb_model_add_layer(net, "x", size, "x", 1, NULL, &err));
        assert_status(SB_ERR_OVER_LIMIT, sb_model_add_layer(net, "x", 1, "x", size, NULL, &err));
        assert_status(SB_ERR_OVER_LIMIT, sb_model_set_solver_info(solver, &info, &err));
    }
    assert_int_equal(sb_model_num_layers(net), 0);
    assert_ok(sb_model_set_name(net, NULL, 0, &err));
    assert_ok(sb_model_add_layer(net, NULL, 0, NULL, 0, NULL, &err));
}

TEST_ON(rig, test_a_model_is_saved_over_its_own_file) {
    if (!file_is_replaced_while_open())
        test_skip();
    for (uint32_t flags = 0; flags <= SB_OPEN_MAPPED; flags += SB_OPEN_MAPPED) {
        const struct wire wire = odd_net(SB_LAYER_V0, 0, 0);
        sb_model *model;
        const char *path = rig_path(f, "net");
        file_write_wire(path, &wire);
        assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, path, flags, NULL, &model, &err));
        for (int64_t blob = 1; blob >= 0; blob--) {
            set_four(model, 0, blob, blob ? 60 : 50);
            assert_ok(sb_model_save_file(model, path, &err));
            const struct wire expected = odd_net(SB_LAYER_V0, blob ? 2 : 3, 0);
            const struct wire found = wire_of_file(path);
            assert_wire(&found, &expected);
            if (blob)
                assert_loads(model, 0, 0, "2 (2)", 1);
        }
        sb_model_destroy(model);
    }
}

TEST(test_real_models_are_read_and_saved_as_they_were) {
    static const struct {
        const char *file;
        int32_t format;
        int64_t layers, blobs;
        double asum;    /* the sum of all data, computed in double by another program */
        bool is_caffes; /* the file has the encodings of Caffe */
    } rows[] = {
        {"mean_cifar10_skywang666.binaryproto", SB_FORMAT_BLOB, 0, 1, 370813.6399078369, false},
        {"cifar10_full_everpeace_iter70000.caffemodel", SB_FORMAT_CAFFEMODEL, 14, 8,
         1959.9170729287066, false},
        {"cifar10_full_everpeace_iter70000.solverstate", SB_FORMAT_SOLVERSTATE, 0, 8,
         0.03162370912872211, false},
        {"cifar10_quick_skywang666_iter4000.caffemodel", SB_FORMAT_CAFFEMODEL, 13, 10,
         5564.517189889184, true},
        {"cifar10_quick_skywang666_iter4000.solverstate", SB_FORMAT_SOLVERSTATE, 0, 10,
         3.7051057658151576, true},
        {"mtcnn_kpzhang93_det1.caffemodel", SB_FORMAT_CAFFEMODEL, 18, 13, 988.1674274024772, true},
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        char buffer[1024];
        const char *path = test_data_path(rows[i / 2].file, buffer, sizeof buffer);
        sb_model *model;
        int64_t blobs = 0;
        double asum = 0, one;
        if (!path)
            continue;
        const struct wire original = wire_of_file(path);
        assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, path, i % 2 ? SB_OPEN_MAPPED : 0, NULL,
                                     &model, &err));
        assert_int_equal(sb_model_format(model), rows[i / 2].format);
        assert_int_equal(sb_model_num_layers(model), rows[i / 2].layers);
        assert_saved(model, &original);
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
        for (int64_t l = SB_NO_LAYER; l < sb_model_num_layers(model); l++)
            for (int64_t k = 0; k < num_blobs(model, l); k++, blobs++) {
                assert_ok(sb_model_load_blob(model, l, k, blob, &err));
                assert_ok(sb_blob_asum(blob, SB_DATA, &one, &err));
                assert_ok(sb_model_set_blob(model, l, k, blob, 0, &err));
                asum += one;
            }
        assert_int_equal(blobs, rows[i / 2].blobs);
        assert_true(fabs(asum - rows[i / 2].asum) < 1e-6 * rows[i / 2].asum);
        if (rows[i / 2].is_caffes)
            assert_saved(model, &original);
        sb_model_destroy(model);
    }
}

TEST_ON(rig, test_over_two_gigabytes_nothing_is_written) {
    enum { FIELD = 2 + 3 + 5 }; /* bytes of an empty name, and an unknown field's tag and length */
    struct wire head = {0};
    sb_model *model;
    size_t size = 7;
    const char *path = rig_path(f, "net"), *target = rig_path(f, "saved");
    /* A sparse file of the maximum size of a message. */
    wire_text(&head, 1, "");
    wire_tag(&head, 50000, 2);
    wire_varint(&head, INT32_MAX - FIELD);
    assert_int_equal(head.size, FIELD);
    file_write_wire(path, &head);
    assert_int_equal(truncate(path, INT32_MAX), 0);
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_CAFFEMODEL, path, 0, NULL, &model, &err));
    assert_ok(sb_model_size(model, &size, &err));
    assert_int_equal(size, INT32_MAX);
    assert_status(SB_ERR_BUFFER_TOO_SMALL,
                  sb_model_layer_message(model, SB_NO_LAYER, NULL, 0, &size, &err));
    assert_int_equal(size, INT32_MAX);
    assert_ok(sb_model_add_layer(model, "", 0, "", 0, NULL, &err));
    assert_status(SB_ERR_OVER_LIMIT, sb_model_size(model, &size, &err));
    assert_int_equal(size, INT32_MAX);
    assert_reports(SB_ERR_OVER_LIMIT, sb_model_save_file(model, target, &err), "safetensors");
    assert_int_equal(access(target, F_OK), -1);
    assert_status(SB_ERR_OVER_LIMIT, sb_model_save(model, &size, sizeof size, NULL, &err));
    assert_ok(sb_model_set_name(model, "n", 1, &err));
    assert_status(SB_ERR_OVER_LIMIT,
                  sb_model_layer_message(model, SB_NO_LAYER, NULL, 0, &size, &err));
    assert_int_equal(size, INT32_MAX);
    sb_model_destroy(model);
    assert_int_equal(truncate(path, (off_t)INT32_MAX + 1), 0);
    assert_status(SB_ERR_DATA_LIMIT,
                  sb_model_open_file(NULL, SB_FORMAT_CAFFEMODEL, path, 0, NULL, &model, &err));
}

static const int64_t none[] = {0, 5};

enum { BLOBS = 4 };

struct place {
    struct rig rig;
    const char *file, *wanted;
    sb_blob *blobs[BLOBS]; /* floats, doubles, no values, no shape */
};

static void place_open(struct place *p) {
    rig_open_on(&p->rig, "cpu", 0);
    p->file = rig_path(&p->rig, "file");
    p->wanted = rig_path(&p->rig, "wanted");
    p->blobs[0] = test_blob(NULL, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    p->blobs[1] = test_vector(NULL, SB_DTYPE_F64, 4);
    p->blobs[2] = test_blob(NULL, SB_DTYPE_F32, 2, none);
    p->blobs[3] = test_unshaped(NULL, SB_DTYPE_F32);
    for (int i = 0; i < 2; i++) {
        double values[6];
        fill_values(sb_blob_dtype(p->blobs[i]), sb_blob_count(p->blobs[i]), 0, 0.1, values);
        mem_place(data_of(p->blobs[i]), SB_HEAD_AT_CPU, values, sb_mem_size(data_of(p->blobs[i])));
    }
}

static void place_close(struct place *p) {
    rig_close(&p->rig);
}

struct lender {
    const struct place *place;
    int calls;
    const sb_blob *instead;
    int fail_at; /* the number of the failing call, from 1 (0: no call fails) */
};

static sb_status lend(void *user, int64_t layer, int64_t index, const sb_blob **out,
                      sb_error *err) {
    struct lender *l = user;
    if (++l->calls == l->fail_at) {
        if (err)
            *err = (sb_error){SB_ERR_IO, ENOSPC, -1, "no more is lent"};
        return SB_ERR_IO;
    }
    *out = l->instead ? l->instead : l->place->blobs[(layer + index) % BLOBS];
    return SB_OK;
}

static void add_layers(const struct place *p, sb_model *model, bool announced) {
    int64_t layer;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "second" : "first";
        assert_ok(sb_model_add_layer(model, name, strlen(name), "Scale", 5, &layer, &err));
        for (int64_t k = 0; k < (i ? 1 : BLOBS); k++) {
            const sb_blob *blob = p->blobs[(layer + k) % BLOBS];
            assert_ok(announced ? sb_model_announce_blob(model, layer, blob, &err)
                                : sb_model_add_blob(model, layer, blob, 0, &err));
        }
    }
}

TEST_ON(place, test_announced_blobs_are_saved_as_added_blobs) {
    for (int generation = SB_LAYER_V0; generation <= SB_LAYER_CURRENT; generation++) {
        struct lender lender = {.place = f}, failing = {.place = f, .fail_at = 1};
        struct lender of_another_type = {.instead = f->blobs[0]};
        const struct wire net = small_net(generation);
        sb_model *models[2];
        size_t sizes[2];
        for (int i = 0; i < 2; i++) {
            models[i] = test_model_of(&net, SB_FORMAT_AUTO);
            assert_ok(i ? sb_model_add_blob(models[i], 1, f->blobs[1], 0, &err)
                        : sb_model_announce_blob(models[i], 1, f->blobs[1], &err));
            add_layers(f, models[i], i == 0);
            assert_ok(sb_model_size(models[i], &sizes[i], &err));
        }
        assert_int_equal(sizes[0], sizes[1]);
        assert_status(SB_ERR_IO, sb_model_save_file_from(models[0], f->file, lend, &failing, &err));
        assert_int_equal(failing.calls, 1);
        assert_status(SB_ERR_DTYPE_MISMATCH,
                      sb_model_save_file_from(models[0], f->file, lend, &of_another_type, &err));
        assert_ok(sb_model_save_file_from(models[0], f->file, lend, &lender, &err));
        assert_int_equal(lender.calls, BLOBS + 2);
        assert_ok(sb_model_save_file(models[1], f->wanted, &err));
        const struct wire found = wire_of_file(f->file), expected = wire_of_file(f->wanted);
        assert_wire(&found, &expected);
    }
}

static sb_status lend_nothing(void *user, int64_t layer, int64_t index, const sb_blob **out,
                              sb_error *err) {
    return SB_OK;
}

TEST_ON(place, test_announced_blobs_are_listed_but_not_loaded) {
    sb_model *model = test_model(NULL, SB_FORMAT_CAFFEMODEL);
    sb_model *unshaped = test_model(NULL, SB_FORMAT_BLOB);
    struct test_sink written = {.writes = 0};
    const sb_sink sink = test_sink_of(&written);
    char buffer[256];
    add_layers(f, model, true);
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64), *ints = test_vector(NULL, SB_DTYPE_I32, 4);
    assert_status(SB_ERR_UNSUPPORTED, sb_model_announce_blob(model, 0, ints, &err));
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE, sb_model_announce_blob(model, 2, f->blobs[0], &err));
    assert_int_equal(num_blobs(model, 0), BLOBS);
    for (int64_t k = 0; k < BLOBS; k++) {
        const sb_blob_info info = blob_info_of(model, 0, k);
        assert_int_equal(info.dtype, sb_blob_dtype(f->blobs[k]));
        assert_int_equal(info.diff_dtype, info.dtype);
        assert_int_equal(info.count, sb_blob_count(f->blobs[k]));
        assert_int_equal(info.num_axes, sb_blob_num_axes(f->blobs[k]));
        assert_memory_equal(info.shape, sb_blob_shape(f->blobs[k]), (size_t)info.num_axes * 8);
        assert_int_equal(info.data_count, 0);
        assert_true(info.offset == -1 && info.data_offset == -1 && info.diff_offset == -1);
        assert_status(SB_ERR_UNSUPPORTED, sb_model_load_blob(model, 0, k, blob, &err));
    }
    assert_non_null(strstr(err.message, "blob 3 of layer 0"));
    assert_reports(SB_ERR_INVALID_ARGUMENT,
                   sb_model_save_file_from(model, f->file, lend_nothing, NULL, &err),
                   "the lent blob");
    struct lender empty = {.instead = f->blobs[2]};
    assert_ok(sb_model_announce_blob(unshaped, SB_NO_LAYER, f->blobs[3], &err));
    assert_status(SB_ERR_SHAPE_MISMATCH,
                  sb_model_save_file_from(unshaped, f->file, lend, &empty, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_save(model, buffer, sizeof buffer, NULL, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_save_file(model, f->file, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_save_sink(model, &sink, &err));
    assert_true(access(f->file, F_OK) != 0 && written.writes == 0);
    for (int64_t k = 0; k < BLOBS; k++)
        assert_ok(sb_model_set_blob(model, 0, k, f->blobs[k], 0, &err));
    assert_ok(sb_model_set_blob(model, 1, 0, f->blobs[1], 0, &err));
    assert_ok(sb_model_load_blob(model, 0, 1, blob, &err));
    assert_int_equal(sb_blob_count(blob), 4);
    assert_ok(sb_model_save(model, buffer, sizeof buffer, NULL, &err));
}

/* Announced blobs need no memory for their values. */
TEST_ON(place, test_more_than_2_gib_are_refused_before_any_blob_is_requested) {
    struct lender lender = {.place = f};
    sb_model *model = test_model(NULL, SB_FORMAT_CAFFEMODEL);
    int64_t layer;
    size_t size;
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 300000000);
    assert_ok(sb_model_add_layer(model, "fc", 2, "InnerProduct", 12, &layer, &err));
    assert_ok(sb_model_announce_blob(model, layer, blob, &err));
    assert_ok(sb_model_size(model, &size, &err));
    assert_true(size > 1200000000);
    assert_ok(sb_model_announce_blob(model, layer, blob, &err));
    assert_status(SB_ERR_OVER_LIMIT, sb_model_size(model, &size, &err));
    assert_status(SB_ERR_OVER_LIMIT, sb_model_save_file_from(model, f->file, lend, &lender, &err));
    assert_int_equal(lender.calls, 0);
    assert_int_equal(access(f->file, F_OK), -1);
}
