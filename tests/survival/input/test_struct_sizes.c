/* Every struct that says its own size, in every size up to some bytes beyond today's. It ends where
   memory does and, for sanitizers, where its block does: a call that looks beyond it ends the
   program. A size below that of version 0.1, or one that ends within a member, is refused. */
#include "support.h"

#include <syncblob/backend.h>
#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>
#include <syncblob/syncblob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BEYOND 24

/* --- one call for each struct ---------------------------------------------------------- */

static const unsigned char scalar[] = {0x2a, 4, 0, 0, 0x80, 0x3f};

static sb_status context_options(void *given) {
    sb_context *context = NULL;
    const sb_status status = sb_context_create(given, &context, NULL);
    sb_context_release(context);
    return status;
}

static sb_status limits(void *given) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.limits = given;
    return context_options(&options);
}

static sb_status refuse_to_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    (void)user, (void)ordinal, (void)out;
    return sb_error_fill(err, SB_ERR_NO_DEVICE, 0, "there is none");
}

static sb_status backend(void *given) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.backend = given;
    options.device = "mine:0";
    const sb_status status = context_options(&options);
    return status == SB_ERR_NO_DEVICE ? SB_OK : status; /* it was opened */
}

static sb_status stats(void *given) {
    return sb_context_stats(NULL, given, NULL);
}

static sb_status fill(void *given) {
    sb_blob *blob = NULL;
    assert_int_equal(sb_blob_create_shaped(NULL, SB_DTYPE_F32, (int64_t[]){1}, 1, &blob, NULL), 0);
    const sb_status status = sb_blob_fill(blob, given, 1, NULL);
    sb_blob_destroy(blob);
    return status;
}

static sb_status parse_filler(void *given) {
    return sb_filler_parse("", 0, given, NULL);
}

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    (void)user, (void)err;
    memcpy(buffer, scalar + offset, bytes);
    return SB_OK;
}

static sb_status take(void *user, const void *bytes, size_t size, sb_error *err) {
    (void)user, (void)bytes, (void)size, (void)err;
    return SB_OK;
}

static int32_t go_on(void *user, uint64_t done, uint64_t total) {
    (void)user, (void)done, (void)total;
    return 0;
}

static sb_status copy(const sb_source *source, const sb_sink *sink, const sb_progress *progress) {
    sb_source whole_source = SB_SOURCE_INIT;
    sb_sink whole_sink = SB_SINK_INIT;
    sb_blob *blob = NULL;
    whole_source.size = sizeof scalar;
    whole_source.read_at = read_at;
    whole_sink.write = take;
    assert_int_equal(sb_blob_create(NULL, SB_DTYPE_F32, &blob, NULL), SB_OK);
    sb_status status = sb_blob_load_source(blob, source ? source : &whole_source, SB_PROTO_RESHAPE,
                                           NULL, progress, NULL);
    if (status == SB_OK)
        status = sb_blob_save_sink(blob, sink ? sink : &whole_sink, 0, progress, NULL);
    sb_blob_destroy(blob);
    return status;
}

static sb_status read_source(void *given) {
    return copy(given, NULL, NULL);
}

static sb_status write_sink(void *given) {
    return copy(NULL, given, NULL);
}

static sb_status progress(void *given) {
    return copy(NULL, NULL, given);
}

static sb_status source_of_spans(void *given) {
    const sb_span spans[] = {{scalar, sizeof scalar}};
    sb_source *source = given;
    const sb_status status = sb_source_of_spans(NULL, spans, 1, source, NULL);
    if (status == SB_OK && source->close)
        source->close(source->user);
    return status;
}

static sb_status source_of_descriptor(void *given) {
    FILE *file = tmpfile();
    assert_non_null(file);
    const sb_status status = sb_source_of_descriptor(fileno(file), 0, given, NULL);
    (void)fclose(file);
    return status;
}

static sb_status layer_info(void *given) {
    sb_model *net = NULL;
    assert_int_equal(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &net, NULL), SB_OK);
    assert_int_equal(sb_model_add_layer(net, "conv", 4, "Convolution", 11, NULL, NULL), SB_OK);
    const sb_status status = sb_model_layer_info(net, 0, given, NULL);
    sb_model_destroy(net);
    return status;
}

static sb_status blob_info(void *given) {
    sb_model *file = NULL;
    assert_int_equal(sb_model_open_bytes(NULL, SB_FORMAT_BLOB, scalar, sizeof scalar, NULL, NULL,
                                         NULL, &file, NULL),
                     SB_OK);
    const sb_status status = sb_model_blob_info(file, SB_NO_LAYER, 0, given, NULL);
    sb_model_destroy(file);
    return status;
}

static sb_status with_state(const sb_solver_info *set, sb_solver_info *get) {
    sb_model *state = NULL;
    assert_int_equal(sb_model_create(NULL, SB_FORMAT_SOLVERSTATE, &state, NULL), SB_OK);
    const sb_status status =
        set ? sb_model_set_solver_info(state, set, NULL) : sb_model_solver_info(state, get, NULL);
    sb_model_destroy(state);
    return status;
}

static sb_status set_solver_info(void *given) {
    return with_state(given, NULL);
}

static sb_status solver_info(void *given) {
    return with_state(NULL, given);
}

static sb_status sim_comm_options(void *given) {
    sb_comm *comm = NULL;
    const sb_status status = sb_sim_comm_create(NULL, 1, given, &comm, NULL);
    sb_comm_destroy(comm);
    return status;
}

