#include "decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct decoder_limits decoder_default_limits = {100000, 1000000, 65536, 32};

/* --- a message as a list of fields -------------------------------------------- */

enum { VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 };

#define MAX_GROUPS 100

struct item {
    uint32_t number;
    unsigned type;
    uint64_t value; /* of VARINT */
    const uint8_t *bytes;
    size_t size;
};

struct items {
    struct item *list;
    size_t count, room;
    bool broken;   /* not a message; the list has the fields before the invalid bytes */
    bool too_deep; /* `broken`, because groups nest too deeply */
};

struct cursor {
    const uint8_t *next, *end;
};

static void *must(void *memory) {
    if (!memory) {
        (void)fprintf(stderr, "decoder: out of memory\n");
        abort();
    }
    return memory;
}

static void *one_more(void *list, size_t count, size_t *room, size_t item_size) {
    if (count < *room)
        return list;
    *room = *room ? *room * 2 : 8;
    return must(realloc(list, *room * item_size));
}

static bool take_varint(struct cursor *cursor, uint64_t *out) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (cursor->next == cursor->end)
            return false;
        uint8_t byte = *cursor->next++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return shift < 63 || byte <= 1;
        }
    }
    return false;
}

static bool take_bytes(struct cursor *cursor, uint64_t size, struct item *item) {
    if (size > (uint64_t)(cursor->end - cursor->next))
        return false;
    item->bytes = cursor->next;
    item->size = (size_t)size;
    cursor->next += size;
    return true;
}

static bool take_tag(struct cursor *cursor, struct item *item) {
    uint64_t tag;
    if (!take_varint(cursor, &tag) || tag > UINT32_MAX || tag < 8)
        return false;
    *item = (struct item){.number = (uint32_t)tag >> 3, .type = tag & 7};
    return true;
}

static bool take_group(struct cursor *cursor, uint32_t number, int depth, bool *too_deep);

static bool take_value(struct cursor *cursor, struct item *item, int depth, bool *too_deep) {
    uint64_t length;
    switch (item->type) {
    case VARINT:
        return take_varint(cursor, &item->value);
    case FIXED64:
        return take_bytes(cursor, 8, item);
    case BYTES:
        return take_varint(cursor, &length) && take_bytes(cursor, length, item);
    case GROUP:
        return take_group(cursor, item->number, depth + 1, too_deep);
    case FIXED32:
        return take_bytes(cursor, 4, item);
    default:
        return false;
    }
}

static bool take_group(struct cursor *cursor, uint32_t number, int depth, bool *too_deep) {
    struct item item;
    if (depth > MAX_GROUPS) {
        *too_deep = true;
        return false;
    }
    while (take_tag(cursor, &item)) {
        if (item.type == END_GROUP)
            return item.number == number;
        if (!take_value(cursor, &item, depth, too_deep))
            return false;
    }
    return false;
}

static struct items take_apart(const uint8_t *bytes, size_t size) {
    struct items items = {.list = NULL};
    struct cursor cursor = {bytes, bytes + size};
    while (cursor.next != cursor.end && !items.broken) {
        items.list = one_more(items.list, items.count, &items.room, sizeof *items.list);
        struct item *item = &items.list[items.count];
        items.broken = !take_tag(&cursor, item) || !take_value(&cursor, item, 0, &items.too_deep);
        items.count += !items.broken;
    }
    return items;
}

/* --- the decoder ------------------------------------------------------------------ */

struct decoder {
    struct decoded_file *file;
    const struct decoder_limits *limits;
};

static void fault(const struct decoder *decoder, unsigned what) {
    decoder->file->faults |= what;
}

static struct items fields_of(const struct decoder *decoder, const uint8_t *bytes, size_t size) {
    struct items items = take_apart(bytes, size);
    if (items.broken)
        fault(decoder, items.too_deep ? DECODER_LIMIT : DECODER_MALFORMED);
    return items;
}

static bool is(const struct item *item, uint32_t number, unsigned type) {
    return item->number == number && item->type == type;
}

static void set_text(const struct decoder *decoder, const struct item *item,
                     struct decoded_text *out) {
    if (item->size > decoder->limits->max_name_bytes)
        fault(decoder, DECODER_LIMIT);
    *out = (struct decoded_text){item->bytes, item->size};
}

/* --- shapes ------------------------------------------------------------------------- */

struct dims {
    int64_t *list;
    size_t count, room;
};

static void add_dim(struct dims *dims, uint64_t value) {
    dims->list = one_more(dims->list, dims->count, &dims->room, sizeof *dims->list);
    dims->list[dims->count++] = (int64_t)value;
}

