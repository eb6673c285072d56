/* Tests calls that must be refused before anything changes. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

#include <syncblob/backend.h>
#include <syncblob/comm_engine.h>
#include <syncblob/conformance.h>
#include <syncblob/dlpack.h>
#include <syncblob/filler.h>
#include <syncblob/nccl.h>
#include <syncblob/reducer.h>
#include <syncblob/sim.h>
#include <syncblob/sim_comm.h>

struct world {
    struct rig rig;
    sb_mem *mem;
    sb_blob *blob;
    sb_model *model;
    sb_comm *comm;
    sb_reducer *reducer;
    sb_stream stream;
    struct test_source from;
    struct test_sink got;
    sb_source source;
    sb_sink sink;
    struct tensor tensor;
    void *bytes;
};

static void world_open(struct world *w) {
    static const struct wire none = {0};
    *w = (struct world){.model = NULL};
    rig_open(&w->rig);
    w->source = test_source_of(&w->from, &none);
    w->sink = test_sink_of(&w->got);
    w->mem = test_mem(w->rig.context, 64);
    w->blob = test_vector(w->rig.context, SB_DTYPE_F32, 16);
    w->stream = rig_stream(&w->rig);
    tensor_make(&w->tensor);
    w->bytes = calloc(1, 512);
    assert_ok(sb_model_create(w->rig.context, SB_FORMAT_SOLVERSTATE, &w->model, &err));
    assert_ok(
        sb_model_add_blob(w->model, SB_NO_LAYER, test_vector(NULL, SB_DTYPE_F32, 1), 0, &err));
    assert_ok(sb_sim_comm_create(w->rig.context, 1, NULL, &w->comm, &err));
    assert_ok(sb_reducer_create(w->comm, NULL, 0, NULL, &w->reducer, &err));
}

static void world_close(struct world *w) {
    assert_int_equal(sb_mem_head(w->mem), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_mem_storage(w->mem, SB_SIDE_CPU), SB_STORAGE_NONE);
    assert_int_equal(w->rig.counting.buffer_calls, 0);
    assert_int_equal(w->from.reads + w->got.writes + w->tensor.deleted, 0);
    for (int i = 0; i < 512; i++)
        assert_int_equal(((char *)w->bytes)[i], 0);
    free(w->bytes);
    sb_reducer_destroy(w->reducer);
    sb_comm_destroy(w->comm);
    sb_model_destroy(w->model);
    rig_end_stream(&w->rig, w->stream);
    rig_close(&w->rig);
}

static void keep(void *user, void *ptr) {
}

static sb_status lend(void *user, int64_t layer, int64_t index, const sb_blob **out,
                      sb_error *error) {
    return sb_error_fill(error, SB_ERR_INTERNAL, 0, "nothing was announced");
}

/* NOLINTNEXTLINE(readability-function-size): the calls are generated */
TEST_ON(world, null_is_refused_for_pointers_that_are_not_nullable) {
    struct world *w = f;
    int refused = 0;
#define REFUSES(name, call)                                                                        \
    assert_names_null(name, call);                                                                 \
    refused++;
#include "refusals.inc"
    assert_true(refused > 200);
}

static bool reports(const char *words) {
    return strstr(err.message, words) != NULL;
}

TEST_ON(world, flags_of_other_calls_are_refused) {
    struct world *w = f;
    uint32_t all = 0;
#define FLAGS(known, call)                                                                         \
    for (uint32_t bit = 1; bit != 0; bit <<= 1)                                                    \
        for (int beside = 0; beside < 2 && !(bit & (known)); beside++) {                           \
            const uint32_t flags = beside ? bit | (known) : bit;                                   \
            assert_status(SB_ERR_INVALID_ARGUMENT, call);                                          \
            assert_true(reports("flags"));                                                         \
        }
#define FLAG(flag)                                                                                 \
    assert_true((flag) && !((flag) & ((flag)-1)) && !(all & (flag)));                              \
    all |= (flag);
    FLAG(SB_CONTEXT_NO_PINNED)
    FLAG(SB_CONTEXT_NO_HOST_CACHE)
    sb_context *context;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    FLAGS(SB_CONTEXT_NO_PINNED | SB_CONTEXT_NO_HOST_CACHE,
          (options.flags = flags, sb_context_create(&options, &context, &err)))
#include "refusals.inc"
}

TEST_ON(world, parts_that_are_neither_data_nor_diff_are_refused) {
    static const sb_part parts[] = {-1, 2, INT32_MIN, INT32_MAX};
    struct world *w = f;
    for (int i = 0; i < 4; i++) {
        const sb_part part = parts[i];
#define PART(none, call)                                                                           \
    assert_status(SB_ERR_INVALID_ARGUMENT, call);                                                  \
    assert_true(reports("neither SB_DATA nor SB_DIFF") || reports("no part"));
#include "refusals.inc"
        sb_blob_drop(w->blob, part);
        assert_int_equal(sb_blob_capacity(w->blob, part), 0);
    }
}

