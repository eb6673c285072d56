/* Tests announced blobs. A save requests the blobs' values from a callback, one blob at a time, and
   writes the same bytes as if the blobs had been added to the model. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

#include <errno.h>
#include <unistd.h>

static const int64_t none[] = {0, 5};

enum { BLOBS = 4 };

struct place {
    struct rig rig;
    const char *file, *wanted;
    sb_blob *blobs[BLOBS]; /* of floats, of doubles, without values, without a shape */
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

/* The callback lends `instead` or, if `instead` is NULL, blobs[(layer + index) % BLOBS]. */
struct lender {
    const struct place *place;
    int calls;
    const sb_blob *instead;
    int fail_at; /* the number of the call that fails, counted from 1; 0: no call fails */
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

/* Adds a layer with all blobs and a layer with one blob; announces or adds the blobs. */
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

/* A save requests the blobs of the edited net of a file, also a blob without a shape, and writes
   the announced blobs of a layer after the blobs that the layer has in the file. */
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
    assert_int_equal(access(f->file, F_OK), -1);
    /* After sb_model_set_blob, an announced blob has values like any other blob. */
    for (int64_t k = 0; k < BLOBS; k++)
        assert_ok(sb_model_set_blob(model, 0, k, f->blobs[k], 0, &err));
    assert_ok(sb_model_set_blob(model, 1, 0, f->blobs[1], 0, &err));
    assert_ok(sb_model_load_blob(model, 0, 1, blob, &err));
    assert_int_equal(sb_blob_count(blob), 4);
    assert_ok(sb_model_save(model, buffer, sizeof buffer, NULL, &err));
}

/* An announced blob needs no memory for its values, so the test can announce more than 2 GiB. */
TEST_ON(place, test_more_than_2_gib_are_refused_before_any_blob_is_requested) {
    struct lender lender = {.place = f};
    sb_model *model = test_model(NULL, SB_FORMAT_CAFFEMODEL);
    int64_t layer;
    size_t size;
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 300000000); /* 1.2 GB */
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
