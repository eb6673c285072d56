/* Tests every struct that has a struct_size, with sizes below and above the current size. */
#include "struct_sizes.h"

#include <syncblob/backend.h>
#include <syncblob/syncblob.h>

static const unsigned char scalar[] = {0x2a, 4, 0, 0, 0x80, 0x3f};

#define CALL(name, expression)                                                                     \
    static sb_status name(void *given) {                                                           \
        return expression;                                                                         \
    }

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
    return sb_error_fill(err, SB_ERR_NO_DEVICE, 0, "no device");
}

static sb_status backend(void *given) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.backend = given;
    options.device = "mine:0";
    const sb_status status = context_options(&options);
    return status == SB_ERR_NO_DEVICE ? SB_OK : status; /* the context options were accepted */
}

CALL(stats, sb_context_stats(NULL, given, NULL))

static sb_status fill(void *given) {
    sb_blob *blob = NULL;
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, (int64_t[]){1}, 1, &blob, &err));
    const sb_status status = sb_blob_fill(blob, given, 1, NULL);
    sb_blob_destroy(blob);
    return status;
}

CALL(parse_filler, sb_filler_parse("", 0, given, NULL))

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    memcpy(buffer, scalar + offset, bytes);
    return SB_OK;
}

static sb_status take(void *user, const void *bytes, size_t size, sb_error *err) {
    return SB_OK;
}

static int32_t go_on(void *user, uint64_t done, uint64_t total) {
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

CALL(read_source, copy(given, NULL, NULL))
CALL(write_sink, copy(NULL, given, NULL))
CALL(progress, copy(NULL, NULL, given))

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
    assert_ok(sb_model_open_bytes(NULL, SB_FORMAT_BLOB, scalar, sizeof scalar, NULL, NULL, NULL,
                                  &file, &err));
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

CALL(set_solver_info, with_state(given, NULL))
CALL(solver_info, with_state(NULL, given))

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

TEST(a_struct_is_read_up_to_its_size) {
    skip_on_32_bits("the table has the struct sizes of 64-bit hosts");
    static const sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    static const sb_limits no_limits = SB_LIMITS_INIT;
    static const sb_filler filler = SB_FILLER_INIT;
    static sb_source source = SB_SOURCE_INIT;
    static sb_sink sink = SB_SINK_INIT;
    static sb_progress whole_progress = SB_PROGRESS_INIT;
    static const sb_solver_info info = SB_SOLVER_INFO_INIT;
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
    };
    check_struct_sizes(rows, sizeof rows / sizeof *rows);
}

TEST(init_functions_fill_a_smaller_struct_and_nothing_behind_it) {
    const sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    const sb_filler filler = SB_FILLER_INIT;
    const size_t head = sizeof(size_t);
    for (size_t size = head; size <= sizeof options; size += head) {
        unsigned char *own = malloc(size), *of_filler = malloc(size);
        sb_context_options_init((sb_context_options *)(void *)own, size);
        assert_memory_equal(own, &size, head);
        assert_memory_equal(own + head, (const char *)&options + head, size - head);
        sb_filler_init((sb_filler *)(void *)of_filler, size);
        assert_memory_equal(of_filler, &size, head);
        const size_t known = size < sizeof filler ? size : sizeof filler;
        assert_memory_equal(of_filler + head, (const char *)&filler + head, known - head);
        free(own);
        free(of_filler);
    }
}
