/* Mutations for protobuf's wire format. Each mutation edits one message, at any depth of the input,
   and corrects the lengths of the enclosing messages. The written messages may be invalid. */
#include "fields.h"
#include "wire_builder.h"

#include "base/draw.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 6
/* Mutation does not enlarge an input beyond this size, because many runs of small inputs find more
   than a few runs of large inputs. */
#define LARGE_BYTES 512

/* libFuzzer's function. Mutates bytes, also with words of the dictionary; returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Returns a random number from 0 to limit - 1; limit > 0. */
static size_t below(uint64_t *dice, size_t limit) {
    return (size_t)(sb__draw(dice) % limit);
}

/* Returns where a field begins; for the field `count`, where the last field ends. */
static const uint8_t *begin_of(const struct fields *fields, size_t field) {
    return field < fields->count ? fields->list[field].begin : fields->rest;
}

static void put_between(const uint8_t *begin, const uint8_t *end, struct wire *out) {
    wire_raw(out, begin, (size_t)(end - begin));
}

/* put_before writes the fields before `field`; put_from writes `field` and all bytes after it. */
static void put_before(const struct fields *fields, size_t field, struct wire *out) {
    put_between(fields->bytes, begin_of(fields, field), out);
}

static void put_from(const struct fields *fields, size_t field, struct wire *out) {
    put_between(begin_of(fields, field), fields->end, out);
}

/* The state of an edit. The edit writes to `out` a replacement of the fields `at` to `end` - 1. */
struct edit {
    const struct fields *fields; /* of the message */
    uint64_t *dice;
    struct wire *out;
    size_t at, end;
    const struct field *field; /* the field with the index `at`; NULL after the last field */
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
        put_between(field->begin, field->bytes + field->size, edit->out);
}

/* Writes a field that has the wire type of the edited field. */
static void put_whole(const struct edit *edit, uint32_t number, const void *value, size_t size) {
    wire_tag(edit->out, number, edit->field->type);
    if (edit->field->type == BYTES)
        wire_varint(edit->out, size);
    wire_raw(edit->out, value, size);
}

static void put_value(const struct edit *edit) {
    wire_raw(edit->out, edit->field->bytes, edit->field->size);
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
    edit->end += below(edit->dice, edit->fields->count - edit->at);
    for (size_t i = edit->at + 1; i < edit->end; i++)
        put_field(edit, &edit->fields->list[i]);
    put_field(edit, edit->field);
    return edit->end > edit->at + 1;
}

static bool renumber(struct edit *edit) {
    if (edit->field->type == GROUP)
        return false;
    put_whole(edit, any_number(edit), edit->field->bytes, edit->field->size);
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
    const uint8_t *next = edit->field->bytes, *end = next + edit->field->size;
    for (size_t size; (size = element_size(next, (size_t)(end - next), type)) > 0; next += size) {
        wire_tag(edit->out, number, type);
        wire_raw(edit->out, next, size);
    }
    return true;
}

/* Replaces consecutive fields that have the same number by one packed field. */
static bool pack(struct edit *edit) {
    const struct field *first = edit->field, *fields = edit->fields->list;
    size_t size = 0;
    if (first->type == BYTES || first->type == GROUP)
        return false;
    for (edit->end = edit->at; edit->end < edit->fields->count; edit->end++) {
        const struct field *field = &fields[edit->end];
        if (field->number != first->number || field->type != first->type)
            break;
        size += field->size;
    }
    wire_tag(edit->out, first->number, BYTES);
    wire_varint(edit->out, size);
    for (size_t i = edit->at; i < edit->end; i++)
        wire_raw(edit->out, fields[i].bytes, fields[i].size);
    return true;
}

static bool split(struct edit *edit) {
    const uint8_t *value = edit->field->bytes;
    size_t size = edit->field->size, cut = below(edit->dice, size + 1);
    if (below(edit->dice, 8))
        cut -= cut % 4;
    wire_bytes(edit->out, edit->field->number, value, cut);
    wire_bytes(edit->out, edit->field->number, value + cut, size - cut);
    return true;
}

/* --- lengths and numbers ---------------------------------------------------------------------- */

static bool lie_about_length(struct edit *edit) {
    wire_tag(edit->out, edit->field->number, BYTES);
    wire_varint(edit->out, any_value(edit, edit->field->size));
    put_value(edit);
    return true;
}

static bool change_number(struct edit *edit) {
    wire_number(edit->out, edit->field->number, any_value(edit, edit->field->value));
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
    wire_raw(edit->out, known[which].bytes, known[which].size);
    put_field(edit, edit->field);
    return true;
}