static void read_packed_dims(const struct decoder *decoder, const struct item *item,
                             struct dims *dims) {
    struct cursor cursor = {item->bytes, item->bytes + item->size};
    uint64_t value;
    while (cursor.next != cursor.end) {
        if (!take_varint(&cursor, &value)) {
            fault(decoder, DECODER_MALFORMED);
            return;
        }
        add_dim(dims, value);
    }
}

static void read_shape(const struct decoder *decoder, const struct item *shape, struct dims *dims) {
    struct items fields = fields_of(decoder, shape->bytes, shape->size);
    for (size_t i = 0; i < fields.count; i++) {
        if (is(&fields.list[i], 1, VARINT))
            add_dim(dims, fields.list[i].value);
        else if (is(&fields.list[i], 1, BYTES))
            read_packed_dims(decoder, &fields.list[i], dims);
    }
    free(fields.list);
}

/* Returns the number of elements, or -1 if a dimension or the size of the elements as floats
   exceeds ptrdiff_t. */
static int64_t count_elements(const int64_t *dims, size_t axes) {
    int64_t count = 1;
    for (size_t i = 0; i < axes; i++)
        if ((ptrdiff_t)dims[i] != dims[i])
            return -1;
    for (size_t i = 0; i < axes; i++)
        if (dims[i] == 0)
            return 0;
    for (size_t i = 0; i < axes; i++) {
        if (dims[i] > PTRDIFF_MAX / 4 / count)
            return -1;
        count *= dims[i];
    }
    return count;
}

static void judge_shape(const struct decoder *decoder, const struct dims *dims,
                        struct decoded_blob *blob) {
    if (dims->count > 32) {
        fault(decoder, DECODER_BAD_SHAPE);
        return;
    }
    if (dims->count > decoder->limits->max_axes)
        fault(decoder, DECODER_LIMIT);
    for (size_t i = 0; i < dims->count; i++) {
        blob->dims[i] = dims->list[i];
        if (dims->list[i] >= 0)
            continue;
        fault(decoder, DECODER_BAD_SHAPE);
        return;
    }
    blob->num_axes = dims->count;
    blob->count = count_elements(blob->dims, blob->num_axes);
    if (blob->count < 0)
        fault(decoder, DECODER_OVERFLOW);
}

/* Checks a dimension of type int32, which protobuf stores sign-extended to 64 bits. */
static void judge_legacy_dim(const struct decoder *decoder, int64_t dim) {
    if (dim < 0)
        fault(decoder, DECODER_BAD_SHAPE);
    if (dim > INT32_MAX)
        fault(decoder, DECODER_OVERFLOW);
}

/* --- payloads ------------------------------------------------------------------------- */

static bool holds_values(const struct item *item, uint32_t number, size_t width) {
    return is(item, number, BYTES) || is(item, number, width == 4 ? FIXED32 : FIXED64);
}

/* Collects all values of a repeated field of floats (width 4) or doubles (width 8). */
static struct decoded_values gather(const struct decoder *decoder, const struct items *fields,
                                    uint32_t number, size_t width) {
    struct decoded_values values = {.type = width == 4 ? DECODED_FLOAT : DECODED_DOUBLE,
                                    .width = width};
    size_t bytes = 0;
    for (size_t i = 0; i < fields->count; i++)
        if (holds_values(&fields->list[i], number, width))
            bytes += fields->list[i].size;
    uint8_t *to = values.bytes = must(malloc(bytes + 1));
    for (size_t i = 0; i < fields->count; i++) {
        const struct item *item = &fields->list[i];
        if (!holds_values(item, number, width) || item->size == 0)
            continue;
        if (item->size % width != 0)
            fault(decoder, DECODER_MALFORMED);
        memcpy(to, item->bytes, item->size);
        to += item->size;
    }
    values.count = bytes / width;
    return values;
}

/* Reads NVCaffe's raw values: field `number` has the bytes, field `number` - 2 has their type. If a
   field is repeated, uses the last bytes and the last known type. */
static struct decoded_values raw_values(const struct decoder *decoder, const struct items *fields,
                                        uint32_t number) {
    static const size_t widths[DECODED_TYPES] = {8, 4, 2, 4, 4};
    const struct item *type = NULL, *bytes = NULL;
    for (size_t i = 0; i < fields->count; i++) {
        const struct item *item = &fields->list[i];
        if (is(item, number - 2, VARINT) && (uint32_t)item->value < DECODED_TYPES)
            type = item;
        if (is(item, number, BYTES))
            bytes = item;
    }
    struct decoded_values values = {.type = type ? (uint32_t)type->value : DECODED_FLOAT};
    values.width = widths[values.type];
    if (!bytes || bytes->size == 0)
        return values;
    if (!type || bytes->size % values.width != 0)
        fault(decoder, DECODER_MALFORMED);
    values.bytes = must(malloc(bytes->size));
    memcpy(values.bytes, bytes->bytes, bytes->size);
    values.count = bytes->size / values.width;
    return values;
}

