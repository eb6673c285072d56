#include "edits.h"

#include <string.h>

/* libFuzzer's own mutation, which knows the dictionary. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

struct edit {
    const struct message *message;
    struct dice *dice;
    struct buffer *out;
};

static const uint32_t numbers[] = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 50, 99, 100, (1u << 29) - 1};

static size_t below(const struct edit *edit, size_t limit) {
    return dice_below(edit->dice, limit);
}

static uint32_t any_number(const struct edit *edit) {
    return numbers[below(edit, sizeof numbers / sizeof *numbers)];
}

static uint64_t any_value(const struct edit *edit, uint64_t old) {
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      INT32_MAX,
                                      (uint64_t)INT32_MAX + 1,
                                      UINT32_MAX,
                                      INT64_MAX,
                                      (uint64_t)INT64_MAX + 1,
                                      UINT64_MAX,
                                      (uint64_t)1 << 60,
                                      (uint64_t)1 << 61};
    size_t choice = below(edit, sizeof values / sizeof *values + 3);
    switch (choice) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return old * 2;
    default:
        return values[choice - 3];
    }
}

/* --- writing parts ---------------------------------------------------------------- */

void put_before(const struct message *message, size_t field, struct buffer *out) {
    size_t end = field < message->count ? message->fields[field].begin : message->tail;
    put_bytes(out, message->bytes, end);
}

void put_from(const struct message *message, size_t field, struct buffer *out) {
    size_t begin = field < message->count ? message->fields[field].begin : message->tail;
    put_bytes(out, message->bytes + begin, message->size - begin);
}

static const struct field *any_field(const struct edit *edit, size_t *index) {
    if (edit->message->count == 0)
        return NULL;
    *index = below(edit, edit->message->count);
    return &edit->message->fields[*index];
}

static const struct field *any_field_of(const struct edit *edit, unsigned type, size_t *index) {
    size_t count = edit->message->count;
    for (size_t tries = 0; tries < 8 && count > 0; tries++) {
        const struct field *field = any_field(edit, index);
        if (field->type == type)
            return field;
    }
    return NULL;
}

static void put_field(const struct edit *edit, const struct field *field) {
    put_bytes(edit->out, edit->message->bytes + field->begin, field->end - field->begin);
}

static const uint8_t *value_of(const struct edit *edit, const struct field *field) {
    return edit->message->bytes + field->value;
}

static size_t value_size(const struct field *field) {
    return field->end - field->value;
}

/* --- order and number ---------------------------------------------------------------- */

static bool repeat(const struct edit *edit) {
    size_t at, times = 1 + (below(edit, 4) ? 0 : below(edit, 40));
    const struct field *field = any_field(edit, &at);
    if (!field)
        return false;
    put_before(edit->message, at, edit->out);
    for (size_t i = 0; i < times; i++)
        put_field(edit, field);
    put_from(edit->message, at, edit->out);
    return true;
}

static bool delete (const struct edit *edit) {
    size_t at;
    if (!any_field(edit, &at))
        return false;
    put_before(edit->message, at, edit->out);
    put_from(edit->message, at + 1, edit->out);
    return true;
}

static bool move(const struct edit *edit) {
    size_t from, to = below(edit, edit->message->count + 1);
    const struct field *field = any_field(edit, &from);
    if (!field || to == from || to == from + 1)
        return false;
    for (size_t i = 0; i < edit->message->count; i++) {
        if (i == to)
            put_field(edit, field);
        if (i != from)
            put_field(edit, &edit->message->fields[i]);
    }
    if (to == edit->message->count)
        put_field(edit, field);
    put_from(edit->message, edit->message->count, edit->out);
    return true;
}

static bool renumber(const struct edit *edit) {
    size_t at;
    const struct field *field = any_field(edit, &at);
    if (!field || field->type == GROUP)
        return false;
    put_before(edit->message, at, edit->out);
    put_tag(edit->out, any_number(edit), field->type);
    if (field->type == BYTES)
        put_varint(edit->out, value_size(field), 0);
    put_bytes(edit->out, value_of(edit, field), value_size(field));
    put_from(edit->message, at + 1, edit->out);
    return true;
}

/* --- packed and not ----------------------------------------------------------------------- */

/* Bytes of the element at `at` if elements are of this type; 0 when there is none. */
static size_t element_size(const uint8_t *bytes, size_t size, unsigned type) {
    uint64_t value;
    if (type == VARINT)
        return varint_read(bytes, size, &value);
    size_t width = type == FIXED32 ? 4 : 8;
    return size >= width ? width : 0;
}