/* Mutates the value of a field with LLVMFuzzerMutate, and corrects the length prefix. */
static bool mutate_value(struct edit *edit) {
    uint8_t bytes[4096];
    const struct field *field = edit->field;
    size_t size = field->size, most = field->type == BYTES ? sizeof bytes : size;
    if (field->type == GROUP || size > sizeof bytes / 2)
        return false;
    if (size > 0)
        memcpy(bytes, field->bytes, size);
    size = LLVMFuzzerMutate(bytes, size, most);
    put_whole(edit, field->number, bytes, size);
    return true;
}

enum { SOME = 8, SOME_OR_NONE }; /* any field; any field or the end */

/* Chooses a random field of the type; returns false if eight attempts find no such field. */
static bool choose_field(struct edit *edit, unsigned type) {
    size_t count = edit->fields->count + (type == SOME_OR_NONE);
    for (int tries = 0; tries < 8 && count > 0; tries++) {
        edit->at = below(edit->dice, count);
        edit->field = edit->at < edit->fields->count ? &edit->fields->list[edit->at] : NULL;
        edit->end = edit->field ? edit->at + 1 : edit->at;
        if (type >= SOME || edit->field->type == type)
            return true;
    }
    return false;
}

/* Writes the message with a random edit; returns false if the edit is impossible. */
static bool edit_message(const struct fields *fields, uint64_t *dice, struct wire *out) {
    static const struct {
        bool (*call)(struct edit *);
        unsigned type; /* the required type of the field */
        size_t share;
    } edits[] = {{repeat, SOME, 1},
                 {delete, SOME, 1},
                 {move, SOME, 1},
                 {renumber, SOME, 1},
                 {unpack, BYTES, 1},
                 {pack, SOME, 1},
                 {split, BYTES, 1},
                 {lie_about_length, BYTES, 1},
                 {change_number, VARINT, 1},
                 {insert, SOME_OR_NONE, 2},
                 {mutate_value, SOME, 2}};
    struct edit edit = {.fields = fields, .dice = dice, .out = out};
    size_t left = below(dice, 14), i = 0;
    if (left == 13) { /* cuts the message short */
        const size_t size = (size_t)(fields->end - fields->bytes);
        wire_raw(out, fields->bytes, size ? below(dice, size) : 0);
        return size > 0;
    }
    while (left >= edits[i].share)
        left -= edits[i++].share;
    if (!choose_field(&edit, edits[i].type))
        return false;
    put_before(fields, edit.at, out);
    bool done = edits[i].call(&edit);
    put_from(fields, edit.end, out);
    return done;
}

/* --- an edit of any message within the input ----------------------------------------------- */

static bool is_message(const struct field *field) {
    if (field->type != BYTES)
        return false;
    const struct fields inside = fields_parse(field->bytes, field->size);
    free(inside.list);
    return inside.count > 0 && inside.rest == inside.end;
}

/* Returns the index of a random field that holds a message; `count` if it finds no such field. */
static size_t choose_child(const struct fields *fields, uint64_t *dice) {
    for (int tries = 0; tries < 8 && fields->count > 0; tries++) {
        size_t at = below(dice, fields->count);
        if (is_message(&fields->list[at]))
            return at;
    }
    return fields->count;
}

static bool mutate(const uint8_t *bytes, size_t size, uint64_t *dice, int depth, struct wire *out) {
    const struct fields fields = fields_parse(bytes, size);
    size_t child = fields.count;
    bool done;
    if (depth < MAX_DEPTH && below(dice, 4) != 0)
        child = choose_child(&fields, dice);
    if (child == fields.count) {
        done = edit_message(&fields, dice, out);
    } else {
        const struct field *field = &fields.list[child];
        struct wire inside = {0};
        done = mutate(field->bytes, field->size, dice, depth + 1, &inside);
        put_before(&fields, child, out);
        wire_message(out, field->number, &inside);
        put_from(&fields, child + 1, out);
        wire_free(&inside);
    }
    free(fields.list);
    return done;
}

/* Edits a message. If edits fail, and at random otherwise, uses libFuzzer's mutation instead. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint64_t dice = seed;
    const size_t grown = size > LARGE_BYTES ? size : LARGE_BYTES;
    max_size = grown < max_size ? grown : max_size;
    for (int tries = 0; tries < 4 && below(&dice, 8) != 0; tries++) {
        struct wire out = {0};
        const bool fits = mutate(data, size, &dice, 0, &out) && out.size <= max_size;
        const size_t new_size = fits ? out.size : 0;
        if (new_size > 0)
            memcpy(data, out.bytes, new_size);
        wire_free(&out);
        if (new_size > 0)
            return new_size;
    }
    return LLVMFuzzerMutate(data, size, max_size);
}
