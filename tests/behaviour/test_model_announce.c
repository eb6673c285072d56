/* Announced blobs: a model that is saved from values that are lent one at a
   time has the bytes that it would have had from blobs that were added. */
#include "support.h"

#include "files.h"
#include "nets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t two_by_three[] = {2, 3}, four[] = {4}, none[] = {0, 5};

enum { BLOBS = 3, MAX_LENT = 8 };

struct place {
    char folder[64], file[96], wanted[96];
    sb_blob *blobs[BLOBS]; /* floats, doubles, no values */
};

static sb_blob *new_blob(int32_t dtype, const int64_t *dims, int32_t axes) {
    sb_blob *blob;
    void *p;
    assert_ok(sb_blob_create_shaped(NULL, dtype, dims, axes, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &p, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        if (dtype == SB_DTYPE_F32)
            ((float *)p)[i] = 1.5F * (float)i;
        else
            ((double *)p)[i] = 0.1 * (double)i;
    }
    return blob;
}

static int setup(void **state) {
    struct place *p = calloc(1, sizeof *p);
    strcpy(p->folder, "/tmp/syncblob-announce-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->file, sizeof p->file, "%s/file", p->folder);
    (void)snprintf(p->wanted, sizeof p->wanted, "%s/wanted", p->folder);
    p->blobs[0] = new_blob(SB_DTYPE_F32, two_by_three, 2);
    p->blobs[1] = new_blob(SB_DTYPE_F64, four, 1);
    p->blobs[2] = new_blob(SB_DTYPE_F32, none, 2);
    *state = p;
    return 0;
}

/* Nothing is left but what the test made. */
static int teardown(void **state) {
    struct place *p = *state;
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(p->blobs[i]);
    (void)unlink(p->file);
    (void)unlink(p->wanted);
    int left = rmdir(p->folder);
    free(p);
    return left;
}

static void assert_same_files(const struct place *p) {
    struct wire found = wire_of_file(p->file), wanted = wire_of_file(p->wanted);
    assert_int_equal(found.size, wanted.size);
    assert_memory_equal(found.bytes, wanted.bytes, found.size);
    wire_free(&found);
    wire_free(&wanted);
}

/* Lends blobs[(layer + index) % BLOBS], or `instead`, and keeps what was asked for. */
struct lender {
    const struct place *place;
    int calls;
    int64_t asked[MAX_LENT][2];
    const sb_blob *instead;
    int fail_at; /* the call that fails, from 1 */
};

static sb_status lend(void *user, int64_t layer, int64_t index, const sb_blob **out,
                      sb_error *err) {
    struct lender *l = user;
    assert_true(l->calls < MAX_LENT);
    l->asked[l->calls][0] = layer;
    l->asked[l->calls][1] = index;
    if (++l->calls == l->fail_at) {
        if (err)
            *err = (sb_error){SB_ERR_IO, ENOSPC, -1, "no more is lent"};
        return SB_ERR_IO;
    }
    *out = l->instead ? l->instead : l->place->blobs[(layer + index) % BLOBS];
    return SB_OK;
}

/* Two layers after those that are there, with three and one blobs, announced or added. */
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

static sb_model *new_net(void) {
    sb_model *model;
    assert_ok(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, &err));
    assert_ok(sb_model_set_name(model, "net", 3, &err));
    return model;
}

static void save_wanted(const struct place *p, sb_model *model, size_t size) {
    size_t wanted;
    assert_ok(sb_model_size(model, &wanted, &err));
    assert_int_equal(size, wanted);
    assert_ok(sb_model_save_file(model, p->wanted, &err));
    sb_model_destroy(model);
}

TEST_WITH(setup, teardown, test_a_new_net_is_saved_as_if_its_blobs_were_added) {
    const struct place *p = *state;
    struct lender lender = {.place = p};
    static const int64_t order[][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}};
    sb_model *model = new_net(), *added = new_net();
    size_t size;
    add_layers(p, model, true);
    assert_ok(sb_model_size(model, &size, &err));
    assert_int_equal(lender.calls, 0);
    assert_ok(sb_model_save_file_from(model, p->file, lend, &lender, &err));
    assert_int_equal(lender.calls, 4);
    assert_memory_equal(lender.asked, order, sizeof order);
    sb_model_destroy(model);
    add_layers(p, added, false);
    save_wanted(p, added, size);
    assert_same_files(p);
}

