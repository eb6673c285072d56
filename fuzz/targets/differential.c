/* Compares the library's reader of Caffe's binary messages with a second reader, the decoder. The
   decoder follows proto/README.md and shares no code with the library. */
#include "fields.h"
#include "watched.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/model.h>

/* Faults in the bytes. A reader may report any of the faults. */
enum {
    DECODER_MALFORMED = 1,
    DECODER_LENGTH = 2,
    DECODER_BAD_SHAPE = 4,
    DECODER_OVERFLOW = 8,
    DECODER_LIMIT = 16
};

struct decoder_limits {
    size_t max_layers, max_blobs, max_name_bytes, max_axes;
};

static const struct decoder_limits decoder_default_limits = {100000, 1000000, 65536, 32};

/* The types of stored values. NVCaffe uses these numbers. */
enum { DECODED_DOUBLE, DECODED_FLOAT, DECODED_HALF, DECODED_INT, DECODED_UNSIGNED, DECODED_TYPES };

struct decoded_values {
    unsigned type; /* DECODED_* */
    size_t width;
    size_t count;
    uint8_t *bytes;
};

#define MAX_AXES 32

struct decoded_blob {
    const uint8_t *message;
    size_t size;
    bool legacy;
    bool c3d; /* C3D 1.0 wrote the blob */
    size_t num_axes;
    int64_t dims[MAX_AXES];
    int64_t count;
    struct decoded_values data, diff; /* doubles if present, else floats, else raw values */
};

struct decoded_layer {
    sb_text name, type;
    int32_t type_number;      /* the layer type's number in generation 1 */
    int generation;           /* 0, 1, 2 */
    size_t first_blob, blobs; /* the layer's blobs in decoded_file.blobs */
};

struct decoded_file {
    const struct decoder_limits *limits;
    unsigned faults; /* DECODER_*; 0: the members below are valid */
    bool recognised; /* the message has at least one field of the format */
    bool c3d;
    sb_text name, learned_net;
    int32_t iter, current_step;
    struct decoded_layer *layers;
    size_t num_layers, room_layers;
    struct decoded_blob *blobs;
    size_t num_blobs, room_blobs;
};

/* --- the decoder: fields of a message -------------------------------------------------------- */

static struct fields fields_of(struct decoded_file *file, const uint8_t *bytes, size_t size) {
    struct fields fields = fields_parse(bytes, size);
    if (fields.rest != fields.end)
        file->faults |= fields.is_too_deep ? DECODER_LIMIT : DECODER_MALFORMED;
    return fields;
}

static bool is(const struct field *field, uint32_t number, unsigned type) {
    return field->number == number && field->type == type;
}

static void set_text(struct decoded_file *file, const struct field *field, sb_text *out) {
    if (field->size > file->limits->max_name_bytes)
        file->faults |= DECODER_LIMIT;
    *out = (sb_text){(const char *)field->bytes, field->size};
}

/* --- the decoder: shapes --------------------------------------------------------------------- */

static void add_dim(struct decoded_blob *blob, uint64_t value) {
    if (blob->num_axes < MAX_AXES)
        blob->dims[blob->num_axes] = (int64_t)value;
    blob->num_axes++;
}

static void read_packed_dims(struct decoded_file *file, const struct field *field,
                             struct decoded_blob *blob) {
    uint64_t value;
    for (size_t at = 0, length; at < field->size; at += length) {
        length = varint_read(field->bytes + at, field->size - at, &value);
        if (length == 0) {
            file->faults |= DECODER_MALFORMED;
            return;
        }
        add_dim(blob, value);
    }
}

static void read_shape(struct decoded_file *file, const struct field *shape,
                       struct decoded_blob *blob) {
    struct fields fields = fields_of(file, shape->bytes, shape->size);
    for (size_t i = 0; i < fields.count; i++) {
        if (is(&fields.list[i], 1, VARINT))
            add_dim(blob, fields.list[i].value);
        else if (is(&fields.list[i], 1, BYTES))
            read_packed_dims(file, &fields.list[i], blob);
    }
    free(fields.list);
}

static void judge_shape(struct decoded_file *file, struct decoded_blob *blob) {
    bool bad = blob->num_axes > MAX_AXES;
    if (!bad && blob->num_axes > file->limits->max_axes)
        file->faults |= DECODER_LIMIT;
    for (size_t i = 0; !bad && i < blob->num_axes; i++)
        bad = blob->dims[i] < 0;
    if (bad) {
        file->faults |= DECODER_BAD_SHAPE;
        return;
    }
    blob->count = count_elements(blob->dims, blob->num_axes, sizeof(float));
    if (blob->count < 0)
        file->faults |= DECODER_OVERFLOW;
}