static sb_status reducer_options(void *given) {
    sb_comm *comm = NULL;
    sb_reducer *reducer = NULL;
    assert_int_equal(sb_sim_comm_create(NULL, 1, NULL, &comm, NULL), SB_OK);
    const sb_status status = sb_reducer_create(comm, NULL, 0, given, &reducer, NULL);
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
    return status;
}

static sb_status alone(void *user, void **out, int32_t *rank, int32_t *size, sb_error *err) {
    (void)err;
    *out = user;
    *rank = 0;
    *size = 1;
    return SB_OK;
}

static void end_alone(void *comm, int32_t failed) {
    (void)comm, (void)failed;
}

static sb_status reduce_alone(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                              sb_error *err) {
    (void)comm, (void)buffer, (void)op, (void)err;
    return SB_OK;
}

static sb_status broadcast_alone(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                 sb_error *err) {
    (void)comm, (void)buffer, (void)root, (void)err;
    return SB_OK;
}

static sb_status engine(void *given) {
    sb_comm *comm = NULL;
    const sb_status status = sb_comm_create(NULL, given, NULL, &comm, NULL);
    sb_comm_destroy(comm);
    return status;
}

/* --- the table --------------------------------------------------------------------------- */

/* A slot that nobody calls. */
static void no_slot(void) {
}

static const void *whole_backend(void) {
    static sb_backend table = {
        .abi_version = SB_BACKEND_ABI_VERSION, .name = "mine", .open = refuse_to_open};
    void (*const slot)(void) = no_slot;
    for (size_t at = offsetof(sb_backend, close); at <= offsetof(sb_backend, copy);
         at += sizeof slot)
        memcpy((char *)&table + at, (const void *)&slot, sizeof slot);
    return &table;
}

struct sized {
    const char *name;
    sb_status (*call)(void *given);
    const void *whole; /* NULL: the call fills it */
    size_t first, size;
};

static void *place(void *page_end, const struct sized *row, size_t size) {
    const size_t held = size < sizeof size ? sizeof size : size; /* struct_size itself is read */
    const size_t whole = row->size < held ? row->size : held;
    const size_t aligned = (held + 7) / 8 * 8;
    unsigned char *at = page_end ? (unsigned char *)page_end - aligned : malloc(held);
    assert_non_null(at);
    memset(at, row->whole ? 0 : 0xEE, held);
    if (row->whole)
        memcpy(at, row->whole, whole);
    memcpy(at, &size, sizeof size);
    return at;
}

static void check(const struct sized *row, void *page_end, size_t size) {
    void *given = place(page_end, row, size);
    const bool is_refused = size < row->first || size % sizeof(size_t);
    const sb_status status = row->call(given);
    if (status != (is_refused ? SB_ERR_ABI_MISMATCH : SB_OK))
        fail_with("%s of %zu bytes: %s", row->name, size, sb_status_name(status));
    if (!page_end)
        free(given);
}

TEST(a_struct_is_looked_at_as_far_as_it_says) {
    static const sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    static const sb_limits no_limits = SB_LIMITS_INIT;
    static const sb_filler filler = SB_FILLER_INIT;
    static sb_source source = SB_SOURCE_INIT;
    static sb_sink sink = SB_SINK_INIT;
    static sb_progress whole_progress = SB_PROGRESS_INIT;
    static const sb_solver_info info = SB_SOLVER_INFO_INIT;
    static const sb_sim_comm_options ranks = SB_SIM_COMM_OPTIONS_INIT;
    static const sb_reducer_options reducer = SB_REDUCER_OPTIONS_INIT;
    static const sb_comm_engine table = {.abi_version = SB_COMM_ENGINE_ABI_VERSION,
                                         .name = "alone",
                                         .open = alone,
                                         .close = end_alone,
                                         .all_reduce = reduce_alone,
                                         .broadcast = broadcast_alone};
    source.size = sizeof scalar;
    source.read_at = read_at;
    sink.write = take;
    whole_progress.report = go_on;
    const struct sized rows[] = {
        {"sb_context_options", context_options, &options, 112, sizeof options},
        {"sb_limits", limits, &no_limits, 48, sizeof no_limits},
        {"sb_backend", backend, whole_backend(), 216, sizeof(sb_backend)},
        {"sb_stats", stats, NULL, 16, sizeof(sb_stats)},
        {"sb_filler", fill, &filler, 64, sizeof filler},
        {"sb_filler of a message", parse_filler, NULL, 64, sizeof filler},
        {"sb_source", read_source, &source, 48, sizeof source},
        {"sb_source of spans", source_of_spans, NULL, 48, sizeof source},
        {"sb_source of a descriptor", source_of_descriptor, NULL, 48, sizeof source},
        {"sb_sink", write_sink, &sink, 24, sizeof sink},
        {"sb_progress", progress, &whole_progress, 24, sizeof whole_progress},
        {"sb_layer_info", layer_info, NULL, 56, sizeof(sb_layer_info)},
        {"sb_blob_info", blob_info, NULL, 344, sizeof(sb_blob_info)},
        {"sb_solver_info", solver_info, NULL, 32, sizeof info},
        {"sb_solver_info that is set", set_solver_info, &info, 32, sizeof info},
        {"sb_sim_comm_options", sim_comm_options, &ranks, 24, sizeof ranks},
        {"sb_reducer_options", reducer_options, &reducer, 24, sizeof reducer},
        {"sb_comm_engine", engine, &table, 56, sizeof table},
    };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && !mprotect(pages + page, page, PROT_NONE));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t size = 0; size <= rows[i].size + BEYOND; size++) {
            check(&rows[i], pages + page, size);
            check(&rows[i], NULL, size);
        }
    assert_int_equal(munmap(pages, 2 * page), 0);
}