/* Blobs after those of the file's own layers, which are copied. */
TEST_WITH(setup, teardown, test_announced_blobs_follow_those_of_a_file) {
    const struct place *p = *state;
    for (int generation = SB_LAYER_V0; generation <= SB_LAYER_CURRENT; generation++) {
        struct lender lender = {.place = p}, failing = {.place = p, .fail_at = 1};
        struct wire net = {0};
        sb_model *models[2];
        size_t size;
        if (generation == SB_LAYER_V0)
            net_v0(&net);
        else if (generation == SB_LAYER_V1)
            net_v1(&net);
        else
            net_current(&net);
        for (int i = 0; i < 2; i++) {
            assert_ok(sb_model_open_bytes(NULL, SB_FORMAT_AUTO, net.bytes, net.size, NULL, NULL,
                                          NULL, &models[i], &err));
            assert_ok(i ? sb_model_add_blob(models[i], 1, p->blobs[1], 0, &err)
                        : sb_model_announce_blob(models[i], 1, p->blobs[1], &err));
            add_layers(p, models[i], i == 0);
        }
        assert_ok(sb_model_size(models[0], &size, &err));
        assert_status(SB_ERR_IO, sb_model_save_file_from(models[0], p->file, lend, &failing, &err));
        assert_int_equal(failing.calls, 1);
        assert_ok(sb_model_save_file_from(models[0], p->file, lend, &lender, &err));
        assert_int_equal(lender.calls, 5);
        sb_model_destroy(models[0]);
        save_wanted(p, models[1], size);
        assert_same_files(p);
        wire_free(&net);
    }
}

TEST_WITH(setup, teardown, test_solver_states_and_blob_files_are_lent_too) {
    const struct place *p = *state;
    static const int32_t formats[] = {SB_FORMAT_SOLVERSTATE, SB_FORMAT_BLOB, SB_FORMAT_BLOB_VECTOR};
    for (int i = 0; i < 3; i++) {
        struct lender lender = {.instead = p->blobs[1]};
        sb_model *model, *added;
        size_t size;
        assert_ok(sb_model_create(NULL, formats[i], &model, &err));
        assert_ok(sb_model_create(NULL, formats[i], &added, &err));
        assert_ok(sb_model_announce_blob(model, SB_NO_LAYER, p->blobs[1], &err));
        assert_ok(sb_model_add_blob(added, SB_NO_LAYER, p->blobs[1], 0, &err));
        assert_ok(sb_model_size(model, &size, &err));
        assert_ok(sb_model_save_file_from(model, p->file, lend, &lender, &err));
        assert_int_equal(lender.asked[0][0], SB_NO_LAYER);
        sb_model_destroy(model);
        save_wanted(p, added, size);
        assert_same_files(p);
    }
}

/* It has no values, and is lent all the same. */
TEST_WITH(setup, teardown, test_a_blob_without_a_shape_is_announced_without_one) {
    const struct place *p = *state;
    sb_model *model, *added;
    sb_blob *blob, *shaped;
    sb_blob_info info = SB_BLOB_INFO_INIT;
    size_t size;
    assert_ok(sb_blob_create(NULL, SB_DTYPE_F32, &blob, &err));
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, none, 1, &shaped, &err)); /* "(0)" */
    assert_ok(sb_model_create(NULL, SB_FORMAT_BLOB, &model, &err));
    assert_ok(sb_model_create(NULL, SB_FORMAT_BLOB, &added, &err));
    assert_ok(sb_model_announce_blob(model, SB_NO_LAYER, blob, &err));
    assert_ok(sb_model_blob_info(model, SB_NO_LAYER, 0, &info, &err));
    assert_true(info.num_axes == 0 && info.count == 0);
    assert_ok(sb_model_add_blob(added, SB_NO_LAYER, blob, 0, &err));
    assert_ok(sb_model_size(model, &size, &err));
    struct lender lender = {.instead = shaped};
    assert_status(SB_ERR_SHAPE_MISMATCH,
                  sb_model_save_file_from(model, p->file, lend, &lender, &err));
    lender.instead = blob;
    assert_ok(sb_model_save_file_from(model, p->file, lend, &lender, &err));
    save_wanted(p, added, size);
    assert_same_files(p);
    sb_blob_destroy(blob);
    sb_blob_destroy(shaped);
    sb_model_destroy(model);
}

