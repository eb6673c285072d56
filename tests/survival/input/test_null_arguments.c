/* Every pointer that a header does not mark [nullable], NULL in turn: the call
   is refused and changes nothing. Queries without a status have an answer. */
#include "blobs.h"
#include "mem_calls.h"

#include <syncblob/sim.h>

struct world {
    struct rig rig;
    sb_mem *mem;
    sb_blob *blob, *other;
    sb_stream stream;
    struct lent host, device;
    union {
        const void *in;
        void *ptr;
        sb_mem *mem;
        const sb_mem *const_mem;
        double sum;
        int64_t number;
        int32_t small;
        size_t size;
        char bytes[64];
    } out;
};

static int setup(void **state) {
    struct world *w = calloc(1, sizeof *w);
    rig_open(&w->rig);
    w->blob = blob_of_count(w->rig.context, SB_DTYPE_F32, 4);
    w->other = blob_of_count(w->rig.context, SB_DTYPE_F32, 4);
    assert_ok(sb_mem_create(w->rig.context, 16, &w->mem, &err));
    assert_ok(sb_sim_stream_create(w->rig.context, &w->stream, &err));
    w->host = lend_host(16, 1);
    w->device = lend_device(w->rig.context, 16, 1);
    *state = w;
    return 0;
}

/* Nothing was made, nothing was touched. */
static int teardown(void **state) {
    struct world *w = *state;
    assert_int_equal(sb_mem_head(w->mem), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_mem_storage(w->mem, SB_SIDE_CPU), SB_STORAGE_NONE);
    assert_int_equal(w->rig.counting.buffer_calls, 0);
    assert_ok(sb_sim_stream_destroy(w->rig.context, w->stream, &err));
    lent_free(&w->host);
    lent_free(&w->device);
    sb_mem_release(w->mem);
    sb_blob_destroy(w->blob);
    sb_blob_destroy(w->other);
    rig_close(&w->rig);
    free(w);
    return 0;
}

TEST_WITH(setup, teardown, calls_of_a_memory) {
    struct world *w = *state;
    assert_names_null("out", sb_mem_create(w->rig.context, 1, NULL, &err));
    for (enum call call = 0; call < CALLS; call++) {
        const struct lent *lent = call == SET_CPU ? &w->host : &w->device;
        struct call_arguments arguments = {.stream = w->stream, .ptr = lent->ptr, .bytes = 16};
        assert_names_null("mem", mem_call(NULL, call, &arguments, &w->out.ptr, &err));
        arguments.ptr = NULL;
        if (call_kinds[call].gives_pointer)
            assert_names_null("out", mem_call(w->mem, call, &arguments, NULL, &err));
        if (call_kinds[call].purpose == SET)
            assert_names_null("ptr", mem_call(w->mem, call, &arguments, NULL, &err));
    }
    sb_write *write = NULL;
    const sb_side host = SB_SIDE_CPU;
    assert_names_null("mem", sb_write_begin(NULL, host, 0, &w->out.ptr, &write, &err));
    assert_names_null("out_ptr", sb_write_begin(w->mem, host, 0, NULL, &write, &err));
    assert_names_null("out", sb_write_begin(w->mem, host, 0, &w->out.ptr, NULL, &err));
    assert_names_null("write", sb_write_end(NULL, SB_WRITE_DONE, &err));
    assert_null(write);
}

typedef sb_status (*sums)(const sb_blob *, double *, sb_error *);
typedef sb_status (*numbers)(const sb_blob *, int64_t *, sb_error *);

TEST_WITH(setup, teardown, pointers_into_a_blob) {
    struct world *w = *state;
    for (enum call call = 0; call < POINTER_CALLS; call++)
        for (int diff = 0; diff < 2; diff++) {
            assert_names_null("blob", blob_call(NULL, diff, call, w->stream, &w->out.ptr, &err));
            assert_names_null("out", blob_call(w->blob, diff, call, w->stream, NULL, &err));
        }
    assert_names_null("blob", sb_blob_mem(NULL, SB_DATA, &w->out.const_mem, &err));
    assert_names_null("out", sb_blob_mem(w->blob, SB_DATA, NULL, &err));
    assert_names_null("blob", sb_blob_mem(NULL, SB_DIFF, &w->out.const_mem, &err));
    assert_names_null("out", sb_blob_mem(w->blob, SB_DIFF, NULL, &err));
    assert_names_null("blob", sb_blob_mutable_mem(NULL, SB_DATA, &w->out.mem, &err));
    assert_names_null("out", sb_blob_mutable_mem(w->blob, SB_DATA, NULL, &err));
    assert_names_null("blob", sb_blob_mutable_mem(NULL, SB_DIFF, &w->out.mem, &err));
    assert_names_null("out", sb_blob_mutable_mem(w->blob, SB_DIFF, NULL, &err));
}

