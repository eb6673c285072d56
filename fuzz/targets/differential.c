/* Compares the library's reader with the reader of decoder.h. Both must accept the same inputs,
   refuse an input for the same reason, and find the same names, numbers, shapes and values. */
#include "decoder.h"
#include "watched.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* An input, and the limits of both readers. */
struct comparison {
    const uint8_t *bytes;
    size_t size;
    sb_context *context;
    sb_limits limits;
    struct decoder_limits decoder_limits;
};

static void check_verdict(unsigned faults, sb_status status) {
    fuzz_check(decoder_explains(faults, status),
               "the decoder finds faults %#x, the library returns %s: %.239s", faults,
               sb_status_name(status), status == SB_OK ? "" : call_error.message);
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

/* Returns whether the blob's element i is the decoded value. The payload of a NaN may differ if the
   value was converted. */
static bool is_value(const struct decoded_values *values, size_t i, const void *data,
                     int32_t dtype) {
    const uint8_t *wire = values->bytes + i * values->width;
    const double value = wire_value(values, wire), *wide = data;
    const float rounded = values->type == DECODED_FLOAT ? wire_float(wire) : (float)value;
    const float *single = data;
    switch (dtype) {
    case SB_DTYPE_F32:
        return memcmp(&single[i], &rounded, sizeof rounded) == 0 ||
               (values->type != DECODED_FLOAT && isnan(single[i]) && isnan(value));
    case SB_DTYPE_F64:
        return memcmp(&wide[i], &value, sizeof value) == 0 ||
               (values->type != DECODED_DOUBLE && isnan(wide[i]) && isnan(value));
    case SB_DTYPE_I32:
        return value == (double)((const int32_t *)data)[i];
    case SB_DTYPE_U32:
        return value == (double)((const uint32_t *)data)[i];
    default:
        return value == (double)((const int64_t *)data)[i];
    }
}

/* Returns whether an integer type can represent the value; returns true for other types. */
static bool fits(double value, int32_t dtype) {
    const bool in_range = dtype == SB_DTYPE_I32   ? value >= INT32_MIN && value <= INT32_MAX
                          : dtype == SB_DTYPE_U32 ? value >= 0 && value <= UINT32_MAX
                                                  : value >= -0x1p63 && value < 0x1p63;
    return dtype == SB_DTYPE_F32 || dtype == SB_DTYPE_F64 || (in_range && trunc(value) == value);
}

static unsigned range_faults(const struct decoded_values *values, int32_t dtype) {
    for (size_t i = 0; i < values->count; i++)
        if (!fits(wire_value(values, values->bytes + i * values->width), dtype))
            return DECODER_OVERFLOW;
    return 0;
}

static void check_values(const struct decoded_values *values, const sb_blob *blob, sb_part part) {
    const void *data = blob_at(blob, part);
    for (size_t i = 0; i < values->count; i++)
        fuzz_check(is_value(values, i, data, sb_blob_dtype(blob)),
                   "part %d: value %zu of %zu differs", part, i, values->count);
}

static void check_blob(const struct decoded_blob *decoded, const sb_blob *blob) {
    check_equal(sb_blob_num_axes(blob), decoded->num_axes);
    check_equal(sb_blob_count(blob), decoded->count);
    for (size_t i = 0; i < decoded->num_axes; i++)
        check_equal(sb_blob_shape(blob)[i], decoded->dims[i]);
    check_values(&decoded->data, blob, SB_DATA);
    if (decoded->count > 0)
        check_equal(blob_has(blob, SB_DIFF), decoded->diff.count > 0);
    if (decoded->diff.count > 0)
        check_values(&decoded->diff, blob, SB_DIFF);
}

/* --- one BlobProto ----------------------------------------------------------------- */

/* Returns whether SB_FORMAT_AUTO fails or chooses a format other than `format`. If so, the library
   may refuse to read the bytes as `format`. */
static bool is_of_another(const struct comparison *run, int32_t format) {
    sb_model *model = NULL;
    sb_status st = sb_model_open_bytes(run->context, SB_FORMAT_AUTO, run->bytes, run->size,
                                       &run->limits, NULL, NULL, &model, NULL);
    const bool is_another = st != SB_OK || sb_model_format(model) != format;
    sb_model_destroy(model);
    return is_another;
}

static void check_blob_proto(const struct comparison *run, int32_t dtype) {
    struct decoded_file file = decode(SB_FORMAT_BLOB, run->bytes, run->size, &run->decoder_limits);
    unsigned faults = file.faults | decoded_blob_load_faults(&file.blobs[0], sb_dtype_size(dtype));
    if (faults == 0)
        faults =
            range_faults(&file.blobs[0].data, dtype) | range_faults(&file.blobs[0].diff, dtype);
    sb_blob *blob = blob_new(run->context, dtype);
    sb_status st = status_of(sb_blob_from_proto(blob, run->bytes, run->size, SB_PROTO_RESHAPE,
                                                &run->limits, &call_error));
    if (st == SB_ERR_MALFORMED && is_of_another(run, SB_FORMAT_BLOB))
        faults |= DECODER_MALFORMED;
    check_verdict(faults, st);
    if (st == SB_OK)
        check_blob(&file.blobs[0], blob);
    sb_blob_destroy(blob);
    decoded_file_free(&file);
}

/* --- whole files --------------------------------------------------------------------- */

static void check_text(sb_text decoded, sb_text text, const char *what) {
    fuzz_check(same_text(decoded, text), "%s: \"%.*s\" for \"%.*s\"", what, (int)text.size,
               text.bytes, (int)decoded.size, decoded.bytes);
}

static void check_info(const struct comparison *run, const struct decoded_blob *decoded,
                       const sb_blob_info *info) {
    const struct decoded_values *shown = decoded->data.count > 0 ? &decoded->data : &decoded->diff;
    static const int32_t dtypes[DECODED_TYPES] = {SB_DTYPE_F64, SB_DTYPE_F32, SB_DTYPE_F16,
                                                  SB_DTYPE_I32, SB_DTYPE_U32};
    int32_t dtype = shown->count > 0 ? dtypes[shown->type] : SB_DTYPE_F32;
    int32_t diff_dtype = decoded->diff.count > 0 ? dtypes[decoded->diff.type] : dtype;
    check_equal(info->offset, decoded->message - run->bytes);
    check_equal(info->size, decoded->size);
    check_equal(info->data_count, decoded->data.count);
    check_equal(info->diff_count, decoded->diff.count);
    check_equal(info->dtype, dtype);
    check_equal(info->diff_dtype, diff_dtype);
    check_equal(info->legacy, decoded->legacy);
}

static void check_model_blob(const struct comparison *run, const sb_model *model, int64_t layer,
                             int64_t index, const struct decoded_blob *decoded) {
    sb_blob_info info = SB_BLOB_INFO_INIT;
    check_ok(sb_model_blob_info(model, layer, index, &info, &call_error));
    check_info(run, decoded, &info);
    int32_t dtype = info.dtype == SB_DTYPE_F64 ? SB_DTYPE_F64 : SB_DTYPE_F32;
    sb_blob *blob = blob_new(run->context, dtype);
    sb_status st = status_of(sb_model_load_blob(model, layer, index, blob, &call_error));
    check_verdict(decoded_blob_load_faults(decoded, sb_dtype_size(dtype)), st);
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
    if (decoded->generation != 1) {
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

static void check_layers(const struct comparison *run, const struct decoded_file *file,
                         const sb_model *model) {
    check_equal(sb_model_num_layers(model), file->num_layers);
    for (size_t i = 0; i < file->num_layers; i++) {
        const struct decoded_layer *decoded = &file->layers[i];
        sb_layer_info info = SB_LAYER_INFO_INIT;
        check_ok(sb_model_layer_info(model, (int64_t)i, &info, &call_error));
        check_equal(info.generation, decoded->generation);
        check_equal(info.num_blobs, decoded->blobs);
        check_text(decoded->name, info.name, "name");
        check_type(decoded, file->c3d, &info);
        for (size_t j = 0; j < decoded->blobs; j++)
            check_model_blob(run, model, (int64_t)i, (int64_t)j,
                             &file->blobs[decoded->first_blob + j]);
    }
}

static void check_solver(const struct decoded_file *file, const sb_model *model) {
    sb_solver_info info = SB_SOLVER_INFO_INIT;
    check_ok(sb_model_solver_info(model, &info, &call_error));
    check_equal(info.iter, file->iter);
    check_equal(info.current_step, file->current_step);
    check_text(file->learned_net, info.learned_net, "learned_net");
}

static void check_contents(const struct comparison *run, const struct decoded_file *file,
                           const sb_model *model) {
    check_text(file->name, name_of(model), "net");
    check_layers(run, file, model);
    if (sb_model_format(model) == SB_FORMAT_SOLVERSTATE)
        check_solver(file, model);
    if (sb_model_format(model) == SB_FORMAT_CAFFEMODEL)
        return;
    int64_t blobs;
    check_ok(sb_model_num_blobs(model, SB_NO_LAYER, &blobs, &call_error));
    check_equal(blobs, file->num_blobs);
    for (size_t i = 0; i < file->num_blobs; i++)
        check_model_blob(run, model, SB_NO_LAYER, (int64_t)i, &file->blobs[i]);
}

static void check_model(const struct comparison *run, int32_t format) {
    struct decoded_file file = decode(format, run->bytes, run->size, &run->decoder_limits);
    sb_model *model = NULL;
    sb_status st = status_of(sb_model_open_bytes(run->context, format, run->bytes, run->size,
                                                 &run->limits, NULL, NULL, &model, &call_error));
    if ((!file.recognised && run->size > 0) ||
        (st == SB_ERR_MALFORMED && is_of_another(run, format)))
        file.faults |= DECODER_MALFORMED;
    check_verdict(file.faults, st);
    if (st == SB_OK)
        check_contents(run, &file, model);
    sb_model_destroy(model);
    decoded_file_free(&file);
}

/* --- everything ------------------------------------------------------------------------ */

static void check_all(const struct comparison *run) {
    static const int32_t dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64, SB_DTYPE_I32, SB_DTYPE_U32,
                                     SB_DTYPE_I64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        check_blob_proto(run, dtypes[i]);
    for (int32_t format = SB_FORMAT_BLOB; format <= SB_FORMAT_BLOB_VECTOR; format++)
        check_model(run, format);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct comparison run = {data, size, NULL, SB_LIMITS_INIT, decoder_default_limits};
    check_all(&run);
    run.limits = (sb_limits){sizeof run.limits, 0, 2, 3, 5, 3};
    run.decoder_limits = (struct decoder_limits){2, 3, 5, 3};
    check_all(&run);
    return 0;
}
