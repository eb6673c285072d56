#include "decoder.h"

#include "fields.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

const struct decoder_limits decoder_default_limits = {100000, 1000000, 65536, 32};

/* --- fields of a message ------------------------------------------------------ */

/* Returns the fields of a message, up to its first invalid byte. */
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

/* --- shapes ------------------------------------------------------------------------- */

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

/* Checks the dimensions and sets the count. */
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

/* --- payloads ------------------------------------------------------------------------- */

/* Collects all values of a repeated field of floats (width 4) or doubles (width 8). */
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

/* Reads NVCaffe's raw values: field `number` has the bytes, field `number` - 2 has their type. If a
   field is repeated, uses the last bytes and the last known type. */
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

/* Returns the values of data (`side` 0) or diff (`side` 1): the doubles, else the floats, else the
   raw values. C3D's blobs have floats only. */
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

/* --- blobs ------------------------------------------------------------------------------ */

/* Returns whether C3D 1.0 wrote the message: its fields 1 to 5 come first, and are numbers. */
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

/* --- layers ------------------------------------------------------------------------------ */

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

/* --- whole files ------------------------------------------------------------------------ */

/* Reads a field of a file. Returns whether the format has the field. */
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

struct decoded_file decode(int32_t format, const uint8_t *bytes, size_t size,
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

void decoded_file_free(struct decoded_file *file) {
    for (size_t i = 0; i < file->num_blobs; i++) {
        free(file->blobs[i].data.bytes);
        free(file->blobs[i].diff.bytes);
    }
    free(file->blobs);
    free(file->layers);
}

/* --- verdicts ----------------------------------------------------------------------------- */

unsigned decoded_blob_load_faults(const struct decoded_blob *blob, size_t element_size) {
    unsigned faults = 0;
    if ((uint64_t)blob->count > PTRDIFF_MAX / element_size)
        faults |= DECODER_OVERFLOW;
    if ((uint64_t)blob->count != blob->data.count)
        faults |= DECODER_LENGTH;
    return faults;
}

bool decoder_explains(unsigned faults, sb_status status) {
    const unsigned fault = status == SB_ERR_MALFORMED         ? DECODER_MALFORMED
                           : status == SB_ERR_LENGTH_MISMATCH ? DECODER_LENGTH
                           : status == SB_ERR_BAD_SHAPE       ? DECODER_BAD_SHAPE
                           : status == SB_ERR_DATA_OVERFLOW   ? DECODER_OVERFLOW
                           : status == SB_ERR_DATA_LIMIT      ? DECODER_LIMIT
                                                              : 0;
    return status == SB_OK ? faults == 0 : faults & fault;
}
