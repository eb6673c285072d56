/* Mutates messages in protobuf's wire format, at any depth of the input. */
#include "fields.h"
#include "wire_builder.h"

#include "base/draw.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 6
/* Many runs of small inputs find more bugs than a few runs of large inputs. */
#define LARGE_BYTES 512

/* libFuzzer defines this function, which mutates bytes and returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static size_t below(uint64_t *dice, size_t limit) {
    return (size_t)(sb__draw(dice) % limit);
}

static const uint8_t *begin_of(const struct fields *fields, size_t field) {
    return field < fields->count ? fields->list[field].begin : fields->rest;
}

static void put_between(const uint8_t *begin, const uint8_t *end, struct wire *out) {
    wire_raw(out, begin, (size_t)(end - begin));
}

static void put_before(const struct fields *fields, size_t field, struct wire *out) {
    put_between(fields->bytes, begin_of(fields, field), out);
}

static void put_from(const struct fields *fields, size_t field, struct wire *out) {
    put_between(begin_of(fields, field), fields->end, out);
}

/* --- edits: each writes a replacement of a field ------------------------------------------- */

static void put_field(const struct field *field, struct wire *out) {
    put_between(field->begin, field->bytes + field->size, out);
}

static void repeat(const struct field *field, uint64_t *dice, struct wire *out) {
    size_t times = 2 + (below(dice, 4) ? 0 : below(dice, 40));
    for (size_t i = 0; i < times; i++)
        put_field(field, out);
}

static void renumber(const struct field *field, uint64_t *dice, struct wire *out) {
    static const uint32_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 50, 100};
    wire_tag(out, numbers[below(dice, sizeof numbers / sizeof *numbers)], field->type);
    if (field->type == BYTES)
        wire_varint(out, field->size);
    wire_raw(out, field->bytes, field->size);
}

static void unpack(const struct field *field, uint64_t *dice, struct wire *out) {
    static const size_t sizes[] = {[VARINT] = 1, [FIXED64] = 8, [FIXED32] = 4};
    static const unsigned types[] = {VARINT, FIXED32, FIXED64};
    const unsigned type = types[below(dice, 3)];
    for (size_t at = 0; at + sizes[type] <= field->size; at += sizes[type]) {
        wire_tag(out, field->number, type);
        wire_raw(out, field->bytes + at, sizes[type]);
    }
}

static void split(const struct field *field, uint64_t *dice, struct wire *out) {
    size_t cut = below(dice, field->size + 1);
    cut -= below(dice, 8) ? cut % 4 : 0;
    wire_bytes(out, field->number, field->bytes, cut);
    wire_bytes(out, field->number, field->bytes + cut, field->size - cut);
}

static void change_number(const struct field *field, uint64_t *dice, struct wire *out) {
    const uint64_t old = field->type == VARINT ? field->value : field->size, one = 1;
    const uint64_t values[] = {old + 1,   old - 1,    old * 2,   0,          1,
                               2,         INT32_MAX,  one << 31, UINT32_MAX, INT64_MAX,
                               one << 63, UINT64_MAX, one << 60, one << 61};
    wire_tag(out, field->number, field->type);
    wire_varint(out, values[below(dice, sizeof values / sizeof *values)]);
    if (field->type == BYTES)
        wire_raw(out, field->bytes, field->size);
}

static void edit_order(const struct fields *fields, size_t at, struct wire *out) {
    put_before(fields, at - 1, out);
    put_field(&fields->list[at], out);
    put_field(&fields->list[at - 1], out);
    put_from(fields, at + 1, out);
}

static bool mutate_bytes(const struct fields *fields, struct wire *out) {
    uint8_t bytes[4096];
    const size_t size = (size_t)(fields->end - fields->bytes);
    if (size > sizeof bytes / 2)
        return false;
    if (size > 0)
        memcpy(bytes, fields->bytes, size);
    wire_raw(out, bytes, LLVMFuzzerMutate(bytes, size, sizeof bytes));
    return true;
}

static bool edit_message(const struct fields *fields, uint64_t *dice, struct wire *out) {
    static void (*const edits[])(const struct field *, uint64_t *, struct wire *) = {
        NULL, repeat, renumber, unpack, split, change_number};
    const size_t which = below(dice, 10);
    if (fields->count == 0 || which > 6)
        return mutate_bytes(fields, out);
    const size_t at = below(dice, fields->count);
    const struct field *field = &fields->list[at];
    if (which == 6) {
        if (at > 0)
            edit_order(fields, at, out);
        return at > 0;
    }
    if ((which > 2 && field->type != BYTES && (which < 5 || field->type != VARINT)) ||
        (which == 2 && field->type == GROUP))
        return false;
    put_before(fields, at, out);
    if (edits[which])
        edits[which](field, dice, out);
    put_from(fields, at + 1, out);
    return true;
}

/* --- an edit of any message within the input ----------------------------------------------- */

static bool is_message(const struct field *field) {
    if (field->type != BYTES)
        return false;
    const struct fields inside = fields_parse(field->bytes, field->size);
    free(inside.list);
    return inside.count > 0 && inside.rest == inside.end;
}

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