static bool unpack(const struct edit *edit) {
    static const unsigned types[] = {VARINT, FIXED32, FIXED64};
    size_t at, size;
    const struct field *field = any_field_of(edit, BYTES, &at);
    if (!field)
        return false;
    unsigned type = field->number == 5 || field->number == 6   ? FIXED32
                    : field->number == 8 || field->number == 9 ? FIXED64
                                                               : types[below(edit, 3)];
    const uint8_t *next = value_of(edit, field), *end = next + value_size(field);
    put_before(edit->message, at, edit->out);
    for (; (size = element_size(next, (size_t)(end - next), type)) > 0; next += size) {
        put_tag(edit->out, field->number, type);
        put_bytes(edit->out, next, size);
    }
    put_from(edit->message, at + 1, edit->out);
    return true;
}

/* A run of fields of one number becomes one packed field. */
static bool pack(const struct edit *edit) {
    size_t at, end, size = 0;
    const struct field *first = any_field(edit, &at);
    if (!first || first->type == BYTES || first->type == GROUP)
        return false;
    for (end = at; end < edit->message->count; end++) {
        const struct field *field = &edit->message->fields[end];
        if (field->number != first->number || field->type != first->type)
            break;
        size += value_size(field);
    }
    put_before(edit->message, at, edit->out);
    put_tag(edit->out, first->number, BYTES);
    put_varint(edit->out, size, 0);
    for (size_t i = at; i < end; i++)
        put_bytes(edit->out, value_of(edit, &edit->message->fields[i]),
                  value_size(&edit->message->fields[i]));
    put_from(edit->message, end, edit->out);
    return true;
}

static bool split(const struct edit *edit) {
    size_t at;
    const struct field *field = any_field_of(edit, BYTES, &at);
    if (!field)
        return false;
    size_t cut = below(edit, value_size(field) + 1);
    if (below(edit, 8))
        cut -= cut % 4;
    put_before(edit->message, at, edit->out);
    put_length_field(edit->out, field->number, value_of(edit, field), cut);
    put_length_field(edit->out, field->number, value_of(edit, field) + cut,
                     value_size(field) - cut);
    put_from(edit->message, at + 1, edit->out);
    return true;
}

/* --- varints and lengths ---------------------------------------------------------------------- */

static bool overlong(const struct edit *edit) {
    size_t at, length = 2 + below(edit, 10);
    const struct field *field = any_field(edit, &at);
    bool tag = below(edit, 2);
    uint64_t value = 0;
    if (!field || field->type == GROUP)
        return false;
    put_before(edit->message, at, edit->out);
    put_varint(edit->out, (uint64_t)field->number << 3 | field->type, tag ? length : 0);
    if (field->type == BYTES)
        put_varint(edit->out, value_size(field), tag ? 0 : length);
    if (field->type == VARINT && !tag) {
        (void)varint_read(value_of(edit, field), value_size(field), &value);
        put_varint(edit->out, value, length);
    } else {
        put_bytes(edit->out, value_of(edit, field), value_size(field));
    }
    put_from(edit->message, at + 1, edit->out);
    return true;
}

static bool lie_about_length(const struct edit *edit) {
    size_t at;
    const struct field *field = any_field_of(edit, BYTES, &at);
    if (!field)
        return false;
    put_before(edit->message, at, edit->out);
    put_tag(edit->out, field->number, BYTES);
    put_varint(edit->out, any_value(edit, value_size(field)), 0);
    put_bytes(edit->out, value_of(edit, field), value_size(field));
    put_from(edit->message, at + 1, edit->out);
    return true;
}

static bool cut_short(const struct edit *edit) {
    if (edit->message->size == 0)
        return false;
    put_bytes(edit->out, edit->message->bytes, below(edit, edit->message->size));
    return true;
}

static bool change_number(const struct edit *edit) {
    size_t at;
    uint64_t value;
    const struct field *field = any_field_of(edit, VARINT, &at);
    if (!field)
        return false;
    (void)varint_read(value_of(edit, field), value_size(field), &value);
    put_before(edit->message, at, edit->out);
    put_tag(edit->out, field->number, VARINT);
    put_varint(edit->out, any_value(edit, value), 0);
    put_from(edit->message, at + 1, edit->out);
    return true;
}

/* --- groups -------------------------------------------------------------------------------- */

static bool wrap(const struct edit *edit) {
    size_t at;
    const struct field *field = any_field(edit, &at);
    uint32_t number = any_number(edit);
    if (!field)
        return false;
    put_before(edit->message, at, edit->out);
    put_tag(edit->out, number, GROUP);
    put_field(edit, field);
    put_tag(edit->out, below(edit, 8) ? number : any_number(edit), END_GROUP);
    put_from(edit->message, at + 1, edit->out);
    return true;
}

static bool nest(const struct edit *edit) {
    size_t at = below(edit, edit->message->count + 1), depth = 99 + below(edit, 3);
    uint32_t number = any_number(edit);
    put_before(edit->message, at, edit->out);
    for (size_t i = 0; i < depth; i++)
        put_tag(edit->out, number, GROUP);
    for (size_t i = 0; i < depth; i++)
        put_tag(edit->out, number, END_GROUP);
    put_from(edit->message, at, edit->out);
    return true;
}

