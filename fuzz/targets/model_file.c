/* Opens the input as a model of each format, edits the model, and reopens the saved model. */
#include "ways.h"
#include "wire_builder.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT_BYTES 2048 /* the largest total size of the handles of a model and a blob */
/* The sizes in bytes of a layer and of a blob in a model's index. */
#define LAYER_BYTES 42
#define BLOB_BYTES  4
_Static_assert(OBJECT_BYTES + 100000 * LAYER_BYTES + 1000000 * BLOB_BYTES <= 8 << 20,
               "8 MiB hold the index of the largest model that the default limits allow");

/* --- opening ---------------------------------------------------------------------- */

static void check_message(const sb_model *model, int64_t layer) {
    size_t size = 0, written = 0;
    sb_status st = status_of(sb_model_layer_message(model, layer, NULL, 0, &size, &call_error));
    if (st == SB_OK)
        return;
    check_equal(st, SB_ERR_BUFFER_TOO_SMALL);
    unsigned char *bytes = malloc(size);
    check_ok(sb_model_layer_message(model, layer, bytes, size, &written, &call_error));
    check_equal(written, size);
    free(bytes);
}

static int64_t num_blobs(const sb_model *model, int64_t layer) {
    int64_t count = 0;
    if (model)
        check_ok(sb_model_num_blobs(model, layer, &count, &call_error));
    return count;
}

static int64_t count_blobs(const sb_model *model) {
    int64_t blobs = num_blobs(model, SB_NO_LAYER);
    for (int64_t i = 0; i < sb_model_num_layers(model); i++)
        blobs += num_blobs(model, i);
    return blobs;
}

static void check_index_memory(const struct run *run, const sb_model *model) {
    size_t layers = model ? (size_t)sb_model_num_layers(model) : 0;
    size_t blobs = model ? (size_t)count_blobs(model) : 0;
    size_t bound = OBJECT_BYTES + run->size + LAYER_BYTES * layers + BLOB_BYTES * blobs;
    fuzz_check(watched_peak(run->watched) <= bound, "peak %zu: %zu layers, %zu blobs, %zu bytes",
               watched_peak(run->watched), layers, blobs, run->size);
}

struct opened {
    sb_model *model;
    sb_status status;
    int deleted;
};

static void count_call(void *user, void *ptr) {
    (void)ptr;
    ++((struct opened *)user)->deleted;
}

static void open_bytes(const struct run *run, int32_t format, struct opened *out) {
    sb_model *const untouched = (sb_model *)(void *)out;
    *out = (struct opened){.model = untouched};
    watched_mark(run->watched);
    out->status =
        status_of(sb_model_open_bytes(run->watched->context, format, run->bytes, run->size, NULL,
                                      count_call, out, &out->model, &call_error));
    check_equal(out->deleted, 0);
    if (out->status != SB_OK) {
        check_read_status(out->status, run->size);
        fuzz_check(out->model == untouched, "a failed call wrote the model pointer");
        check_equal(watched_growth(run->watched), 0);
        out->model = NULL;
    }
    check_index_memory(run, out->model);
}

static void close_model(struct opened *opened) {
    sb_model_destroy(opened->model);
    check_equal(opened->deleted, opened->model != NULL);
}

/* --- blobs ------------------------------------------------------------------------- */

static void check_loaded(const struct run *run, const sb_blob *blob, const sb_blob_info *info) {
    size_t peak = watched_peak(run->watched), sides = info->diff_count > 0 ? 2 : 1;
    fuzz_check(peak <= sides * blob_bytes(blob) + OBJECT_BYTES,
               "the peak is %zu bytes for %zu parts of %zu bytes", peak, sides, blob_bytes(blob));
    check_equal(info->data_count, info->count);
    check_equal(sb_blob_count(blob), info->count);
    check_equal(sb_blob_num_axes(blob), info->num_axes);
    for (int32_t i = 0; i < info->num_axes; i++)
        check_equal(sb_blob_shape(blob)[i], info->shape[i]);
    if (blob_bytes(blob) > 0)
        check_equal(blob_has(blob, SB_DIFF), info->diff_count > 0);
}

