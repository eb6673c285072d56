/* Every public number of 64 bits that names or measures something, at its extremes. The sanitizers'
   builds find what overflows on the way. */
#include "blobs.h"
#include "nets.h"

#include <syncblob/sim.h>

#include <string.h>

struct scene {
    struct rig rig;
    struct wire wire;
    sb_model *model; /* a net with an added layer, which has a blob */
    sb_blob *blob;   /* of four axes */
};

static void scene_open(struct scene *s) {
    static const int64_t shape[] = {2, 3, 4, 5};
    *s = (struct scene){.model = NULL};
    rig_open(&s->rig);
    net_current(&s->wire);
    s->blob = blob_of(s->rig.context, SB_DTYPE_F32, 4, shape);
    assert_ok(sb_model_open_bytes(s->rig.context, SB_FORMAT_AUTO, s->wire.bytes, s->wire.size, NULL,
                                  NULL, NULL, &s->model, &err));
    assert_ok(sb_model_add_layer(s->model, "new", 3, "Input", 5, NULL, &err));
    assert_ok(sb_model_add_blob(s->model, 2, s->blob, 0, &err));
    assert_ok(sb_model_set_blob(s->model, 0, 0, s->blob, 0, &err));
}

static void scene_close(struct scene *s) {
    sb_model_destroy(s->model);
    sb_blob_destroy(s->blob);
    wire_free(&s->wire);
    rig_close(&s->rig);
}

/* --- calls; each is told one number ---------------------------------------------------------- */

#define CALL(name, ...)                                                                            \
    static sb_status name(struct scene *s, int64_t n, sb_error *err) {                             \
        return __VA_ARGS__;                                                                        \
    }

CALL(layer, sb_model_layer_info(s->model, n, &(sb_layer_info)SB_LAYER_INFO_INIT, err))
CALL(message_layer, sb_model_layer_message(s->model, n, NULL, 0, NULL, err))
CALL(info_layer, sb_model_blob_info(s->model, n, 0, &(sb_blob_info)SB_BLOB_INFO_INIT, err))
CALL(info_index, sb_model_blob_info(s->model, 2, n, &(sb_blob_info)SB_BLOB_INFO_INIT, err))
CALL(load_layer, sb_model_load_blob(s->model, n, 0, s->blob, err))
CALL(load_index, sb_model_load_blob(s->model, 0, n, s->blob, err))
CALL(read_layer, sb_model_read_values(s->model, n, 0, SB_DATA, 0, 1, SB_DTYPE_F32, &(float){0},
                                      sizeof(float), err))
CALL(read_index, sb_model_read_values(s->model, 0, n, SB_DATA, 0, 1, SB_DTYPE_F32, &(float){0},
                                      sizeof(float), err))
CALL(read_first, sb_model_read_values(s->model, 0, 0, SB_DATA, n, 1, SB_DTYPE_F32, &(float){0},
                                      sizeof(float), err))
CALL(set_layer, sb_model_set_blob(s->model, n, 0, s->blob, 0, err))
CALL(set_index, sb_model_set_blob(s->model, 2, n, s->blob, 0, err))
CALL(add_layer, sb_model_add_blob(s->model, n, s->blob, 0, err))
CALL(announce_layer, sb_model_announce_blob(s->model, n, s->blob, err))
CALL(reshape, sb_blob_reshape(s->blob, (const int64_t[]){n, n, n}, 3, NULL, err))
CALL(reshape_legacy, sb_blob_reshape_legacy(s->blob, n, n, n, n, NULL, err))
CALL(create_shaped,
     sb_blob_create_shaped(s->rig.context, SB_DTYPE_F32, &n, 1, &(sb_blob *){NULL}, err))
CALL(create_legacy,
     sb_blob_create_legacy(s->rig.context, SB_DTYPE_F32, n, n, n, n, &(sb_blob *){NULL}, err))
CALL(offset, sb_blob_offset(s->blob, (const int64_t[]){1, n}, 2, &(int64_t){0}, err))
CALL(offset_legacy, sb_blob_offset_legacy(s->blob, n, n, n, n, &(int64_t){0}, err))
CALL(data_at, sb_blob_at(s->blob, SB_DATA, &n, 1, &(float){0}, err))
CALL(data_at_legacy, sb_blob_data_at_legacy(s->blob, 0, 0, 0, n, &(float){0}, err))
CALL(diff_at, sb_blob_at(s->blob, SB_DIFF, &n, 1, &(float){0}, err))
CALL(diff_at_legacy, sb_blob_diff_at_legacy(s->blob, 0, 0, n, 0, &(float){0}, err))

/* A negative number is refused; a large one fires never, or is taken back. */
static sb_status sim_fail(struct scene *s, int64_t n, sb_error *err) {
    sb_status st = sb_sim_fail(s->rig.context, SB_SIM_ALLOC, n, SB_SIM_FAIL_NOW, err);
    if (st != SB_OK)
        return st;
    ignore(sb_sim_fail(s->rig.context, SB_SIM_ALLOC, 0, SB_SIM_FAIL_NOW, NULL));
    return sb_sim_fail(s->rig.context, SB_SIM_ALLOC, -1, SB_SIM_FAIL_NOW, err);
}