TEST_ON(world, extreme_numbers_are_refused) {
    static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, INT32_MIN,     -2,
                                       INT32_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX};
    struct world *w = f;
    sb_blob *blob;
    sb_model *model;
    sb_limits limits = SB_LIMITS_INIT;
    sb_status st;
    for (int i = 0; i < 8; i++) {
        const int64_t number = extremes[i], numbers[] = {number, number, number};
#define NUMBER(call)                                                                               \
    support_poison_error(&err);                                                                    \
    st = call;                                                                                     \
    assert_true(st != SB_OK && st != SB_ERR_INTERNAL);                                             \
    support_check_status(st, st, &err, #call, __FILE__, __LINE__);
        NUMBER(sb_blob_create(NULL, -1 - i, &blob, &err)) /* an unknown dtype */
        NUMBER(sb_model_open_bytes(NULL, -1 - i, "", 0, NULL, NULL, NULL, &model, &err))
        NUMBER(sb_model_open_file(NULL, -1 - i, "/dev/null", 0, NULL, &model, &err))
        NUMBER(sb_model_create(NULL, -i, &model, &err)) /* -0 is SB_FORMAT_AUTO */
        NUMBER(sb_blob_reshape(w->blob, numbers, 3, NULL, &err))
        NUMBER(sb_blob_reshape_legacy(w->blob, number, number, number, number, NULL, &err))
        NUMBER(sb_blob_create_shaped(NULL, SB_DTYPE_F32, numbers, 3, &blob, &err))
        NUMBER(sb_blob_create_legacy(NULL, SB_DTYPE_F32, number, 1, number, number, &blob, &err))
        limits.max_layers = limits.max_blobs = limits.max_axes = number;
        NUMBER(sb_model_open_file(NULL, SB_FORMAT_BLOB, "/dev/null", 0, &limits, &model, &err))
        NUMBER(
            sb_model_open_bytes(NULL, SB_FORMAT_BLOB, NULL, 0, &limits, NULL, NULL, &model, &err))
#include "refusals.inc"
    }
    assert_int_equal(sb_blob_count(w->blob), 16);
    assert_int_equal(num_blobs(w->model, SB_NO_LAYER), 1);
}

TEST_ON(world, impossible_sizes_are_refused) {
    static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX - 3, SIZE_MAX};
    sb_mem *mem;
    for (int i = 0; i < 3; i++) {
        assert_status(SB_ERR_SIZE_OVERFLOW, sb_mem_create(f->rig.context, sizes[i], &mem, &err));
        assert_status(SB_ERR_INVALID_ARGUMENT,
                      sb_mem_set_cpu(f->mem, f->bytes, sizes[i], 0, NULL, NULL, &err));
        assert_status(SB_ERR_INVALID_ARGUMENT,
                      sb_blob_set_cpu(f->blob, SB_DATA, f->bytes, sizes[i], 0, NULL, NULL, &err));
        assert_status(SB_ERR_INVALID_ARGUMENT,
                      sb_blob_set_gpu(f->blob, SB_DATA, f->bytes, sizes[i], 0, NULL, NULL, &err));
    }
    assert_ok(sb_blob_set_cpu(f->blob, SB_DATA, f->bytes, PTRDIFF_MAX, 0, NULL, NULL, &err));
    mem = test_mem(NULL, PTRDIFF_MAX);
    const void *ptr = NULL;
    const sb_status st = sb_mem_cpu(mem, &ptr, NULL);
    if (sizeof(size_t) == 4) /* half of a 32-bit address space may be free */
        return;
    assert_true(st == SB_ERR_OUT_OF_MEMORY || st == SB_ERR_CAP_REACHED);
    assert_null(ptr);
}

/* make_refusals.py omits calls that need another model, and pointers within structs. */
TEST_ON(world, null_is_refused_for_nets_and_within_structs) {
    unsigned char id[SB_NCCL_ID_BYTES] = {0};
    const sb_solver_info solver = {sizeof(sb_solver_info), {NULL, 1}, 1, 1};
    sb_comm *comm;
    sb_model *net;
    assert_ok(sb_model_create(f->rig.context, SB_FORMAT_CAFFEMODEL, &net, &err));
    assert_names_null("name", sb_model_add_layer(net, NULL, 1, "b", 1, NULL, &err));
    assert_names_null("name", sb_model_add_layer(net, NULL, 1, NULL, 0, NULL, &err));
    assert_names_null("type", sb_model_add_layer(net, "a", 1, NULL, 1, NULL, &err));
    assert_names_null("name", sb_model_set_name(net, NULL, 1, &err));
    assert_int_equal(sb_model_num_layers(net), 0);
    assert_ok(sb_model_save(net, NULL, 0, NULL, &err)); /* a buffer of 0 bytes may be NULL */
    sb_model_destroy(net);
    assert_names_null("learned_net", sb_model_set_solver_info(f->model, &solver, &err));
    assert_names_null("context", sb_nccl_comm_create(NULL, id, 0, 1, 0, &comm, &err));
    assert_names_null("stream", sb_sim_stream_destroy(f->rig.context, NULL, &err));
    assert_ok(sb_sim_free(f->rig.context, NULL, &err));
}

TEST_ON(world, queries_return_a_value_for_null) {
    sb_context_options_init(NULL, 0);
    sb_filler_init(NULL, 0);
    sb_context_release(NULL);
    assert_null(sb_context_retain(NULL));
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
    assert_int_equal(sb_blob_shape_equals(NULL, f->blob), 0);
    assert_int_equal(sb_blob_shape_equals(f->blob, NULL), 0);
    sb_blob_destroy(NULL);
    assert_int_equal(sb_model_format(NULL), SB_FORMAT_AUTO);
    assert_int_equal(sb_model_num_layers(NULL), 0);
    sb_model_destroy(NULL);
    sb_reducer_destroy(NULL);
    assert_int_equal(sb_comm_rank(NULL), -1);
    assert_int_equal(sb_comm_size(NULL), 0);
    sb_comm_destroy(NULL);
}