static sb_blob *load(const struct run *run, const sb_model *model, int64_t layer, int64_t index,
                     int32_t dtype) {
    sb_blob_info info = SB_BLOB_INFO_INIT;
    check_ok(sb_model_blob_info(model, layer, index, &info, &call_error));
    sb_blob *blob = blob_new(run->watched->context, dtype);
    watched_mark(run->watched);
    sb_status st = status_of(sb_model_load_blob(model, layer, index, blob, &call_error));
    if (st == SB_OK) {
        check_loaded(run, blob, &info);
        return blob;
    }
    check_read_status(st, run->size);
    fuzz_check((st == SB_ERR_LENGTH_MISMATCH || st == SB_ERR_DATA_OVERFLOW) &&
                   info.data_count == 0 && info.count > 0,
               "%lld of %lld values: %.239s", (long long)info.data_count, (long long)info.count,
               call_error.message);
    fuzz_check(!sb_blob_is_shaped(blob) && watched_peak(run->watched) == 0,
               "a failed load left a trace");
    sb_blob_destroy(blob);
    return NULL;
}

/* --- listing ------------------------------------------------------------------------- */

static void check_text(sb_text text, const char *what) {
    fuzz_check(text.bytes && text.bytes[text.size] == '\0', "%s has no NUL behind it", what);
}

static sb_layer_info layer_of(const sb_model *model, int64_t layer) {
    sb_layer_info info = SB_LAYER_INFO_INIT;
    check_ok(sb_model_layer_info(model, layer, &info, &call_error));
    check_text(info.name, "a layer's name");
    check_text(info.type, "a layer's type");
    check_message(model, layer);
    check_equal(info.num_blobs, num_blobs(model, layer));
    return info;
}

static void check_find(const sb_model *model, int64_t layer) {
    sb_layer_info info = layer_of(model, layer);
    int64_t found = -7;
    check_ok(sb_model_find_layer(model, info.name.bytes, info.name.size, &found, &call_error));
    fuzz_check(found >= 0 && found <= layer, "layer %lld found at %lld", (long long)layer,
               (long long)found);
    fuzz_check(same_text(layer_of(model, found).name, info.name), "wrong name");
}

static void check_listing(const struct run *run, const sb_model *model) {
    check_text(name_of(model), "the net's name");
    for (int64_t i = SB_NO_LAYER; i < sb_model_num_layers(model); i++) {
        if (i >= 0 && i < 32)
            check_find(model, i);
        for (int64_t j = 0; j < num_blobs(model, i); j++)
            sb_blob_destroy(load(run, model, i, j, j % 2 ? SB_DTYPE_F64 : SB_DTYPE_F32));
    }
}

/* --- two models -------------------------------------------------------------------------- */

struct place {
    int64_t layer, index;
};

static void check_same_solver(const sb_model *a, const sb_model *b) {
    sb_solver_info of_a = SB_SOLVER_INFO_INIT, of_b = SB_SOLVER_INFO_INIT;
    if (sb_model_format(a) != SB_FORMAT_SOLVERSTATE)
        return;
    check_ok(sb_model_solver_info(a, &of_a, &call_error));
    check_ok(sb_model_solver_info(b, &of_b, &call_error));
    check_equal(of_a.iter, of_b.iter);
    check_equal(of_a.current_step, of_b.current_step);
    fuzz_check(same_text(of_a.learned_net, of_b.learned_net), "names of nets differ");
}

static void check_same_layer(const struct run *run, const sb_model *a, const sb_model *b,
                             int64_t layer) {
    int64_t blobs = num_blobs(a, layer);
    check_equal(blobs, num_blobs(b, layer));
    for (int64_t i = 0; i < blobs; i++) {
        sb_blob *of_a = load(run, a, layer, i, SB_DTYPE_F64);
        sb_blob *of_b = load(run, b, layer, i, SB_DTYPE_F64);
        fuzz_check(!of_a == !of_b, "layer %lld: only one has blob %lld", (long long)layer,
                   (long long)i);
        if (of_a)
            check_same_blob(of_a, of_b);
        sb_blob_destroy(of_a);
        sb_blob_destroy(of_b);
    }
}

static void check_same_model(const struct run *run, const sb_model *a, const sb_model *b) {
    int64_t layers = sb_model_num_layers(a);
    check_equal(sb_model_format(a), sb_model_format(b));
    fuzz_check(same_text(name_of(a), name_of(b)), "names differ");
    check_equal(layers, sb_model_num_layers(b));
    check_same_solver(a, b);
    check_same_layer(run, a, b, SB_NO_LAYER);
    for (int64_t i = 0; i < layers; i++) {
        sb_layer_info of_a = layer_of(a, i), of_b = layer_of(b, i);
        fuzz_check(same_text(of_a.name, of_b.name) && same_text(of_a.type, of_b.type) &&
                       of_a.generation == of_b.generation,
                   "layer %lld: \"%s\", \"%s\" of %d; \"%s\", \"%s\" of %d", (long long)i,
                   of_a.name.bytes, of_a.type.bytes, of_a.generation, of_b.name.bytes,
                   of_b.type.bytes, of_b.generation);
        check_same_layer(run, a, b, i);
    }
}