/* --- the decoder: payloads ------------------------------------------------------------------- */

static struct decoded_values gather(struct decoded_file *file, const struct fields *fields,
                                    size_t message_size, uint32_t number, size_t width) {
    struct decoded_values values = {.type = width == 4 ? DECODED_FLOAT : DECODED_DOUBLE,
                                    .width = width,
                                    .bytes = must(malloc(message_size + 1))};
    size_t bytes = 0;
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->list[i];
        if ((!is(field, number, BYTES) && !is(field, number, width == 4 ? FIXED32 : FIXED64)) ||
            field->size == 0)
            continue;
        if (field->size % width != 0)
            file->faults |= DECODER_MALFORMED;
        memcpy(values.bytes + bytes, field->bytes, field->size);
        bytes += field->size;
    }
    values.count = bytes / width;
    return values;
}

/* Field `number` has NVCaffe's raw values, and field `number` - 2 has their type. If a field is
   repeated, readers use the last bytes and the last type that they know. */
static struct decoded_values raw_values(struct decoded_file *file, const struct fields *fields,
                                        uint32_t number) {
    static const size_t widths[DECODED_TYPES] = {8, 4, 2, 4, 4};
    const struct field *type = NULL, *bytes = NULL;
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->list[i];
        if (is(field, number - 2, VARINT) && (uint32_t)field->value < DECODED_TYPES)
            type = field;
        if (is(field, number, BYTES))
            bytes = field;
    }
    struct decoded_values values = {.type = type ? (uint32_t)type->value : DECODED_FLOAT};
    values.width = widths[values.type];
    if (!bytes || bytes->size == 0)
        return values;
    if (!type || bytes->size % values.width != 0)
        file->faults |= DECODER_MALFORMED;
    values.bytes = must(malloc(bytes->size));
    memcpy(values.bytes, bytes->bytes, bytes->size);
    values.count = bytes->size / values.width;
    return values;
}

/* C3D's blobs have floats only. */
static struct decoded_values values_of(struct decoded_file *file, const struct fields *fields,
                                       const struct decoded_blob *blob, uint32_t side) {
    const uint32_t first = blob->c3d ? 6 : 5;
    struct decoded_values floats = gather(file, fields, blob->size, first + side, 4);
    if (!blob->c3d) {
        struct decoded_values doubles = gather(file, fields, blob->size, 8 + side, 8);
        free(doubles.count > 0 ? floats.bytes : doubles.bytes);
        floats = doubles.count > 0 ? doubles : floats;
    }
    if (!blob->c3d && floats.count == 0) {
        free(floats.bytes);
        floats = raw_values(file, fields, 12 + side);
    }
    if (floats.count > 0 && (uint64_t)blob->count != floats.count)
        file->faults |= DECODER_LENGTH;
    return floats;
}

/* --- the decoder: blobs ---------------------------------------------------------------------- */

/* C3D 1.0 wrote the message if the fields 1 to 5 come first and are numbers. */
static bool is_c3d(const struct fields *fields) {
    bool has[6] = {false};
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->list[i];
        if (field->number > 5 || field->type != VARINT)
            break;
        has[field->number] = true;
    }
    return has[1] && has[2] && has[3] && has[4] && has[5];
}

static void read_dims(struct decoded_file *file, const struct fields *fields,
                      struct decoded_blob *blob) {
    const size_t axes = blob->c3d ? 5 : 4;
    int64_t legacy[5] = {0};
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->list[i];
        if (field->number <= axes && field->type == VARINT) {
            blob->legacy = true;
            legacy[field->number - 1] = (int64_t)field->value;
        } else if (!blob->c3d && is(field, 7, BYTES)) {
            read_shape(file, field, blob);
        }
    }
    if (blob->legacy)
        blob->num_axes = 0;
    for (size_t i = 0; i < axes && blob->legacy; i++) {
        if (legacy[i] < 0) /* protobuf stores an int32 sign-extended to 64 bits */
            file->faults |= DECODER_BAD_SHAPE;
        if (legacy[i] > INT32_MAX)
            file->faults |= DECODER_OVERFLOW;
        add_dim(blob, (uint64_t)legacy[i]);
    }
    judge_shape(file, blob);
}

static void read_blob(struct decoded_file *file, const uint8_t *bytes, size_t size) {
    file->blobs = one_more(file->blobs, file->num_blobs, &file->room_blobs, sizeof *file->blobs);
    struct decoded_blob *blob = &file->blobs[file->num_blobs++];
    *blob = (struct decoded_blob){.message = bytes, .size = size};
    struct fields fields = fields_of(file, bytes, size);
    blob->c3d = is_c3d(&fields);
    file->c3d = file->c3d || blob->c3d;
    read_dims(file, &fields, blob);
    blob->data = values_of(file, &fields, blob, 0);
    blob->diff = values_of(file, &fields, blob, 1);
    free(fields.list);
}