TEST_WITH(setup, teardown, calls_of_a_blob) {
    struct world *w = *state;
    static const sums sum[] = {sb_blob_asum_data, sb_blob_asum_diff, sb_blob_sumsq_data,
                               sb_blob_sumsq_diff};
    void *user;
    assert_names_null("blob", sb_blob_clear(NULL, SB_DATA, &err));
    assert_names_null("blob", sb_blob_update(NULL, &err));
    static const numbers number[] = {sb_blob_num, sb_blob_channels, sb_blob_height, sb_blob_width};
    for (size_t i = 0; i < 4; i++) {
        assert_names_null("blob", sum[i](NULL, &w->out.sum, &err));
        assert_names_null("out", sum[i](w->blob, NULL, &err));
        assert_names_null("blob", number[i](NULL, &w->out.number, &err));
        assert_names_null("out", number[i](w->blob, NULL, &err));
    }
    assert_names_null("blob", sb_blob_scale(NULL, SB_DATA, 2, &err));
    assert_names_null("blob", sb_blob_scale(NULL, SB_DIFF, 2, &err));
    assert_names_null("blob", sb_blob_scale_on(NULL, SB_DATA, 2, NULL, &err));
    assert_names_null("blob", sb_blob_scale_on(NULL, SB_DIFF, 2, NULL, &err));
    assert_names_null("blob", sb_blob_update_on(NULL, NULL, &err));
    assert_names_null("blob", sb_blob_share(NULL, SB_DATA, w->other, &err));
    assert_names_null("other", sb_blob_share(w->blob, SB_DATA, NULL, &err));
    assert_names_null("blob", sb_blob_share(NULL, SB_DIFF, w->other, &err));
    assert_names_null("other", sb_blob_share(w->blob, SB_DIFF, NULL, &err));
    assert_names_null("blob", sb_blob_copy_from(NULL, SB_DATA, w->other, 0, &err));
    assert_names_null("source", sb_blob_copy_from(w->blob, SB_DATA, NULL, 0, &err));
    assert_names_null("blob", sb_blob_set_cpu(NULL, SB_DATA, w->host.ptr, 16, 0, NULL, NULL, &err));
    assert_names_null("ptr", sb_blob_set_cpu(w->blob, SB_DATA, NULL, 16, 0, NULL, NULL, &err));
    assert_names_null("blob", sb_blob_reclaim_cpu(NULL, SB_DATA, lent_deleter, &user, &err));
    assert_names_null("deleter", sb_blob_reclaim_cpu(w->blob, SB_DATA, NULL, &user, &err));
    assert_names_null("out_user", sb_blob_reclaim_cpu(w->blob, SB_DATA, lent_deleter, NULL, &err));
    assert_names_null("blob",
                      sb_blob_set_gpu(NULL, SB_DATA, w->device.ptr, 16, 0, NULL, NULL, &err));
    assert_names_null("ptr", sb_blob_set_gpu(w->blob, SB_DATA, NULL, 16, 0, NULL, NULL, &err));
    assert_names_null("blob", sb_blob_data_at_legacy(NULL, 0, 0, 0, 0, w->out.bytes, &err));
    assert_names_null("indices", sb_blob_at(w->blob, SB_DIFF, NULL, 1, w->out.bytes, &err));
    assert_names_null("indices", sb_blob_offset(w->blob, NULL, 1, &w->out.number, &err));
}

TEST_WITH(setup, teardown, blobs_as_bytes) {
    struct world *w = *state;
    size_t size;
    assert_names_null("blob", sb_blob_from_proto(NULL, "", 0, 0, NULL, &err));
    assert_names_null("bytes", sb_blob_from_proto(w->blob, NULL, 1, 0, NULL, &err));
    assert_names_null("blob", sb_blob_shape_equals_proto(NULL, "", 0, &w->out.small, &err));
    assert_names_null("out", sb_blob_shape_equals_proto(w->blob, "", 0, NULL, &err));
    assert_names_null("bytes", sb_blob_shape_equals_proto(w->blob, NULL, 1, &w->out.small, &err));
    assert_names_null("blob", sb_blob_reshape_proto(NULL, "", 0, NULL, &err));
    assert_names_null("bytes", sb_blob_reshape_proto(w->blob, NULL, 1, NULL, &err));
    assert_names_null("blob", sb_blob_proto_size(NULL, 0, &size, &err));
    assert_names_null("out", sb_blob_proto_size(w->blob, 0, NULL, &err));
    assert_names_null("blob", sb_blob_to_proto(NULL, 0, w->out.bytes, 64, &size, &err));
    assert_names_null("buffer", sb_blob_to_proto(w->blob, 0, NULL, 64, &size, &err));
    assert_names_null("blob", sb_blob_load_file(NULL, "/dev/null", 0, NULL, &err));
    assert_names_null("path", sb_blob_load_file(w->blob, NULL, 0, NULL, &err));
    assert_names_null("blob", sb_blob_save_file(NULL, "/dev/null", 0, &err));
    assert_names_null("path", sb_blob_save_file(w->blob, NULL, 0, &err));
}

