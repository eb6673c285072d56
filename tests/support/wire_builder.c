#include "wire_builder.h"

#include "counting_allocator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

void wire_free(struct wire *wire) {
    if (test_disown(wire->bytes))
        free(wire->bytes);
    *wire = (struct wire){0};
}

void wire_raw(struct wire *wire, const void *bytes, size_t size) {
    if (wire->size + size > wire->room) {
        wire->room = 2 * (wire->size + size);
        (void)test_disown(wire->bytes);
        wire->bytes = realloc(wire->bytes, wire->room);
        test_own_loan(wire->bytes, free);
    }
    if (size > 0)
        memcpy(wire->bytes + wire->size, bytes, size);
    wire->size += size;
}

void wire_value(struct wire *wire, const void *value, size_t width) {
    const char *bytes = value;
    for (size_t i = 0; i < width; i++)
        wire_raw(wire, bytes + (BIG_ENDIAN_HOST ? width - 1 - i : i), 1);
}

static void put_byte(struct wire *wire, uint64_t byte) {
    unsigned char b = (unsigned char)byte;
    wire_raw(wire, &b, 1);
}

void wire_varint(struct wire *wire, uint64_t value) {
    wire_overlong(wire, value, 1);
}

void wire_overlong(struct wire *wire, uint64_t value, int bytes) {
    for (; value >= 0x80 || bytes > 1; value >>= 7, bytes--)
        put_byte(wire, value | 0x80);
    put_byte(wire, value);
}

void wire_tag(struct wire *wire, uint32_t field, uint32_t type) {
    wire_varint(wire, (uint64_t)field << 3 | type);
}

void wire_number(struct wire *wire, uint32_t field, uint64_t value) {
    wire_tag(wire, field, 0);
    wire_varint(wire, value);
}

void wire_bytes(struct wire *wire, uint32_t field, const void *bytes, size_t size) {
    wire_tag(wire, field, 2);
    wire_varint(wire, size);
    wire_raw(wire, bytes, size);
}

void wire_values(struct wire *wire, uint32_t field, const void *values, size_t width, size_t size) {
    wire_tag(wire, field, 2);
    wire_varint(wire, size);
    for (size_t at = 0; at < size; at += width)
        wire_value(wire, (const char *)values + at, width < size - at ? width : size - at);
}

void wire_text(struct wire *wire, uint32_t field, const char *text) {
    wire_bytes(wire, field, text, strlen(text));
}

void wire_message(struct wire *wire, uint32_t field, const struct wire *inside) {
    wire_bytes(wire, field, inside->bytes, inside->size);
}

void wire_float(struct wire *wire, uint32_t field, float value) {
    wire_tag(wire, field, 5);
    wire_value(wire, &value, sizeof value);
}

void wire_floats(struct wire *wire, uint32_t field, const float *values, size_t count) {
    wire_values(wire, field, values, sizeof *values, count * sizeof *values);
}

void wire_doubles(struct wire *wire, uint32_t field, const double *values, size_t count) {
    wire_values(wire, field, values, sizeof *values, count * sizeof *values);
}

void wire_numbers(struct wire *wire, uint32_t field, const int64_t *values, size_t count) {
    struct wire packed = {0};
    for (size_t i = 0; i < count; i++)
        wire_varint(&packed, (uint64_t)values[i]);
    wire_message(wire, field, &packed);
    wire_free(&packed);
}

void wire_shape(struct wire *wire, const int64_t *dims, size_t axes) {
    struct wire shape = {0};
    wire_numbers(&shape, 1, dims, axes);
    wire_message(wire, 7, &shape);
    wire_free(&shape);
}

void wire_blob(struct wire *wire, const int64_t *dims, size_t axes, float first) {
    struct wire values = {0};
    int64_t count = 1;
    for (size_t i = 0; i < axes; i++)
        count *= dims[i];
    for (int64_t i = 0; i < count; i++) {
        const float value = first + (float)i;
        wire_value(&values, &value, sizeof value);
    }
    wire_message(wire, 5, &values);
    wire_shape(wire, dims, axes);
    wire_free(&values);
}

static const char *write_blob(struct wire *wire, const char *text) {
    int64_t dims[4];
    size_t axes = 0;
    char *rest = NULL;
    for (; *text != ']'; text = rest)
        dims[axes++] = strtoll(text, &rest, 10);
    const float first = strtof(text + 1, &rest);
    wire_blob(wire, dims, axes, first);
    return rest;
}

/* Appends fields up to the character `end`. Returns the text after `end`. */
static const char *write_fields(struct wire *wire, const char *text, char end) {
    for (text += strspn(text, " "); *text != end; text += strspn(text, " ")) {
        char *value;
        if (*text == '[') {
            text = write_blob(wire, text + 1);
            continue;
        }
        const uint32_t field = (uint32_t)strtoul(text, &value, 10);
        if (field == 0 || *value++ != ':')
            abort();
        if (*value == '{') {
            struct wire inside = {0};
            text = write_fields(&inside, value + 1, '}');
            wire_message(wire, field, &inside);
            wire_free(&inside);
        } else if (*value == '\'') {
            text = strchr(value + 1, '\'') + 1;
            wire_bytes(wire, field, value + 1, (size_t)(text - value) - 2);
        } else {
            if (*value == 'f')
                wire_float(wire, field, strtof(value + 1, &value));
            else
                wire_number(wire, field, strtoull(value, &value, 10));
            text = value;
        }
    }
    return text + 1;
}

static void write_format(struct wire *wire, const char *format, va_list values) {
    char text[512];
    if (vsnprintf(text, sizeof text, format, values) >= (int)sizeof text)
        abort();
    (void)write_fields(wire, text, '\0');
}

void wire_write(struct wire *wire, const char *format, ...) {
    va_list values;
    va_start(values, format);
    write_format(wire, format, values);
    va_end(values);
}

struct wire wire_of(const char *format, ...) {
    struct wire wire = {0};
    va_list values;
    va_start(values, format);
    write_format(&wire, format, values);
    va_end(values);
    return wire;
}
