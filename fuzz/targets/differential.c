/* Compares the library's reader with the reader of decoder.h. Both must accept the same bytes,
   refuse others for the same reason, and find the same names, numbers, shapes and values. */
#include "decoder.h"
#include "watched.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct run {
    const uint8_t *bytes;
    size_t size;
    sb_context *context;
    sb_limits limits; /* the same limits for both readers */
    struct decoder_limits decoder_limits;
};

static void check_verdict(unsigned faults, sb_status status, const sb_error *err,
                          const char *what) {
    fuzz_check(decoder_explains(faults, status),
               "%s: the decoder finds faults %#x, the library returns %s: %.239s", what, faults,
               sb_status_name(status), status == SB_OK ? "" : err->message);
}

/* --- values ---------------------------------------------------------------------- */

static uint64_t wire_bits(const uint8_t *bytes, unsigned width) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < width; i++)
        bits |= (uint64_t)bytes[i] << (8 * i);
    return bits;
}

static double wire_double(const uint8_t *bytes) {
    const uint64_t bits = wire_bits(bytes, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float wire_float(const uint8_t *bytes) {
    const uint32_t bits = (uint32_t)wire_bits(bytes, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double wire_half(const uint8_t *bytes) {
    const int bits = bytes[0] | bytes[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

static double wire_value(const struct decoded_values *values, const uint8_t *wire) {
    switch (values->type) {
    case DECODED_DOUBLE:
        return wire_double(wire);
    case DECODED_FLOAT:
        return (double)wire_float(wire);
    case DECODED_HALF:
        return wire_half(wire);
    case DECODED_INT:
        return (double)(int32_t)wire_bits(wire, 4);
    default:
        return (double)wire_bits(wire, 4);
    }
}

/* Returns whether the blob's element i is the decoded value; the payload of a NaN may differ. */
static bool is_value(const struct decoded_values *values, size_t i, const void *data,
                     size_t element_size) {
    const uint8_t *wire = values->bytes + i * values->width;
    const uint8_t *held = (const uint8_t *)data + i * element_size;
    if (values->type == DECODED_FLOAT && element_size == 4) {
        float value = wire_float(wire);
        return memcmp(held, &value, sizeof value) == 0;
    }
    double expected = wire_value(values, wire), wide;
    float single;
    if (element_size == 8) {
        memcpy(&wide, held, sizeof wide);
        return memcmp(&wide, &expected, sizeof wide) == 0 ||
               (values->type != DECODED_DOUBLE && wide != wide && expected != expected);
    }
    memcpy(&single, held, sizeof single);
    float rounded = (float)expected;
    return memcmp(&single, &rounded, sizeof single) == 0 ||
           (single != single && expected != expected);
}

/* Returns whether an integer type represents the value; false for NaN. */
static bool fits(double value, int32_t dtype) {
    const bool in_range = dtype == SB_DTYPE_I32   ? value >= INT32_MIN && value <= INT32_MAX
                          : dtype == SB_DTYPE_U32 ? value >= 0 && value <= UINT32_MAX
                                                  : value >= -0x1p63 && value < 0x1p63;
    return in_range && trunc(value) == value;
}

static bool is_integer(const struct decoded_values *values, size_t i, const void *data,
                       int32_t dtype) {
    const double expected = wire_value(values, values->bytes + i * values->width);
    const uint8_t *at = (const uint8_t *)data + i * sb_dtype_size(dtype);
    int64_t wide;
    int32_t whole;
    if (dtype == SB_DTYPE_I64) {
        memcpy(&wide, at, sizeof wide);
        return expected == (double)wide;
    }
    memcpy(&whole, at, sizeof whole);
    return expected == (dtype == SB_DTYPE_I32 ? (double)whole : (double)(uint32_t)whole);
}

static bool is_whole(int32_t dtype) {
    return dtype == SB_DTYPE_I32 || dtype == SB_DTYPE_U32 || dtype == SB_DTYPE_I64;
}

static unsigned integer_faults(const struct decoded_values *values, int32_t dtype) {
    for (size_t i = 0; i < values->count; i++)
        if (!fits(wire_value(values, values->bytes + i * values->width), dtype))
            return DECODER_OVERFLOW;
    return 0;
}

static void check_values(const struct decoded_values *values, const void *data, int32_t dtype,
                         const char *side) {
    for (size_t i = 0; i < values->count; i++)
        fuzz_check(is_whole(dtype) ? is_integer(values, i, data, dtype)
                                   : is_value(values, i, data, sb_dtype_size(dtype)),
                   "%s: value %zu of %zu differs", side, i, values->count);
}

static void check_blob(const struct decoded_blob *decoded, const sb_blob *blob) {
    int32_t dtype = sb_blob_dtype(blob);
    fuzz_check((size_t)sb_blob_num_axes(blob) == decoded->num_axes &&
                   sb_blob_count(blob) == decoded->count,
               "%d axes and %lld elements, not %zu and %lld", sb_blob_num_axes(blob),
               (long long)sb_blob_count(blob), decoded->num_axes, (long long)decoded->count);
    for (size_t i = 0; i < decoded->num_axes; i++)
        fuzz_check(sb_blob_shape(blob)[i] == decoded->dims[i], "axis %zu: %lld, not %lld", i,
                   (long long)sb_blob_shape(blob)[i], (long long)decoded->dims[i]);
    check_values(&decoded->data, blob_at(blob, SB_DATA), dtype, "data");
    fuzz_check(decoded->count == 0 || blob_has(blob, SB_DIFF) == (decoded->diff.count > 0),
               "%zu values of diff", decoded->diff.count);
    if (decoded->diff.count > 0)
        check_values(&decoded->diff, blob_at(blob, SB_DIFF), dtype, "diff");
}

/* --- one BlobProto ----------------------------------------------------------------- */

/* Returns whether SB_FORMAT_AUTO fails or chooses a format other than `format`. If so, the library
   may refuse to read the bytes as `format`. */
static bool is_of_another(const struct run *run, int32_t format) {
    sb_model *model = NULL;
    sb_status st = sb_model_open_bytes(run->context, SB_FORMAT_AUTO, run->bytes, run->size,
                                       &run->limits, NULL, NULL, &model, NULL);
    const bool is_another = st != SB_OK || sb_model_format(model) != format;
    sb_model_destroy(model);
    return is_another;
}

static void check_blob_proto(const struct run *run, int32_t dtype) {
    struct decoded_file file = decode_blob(run->bytes, run->size, &run->decoder_limits);
    unsigned faults = file.faults | decoded_blob_load_faults(&file.blobs[0], sb_dtype_size(dtype));
    if (faults == 0 && is_whole(dtype))
        faults =
            integer_faults(&file.blobs[0].data, dtype) | integer_faults(&file.blobs[0].diff, dtype);
    sb_blob *blob = blob_new(run->context, dtype);
    sb_error err = fuzz_fresh_error();
    sb_status st =
        sb_blob_from_proto(blob, run->bytes, run->size, SB_PROTO_RESHAPE, &run->limits, &err);
    if (st == SB_ERR_MALFORMED && is_of_another(run, SB_FORMAT_BLOB))
        faults |= DECODER_MALFORMED;
    check_verdict(faults, st, &err, "BlobProto");
    if (st == SB_OK)
        check_blob(&file.blobs[0], blob);
    sb_blob_destroy(blob);
    decoded_file_free(&file);
}

/* --- whole files --------------------------------------------------------------------- */

static void check_text(struct decoded_text decoded, sb_text text, const char *what) {
    fuzz_check(text.size == decoded.size &&
                   (text.size == 0 || memcmp(text.bytes, decoded.bytes, text.size) == 0),
               "%s: \"%.*s\" for \"%.*s\"", what, (int)text.size, text.bytes, (int)decoded.size,
               (const char *)decoded.bytes);
}

static void check_info(const struct run *run, const struct decoded_blob *decoded,
                       const sb_blob_info *info) {
    const struct decoded_values *shown = decoded->data.count > 0 ? &decoded->data : &decoded->diff;
    static const int32_t dtypes[DECODED_TYPES] = {SB_DTYPE_F64, SB_DTYPE_F32, SB_DTYPE_F16,
                                                  SB_DTYPE_I32, SB_DTYPE_U32};
    int32_t dtype = shown->count > 0 ? dtypes[shown->type] : SB_DTYPE_F32;
    int32_t diff_dtype = decoded->diff.count > 0 ? dtypes[decoded->diff.type] : dtype;
    fuzz_check(info->offset == decoded->message - run->bytes && info->size == decoded->size,
               "a message of %zu bytes at %lld, not of %zu at %td", info->size,
               (long long)info->offset, decoded->size, decoded->message - run->bytes);
    fuzz_check(info->data_count == (int64_t)decoded->data.count &&
                   info->diff_count == (int64_t)decoded->diff.count,
               "%lld values and %lld of diff, not %zu and %zu", (long long)info->data_count,
               (long long)info->diff_count, decoded->data.count, decoded->diff.count);
    fuzz_check(info->dtype == dtype && info->diff_dtype == diff_dtype &&
                   info->legacy == decoded->legacy,
               "dtype %d, of diff %d, legacy %d", info->dtype, info->diff_dtype, info->legacy);
}

static void check_model_blob(const struct run *run, const sb_model *model, int64_t layer,
                             int64_t index, const struct decoded_blob *decoded) {
    sb_blob_info info = SB_BLOB_INFO_INIT;
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_model_blob_info(model, layer, index, &info, &err);
    fuzz_check(st == SB_OK, "blob %lld: %s", (long long)index, err.message);
    check_info(run, decoded, &info);
    int32_t dtype = info.dtype == SB_DTYPE_F64 ? SB_DTYPE_F64 : SB_DTYPE_F32;
    sb_blob *blob = blob_new(run->context, dtype);
    unsigned faults = decoded_blob_load_faults(decoded, sb_dtype_size(dtype));
    st = sb_model_load_blob(model, layer, index, blob, &err);
    check_verdict(faults, st, &err, "loading");
    if (st == SB_OK)
        check_blob(decoded, blob);
    sb_blob_destroy(blob);
}

static void check_type(const struct decoded_layer *decoded, bool c3d, const sb_layer_info *info) {
    const struct {
        int32_t number;
        const char *name;
    } samples[] = {{0, "NONE"},
                   {4, "CONVOLUTION"},
                   {18, "RELU"},
                   {39, c3d ? "VOXEL_CUSTOM_LOSS" : "DECONVOLUTION"}};
    if (!decoded->numbered) {
        check_text(decoded->type, info->type, "type");
        return;
    }
    if (decoded->type_number < 0 || decoded->type_number > (c3d ? 40 : 39)) {
        char digits[16];
        (void)snprintf(digits, sizeof digits, "%d", decoded->type_number);
        fuzz_check(strcmp(info->type.bytes, digits) == 0, "type %s for %s", info->type.bytes,
                   digits);
        return;
    }
    fuzz_check(info->type.size > 0 && info->type.bytes[0] >= 'A', "type %s", info->type.bytes);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        fuzz_check((samples[i].number == decoded->type_number) ==
                       (strcmp(info->type.bytes, samples[i].name) == 0),
                   "type %d is %s", decoded->type_number, info->type.bytes);
}

static void check_layers(const struct run *run, const struct decoded_file *file,
                         const sb_model *model) {
    fuzz_check((size_t)sb_model_num_layers(model) == file->num_layers, "%lld layers, not %zu",
               (long long)sb_model_num_layers(model), file->num_layers);
    for (size_t i = 0; i < file->num_layers; i++) {
        const struct decoded_layer *decoded = &file->layers[i];
        sb_layer_info info = SB_LAYER_INFO_INIT;
        sb_error err = fuzz_fresh_error();
        sb_status st = sb_model_layer_info(model, (int64_t)i, &info, &err);
        fuzz_check(st == SB_OK && info.generation == decoded->generation &&
                       (size_t)info.num_blobs == decoded->blobs,
                   "layer %zu: generation %d, not %d; %lld blobs, not %zu", i, info.generation,
                   decoded->generation, (long long)info.num_blobs, decoded->blobs);
        check_text(decoded->name, info.name, "name");
        check_type(decoded, file->c3d, &info);
        for (size_t j = 0; j < decoded->blobs; j++)
            check_model_blob(run, model, (int64_t)i, (int64_t)j,
                             &file->blobs[decoded->first_blob + j]);
    }
}

static void check_solver(const struct decoded_file *file, const sb_model *model) {
    sb_solver_info info = SB_SOLVER_INFO_INIT;
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_model_solver_info(model, &info, &err);
    fuzz_check(st == SB_OK && info.iter == file->iter && info.current_step == file->current_step,
               "iter %d, not %d; step %d, not %d", info.iter, file->iter, info.current_step,
               file->current_step);
    check_text(file->learned_net, info.learned_net, "learned_net");
}

static void check_contents(const struct run *run, const struct decoded_file *file,
                           const sb_model *model) {
    check_text(file->name, name_of(model), "net");
    check_layers(run, file, model);
    if (sb_model_format(model) == SB_FORMAT_SOLVERSTATE)
        check_solver(file, model);
    if (sb_model_format(model) == SB_FORMAT_CAFFEMODEL)
        return;
    int64_t blobs;
    fuzz_check(sb_model_num_blobs(model, SB_NO_LAYER, &blobs, NULL) == SB_OK &&
                   (size_t)blobs == file->num_blobs,
               "%lld blobs for %zu", (long long)blobs, file->num_blobs);
    for (size_t i = 0; i < file->num_blobs; i++)
        check_model_blob(run, model, SB_NO_LAYER, (int64_t)i, &file->blobs[i]);
}

typedef struct decoded_file (*decoder)(const uint8_t *, size_t, const struct decoder_limits *);

static void check_model(const struct run *run, int32_t format, decoder decode) {
    struct decoded_file file = decode(run->bytes, run->size, &run->decoder_limits);
    sb_model *model = NULL;
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_model_open_bytes(run->context, format, run->bytes, run->size, &run->limits,
                                       NULL, NULL, &model, &err);
    if ((!file.recognised && run->size > 0) ||
        (st == SB_ERR_MALFORMED && is_of_another(run, format)))
        file.faults |= DECODER_MALFORMED;
    check_verdict(file.faults, st, &err, "as its format");
    if (st == SB_OK)
        check_contents(run, &file, model);
    sb_model_destroy(model);
    decoded_file_free(&file);
}

/* --- everything ------------------------------------------------------------------------ */

static void check_all(const struct run *run) {
    check_blob_proto(run, SB_DTYPE_F32);
    check_blob_proto(run, SB_DTYPE_F64);
    check_blob_proto(run, SB_DTYPE_I32);
    check_blob_proto(run, SB_DTYPE_U32);
    check_blob_proto(run, SB_DTYPE_I64);
    check_model(run, SB_FORMAT_BLOB, decode_blob);
    check_model(run, SB_FORMAT_CAFFEMODEL, decode_net);
    check_model(run, SB_FORMAT_SOLVERSTATE, decode_solver_state);
    check_model(run, SB_FORMAT_BLOB_VECTOR, decode_blob_vector);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct run run = {data, size, NULL, SB_LIMITS_INIT, decoder_default_limits};
    check_all(&run);
    run.limits = (sb_limits){sizeof run.limits, 0, 2, 3, 5, 3};
    run.decoder_limits = (struct decoder_limits){2, 3, 5, 3};
    check_all(&run);
    return 0;
}