static struct decoded_values prefer(struct decoded_values wide, struct decoded_values narrow) {
    free(wide.count > 0 ? narrow.bytes : wide.bytes);
    return wide.count > 0 ? wide : narrow;
}

/* Returns the doubles; if there are none, the floats; if there are none, the raw values. */
static struct decoded_values winner(const struct decoder *decoder, const struct items *fields,
                                    uint32_t floats, uint32_t doubles, uint32_t raw) {
    struct decoded_values repeated =
        prefer(gather(decoder, fields, doubles, 8), gather(decoder, fields, floats, 4));
    if (repeated.count > 0)
        return repeated;
    free(repeated.bytes);
    return raw_values(decoder, fields, raw);
}

static void judge_count(const struct decoder *decoder, const struct decoded_blob *blob,
                        const struct decoded_values *values) {
    if (values->count > 0 && (uint64_t)blob->count != values->count)
        fault(decoder, DECODER_LENGTH);
}

/* --- blobs ------------------------------------------------------------------------------ */

/* Returns whether C3D 1.0 wrote the message: the fields 1 to 5 come first and are numbers. */
static bool is_c3d(const struct items *fields) {
    bool has[6] = {false};
    for (size_t i = 0; i < fields->count; i++) {
        const struct item *item = &fields->list[i];
        if (item->number > 5 || item->type != VARINT)
            break;
        has[item->number] = true;
    }
    return has[1] && has[2] && has[3] && has[4] && has[5];
}

static void read_dims(const struct decoder *decoder, const struct items *fields,
                      struct decoded_blob *blob) {
    struct dims dims = {.list = NULL};
    const size_t axes = blob->c3d ? 5 : 4;
    int64_t legacy[5] = {0};
    for (size_t i = 0; i < fields->count; i++) {
        const struct item *item = &fields->list[i];
        if (item->number <= axes && item->type == VARINT) {
            blob->legacy = true;
            legacy[item->number - 1] = (int64_t)item->value;
        } else if (!blob->c3d && is(item, 7, BYTES)) {
            read_shape(decoder, item, &dims);
        }
    }
    if (blob->legacy) {
        dims.count = 0;
        for (size_t i = 0; i < axes; i++) {
            judge_legacy_dim(decoder, legacy[i]);
            add_dim(&dims, (uint64_t)legacy[i]);
        }
    }
    judge_shape(decoder, &dims, blob);
    free(dims.list);
}

static void read_blob(const struct decoder *decoder, const uint8_t *bytes, size_t size) {
    struct decoded_file *file = decoder->file;
    file->blobs = one_more(file->blobs, file->num_blobs, &file->room_blobs, sizeof *file->blobs);
    struct decoded_blob *blob = &file->blobs[file->num_blobs++];
    *blob = (struct decoded_blob){.message = bytes, .size = size};
    struct items fields = fields_of(decoder, bytes, size);
    blob->c3d = is_c3d(&fields);
    file->c3d = file->c3d || blob->c3d;
    read_dims(decoder, &fields, blob);
    const uint32_t data = blob->c3d ? 6 : 5;
    blob->data =
        blob->c3d ? gather(decoder, &fields, data, 4) : winner(decoder, &fields, data, 8, 12);
    blob->diff = blob->c3d ? gather(decoder, &fields, data + 1, 4)
                           : winner(decoder, &fields, data + 1, 9, 13);
    judge_count(decoder, blob, &blob->data);
    judge_count(decoder, blob, &blob->diff);
    free(fields.list);
}

static void add_blob(const struct decoder *decoder, const struct item *item) {
    if (decoder->file->num_blobs >= decoder->limits->max_blobs)
        fault(decoder, DECODER_LIMIT);
    read_blob(decoder, item->bytes, item->size);
}

/* --- layers: NetParameter.layer, .layers and .layers.layer ------------------------------ */

static void read_v0_layer(const struct decoder *decoder, const struct item *v0,
                          struct decoded_layer *layer) {
    struct items fields = fields_of(decoder, v0->bytes, v0->size);
    layer->generation = 0;
    layer->numbered = false;
    for (size_t i = 0; i < fields.count; i++) {
        const struct item *item = &fields.list[i];
        if (is(item, 1, BYTES))
            set_text(decoder, item, &layer->name);
        else if (is(item, 2, BYTES))
            set_text(decoder, item, &layer->type);
        else if (is(item, 50, BYTES))
            add_blob(decoder, item);
    }
    free(fields.list);
}

