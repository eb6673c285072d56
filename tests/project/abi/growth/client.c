/* A program that passes each struct of the core that says its own size: as large as its headers
   have it, as small as version 0.1 had it, and smaller. The simulated device's, which the library
   passes, says which members there are. Each ends where memory does, so that a library that reads
   or writes beyond it ends the program.

       client older|same|newer

   What the program is beside the library: a newer one also has members that the library does not
   know (compiled with SB_LATER). */
#include "place.h"

#include <syncblob/backend.h>
#include <syncblob/dlpack.h>
#include <syncblob/sim_device.h>
#include <syncblob/syncblob.h>

/* What each struct had in version 0.1; of sb_stats, one figure. */
enum {
    FIRST_OPTIONS = 112,
    FIRST_LIMITS = 48,
    FIRST_STATS = 16,
    FIRST_FILLER = 64,
    FIRST_SOURCE = 48,
    FIRST_SINK = 24,
    FIRST_PROGRESS = 24,
    FIRST_BACKEND = 216,
    FIRST_LAYER_INFO = 56,
    FIRST_BLOB_INFO = 344,
    FIRST_SOLVER_INFO = 32,
    FIRST_SIM_DEVICE = 96
};

static bool is_zero(const void *from, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        if (((const char *)from)[i])
            return false;
    return true;
}

/* --- options -------------------------------------------------------------------------- */

static sb_status create(const sb_context_options *options) {
    sb_context *context = NULL;
    const sb_status status = sb_context_create(options, &context, NULL);
    CHECK(status != SB_OK || strcmp(sb_context_device(context), "sim:3") == 0);
    sb_context_release(context);
    return status;
}