/* --- saving --------------------------------------------------------------------------------- */

static size_t size_of(const sb_model *model) {
    size_t size = 0;
    check_ok(sb_model_size(model, &size, &call_error));
    return size;
}

static struct wire save(const sb_model *model) {
    struct wire saved = {.size = size_of(model)};
    size_t written = 0;
    saved.bytes = malloc(saved.size ? saved.size : 1);
    if (saved.size) {
        check_status(SB_ERR_BUFFER_TOO_SMALL,
                     sb_model_save(model, saved.bytes, saved.size - 1, &written, &call_error));
        check_equal(written, saved.size);
    }
    check_ok(sb_model_save(model, saved.bytes, saved.size, &written, &call_error));
    check_equal(written, saved.size);
    return saved;
}

static void check_saved_verbatim(const struct run *run, const sb_model *model) {
    struct wire saved = save(model);
    fuzz_check(saved.size == run->size &&
                   (run->size == 0 || memcmp(saved.bytes, run->bytes, run->size) == 0),
               "%zu bytes were saved as %zu different bytes", run->size, saved.size);
    free(saved.bytes);
}

static sb_status save_file(const void *model, const char *path, sb_error *err) {
    return sb_model_save_file(model, path, err);
}

static void check_saved_again(const struct run *run, const sb_model *model) {
    struct wire saved = save(model);
    if (run->lot % 16 == 0)
        check_saved_file(save_file, model, saved.bytes, saved.size);
    struct run again = *run;
    struct opened reopened;
    again.bytes = saved.bytes;
    again.size = saved.size;
    open_bytes(&again, sb_model_format(model), &reopened);
    check_equal(reopened.status, SB_OK);
    /* The offset of an error may be an offset in the original file or in the saved file. */
    again.size = run->size > saved.size ? run->size : saved.size;
    check_same_model(&again, model, reopened.model);
    close_model(&reopened);
    free(saved.bytes);
}

/* --- editing -------------------------------------------------------------------------------- */

static sb_blob *new_blob(const struct run *run) {
    static const float values[] = {-1.5F, 2.5F, 1e-30F};
    static const int64_t shape[] = {1, 3};
    sb_blob *blob = blob_new(run->watched->context, SB_DTYPE_F32);
    void *data = NULL;
    check_ok(sb_blob_reshape(blob, shape, 2, NULL, &call_error));
    check_ok(sb_blob_mutable_cpu(blob, SB_DATA, &data, &call_error));
    memcpy(data, values, sizeof values);
    return blob;
}

static struct place pick(const struct run *run, const sb_model *model) {
    int64_t left = run->lot % count_blobs(model);
    struct place place = {SB_NO_LAYER, 0};
    while (left >= num_blobs(model, place.layer))
        left -= num_blobs(model, place.layer++);
    place.index = left;
    return place;
}

/* At the n-th attempt the n-th allocation fails, and the edit must not change the model. */
static void set_blob(const struct run *run, sb_model *model, struct place place,
                     const sb_blob *blob) {
    int64_t *fail_nth = &run->watched->counting.fail_nth, nth = 0;
    size_t before = size_of(model);
    sb_status st;
    do {
        *fail_nth = ++nth;
        st = status_of(sb_model_set_blob(model, place.layer, place.index, blob, 0, &call_error));
        *fail_nth = 0;
        fuzz_check(st == SB_OK || st == SB_ERR_OUT_OF_MEMORY, "no edit: %s", sb_status_name(st));
        fuzz_check(st == SB_OK || size_of(model) == before, "a failed edit changed the size");
    } while (st != SB_OK);
}

static void check_tail(const struct run *run, const sb_model *model, const sb_blob_info *old,
                       const sb_blob *blob) {
    struct wire saved = save(model);
    unsigned char message[64];
    size_t size = 0, end = (size_t)old->offset + old->size, tail = run->size - end;
    check_ok(sb_blob_to_proto(blob, 0, message, sizeof message, &size, &call_error));
    fuzz_check(saved.size >= size + tail, "saved %zu bytes, expected %zu and %zu", saved.size, size,
               tail);
    fuzz_check(memcmp(saved.bytes + saved.size - tail, run->bytes + end, tail) == 0,
               "bytes behind the replaced blob changed");
    fuzz_check(memcmp(saved.bytes + saved.size - tail - size, message, size) == 0,
               "the new blob does not begin where the old blob began");
    free(saved.bytes);
}