/* --- blobs --------------------------------------------------------------------------------- */

#define MAX_DIMS 40

/* Packed numbers; 0 when the bytes are none or too many. */
static size_t read_dims(const uint8_t *bytes, size_t size, uint64_t *dims) {
    size_t count = 0, at = 0;
    while (at < size && count < MAX_DIMS) {
        size_t length = varint_read(bytes + at, size - at, &dims[count]);
        if (length == 0)
            return 0;
        at += length;
        count++;
    }
    return at == size ? count : 0;
}

static void put_dims(const struct edit *edit, uint32_t number, const uint64_t *dims, size_t count) {
    uint8_t bytes[MAX_DIMS * 10];
    struct buffer packed = {bytes, 0, sizeof bytes, false};
    for (size_t i = 0; i < count; i++)
        put_varint(&packed, dims[i], 0);
    put_length_field(edit->out, number, packed.bytes, packed.size);
}

/* One dimension becomes another, or two trade a factor, so that the product stays. */
static bool change_dims(const struct edit *edit) {
    size_t at;
    uint64_t dims[MAX_DIMS + 1];
    const struct field *field = any_field_of(edit, BYTES, &at);
    size_t count = field ? read_dims(value_of(edit, field), value_size(field), dims) : 0;
    if (count == 0)
        return false;
    size_t a = below(edit, count), b = below(edit, count);
    switch (below(edit, 4)) {
    case 0:
        dims[a] = any_value(edit, dims[a]);
        break;
    case 1:
        dims[count++] = any_value(edit, 1);
        break;
    case 2:
        if (a == b || dims[a] % 2 != 0)
            return false;
        dims[a] /= 2;
        dims[b] *= 2;
        break;
    default:
        dims[a] = 1 + below(edit, 9);
    }
    put_before(edit->message, at, edit->out);
    put_dims(edit, field->number, dims, count);
    put_from(edit->message, at + 1, edit->out);
    return true;
}

static uint64_t product(const uint64_t *dims, size_t count) {
    uint64_t elements = 1;
    for (size_t i = 0; i < count; i++)
        elements = dims[i] > 4096 ? UINT32_MAX : elements * dims[i] % UINT32_MAX;
    return elements;
}

/* Elements that the message claims as a BlobProto; a large number when it claims none. */
static uint64_t claimed_count(const struct edit *edit) {
    uint64_t legacy[4] = {0}, dims[MAX_DIMS];
    size_t axes = 0;
    bool is_legacy = false;
    struct message shape;
    for (size_t i = 0; i < edit->message->count; i++) {
        const struct field *field = &edit->message->fields[i];
        if (field->type == VARINT && field->number <= 4) {
            is_legacy = true;
            (void)varint_read(value_of(edit, field), value_size(field), &legacy[field->number - 1]);
        } else if (field->type == BYTES && field->number == 7) {
            message_parse(&shape, value_of(edit, field), value_size(field));
            if (shape.count == 1 && shape.fields[0].type == BYTES)
                axes = read_dims(shape.bytes + shape.fields[0].value, value_size(&shape.fields[0]),
                                 dims);
        }
    }
    return is_legacy ? product(legacy, 4) : product(dims, axes);
}

/* A payload gets as many values as the shape claims. */
static bool fit_payload(const struct edit *edit) {
    static const struct {
        uint32_t number;
        size_t width;
    } payloads[] = {{5, 4}, {6, 4}, {8, 8}, {9, 8}, {12, 2}, {12, 4}, {13, 2}, {13, 8}};
    static const uint8_t more[4096] = {0x3f, 0x80, 0, 0x7f};
    uint64_t count = claimed_count(edit);
    size_t which = below(edit, sizeof payloads / sizeof *payloads), at = 0;
    uint32_t number = payloads[which].number;
    size_t width = payloads[which].width;
    if (count * width > sizeof more)
        return false;
    size_t size = (size_t)count * width, kept = 0;
    while (at < edit->message->count &&
           (edit->message->fields[at].number != number || edit->message->fields[at].type != BYTES))
        at++;
    put_before(edit->message, at, edit->out);
    put_tag(edit->out, number, BYTES);
    put_varint(edit->out, size, 0);
    if (at < edit->message->count) {
        const struct field *old = &edit->message->fields[at];
        kept = value_size(old) < size ? value_size(old) : size;
        put_bytes(edit->out, value_of(edit, old), kept);
    }
    put_bytes(edit->out, more, size - kept);
    put_from(edit->message, at + 1, edit->out);
    return true;
}

/* --- new fields ---------------------------------------------------------------------------- */