static void context_options(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "sim:3";
    CHECK(create(placed(&options, sizeof options)) == SB_OK);
    CHECK(create(placed(&options, FIRST_OPTIONS)) == SB_OK);
    CHECK(create(placed(&options, FIRST_OPTIONS - 8)) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    options.later = 1;
    CHECK(create(placed(&options, sizeof options)) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
}

static void context_options_init(void) {
    const size_t sizes[] = {sizeof(sb_context_options), FIRST_OPTIONS, sizeof(size_t)};
    const sb_context_options expected = SB_CONTEXT_OPTIONS_INIT;
    for (int i = 0; i < 3; i++) {
        sb_context_options *options = place(sizes[i]);
        sb_context_options_init(options, sizes[i]);
        CHECK(options->struct_size == sizes[i]);
        CHECK(memcmp((char *)options + sizeof(size_t), (const char *)&expected + sizeof(size_t),
                     sizes[i] - sizeof(size_t)) == 0);
    }
}

/* --- limits --------------------------------------------------------------------------- */

/* A BlobProto of the shape (1, 1), of which the limits allow the first axis. */
static sb_status read_two_axes(const sb_limits *limits) {
    static const unsigned char bytes[] = {0x3a, 4, 0x0a, 2, 1, 1, 0x2a, 4, 0, 0, 0x80, 0x3f};
    sb_blob *blob = NULL;
    if (sb_blob_create(NULL, SB_DTYPE_F32, &blob, NULL))
        abort();
    const sb_status status =
        sb_blob_from_proto(blob, bytes, sizeof bytes, SB_PROTO_RESHAPE, limits, NULL);
    sb_blob_destroy(blob);
    return status;
}

static void limits(void) {
    sb_limits limits = SB_LIMITS_INIT;
    CHECK(read_two_axes(placed(&limits, sizeof limits)) == SB_OK);
    CHECK(read_two_axes(placed(&limits, FIRST_LIMITS)) == SB_OK);
    CHECK(read_two_axes(placed(&limits, FIRST_LIMITS - 8)) == SB_ERR_ABI_MISMATCH);
    limits.max_axes = 1;
    CHECK(read_two_axes(placed(&limits, sizeof limits)) == SB_ERR_DATA_LIMIT);
    CHECK(read_two_axes(placed(&limits, FIRST_LIMITS)) == SB_ERR_DATA_LIMIT);
#ifdef SB_LATER
    limits.max_axes = 2;
    limits.later = 1;
    CHECK(read_two_axes(placed(&limits, sizeof limits)) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
}

/* --- stats ---------------------------------------------------------------------------- */

static void stats(void) {
    const sb_stats whole = SB_STATS_INIT;
    sb_stats *all = placed(&whole, sizeof whole);
    sb_stats *first = placed(&whole, FIRST_STATS);
    sb_context *context = NULL;
    if (sb_context_create(NULL, &context, NULL))
        abort();
    memset((char *)all + sizeof(size_t), 0xAA, sizeof *all - sizeof(size_t));
    CHECK(sb_context_stats(context, all, NULL) == SB_OK);
    CHECK(sb_context_stats(context, first, NULL) == SB_OK);
    CHECK(all->struct_size == sizeof *all && first->struct_size == FIRST_STATS);
    CHECK(all->host_bytes > 0 && all->host_bytes == first->host_bytes);
    CHECK(is_zero(all, offsetof(sb_stats, host_copies), sizeof *all));
    CHECK(sb_context_stats(context, placed(&whole, FIRST_STATS - 8), NULL) == SB_ERR_ABI_MISMATCH);
    sb_context_release(context);
}

/* --- fillers -------------------------------------------------------------------------- */

/* The value that the filler gives the one element of a blob. */
static sb_status fill(const sb_filler *filler, float *out) {
    const float *values = NULL;
    sb_blob *blob = NULL;
    const int64_t one = 1;
    if (sb_blob_create_shaped(NULL, SB_DTYPE_F32, &one, 1, &blob, NULL))
        abort();
    const sb_status status = sb_blob_fill(blob, filler, 1, NULL);
    if (status == SB_OK && sb_blob_cpu_f32(blob, SB_DATA, &values, NULL) == SB_OK)
        *out = *values;
    sb_blob_destroy(blob);
    return status;
}

static void filler(void) {
    sb_filler filler = SB_FILLER_INIT;
    float value = 0;
    filler.value = 3;
    CHECK(fill(placed(&filler, sizeof filler), &value) == SB_OK && value == 3);
    value = 0;
    CHECK(fill(placed(&filler, FIRST_FILLER), &value) == SB_OK && value == 3);
    CHECK(fill(placed(&filler, FIRST_FILLER - 8), &value) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    filler.later = 1;
    CHECK(fill(placed(&filler, sizeof filler), &value) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
}

static void filler_init(void) {
    const size_t sizes[] = {sizeof(sb_filler), FIRST_FILLER};
    for (int i = 0; i < 2; i++) {
        sb_filler *filler = place(sizes[i]);
        sb_filler_init(filler, sizes[i]);
        CHECK(filler->struct_size == sizes[i] && filler->std == 1 && filler->sparse == -1);
        CHECK(is_zero(filler, offsetof(sb_filler, reserved), sizes[i]));
    }
}

static void filler_parse(void) {
    static const unsigned char value_3[] = {0x15, 0, 0, 0x40, 0x40};
    const size_t sizes[] = {sizeof(sb_filler), FIRST_FILLER};
    for (int i = 0; i < 2; i++) {
        sb_filler *filler = place(sizes[i]);
        filler->struct_size = sizes[i];
        CHECK(sb_filler_parse(value_3, sizeof value_3, filler, NULL) == SB_OK);
        CHECK(filler->struct_size == sizes[i] && filler->value == 3 && filler->std == 1);
        CHECK(is_zero(filler, offsetof(sb_filler, reserved), sizes[i]));
    }
    sb_filler *less = place(FIRST_FILLER - 8);
    less->struct_size = FIRST_FILLER - 8;
    CHECK(sb_filler_parse(value_3, sizeof value_3, less, NULL) == SB_ERR_ABI_MISMATCH);
}

/* --- models --------------------------------------------------------------------------- */

/* A struct that a call is to fill: as large as it says, and full of rubbish. */
static void *to_fill(size_t bytes) {
    void *out = place(bytes);
    memcpy(out, &bytes, sizeof bytes);
    return out;
}

static void layer_info(void) {
    const size_t sizes[] = {sizeof(sb_layer_info), FIRST_LAYER_INFO};
    sb_model *net = NULL;
    if (sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &net, NULL) ||
        sb_model_add_layer(net, "conv", 4, "Convolution", 11, NULL, NULL))
        abort();
    for (int i = 0; i < 2; i++) {
        sb_layer_info *info = to_fill(sizes[i]);
        CHECK(sb_model_layer_info(net, 0, info, NULL) == SB_OK);
        CHECK(info->struct_size == sizes[i] && strcmp(info->name.bytes, "conv") == 0);
        CHECK(info->generation == SB_LAYER_CURRENT);
        CHECK(is_zero(info, offsetof(sb_layer_info, reserved), sizes[i]));
    }
    CHECK(sb_model_layer_info(net, 0, to_fill(FIRST_LAYER_INFO - 8), NULL) == SB_ERR_ABI_MISMATCH);
    sb_model_destroy(net);
}

static void blob_info(void) {
    static const unsigned char bytes[] = {0x3a, 4, 0x0a, 2, 1, 1, 0x2a, 4, 0, 0, 0x80, 0x3f};
    const size_t sizes[] = {sizeof(sb_blob_info), FIRST_BLOB_INFO};
    sb_model *file = NULL;
    if (sb_model_open_bytes(NULL, SB_FORMAT_BLOB, bytes, sizeof bytes, NULL, NULL, NULL, &file,
                            NULL))
        abort();
    for (int i = 0; i < 2; i++) {
        sb_blob_info *info = to_fill(sizes[i]);
        CHECK(sb_model_blob_info(file, SB_NO_LAYER, 0, info, NULL) == SB_OK);
        CHECK(info->struct_size == sizes[i] && info->num_axes == 2 && info->data_count == 1);
        CHECK(is_zero(info, offsetof(sb_blob_info, shape) + 2 * sizeof(int64_t), sizes[i]));
    }
    CHECK(sb_model_blob_info(file, SB_NO_LAYER, 0, to_fill(FIRST_BLOB_INFO - 8), NULL) ==
          SB_ERR_ABI_MISMATCH);
    sb_model_destroy(file);
}

static sb_status set_solver_info(sb_model *state, const sb_solver_info *info) {
    return sb_model_set_solver_info(state, info, NULL);
}

static void solver_info(void) {
    const size_t sizes[] = {sizeof(sb_solver_info), FIRST_SOLVER_INFO};
    sb_solver_info given = SB_SOLVER_INFO_INIT;
    sb_model *state = NULL;
    if (sb_model_create(NULL, SB_FORMAT_SOLVERSTATE, &state, NULL))
        abort();
    for (int i = 0; i < 2; i++) {
        given.iter = i + 3;
        CHECK(set_solver_info(state, placed(&given, sizes[i])) == SB_OK);
        sb_solver_info *info = to_fill(sizes[i]);
        CHECK(sb_model_solver_info(state, info, NULL) == SB_OK);
        CHECK(info->struct_size == sizes[i] && info->iter == i + 3);
        CHECK(is_zero(info, offsetof(sb_solver_info, current_step), sizes[i]));
    }
    const size_t less = FIRST_SOLVER_INFO - 8;
    CHECK(sb_model_solver_info(state, to_fill(less), NULL) == SB_ERR_ABI_MISMATCH);
    CHECK(set_solver_info(state, placed(&given, less)) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    given.later = 1;
    CHECK(set_solver_info(state, placed(&given, sizeof given)) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
    sb_model_destroy(state);
}

/* --- sources, sinks, progress ---------------------------------------------------------- */

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    static const unsigned char scalar[] = {0x2a, 4, 0, 0, 0x80, 0x3f};
    (void)user, (void)err;
    memcpy(buffer, scalar + offset, bytes);
    return SB_OK;
}

static sb_status write_all(void *user, const void *bytes, size_t size, sb_error *err) {
    (void)bytes, (void)err;
    *(size_t *)user += size;
    return SB_OK;
}

static int32_t report(void *user, uint64_t done, uint64_t total) {
    *(int *)user += done == total;
    return 0;
}

/* A scalar that is read and written. */
static sb_status copy(const sb_source *source, const sb_sink *sink, const sb_progress *progress) {
    sb_blob *blob = NULL;
    if (sb_blob_create(NULL, SB_DTYPE_F32, &blob, NULL))
        abort();
    sb_status status = sb_blob_load_source(blob, source, SB_PROTO_RESHAPE, NULL, progress, NULL);
    if (status == SB_OK)
        status = sb_blob_save_sink(blob, sink, 0, progress, NULL);
    sb_blob_destroy(blob);
    return status;
}

static void callbacks(void) {
    size_t written = 0;
    int told = 0;
    sb_source source = SB_SOURCE_INIT;
    sb_sink sink = SB_SINK_INIT;
    sb_progress progress = SB_PROGRESS_INIT;
    source.size = 6;
    source.read_at = read_at;
    sink.user = &written;
    sink.write = write_all;
    progress.user = &told;
    progress.report = report;
    void *whole[] = {placed(&source, sizeof source), placed(&sink, sizeof sink),
                     placed(&progress, sizeof progress)};
    CHECK(copy(whole[0], whole[1], whole[2]) == SB_OK && written == 6 && told == 2);
    CHECK(copy(placed(&source, FIRST_SOURCE), whole[1], NULL) == SB_OK);
    CHECK(copy(placed(&source, FIRST_SOURCE - 8), whole[1], NULL) == SB_ERR_ABI_MISMATCH);
    CHECK(copy(whole[0], placed(&sink, FIRST_SINK), NULL) == SB_OK);
    CHECK(copy(whole[0], placed(&sink, FIRST_SINK - 8), NULL) == SB_ERR_ABI_MISMATCH);
    CHECK(copy(whole[0], whole[1], placed(&progress, FIRST_PROGRESS)) == SB_OK);
    CHECK(copy(whole[0], whole[1], placed(&progress, FIRST_PROGRESS - 8)) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    const sb_status later = library_is_older ? SB_ERR_UNSUPPORTED : SB_OK;
    source.later = sink.later = progress.later = 1;
    CHECK(copy(placed(&source, sizeof source), whole[1], NULL) == later);
    CHECK(copy(whole[0], placed(&sink, sizeof sink), NULL) == later);
    CHECK(copy(whole[0], whole[1], placed(&progress, sizeof progress)) == later);
#endif
}

static void descriptor(void) {
    FILE *file = tmpfile();
    const size_t sizes[] = {sizeof(sb_source), FIRST_SOURCE};
    for (int i = 0; i < 2; i++) {
        sb_source *source = place(sizes[i]);
        source->struct_size = sizes[i];
        CHECK(sb_source_of_descriptor(fileno(file), 0, source, NULL) == SB_OK);
        CHECK(source->struct_size == sizes[i] && source->size == 0 && source->read_at);
        CHECK(is_zero(source, offsetof(sb_source, close), sizes[i]));
    }
    sb_source *less = place(FIRST_SOURCE - 8);
    less->struct_size = FIRST_SOURCE - 8;
    CHECK(sb_source_of_descriptor(fileno(file), 0, less, NULL) == SB_ERR_ABI_MISMATCH);
    (void)fclose(file);
}

/* --- a backend ------------------------------------------------------------------------ */

static sb_status device_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    static int device;
    (void)user, (void)ordinal, (void)err;
    *out = &device;
    return SB_OK;
}

static void device_close(void *device) {
    (void)device;
}

static sb_status device_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                              sb_error *err) {
    (void)device, (void)stream;
    *out = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *out ? SB_OK : sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
}

static void device_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    (void)device, (void)bytes, (void)stream;
    free(ptr);
}

static sb_status device_zero(void *device, void *dst, size_t bytes, sb_stream stream,
                             sb_error *err) {
    (void)device, (void)stream, (void)err;
    memset(dst, 0, bytes);
    return SB_OK;
}

static sb_status device_copy(void *device, void *dst, const void *src, size_t bytes,
                             sb_stream stream, sb_error *err) {
    (void)device, (void)stream, (void)err;
    memcpy(dst, src, bytes);
    return SB_OK;
}

/* Makes a blob on the device of that table, and a tensor of it. */
static sb_status use(const sb_backend *table, sb_status *tensors) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_dl_managed_versioned *tensor = NULL;
    sb_context *context = NULL;
    sb_blob *blob = NULL;
    const void *data = NULL;
    const int64_t one = 1;
    options.device = "mine:0";
    options.backend = table;
    const sb_status status = sb_context_create(&options, &context, NULL);
    if (status != SB_OK)
        return status;
    CHECK(sb_blob_create_shaped(context, SB_DTYPE_F32, &one, 1, &blob, NULL) == SB_OK);
    CHECK(sb_blob_gpu(blob, SB_DATA, &data, NULL) == SB_OK && data);
    *tensors = sb_blob_to_dlpack(blob, SB_DATA, SB_SIDE_GPU, &tensor, NULL);
    if (tensor)
        tensor->deleter(tensor);
    sb_blob_destroy(blob);
    sb_context_release(context);
    return SB_OK;
}

static void backend(void) {
    sb_backend table = {.abi_version = SB_BACKEND_ABI_VERSION,
                        .name = "mine",
                        .open = device_open,
                        .close = device_close,
                        .alloc = device_alloc,
                        .free = device_free,
                        .zero = device_zero,
                        .upload = device_copy,
                        .download = device_copy,
                        .copy = device_copy,
                        .dlpack_device = SB_DL_DEVICE_EXTENSION};
    sb_status tensors = SB_OK;
    CHECK(use(placed(&table, sizeof table), &tensors) == SB_OK && tensors == SB_OK);
    CHECK(use(placed(&table, FIRST_BACKEND), &tensors) == SB_OK && tensors == SB_ERR_UNSUPPORTED);
    CHECK(use(placed(&table, FIRST_BACKEND - 8), &tensors) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    table.later = 1;
    CHECK(use(placed(&table, sizeof table), &tensors) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
}

/* --- the simulated device's table ----------------------------------------------------- */

static void sim_device(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    sb_mem *memory = NULL;
    const void *data = NULL, *table = NULL;
    void *device = NULL;
    int32_t count = 0;
    options.device = "sim:0";
    if (sb_context_create(&options, &context, NULL) || sb_mem_create(context, 8, &memory, NULL) ||
        sb_mem_gpu(memory, &data, NULL) ||
        sb_context_extension(context, SB_SIM_DEVICE, &table, &device, NULL))
        abort();
    const sb_sim_device *sim = table;
    CHECK(sim->struct_size >= FIRST_SIM_DEVICE);
    sim->lock(device);
    CHECK(sim->calls(device, &count)[SB_SIM_ALLOC] == 1 && count > SB_SIM_ALLOC);
    CHECK(!sim->faults(device, &count)[0].countdown && count > 0);
    sim->unlock(device);
#ifdef SB_LATER
    CHECK((sim->struct_size >= sizeof *sim) == !library_is_older);
#endif
    sb_mem_release(memory);
    sb_context_release(context);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    context_options();
    context_options_init();
    limits();
    stats();
    filler();
    filler_init();
    filler_parse();
    layer_info();
    blob_info();
    solver_info();
    callbacks();
    descriptor();
    backend();
    sim_device();
    return failures != 0;
}
