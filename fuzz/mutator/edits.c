#include "message.h"

#include <string.h>

/* The state of an edit. The edit writes to `out` a replacement of the fields `at` to `end` - 1. */
struct edit {
    const struct message *message;
    uint64_t *dice;
    struct buffer *out;
    size_t at, end;
    const struct field *field; /* the field with the index `at`; NULL after the last field */
    size_t payload;            /* an index in `payloads`, for fit_payload */
};

static uint32_t any_number(const struct edit *edit) {
    static const uint32_t numbers[] = {
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 50, 99, 100, (1u << 29) - 1};
    return numbers[below(edit->dice, sizeof numbers / sizeof *numbers)];
}

static uint64_t any_value(const struct edit *edit, uint64_t old) {
    const uint64_t one = 1, bit31 = one << 31, bit63 = one << 63;
    const uint64_t values[] = {old + 1, old - 1,    old * 2,   0,          1,
                               2,       INT32_MAX,  bit31,     UINT32_MAX, INT64_MAX,
                               bit63,   UINT64_MAX, one << 60, one << 61};
    return values[below(edit->dice, sizeof values / sizeof *values)];
}

/* --- writing parts ---------------------------------------------------------------- */

static void put_field(const struct edit *edit, const struct field *field) {
    if (field)
        put_bytes(edit->out, edit->message->bytes + field->begin, field->end - field->begin);
}

static const uint8_t *value_of(const struct edit *edit, const struct field *field) {
    return edit->message->bytes + field->value;
}

static size_t value_size(const struct field *field) {
    return field->end - field->value;
}

/* Writes a field that has the wire type of the edited field. */
static void put_whole(const struct edit *edit, uint32_t number, const void *value, size_t size) {
    put_tag(edit->out, number, edit->field->type);
    if (edit->field->type == BYTES)
        put_varint(edit->out, size, 0);
    put_bytes(edit->out, value, size);
}

static void put_value(const struct edit *edit) {
    put_bytes(edit->out, value_of(edit, edit->field), value_size(edit->field));
}

/* --- order and number ---------------------------------------------------------------- */

static bool repeat(struct edit *edit) {
    size_t times = 2 + (below(edit->dice, 4) ? 0 : below(edit->dice, 40));
    for (size_t i = 0; i < times; i++)
        put_field(edit, edit->field);
    return true;
}

static bool delete (struct edit *edit) {
    (void)edit;
    return true;
}

/* Moves the field after some of the fields that follow it. */
static bool move(struct edit *edit) {
    edit->end += below(edit->dice, edit->message->count - edit->at);
    for (size_t i = edit->at + 1; i < edit->end; i++)
        put_field(edit, &edit->message->fields[i]);
    put_field(edit, edit->field);
    return edit->end > edit->at + 1;
}

static bool renumber(struct edit *edit) {
    if (edit->field->type == GROUP)
        return false;
    put_whole(edit, any_number(edit), value_of(edit, edit->field), value_size(edit->field));
    return true;
}

/* --- packed and not ----------------------------------------------------------------------- */

/* Returns the size of a packed field's first element, or 0 if the field has no whole element. */
static size_t element_size(const uint8_t *bytes, size_t size, unsigned type) {
    uint64_t value;
    if (type == VARINT)
        return varint_read(bytes, size, &value);
    size_t width = type == FIXED32 ? 4 : 8;
    return size >= width ? width : 0;
}

static bool unpack(struct edit *edit) {
    static const unsigned types[] = {VARINT, FIXED32, FIXED64};
    const uint32_t number = edit->field->number;
    unsigned type = number == 5 || number == 6   ? FIXED32
                    : number == 8 || number == 9 ? FIXED64
                                                 : types[below(edit->dice, 3)];
    const uint8_t *next = value_of(edit, edit->field), *end = next + value_size(edit->field);
    for (size_t size; (size = element_size(next, (size_t)(end - next), type)) > 0; next += size) {
        put_tag(edit->out, number, type);
        put_bytes(edit->out, next, size);
    }
    return true;
}

/* Replaces consecutive fields that have the same number by one packed field. */
static bool pack(struct edit *edit) {
    const struct field *first = edit->field, *fields = edit->message->fields;
    size_t size = 0;
    if (first->type == BYTES || first->type == GROUP)
        return false;
    for (edit->end = edit->at; edit->end < edit->message->count; edit->end++) {
        const struct field *field = &fields[edit->end];
        if (field->number != first->number || field->type != first->type)
            break;
        size += value_size(field);
    }
    put_tag(edit->out, first->number, BYTES);
    put_varint(edit->out, size, 0);
    for (size_t i = edit->at; i < edit->end; i++)
        put_bytes(edit->out, value_of(edit, &fields[i]), value_size(&fields[i]));
    return true;
}

