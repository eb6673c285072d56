/* Builds protobuf messages, valid or invalid, for tests of the reader, without the library. */
#ifndef SB_TESTS_WIRE_BUILDER_H
#define SB_TESTS_WIRE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

struct wire {
    unsigned char *bytes;
    size_t size, room;
};

#define W(s)                                                                                       \
    { (unsigned char *)(s), sizeof(s) - 1, 0 }

/* Initialise other wires with {0}. wire_free, or the end of the test, frees a wire's bytes. */
void wire_free(struct wire *wire);
void wire_raw(struct wire *wire, const void *bytes, size_t size);
/* Appends a number of `width` bytes, in little-endian order. */
void wire_value(struct wire *wire, const void *value, size_t width);
void wire_varint(struct wire *wire, uint64_t value);
/* Pads the varint with zero groups to at least `bytes` bytes: 5 in 3 bytes is 85 80 00. */
void wire_overlong(struct wire *wire, uint64_t value, int bytes);
void wire_tag(struct wire *wire, uint32_t field, uint32_t type);

void wire_number(struct wire *wire, uint32_t field, uint64_t value);
void wire_bytes(struct wire *wire, uint32_t field, const void *bytes, size_t size);
/* Appends numbers of `width` bytes each, `size` bytes in total; the last number may be cut. */
void wire_values(struct wire *wire, uint32_t field, const void *values, size_t width, size_t size);
void wire_text(struct wire *wire, uint32_t field, const char *text);
void wire_message(struct wire *wire, uint32_t field, const struct wire *inside);
void wire_float(struct wire *wire, uint32_t field, float value);
void wire_floats(struct wire *wire, uint32_t field, const float *values, size_t count);
void wire_doubles(struct wire *wire, uint32_t field, const double *values, size_t count);
/* Appends packed numbers, such as BlobShape.dim. */
void wire_numbers(struct wire *wire, uint32_t field, const int64_t *values, size_t count);
void wire_shape(struct wire *wire, const int64_t *dims, size_t axes);

/* Appends the fields of a BlobProto: a shape, and data with the floats first, first + 1, ... */
void wire_blob(struct wire *wire, const int64_t *dims, size_t axes, float first);

/* Appends the fields of `format`: 1:5 is a number, 1:f0.5 a float, 1:'conv' a text, 1:{...} a
   message. [2 3]100 is a blob of the shape 2 x 3 with the values 100, 101, ... */
void wire_write(struct wire *wire, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct wire wire_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