static void add_blob(struct decoded_file *file, const struct field *field) {
    if (file->num_blobs >= file->limits->max_blobs)
        file->faults |= DECODER_LIMIT;
    read_blob(file, field->bytes, field->size);
}

/* --- the decoder: layers --------------------------------------------------------------------- */

/* Reads a layer of NetParameter.layers.layer (generation 0), .layers (1) or .layer (2). */
static void read_layer(struct decoded_file *file, const struct field *message, int generation,
                       struct decoded_layer *layer) {
    static const struct {
        uint32_t name, type, blobs;
    } numbers[] = {{1, 2, 50}, {4, 5, 6}, {1, 2, 7}};
    struct fields fields = fields_of(file, message->bytes, message->size);
    bool is_v1 = generation == 1, has_window = false;
    layer->generation = generation;
    for (size_t i = 0; i < fields.count; i++) {
        const struct field *field = &fields.list[i];
        if (is(field, numbers[generation].name, BYTES))
            set_text(file, field, &layer->name);
        else if (is_v1 && is(field, numbers[generation].type, VARINT))
            layer->type_number = (int32_t)field->value;
        else if (!is_v1 && is(field, numbers[generation].type, BYTES))
            set_text(file, field, &layer->type);
        else if (is(field, numbers[generation].blobs, BYTES))
            add_blob(file, field);
        else if (is_v1 && is(field, 1, BYTES))
            read_layer(file, field, 0, layer);
        else if (is_v1 && (is(field, 10, BYTES) || is(field, 19, BYTES)))
            has_window = true;
    }
    free(fields.list);
    const int32_t type = layer->type_number;
    if (has_window && (type == 30 || type == 31 || type == 34))
        file->c3d = true;
}

static void add_layer(struct decoded_file *file, const struct field *field) {
    struct decoded_layer layer = {.first_blob = file->num_blobs};
    if (file->num_layers >= file->limits->max_layers)
        file->faults |= DECODER_LIMIT;
    read_layer(file, field, field->number == 100 ? 2 : 1, &layer);
    layer.blobs = file->num_blobs - layer.first_blob;
    file->layers =
        one_more(file->layers, file->num_layers, &file->room_layers, sizeof *file->layers);
    file->layers[file->num_layers++] = layer;
}

/* --- the decoder: whole files ---------------------------------------------------------------- */

static bool read_field(struct decoded_file *file, int32_t format, const struct field *field) {
    const bool is_net = format == SB_FORMAT_CAFFEMODEL, is_solver = format == SB_FORMAT_SOLVERSTATE;
    if (is_net && is(field, 1, BYTES))
        set_text(file, field, &file->name);
    else if (is_net && (is(field, 2, BYTES) || is(field, 100, BYTES)))
        add_layer(file, field);
    else if (is_solver && is(field, 1, VARINT))
        file->iter = (int32_t)field->value;
    else if (is_solver && is(field, 2, BYTES))
        set_text(file, field, &file->learned_net);
    else if (is_solver && is(field, 4, VARINT))
        file->current_step = (int32_t)field->value;
    else if (!is_net && is(field, is_solver ? 3 : 1, BYTES))
        add_blob(file, field);
    else
        return false;
    return true;
}

/* The caller frees the result with decoded_file_free. */
static struct decoded_file decode(int32_t format, const uint8_t *bytes, size_t size,
                                  const struct decoder_limits *limits) {
    struct decoded_file file = {.limits = limits, .recognised = format == SB_FORMAT_BLOB};
    if (format == SB_FORMAT_BLOB) {
        read_blob(&file, bytes, size);
        return file;
    }
    struct fields fields = fields_of(&file, bytes, size);
    for (size_t i = 0; i < fields.count; i++)
        file.recognised |= read_field(&file, format, &fields.list[i]);
    free(fields.list);
    return file;
}

static void decoded_file_free(struct decoded_file *file) {
    for (size_t i = 0; i < file->num_blobs; i++) {
        free(file->blobs[i].data.bytes);
        free(file->blobs[i].diff.bytes);
    }
    free(file->blobs);
    free(file->layers);
}

/* --- the decoder: verdicts ------------------------------------------------------------------- */

static unsigned decoded_blob_load_faults(const struct decoded_blob *blob, size_t element_size) {
    unsigned faults = 0;
    if ((uint64_t)blob->count > PTRDIFF_MAX / element_size)
        faults |= DECODER_OVERFLOW;
    if ((uint64_t)blob->count != blob->data.count)
        faults |= DECODER_LENGTH;
    return faults;
}