static bool split(struct edit *edit) {
    const uint8_t *value = value_of(edit, edit->field);
    size_t size = value_size(edit->field), cut = below(edit->dice, size + 1);
    if (below(edit->dice, 8))
        cut -= cut % 4;
    put_length_field(edit->out, edit->field->number, value, cut);
    put_length_field(edit->out, edit->field->number, value + cut, size - cut);
    return true;
}

/* --- varints and lengths ---------------------------------------------------------------------- */

static bool overlong(struct edit *edit) {
    const struct field *field = edit->field;
    size_t length = 2 + below(edit->dice, 10);
    bool tag = below(edit->dice, 2);
    uint64_t value = 0;
    if (field->type == GROUP)
        return false;
    put_varint(edit->out, (uint64_t)field->number << 3 | field->type, tag ? length : 0);
    if (field->type == BYTES)
        put_varint(edit->out, value_size(field), tag ? 0 : length);
    if (field->type == VARINT && !tag) {
        (void)varint_read(value_of(edit, field), value_size(field), &value);
        put_varint(edit->out, value, length);
    } else {
        put_value(edit);
    }
    return true;
}

static bool lie_about_length(struct edit *edit) {
    put_tag(edit->out, edit->field->number, BYTES);
    put_varint(edit->out, any_value(edit, value_size(edit->field)), 0);
    put_value(edit);
    return true;
}

static bool change_number(struct edit *edit) {
    uint64_t value;
    (void)varint_read(value_of(edit, edit->field), value_size(edit->field), &value);
    put_tag(edit->out, edit->field->number, VARINT);
    put_varint(edit->out, any_value(edit, value), 0);
    return true;
}

/* --- groups -------------------------------------------------------------------------------- */

static bool wrap(struct edit *edit) {
    uint32_t number = any_number(edit);
    put_tag(edit->out, number, GROUP);
    put_field(edit, edit->field);
    put_tag(edit->out, below(edit->dice, 8) ? number : any_number(edit), END_GROUP);
    return true;
}

static bool nest(struct edit *edit) {
    size_t depth = 99 + below(edit->dice, 3);
    uint32_t number = any_number(edit);
    for (size_t i = 0; i < 2 * depth; i++)
        put_tag(edit->out, number, i < depth ? GROUP : END_GROUP);
    put_field(edit, edit->field);
    return true;
}

/* --- blobs --------------------------------------------------------------------------------- */

#define MAX_DIMS 40

/* Reads packed numbers. Returns how many; 0 if the bytes are not packed numbers, or more numbers
   than MAX_DIMS. */
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

/* Replaces or appends a dimension, or divides one dimension by 2 and multiplies another by 2. */
static bool change_dims(struct edit *edit) {
    uint64_t dims[MAX_DIMS + 1];
    uint8_t bytes[sizeof dims / sizeof *dims * 10];
    struct buffer packed = {bytes, 0, sizeof bytes, false};
    size_t count = read_dims(value_of(edit, edit->field), value_size(edit->field), dims);
    if (count == 0)
        return false;
    size_t a = below(edit->dice, count), b = below(edit->dice, count);
    switch (below(edit->dice, 4)) {
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
        dims[a] = 1 + below(edit->dice, 9);
    }
    for (size_t i = 0; i < count; i++)
        put_varint(&packed, dims[i], 0);
    put_length_field(edit->out, edit->field->number, packed.bytes, packed.size);
    return true;
}

static uint64_t product(const uint64_t *dims, size_t count) {
    uint64_t elements = 1;
    for (size_t i = 0; i < count; i++)
        elements = dims[i] > 4096 ? UINT32_MAX : elements * dims[i] % UINT32_MAX;
    return elements;
}

/* Returns the number of elements of the message's shape, if the message is a BlobProto. */
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

static const struct {
    uint32_t number;
    size_t width;
} payloads[] = {{5, 4}, {6, 4}, {8, 8}, {9, 8}, {12, 2}, {12, 4}, {13, 2}, {13, 8}};

/* Chooses a kind of payload at random, and the first field of this kind. If the message has no such
   field, chooses the position after the last field. */
static bool choose_payload(struct edit *edit) {
    edit->payload = below(edit->dice, sizeof payloads / sizeof *payloads);
    for (edit->at = 0; edit->at < edit->message->count; edit->at++) {
        edit->field = &edit->message->fields[edit->at];
        if (edit->field->number == payloads[edit->payload].number && edit->field->type == BYTES)
            break;
    }
    edit->end = edit->at + (edit->at < edit->message->count);
    edit->field = edit->end > edit->at ? edit->field : NULL;
    return true;
}