TEST_WITH(setup, teardown, opening_models) {
    struct world *w = *state;
    sb_model *model = NULL;
    sb_context *context = w->rig.context;
    assert_names_null("bytes",
                      sb_model_open_bytes(context, 0, NULL, 1, NULL, NULL, NULL, &model, &err));
    assert_names_null("out", sb_model_open_bytes(context, 0, "", 0, NULL, NULL, NULL, NULL, &err));
    assert_names_null("path", sb_model_open_file(context, 0, NULL, 0, NULL, &model, &err));
    assert_names_null("out", sb_model_open_file(context, 0, "/dev/null", 0, NULL, NULL, &err));
    assert_names_null("out", sb_model_create(context, SB_FORMAT_BLOB, NULL, &err));
    assert_null(model);
}

TEST_WITH(setup, teardown, calls_of_a_model) {
    struct world *w = *state;
    sb_model *model;
    sb_layer_info layer = SB_LAYER_INFO_INIT;
    sb_blob_info blob = SB_BLOB_INFO_INIT;
    sb_text name;
    sb_solver_info solver = {sizeof(sb_solver_info), {NULL, 1}, 1, 1};
    int64_t *number = &w->out.number;
    assert_ok(sb_model_create(w->rig.context, SB_FORMAT_SOLVERSTATE, &model, &err));
    assert_names_null("model", sb_model_name(NULL, &name, &err));
    assert_names_null("out", sb_model_name(model, NULL, &err));
    assert_names_null("model", sb_model_layer_info(NULL, 0, &layer, &err));
    assert_names_null("out", sb_model_layer_info(model, 0, NULL, &err));
    assert_names_null("model", sb_model_find_layer(NULL, "a", 1, number, &err));
    assert_names_null("name", sb_model_find_layer(model, NULL, 1, number, &err));
    assert_names_null("out", sb_model_find_layer(model, "a", 1, NULL, &err));
    assert_names_null("model", sb_model_blob_info(NULL, SB_NO_LAYER, 0, &blob, &err));
    assert_names_null("out", sb_model_blob_info(model, SB_NO_LAYER, 0, NULL, &err));
    assert_names_null("model", sb_model_load_blob(NULL, SB_NO_LAYER, 0, w->blob, &err));
    assert_names_null("blob", sb_model_load_blob(model, SB_NO_LAYER, 0, NULL, &err));
    assert_names_null("model", sb_model_set_blob(NULL, SB_NO_LAYER, 0, w->blob, 0, &err));
    assert_names_null("blob", sb_model_set_blob(model, SB_NO_LAYER, 0, NULL, 0, &err));
    assert_names_null("model", sb_model_add_blob(NULL, SB_NO_LAYER, w->blob, 0, &err));
    assert_names_null("blob", sb_model_add_blob(model, SB_NO_LAYER, NULL, 0, &err));
    assert_names_null("model", sb_model_announce_blob(NULL, SB_NO_LAYER, w->blob, &err));
    assert_names_null("like", sb_model_announce_blob(model, SB_NO_LAYER, NULL, &err));
    assert_names_null("model", sb_model_add_layer(NULL, "a", 1, "b", 1, NULL, &err));
    assert_names_null("model", sb_model_pop_layer(NULL, &err));
    assert_names_null("model", sb_model_set_name(NULL, "a", 1, &err));
    assert_names_null("model", sb_model_solver_info(NULL, &solver, &err));
    assert_names_null("out", sb_model_solver_info(model, NULL, &err));
    assert_names_null("model", sb_model_set_solver_info(NULL, &solver, &err));
    assert_names_null("info", sb_model_set_solver_info(model, NULL, &err));
    assert_names_null("learned_net",
                      sb_model_set_solver_info(model, &solver, &err)); /* a text of NULL */
    assert_names_null("model", sb_model_size(NULL, &w->out.size, &err));
    assert_names_null("out", sb_model_size(model, NULL, &err));
    assert_names_null("model", sb_model_save(NULL, w->out.bytes, 64, NULL, &err));
    assert_names_null("model", sb_model_save_file(NULL, "/dev/null", &err));
    assert_names_null("path", sb_model_save_file(model, NULL, &err));
    assert_names_null("lender", sb_model_save_file_from(model, "/dev/null", NULL, NULL, &err));
    assert_names_null("model", sb_model_num_blobs(NULL, 0, &w->out.number, &err));
    assert_names_null("model", sb_model_layer_message(NULL, 0, NULL, 0, NULL, &err));
    assert_names_null("model",
                      sb_model_read_values(NULL, 0, 0, SB_DATA, 0, 0, SB_DTYPE_F32, NULL, 0, &err));
    assert_names_null("buffer", sb_model_read_values(model, SB_NO_LAYER, 0, SB_DATA, 0, 1,
                                                     SB_DTYPE_F32, NULL, 4, &err));
    assert_names_null("out", sb_model_num_blobs(model, SB_NO_LAYER, NULL, &err));
    assert_names_null("buffer", sb_model_layer_message(model, SB_NO_LAYER, NULL, 1, NULL, &err));
    /* NULL for what is not there is fine. */
    assert_ok(sb_model_save(model, NULL, 0, NULL, &err));
    sb_model_destroy(model);
}