static bool insert(const struct edit *edit) {
    static const struct {
        const char *bytes;
        size_t size;
    } known[] = {
#define KNOWN(text) {text, sizeof(text) - 1}
        KNOWN("\x08\x01"),                                          /* num, iter */
        KNOWN("\x10\x02"),                                          /* channels */
        KNOWN("\x18\x03"),                                          /* height */
        KNOWN("\x20\x01"),                                          /* width, current_step */
        KNOWN("\x28\x04"),                                          /* a V1 layer's type */
        KNOWN("\x2a\x04\0\0\x80\x3f"),                              /* data */
        KNOWN("\x2d\0\0\x80\x3f"),                                  /* data, not packed */
        KNOWN("\x32\x04\0\0\x80\x3f"),                              /* diff */
        KNOWN("\x3a\x04\x0a\x02\x01\x02"),                          /* shape */
        KNOWN("\x3a\x02\x08\x02"),                                  /* shape, not packed */
        KNOWN("\x42\x08\0\0\0\0\0\0\xf0\x3f"),                      /* double_data */
        KNOWN("\x41\0\0\0\0\0\0\xf0\x3f"),                          /* double_data, not packed */
        KNOWN("\x4a\x08\0\0\0\0\0\0\xf0\x3f"),                      /* double_diff */
        KNOWN("\x50\x02"),                                          /* raw_data_type, FLOAT16 */
        KNOWN("\x58\x03"),                                          /* raw_diff_type, INT */
        KNOWN("\x62\x02\0\x3c"),                                    /* raw_data */
        KNOWN("\x6a\x04\0\0\0\1"),                                  /* raw_diff */
        KNOWN("\x0a\x01n"),                                         /* a name */
        KNOWN("\x12\x01t"),                                         /* a type, learned_net */
        KNOWN("\x22\x01n"),                                         /* a V1 layer's name */
        KNOWN("\x0a\x06\x2a\x04\0\0\x80\x3f"),                      /* a blob of a vector */
        KNOWN("\x1a\x06\x2a\x04\0\0\x80\x3f"),                      /* of a history */
        KNOWN("\x32\x06\x2a\x04\0\0\x80\x3f"),                      /* of a V1 layer */
        KNOWN("\x3a\x06\x2a\x04\0\0\x80\x3f"),                      /* of a layer */
        KNOWN("\x92\x03\x06\x2a\x04\0\0\x80\x3f"),                  /* of a V0 layer */
        KNOWN("\xa2\x06\x0b\x0a\x01l\x3a\x06\x2a\x04\0\0\x80\x3f"), /* a layer */
        KNOWN("\x12\x0b\x22\x01l\x32\x06\x2a\x04\0\0\x80\x3f"),     /* a V1 layer */
        KNOWN("\x12\x05\x0a\x03\x0a\x01l"),                         /* a V0 layer */
        KNOWN("\x0a\x03\x0a\x01l"),                                 /* its inside */
        KNOWN("\x9b\x06\x9c\x06"),                                  /* an unknown group */
        KNOWN("\x0e"),                                              /* wire type 6 */
        KNOWN("\0"),                                                /* tag 0 */
#undef KNOWN
    };
    size_t at = below(edit, edit->message->count + 1);
    size_t which = below(edit, sizeof known / sizeof *known);
    put_before(edit->message, at, edit->out);
    put_bytes(edit->out, known[which].bytes, known[which].size);
    put_from(edit->message, at, edit->out);
    return true;
}

/* The value of a field through libFuzzer's own mutation; a length follows its bytes. */
static bool mutate_value(const struct edit *edit) {
    uint8_t bytes[4096];
    size_t at;
    const struct field *field = any_field(edit, &at);
    if (!field || field->type == GROUP || value_size(field) > sizeof bytes / 2)
        return false;
    size_t size = value_size(field), most = field->type == BYTES ? sizeof bytes : size;
    if (size > 0)
        memcpy(bytes, value_of(edit, field), size);
    size = LLVMFuzzerMutate(bytes, size, most);
    put_before(edit->message, at, edit->out);
    put_tag(edit->out, field->number, field->type);
    if (field->type == BYTES)
        put_varint(edit->out, size, 0);
    put_bytes(edit->out, bytes, size);
    put_from(edit->message, at + 1, edit->out);
    return true;
}

bool edit_message(const struct message *message, struct dice *dice, struct buffer *out) {
    static bool (*const edits[])(const struct edit *) = {
        repeat,      delete,       move,        renumber,    unpack,        pack,
        split,       overlong,     cut_short,   wrap,        nest,          lie_about_length,
        insert,      insert,       change_dims, change_dims, change_number, fit_payload,
        fit_payload, mutate_value, mutate_value};
    const struct edit edit = {message, dice, out};
    return edits[dice_below(dice, sizeof edits / sizeof *edits)](&edit);
}