/* Limits may be as large as they like; negative ones are refused. */
static sb_status limits_layers(struct scene *s, int64_t n, sb_error *err) {
    sb_limits limits = SB_LIMITS_INIT;
    sb_model *made = NULL;
    limits.max_layers = limits.max_blobs = limits.max_axes = n;
    sb_status st = sb_model_open_bytes(s->rig.context, SB_FORMAT_AUTO, s->wire.bytes, s->wire.size,
                                       &limits, NULL, NULL, &made, err);
    sb_model_destroy(made);
    return st == SB_OK ? sb_blob_reshape(s->blob, &n, -1, NULL, err) : st;
}

#define OUT SB_ERR_INDEX_OUT_OF_RANGE
#define BAD SB_ERR_INVALID_ARGUMENT

static const struct {
    const char *name;
    sb_status (*call)(struct scene *s, int64_t n, sb_error *err);
    sb_status below, above; /* for negative numbers, for large ones */
} calls[] = {
    {"sb_model_layer_info", layer, OUT, OUT},
    {"sb_model_layer_message", message_layer, OUT, OUT},
    {"sb_model_blob_info, layer", info_layer, OUT, OUT},
    {"sb_model_blob_info, index", info_index, OUT, OUT},
    {"sb_model_load_blob, layer", load_layer, OUT, OUT},
    {"sb_model_load_blob, index", load_index, OUT, OUT},
    {"sb_model_read_values, layer", read_layer, OUT, OUT},
    {"sb_model_read_values, index", read_index, OUT, OUT},
    {"sb_model_read_values, first", read_first, OUT, OUT},
    {"sb_model_set_blob, layer", set_layer, OUT, OUT},
    {"sb_model_set_blob, index", set_index, OUT, OUT},
    {"sb_model_add_blob", add_layer, OUT, OUT},
    {"sb_model_announce_blob", announce_layer, OUT, OUT},
    {"sb_blob_reshape", reshape, BAD, SB_ERR_SIZE_OVERFLOW},
    {"sb_blob_reshape_legacy", reshape_legacy, BAD, SB_ERR_SIZE_OVERFLOW},
    {"sb_blob_create_shaped", create_shaped, BAD, SB_ERR_SIZE_OVERFLOW},
    {"sb_blob_create_legacy", create_legacy, BAD, SB_ERR_SIZE_OVERFLOW},
    {"sb_blob_offset", offset, OUT, OUT},
    {"sb_blob_offset_legacy", offset_legacy, OUT, OUT},
    {"sb_blob_at of data", data_at, OUT, OUT},
    {"sb_blob_data_at_legacy", data_at_legacy, OUT, OUT},
    {"sb_blob_at of diff", diff_at, OUT, OUT},
    {"sb_blob_diff_at_legacy", diff_at_legacy, OUT, OUT},
    {"sb_sim_fail", sim_fail, BAD, BAD},
    {"sb_limits", limits_layers, BAD, BAD},
};

static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, INT32_MIN,     -2,
                                   INT32_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX};

TEST_ON(scene, test_numbers_out_of_range_are_refused) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        print_message("  %s\n", calls[i].name);
        for (size_t k = 0; k < sizeof extremes / sizeof *extremes; k++) {
            sb_error err;
            const int64_t n = extremes[k];
            if (calls[i].call == create_shaped && n == INT32_MAX)
                continue; /* one such dimension is fine */
            assert_status(n < 0 ? calls[i].below : calls[i].above, calls[i].call(f, n, &err));
            assert_int_equal(sb_blob_count(f->blob), 120);
            assert_int_equal(num_blobs(f->model, n), 0);
        }
    }
    assert_int_equal(sb_model_num_layers(f->model), 3);
    assert_int_equal(num_blobs(f->model, 2), 1);
}

/* --- bytes --------------------------------------------------------------------------------- */

TEST_ON(scene, test_more_bytes_than_there_can_be) {
    float value = 1;
    sb_mem *mem;
    static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX - 3, SIZE_MAX};
    const sb_mem *before = data_of(f->blob);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_status(SB_ERR_INVALID_ARGUMENT,
                      sb_blob_set_cpu(f->blob, SB_DATA, &value, sizes[i], 0, NULL, NULL, &err));
        assert_status(SB_ERR_INVALID_ARGUMENT,
                      sb_blob_set_gpu(f->blob, SB_DATA, &value, sizes[i], 0, NULL, NULL, &err));
        assert_status(SB_ERR_SIZE_OVERFLOW, sb_mem_create(f->rig.context, sizes[i], &mem, &err));
        assert_status(SB_ERR_INVALID_ARGUMENT,
                      sb_mem_set_cpu(data_of(f->blob), &value, sizes[i], 0, NULL, NULL, &err));
    }
    assert_ptr_equal(data_of(f->blob), before);
    assert_ok(sb_blob_set_cpu(f->blob, SB_DATA, &value, PTRDIFF_MAX, 0, NULL, NULL, &err));
}