static void read_v1_layer(const struct decoder *decoder, const struct items *fields,
                          struct decoded_layer *layer) {
    bool has_window = false;
    layer->generation = 1;
    layer->numbered = true;
    for (size_t i = 0; i < fields->count; i++) {
        const struct item *item = &fields->list[i];
        if (is(item, 1, BYTES))
            read_v0_layer(decoder, item, layer);
        else if (is(item, 4, BYTES))
            set_text(decoder, item, &layer->name);
        else if (is(item, 5, VARINT))
            layer->type_number = (int32_t)item->value;
        else if (is(item, 6, BYTES))
            add_blob(decoder, item);
        else if (is(item, 10, BYTES) || is(item, 19, BYTES))
            has_window = true;
    }
    const int32_t type = layer->type_number;
    if (has_window && (type == 30 || type == 31 || type == 34))
        decoder->file->c3d = true;
}

static void read_current_layer(const struct decoder *decoder, const struct items *fields,
                               struct decoded_layer *layer) {
    layer->generation = 2;
    for (size_t i = 0; i < fields->count; i++) {
        const struct item *item = &fields->list[i];
        if (is(item, 1, BYTES))
            set_text(decoder, item, &layer->name);
        else if (is(item, 2, BYTES))
            set_text(decoder, item, &layer->type);
        else if (is(item, 7, BYTES))
            add_blob(decoder, item);
    }
}

static void add_layer(const struct decoder *decoder, const struct item *item) {
    struct decoded_file *file = decoder->file;
    struct decoded_layer layer = {.first_blob = file->num_blobs};
    struct items fields = fields_of(decoder, item->bytes, item->size);
    if (file->num_layers >= decoder->limits->max_layers)
        fault(decoder, DECODER_LIMIT);
    (item->number == 100 ? read_current_layer : read_v1_layer)(decoder, &fields, &layer);
    layer.blobs = file->num_blobs - layer.first_blob;
    free(fields.list);
    file->layers =
        one_more(file->layers, file->num_layers, &file->room_layers, sizeof *file->layers);
    file->layers[file->num_layers++] = layer;
}

/* --- whole files ------------------------------------------------------------------------ */

/* The functions read_*_field read one field and return whether the format has this field. */
static bool read_net_field(const struct decoder *decoder, const struct item *item) {
    if (is(item, 1, BYTES))
        set_text(decoder, item, &decoder->file->name);
    else if (is(item, 2, BYTES) || is(item, 100, BYTES))
        add_layer(decoder, item);
    else
        return false;
    return true;
}

static bool read_solver_field(const struct decoder *decoder, const struct item *item) {
    if (is(item, 1, VARINT))
        decoder->file->iter = (int32_t)item->value;
    else if (is(item, 2, BYTES))
        set_text(decoder, item, &decoder->file->learned_net);
    else if (is(item, 3, BYTES))
        add_blob(decoder, item);
    else if (is(item, 4, VARINT))
        decoder->file->current_step = (int32_t)item->value;
    else
        return false;
    return true;
}

static bool read_vector_field(const struct decoder *decoder, const struct item *item) {
    if (is(item, 1, BYTES))
        add_blob(decoder, item);
    return is(item, 1, BYTES);
}

static struct decoded_file decode(const uint8_t *bytes, size_t size,
                                  const struct decoder_limits *limits,
                                  bool (*read_field)(const struct decoder *, const struct item *)) {
    struct decoded_file file = {.faults = 0};
    const struct decoder decoder = {&file, limits};
    struct items fields = fields_of(&decoder, bytes, size);
    for (size_t i = 0; i < fields.count; i++)
        file.recognised |= read_field(&decoder, &fields.list[i]);
    free(fields.list);
    return file;
}

struct decoded_file decode_blob_vector(const uint8_t *bytes, size_t size,
                                       const struct decoder_limits *limits) {
    return decode(bytes, size, limits, read_vector_field);
}

struct decoded_file decode_net(const uint8_t *bytes, size_t size,
                               const struct decoder_limits *limits) {
    return decode(bytes, size, limits, read_net_field);
}

struct decoded_file decode_solver_state(const uint8_t *bytes, size_t size,
                                        const struct decoder_limits *limits) {
    return decode(bytes, size, limits, read_solver_field);
}

struct decoded_file decode_blob(const uint8_t *bytes, size_t size,
                                const struct decoder_limits *limits) {
    struct decoded_file file = {.recognised = true};
    const struct decoder decoder = {&file, limits};
    read_blob(&decoder, bytes, size);
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
    switch (status) {
    case SB_OK:
        return faults == 0;
    case SB_ERR_MALFORMED:
        return faults & DECODER_MALFORMED;
    case SB_ERR_LENGTH_MISMATCH:
        return faults & DECODER_LENGTH;
    case SB_ERR_BAD_SHAPE:
        return faults & DECODER_BAD_SHAPE;
    case SB_ERR_DATA_OVERFLOW:
        return faults & DECODER_OVERFLOW;
    case SB_ERR_DATA_LIMIT:
        return faults & DECODER_LIMIT;
    default:
        return false;
    }
}