/* Resizes or inserts a payload, so that it has as many values as the message's shape requires. */
static bool fit_payload(struct edit *edit) {
    static const uint8_t more[4096] = {0x3f, 0x80, 0, 0x7f};
    const uint64_t count = claimed_count(edit), width = payloads[edit->payload].width;
    if (count * width > sizeof more)
        return false;
    size_t size = (size_t)(count * width), kept = edit->field ? value_size(edit->field) : 0;
    kept = kept < size ? kept : size;
    put_tag(edit->out, payloads[edit->payload].number, BYTES);
    put_varint(edit->out, size, 0);
    if (edit->field)
        put_bytes(edit->out, value_of(edit, edit->field), kept);
    put_bytes(edit->out, more, size - kept);
    return true;
}

/* --- new fields ---------------------------------------------------------------------------- */

static bool insert(struct edit *edit) {
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
        KNOWN("\x1a\x06\x2a\x04\0\0\x80\x3f"),                      /* a blob of a history */
        KNOWN("\x32\x06\x2a\x04\0\0\x80\x3f"),                      /* a blob of a V1 layer */
        KNOWN("\x3a\x06\x2a\x04\0\0\x80\x3f"),                      /* a blob of a layer */
        KNOWN("\x92\x03\x06\x2a\x04\0\0\x80\x3f"),                  /* a blob of a V0 layer */
        KNOWN("\xa2\x06\x0b\x0a\x01l\x3a\x06\x2a\x04\0\0\x80\x3f"), /* a layer */
        KNOWN("\x12\x0b\x22\x01l\x32\x06\x2a\x04\0\0\x80\x3f"),     /* a V1 layer */
        KNOWN("\x12\x05\x0a\x03\x0a\x01l"),                         /* a V0 layer */
        KNOWN("\x0a\x03\x0a\x01l"),                                 /* the inside of a V0 layer */
        KNOWN("\x9b\x06\x9c\x06"),                                  /* an unknown group */
        KNOWN("\x0e"),                                              /* wire type 6 */
        KNOWN("\0"),                                                /* tag 0 */
#undef KNOWN
    };
    size_t which = below(edit->dice, sizeof known / sizeof *known);
    put_bytes(edit->out, known[which].bytes, known[which].size);
    put_field(edit, edit->field);
    return true;
}

/* Mutates the value of a field with LLVMFuzzerMutate, and corrects the length prefix. */
static bool mutate_value(struct edit *edit) {
    uint8_t bytes[4096];
    const struct field *field = edit->field;
    size_t size = value_size(field), most = field->type == BYTES ? sizeof bytes : size;
    if (field->type == GROUP || size > sizeof bytes / 2)
        return false;
    if (size > 0)
        memcpy(bytes, value_of(edit, field), size);
    size = LLVMFuzzerMutate(bytes, size, most);
    put_whole(edit, field->number, bytes, size);
    return true;
}

enum { SOME = 8, SOME_OR_NONE, PAYLOAD }; /* any field; any field or the end; see choose_payload */

/* Chooses a random field of the type; returns false if eight attempts find no such field. */
static bool choose_field(struct edit *edit, unsigned type) {
    size_t count = edit->message->count + (type == SOME_OR_NONE);
    if (type == PAYLOAD)
        return choose_payload(edit);
    for (int tries = 0; tries < 8 && count > 0; tries++) {
        edit->at = below(edit->dice, count);
        edit->field = edit->at < edit->message->count ? &edit->message->fields[edit->at] : NULL;
        edit->end = edit->field ? edit->at + 1 : edit->at;
        if (type >= SOME || edit->field->type == type)
            return true;
    }
    return false;
}

bool edit_message(const struct message *message, uint64_t *dice, struct buffer *out) {
    static const struct {
        bool (*call)(struct edit *);
        unsigned type; /* the required type of the field */
        size_t share;
    } edits[] = {
        {repeat, SOME, 1},          {delete, SOME, 1},         {move, SOME, 1},
        {renumber, SOME, 1},        {unpack, BYTES, 1},        {pack, SOME, 1},
        {split, BYTES, 1},          {overlong, SOME, 1},       {wrap, SOME, 1},
        {nest, SOME_OR_NONE, 1},    {change_dims, BYTES, 2},   {lie_about_length, BYTES, 1},
        {change_number, VARINT, 1}, {insert, SOME_OR_NONE, 2}, {mutate_value, SOME, 2},
        {fit_payload, PAYLOAD, 2}};
    struct edit edit = {.message = message, .dice = dice, .out = out};
    size_t left = below(dice, 21), i = 0;
    if (left == 20) { /* cuts the message short */
        put_bytes(out, message->bytes, message->size ? below(dice, message->size) : 0);
        return message->size > 0;
    }
    while (left >= edits[i].share)
        left -= edits[i++].share;
    if (!choose_field(&edit, edits[i].type))
        return false;
    put_before(message, edit.at, out);
    bool done = edits[i].call(&edit);
    put_from(message, edit.end, out);
    return done;
}