TEST_WITH(setup, teardown, calls_of_a_net) {
    struct world *w = *state;
    sb_model *model;
    assert_ok(sb_model_create(w->rig.context, SB_FORMAT_CAFFEMODEL, &model, &err));
    assert_names_null("name", sb_model_add_layer(model, NULL, 1, "b", 1, NULL, &err));
    assert_names_null("name", sb_model_add_layer(model, NULL, 1, NULL, 0, NULL, &err));
    assert_names_null("type", sb_model_add_layer(model, "a", 1, NULL, 1, NULL, &err));
    assert_names_null("name", sb_model_set_name(model, NULL, 1, &err));
    assert_int_equal(sb_model_num_layers(model), 0);
    sb_model_destroy(model);
}

TEST_WITH(setup, teardown, calls_of_contexts) {
    struct world *w = *state;
    void *out = NULL;
    assert_names_null("out", sb_context_create(NULL, NULL, &err));
    assert_names_null("out", sb_context_stream(w->rig.context, NULL, &err));
    assert_names_null("out", sb_context_stats(w->rig.context, NULL, &err));
    assert_names_null("name", sb_context_extension(w->rig.context, NULL, &w->out.in, &out, &err));
    assert_names_null("out_table", sb_context_extension(w->rig.context, "x", NULL, &out, &err));
    assert_names_null("out_device",
                      sb_context_extension(w->rig.context, "x", &w->out.in, NULL, &err));
    sb_context_options_init(NULL, 0);
    sb_context_release(NULL);
    assert_null(sb_context_retain(NULL));
}

TEST_WITH(setup, teardown, queries_have_an_answer) {
    struct world *w = *state;
    assert_int_equal(sb_mem_is_unique(NULL), 0);
    assert_int_equal(sb_mem_size(NULL), 0);
    assert_int_equal(sb_mem_head(NULL), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_mem_storage(NULL, SB_SIDE_CPU), SB_STORAGE_NONE);
    assert_null(sb_mem_context(NULL));
    assert_null(sb_mem_retain(NULL));
    sb_mem_release(NULL);
    sb_write_destroy(NULL);
    assert_int_equal(sb_blob_dtype(NULL), 0);
    assert_null(sb_blob_context(NULL));
    assert_int_equal(sb_blob_is_shaped(NULL), 0);
    assert_int_equal(sb_blob_num_axes(NULL), 0);
    assert_int_equal(sb_blob_count(NULL), 0);
    assert_int_equal(sb_blob_capacity(NULL, SB_DATA), 0);
    assert_int_equal(sb_blob_capacity(NULL, SB_DIFF), 0);
    assert_non_null(sb_blob_shape(NULL));
    assert_int_equal(sb_blob_shape_equals(NULL, w->blob), 0);
    assert_int_equal(sb_blob_shape_equals(w->blob, NULL), 0);
    sb_blob_destroy(NULL);
    assert_int_equal(sb_model_format(NULL), SB_FORMAT_AUTO);
    assert_int_equal(sb_model_num_layers(NULL), 0);
    sb_model_destroy(NULL);
}