static void check_replace(const struct run *run, sb_model *model) {
    sb_blob_info old = SB_BLOB_INFO_INIT, new = SB_BLOB_INFO_INIT;
    if (count_blobs(model) == 0)
        return;
    struct place place = pick(run, model);
    sb_blob *blob = new_blob(run);
    check_ok(sb_model_blob_info(model, place.layer, place.index, &old, &call_error));
    fuzz_check(old.offset >= 0 && (size_t)old.offset + old.size <= run->size,
               "%zu bytes at %lld are beyond the file", old.size, (long long)old.offset);
    set_blob(run, model, place, blob);
    if (run->lot % 4 == 0)
        set_blob(run, model, place, blob);
    check_ok(sb_model_blob_info(model, place.layer, place.index, &new, &call_error));
    fuzz_check(new.offset == -1 && new.size == 0 && new.count == 3,
               "the new blob has %lld values at %lld", (long long)new.count, (long long)new.offset);
    sb_blob *loaded = load(run, model, place.layer, place.index, SB_DTYPE_F32);
    fuzz_check(loaded, "a replaced blob has no data");
    check_same_blob(blob, loaded);
    check_tail(run, model, &old, blob);
    sb_blob_destroy(loaded);
    sb_blob_destroy(blob);
}

static void add(const struct run *run, sb_model *model) {
    sb_blob *blob = new_blob(run);
    const sb_solver_info set = {sizeof set, {"n\0t", 3}, -3, 5};
    const int32_t format = sb_model_format(model);
    int64_t layer = SB_NO_LAYER, layers = sb_model_num_layers(model);
    if (format == SB_FORMAT_CAFFEMODEL) {
        if (layers > 0)
            check_ok(sb_model_add_blob(model, run->lot % layers, blob, SB_PROTO_WRITE_DIFF,
                                       &call_error));
        check_ok(sb_model_add_layer(model, "popped", 6, "Kind", 4, &layer, &call_error));
        check_ok(sb_model_add_blob(model, layer, blob, 0, &call_error));
        check_ok(sb_model_pop_layer(model, &call_error));
        check_ok(sb_model_add_layer(model, "added", 5, "Kind", 4, &layer, &call_error));
        check_ok(sb_model_set_name(model, "renamed", 7, &call_error));
    }
    if (format == SB_FORMAT_SOLVERSTATE)
        check_ok(sb_model_set_solver_info(model, &set, &call_error));
    if (format != SB_FORMAT_BLOB)
        check_ok(sb_model_add_blob(model, layer, blob, 0, &call_error));
    sb_blob_destroy(blob);
}

/* --- other ways to open ------------------------------------------------------------------- */

struct expected {
    int32_t format;
    const sb_model *model; /* NULL if the opening must fail */
};

static void check_same_message(const struct run *run, int32_t format, sb_error of_file) {
    sb_model *model = NULL;
    check_status(of_file.code,
                 sb_model_open_bytes(run->watched->context, format, run->bytes, run->size, NULL,
                                     NULL, NULL, &model, &call_error));
    fuzz_check(strcmp(call_error.message, of_file.message) == 0,
               "from a file \"%.239s\", \"%.239s\"", of_file.message, call_error.message);
}

/* The error may guess another format or another program, but not another kind of file. */
static void check_guess(const struct run *run, int32_t format, const sb_limits *limits) {
    static const char *const words[] = {
        "a caffemodel, not ",      "a solver state, not ", "a blob such as a mean file, not ",
        "a vector of blobs, not ", "an ONNX model",        "a TensorFlow graph",
        "a TensorFlow SavedModel"};
    sb_model *model = NULL;
    check_status(SB_ERR_DATA_LIMIT,
                 sb_model_open_bytes(run->watched->context, format, run->bytes, run->size, limits,
                                     NULL, NULL, &model, &call_error));
    const char *guess = strstr(call_error.message, "; this is ");
    bool known = !guess;
    for (size_t i = 0; !known && i < sizeof words / sizeof *words; i++)
        known = strncmp(guess + strlen("; this is "), words[i], strlen(words[i])) == 0;
    fuzz_check(known, "a wrong guess at the format: %.239s", call_error.message);
}