static bool decoder_explains(unsigned faults, sb_status status) {
    const unsigned fault = status == SB_ERR_MALFORMED         ? DECODER_MALFORMED
                           : status == SB_ERR_LENGTH_MISMATCH ? DECODER_LENGTH
                           : status == SB_ERR_BAD_SHAPE       ? DECODER_BAD_SHAPE
                           : status == SB_ERR_DATA_OVERFLOW   ? DECODER_OVERFLOW
                           : status == SB_ERR_DATA_LIMIT      ? DECODER_LIMIT
                                                              : 0;
    return status == SB_OK ? faults == 0 : faults & fault;
}

/* --- comparisons ----------------------------------------------------------------------------- */

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

/* The payload of a NaN may differ if the value was converted. */
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

static void check_shape(const struct decoded_blob *decoded, const sb_blob *blob) {
    check_equal(sb_blob_num_axes(blob), decoded->num_axes);
    check_equal(sb_blob_count(blob), decoded->count);
    for (size_t i = 0; i < decoded->num_axes; i++)
        check_equal(sb_blob_shape(blob)[i], decoded->dims[i]);
}

static void check_blob(const struct decoded_blob *decoded, const sb_blob *blob) {
    check_shape(decoded, blob);
    check_values(&decoded->data, blob, SB_DATA);
    if (decoded->count > 0)
        check_equal(blob_has(blob, SB_DIFF), decoded->diff.count > 0);
    if (decoded->diff.count > 0)
        check_values(&decoded->diff, blob, SB_DIFF);
}

/* --- one BlobProto ----------------------------------------------------------------- */

/* Returns whether SB_FORMAT_AUTO does not choose `format`. A read as `format` may then fail. */
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

/* If the message has legacy dimensions, the blob may lack leading dimensions that are 1. */
static void check_shape_equals(const struct comparison *run) {
    struct decoded_file file = decode(SB_FORMAT_BLOB, run->bytes, run->size, &run->decoder_limits);
    const struct decoded_blob *decoded = &file.blobs[0];
    unsigned faults = file.faults & ~(unsigned)DECODER_LENGTH;
    const int32_t axes = faults ? 0 : (int32_t)decoded->num_axes;
    sb_blob *blob = blob_new(run->context, SB_DTYPE_F32);
    bool expected = false, fits = true;
    for (int32_t missing = -1; missing <= axes && fits; missing++) {
        if (missing >= 0)
            fits =
                sb_blob_reshape(blob, decoded->dims + missing, axes - missing, NULL, NULL) == SB_OK;
        if (missing == 0)
            expected = true;
        if (missing > 0)
            expected &= decoded->legacy && decoded->dims[missing - 1] == 1;
        int32_t equal = 77;
        sb_status st =
            status_of(sb_blob_shape_equals_proto(blob, run->bytes, run->size, &equal, &call_error));
        if (st == SB_ERR_MALFORMED && is_of_another(run, SB_FORMAT_BLOB))
            faults |= DECODER_MALFORMED;
        check_verdict(faults, st);
        if (fits)
            check_equal(equal, st == SB_OK ? expected : 77);
    }
    sb_blob_destroy(blob);
    decoded_file_free(&file);
}

static void check_reshape(const struct comparison *run, int32_t dtype) {
    const struct field message = {.bytes = run->bytes, .size = run->size};
    struct decoded_file file = {.limits = &run->decoder_limits};
    struct decoded_blob decoded = {0};
    uint32_t reallocated = 77;
    read_shape(&file, &message, &decoded);
    judge_shape(&file, &decoded);
    sb_blob *blob = blob_new(run->context, dtype);
    sb_status st =
        status_of(sb_blob_reshape_proto(blob, run->bytes, run->size, &reallocated, &call_error));
    check_verdict(file.faults |
                      (decoded_blob_load_faults(&decoded, sb_dtype_size(dtype)) & DECODER_OVERFLOW),
                  st);
    check_equal(reallocated, st == SB_OK ? 0 : 77);
    check_equal(sb_blob_is_shaped(blob), st == SB_OK);
    if (st == SB_OK)
        check_shape(&decoded, blob);
    sb_blob_destroy(blob);
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
    check_shape_equals(&run);
    check_reshape(&run, SB_DTYPE_F32);
    check_reshape(&run, SB_DTYPE_F64);
    run.limits = (sb_limits){sizeof run.limits, 0, 2, 3, 5, 3};
    run.decoder_limits = (struct decoder_limits){2, 3, 5, 3};
    check_all(&run);
    return 0;
}