TEST_WITH(setup, teardown, test_what_is_announced_is_known_but_not_loaded) {
    const struct place *p = *state;
    sb_model *model = new_net();
    sb_blob_info info = SB_BLOB_INFO_INIT;
    sb_blob *blob;
    char buffer[256];
    add_layers(p, model, true);
    assert_int_equal(num_blobs(model, 0), BLOBS);
    assert_ok(sb_model_blob_info(model, 0, 1, &info, &err));
    assert_int_equal(info.dtype, SB_DTYPE_F64);
    assert_int_equal(info.diff_dtype, SB_DTYPE_F64);
    assert_int_equal(info.count, 4);
    assert_int_equal(info.num_axes, 1);
    assert_int_equal(info.shape[0], 4);
    assert_int_equal(info.data_count, 0);
    assert_int_equal(info.offset, -1);
    assert_int_equal(info.data_offset, -1);
    assert_int_equal(info.diff_offset, -1);
    assert_ok(sb_blob_create(NULL, SB_DTYPE_F64, &blob, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_load_blob(model, 0, 1, blob, &err));
    assert_non_null(strstr(err.message, "blob 1 of layer 0"));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_load_blob(model, 0, 2, blob, &err));
    assert_ok(sb_model_blob_info(model, 0, 2, &info, &err)); /* there is no layer 2 */
    assert_int_equal(info.offset, -1);
    assert_int_equal(info.count, sb_blob_count(p->blobs[2]));
    assert_int_equal(info.num_axes, sb_blob_num_axes(p->blobs[2]));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_save(model, buffer, sizeof buffer, NULL, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_save_file(model, p->file, &err));
    assert_int_equal(access(p->file, F_OK), -1);
    /* Once they are set they are blobs as any other. */
    for (int64_t k = 0; k < BLOBS; k++)
        assert_ok(sb_model_set_blob(model, 0, k, p->blobs[k], 0, &err));
    assert_ok(sb_model_set_blob(model, 1, 0, p->blobs[1], 0, &err));
    assert_ok(sb_model_load_blob(model, 0, 1, blob, &err));
    assert_int_equal(sb_blob_count(blob), 4);
    assert_ok(sb_model_save(model, buffer, sizeof buffer, NULL, &err));
    sb_blob_destroy(blob);
    sb_model_destroy(model);
}

/* The old file stays; that nothing is left beside it shows the teardown. */
TEST_WITH(setup, teardown, test_a_lender_that_fails_leaves_the_old_file) {
    const struct place *p = *state;
    sb_model *model = new_net();
    file_write(p->file, "old", 3);
    add_layers(p, model, true);
    for (int n = 1; n <= 4; n++) {
        struct lender failing = {.place = p, .fail_at = n};
        assert_status(SB_ERR_IO, sb_model_save_file_from(model, p->file, lend, &failing, &err));
        assert_int_equal(err.device_code, ENOSPC);
        assert_int_equal(failing.calls, n);
        assert_true(file_holds(p->file, "old"));
    }
    struct lender wrong = {.instead = p->blobs[1]};
    assert_status(SB_ERR_DTYPE_MISMATCH,
                  sb_model_save_file_from(model, p->file, lend, &wrong, &err));
    wrong.instead = p->blobs[2];
    assert_status(SB_ERR_SHAPE_MISMATCH,
                  sb_model_save_file_from(model, p->file, lend, &wrong, &err));
    assert_true(file_holds(p->file, "old"));
    sb_model_destroy(model);
}

static sb_status lend_nothing(void *user, int64_t layer, int64_t index, const sb_blob **out,
                              sb_error *err) {
    (void)user, (void)layer, (void)index, (void)out, (void)err;
    return SB_OK;
}

TEST_WITH(setup, teardown, test_arguments_are_checked) {
    const struct place *p = *state;
    sb_model *model = new_net();
    sb_blob *ints;
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_I32, four, 1, &ints, &err));
    add_layers(p, model, true);
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_model_announce_blob(NULL, 0, p->blobs[0], &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_model_announce_blob(model, 0, NULL, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_model_announce_blob(model, 0, ints, &err));
    assert_status(SB_ERR_INDEX_OUT_OF_RANGE, sb_model_announce_blob(model, 2, p->blobs[0], &err));
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_model_save_file_from(model, p->file, NULL, NULL, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_model_save_file_from(NULL, p->file, lend_nothing, NULL, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_model_save_file_from(model, NULL, lend_nothing, NULL, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_model_save_file_from(model, p->file, lend_nothing, NULL, &err));
    assert_non_null(strstr(err.message, "the lent blob"));
    assert_int_equal(num_blobs(model, 0), BLOBS);
    sb_blob_destroy(ints);
    sb_model_destroy(model);
}

/* Announcing touches no memory, so that it can be asked what would be too large. */
TEST_WITH(setup, teardown, test_more_than_2_gib_are_refused_before_anything_is_lent) {
    const struct place *p = *state;
    const int64_t quarter[] = {300000000}; /* 1.2 GB */
    struct lender lender = {.place = p};
    sb_model *model = new_net();
    sb_blob *blob;
    int64_t layer;
    size_t size;
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, quarter, 1, &blob, &err));
    assert_ok(sb_model_add_layer(model, "fc", 2, "InnerProduct", 12, &layer, &err));
    assert_ok(sb_model_announce_blob(model, layer, blob, &err));
    assert_ok(sb_model_size(model, &size, &err));
    assert_true(size > 1200000000);
    assert_ok(sb_model_announce_blob(model, layer, blob, &err));
    assert_status(SB_ERR_OVER_LIMIT, sb_model_size(model, &size, &err));
    assert_status(SB_ERR_OVER_LIMIT, sb_model_save_file_from(model, p->file, lend, &lender, &err));
    assert_int_equal(lender.calls, 0);
    assert_int_equal(access(p->file, F_OK), -1);
    sb_blob_destroy(blob);
    sb_model_destroy(model);
}