static void check_limited(const struct run *run, const struct expected *expected,
                          const sb_limits *limits, const sb_model *model) {
    fuzz_check(sb_model_num_layers(model) <= limits->max_layers &&
                   count_blobs(model) <= limits->max_blobs &&
                   (!model || name_of(model).size <= limits->max_name_bytes),
               "%lld layers, %lld blobs", (long long)sb_model_num_layers(model),
               (long long)count_blobs(model));
    if (expected->model && !model)
        check_guess(run, expected->format, limits);
}

static void use_blobs(const struct run *run, const struct way *way, const sb_model *model,
                      int64_t layer) {
    const int64_t blobs = num_blobs(model, layer);
    for (int64_t i = 0; i < blobs && i < 4; i++) {
        sb_blob_info info = SB_BLOB_INFO_INIT;
        sb_blob *blob = blob_new(run->watched->context, i % 2 ? SB_DTYPE_F64 : SB_DTYPE_F32);
        way_check(way, status_of(sb_model_blob_info(model, layer, i, &info, &call_error)));
        watched_mark(run->watched);
        sb_status st = status_of(sb_model_load_blob(model, layer, i, blob, &call_error));
        way_check(way, st);
        fuzz_check(st == SB_OK || (!sb_blob_is_shaped(blob) && watched_growth(run->watched) == 0),
                   "a failed load left a trace");
        sb_blob_destroy(blob);
    }
}

static void use_sinks(const struct run *run, const struct way *way, const sb_model *model) {
    const bool steady = way->trouble == TROUBLE_NONE;
    struct drain whole = {steady ? run->bytes : NULL, run->size, 0, 0};
    struct drain fails = {whole.bytes, run->size, 0, 1 + (int)(run->lot % 3)};
    const sb_sink to_whole = drain_sink(&whole), to_fails = drain_sink(&fails);
    sb_status st = status_of(sb_model_save_sink(model, &to_fails, &call_error));
    if (steady)
        check_equal(st, fails.left < 0 ? SB_ERR_IO : SB_OK);
    st = status_of(sb_model_save_sink(model, &to_whole, &call_error));
    way_check(way, st);
    if (st == SB_OK)
        check_equal(whole.written, run->size);
}

static sb_status open_way(const struct run *run, struct way *way, const void *user) {
    const struct expected *expected = user;
    sb_context *context = run->watched->context;
    const int32_t format = expected->format;
    sb_model *model = NULL;
    way_begin(run, way);
    sb_status st = status_of(
        way->path
            ? sb_model_open_file(context, format, way->path, way->flags, NULL, &model, &call_error)
        : way->source
            ? sb_model_open_source(context, format, way->source, NULL, NULL, &model, &call_error)
            : sb_model_open_bytes(context, format, run->bytes, run->size, way->limits, NULL, NULL,
                                  &model, &call_error));
    way_end(run, way, st);
    fuzz_check((st == SB_OK) == (model != NULL), "a failed call wrote the model pointer");
    if (!way->source)
        check_index_memory(run, model);
    if (way->limits)
        check_limited(run, expected, way->limits, model);
    if (way->path && model) {
        check_same_model(run, expected->model, model);
        check_saved_verbatim(run, model);
    } else if (way->path) {
        check_same_message(run, format, call_error);
    }
    for (int64_t i = SB_NO_LAYER; way->source && i < sb_model_num_layers(model) && i < 8; i++)
        use_blobs(run, way, model, i);
    if (way->source && model)
        use_sinks(run, way, model);
    sb_model_destroy(model);
    check_equal(way->closed, way->source && model);
    return st;
}

/* --- everything ---------------------------------------------------------------------------- */

static void check_format(const struct run *run, int32_t format) {
    const enum way_kind way = (run->lot + (uint32_t)format) % WAYS;
    const sb_limits limits = {sizeof limits, 4096, 3, 4, 8, 3};
    struct opened opened;
    open_bytes(run, format, &opened);
    const struct expected expected = {format, opened.model};
    check_way(run, way, open_way, &expected, opened.status, &limits, 1 + (int)(run->lot / 5 % 4));
    if (!opened.model)
        return;
    check_listing(run, opened.model);
    check_saved_verbatim(run, opened.model);
    check_replace(run, opened.model);
    add(run, opened.model);
    check_saved_again(run, opened.model);
    close_model(&opened);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct watched watched;
    const struct run run = {data, size, input_lot(data, size), &watched};
    watched_begin(&watched);
    for (int32_t format = SB_FORMAT_BLOB; format <= SB_FORMAT_BLOB_VECTOR; format++)
        check_format(&run, format);
    watched_end(&watched);
    return 0;
}
