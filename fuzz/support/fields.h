/* Splits a protobuf message into fields. Shares no code with the library. */
#ifndef SB_FUZZ_FIELDS_H
#define SB_FUZZ_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 };

struct field {
    uint32_t number;
    unsigned type;
    uint64_t value;
    const uint8_t *begin; /* the tag */
    const uint8_t *bytes;
    size_t size; /* the value's size; a GROUP's value includes its end tag */
};

struct fields {
    struct field *list;
    size_t count, room;
    const uint8_t *bytes, *end;
    const uint8_t *rest; /* the first byte that belongs to no field, or `end` */
    bool is_too_deep;    /* the groups at `rest` nest too deeply */
};

/* Returns the fields of a message up to its first invalid field. The caller frees `list`. */
struct fields fields_parse(const uint8_t *bytes, size_t size);
/* Returns the number of bytes that the varint has, or 0 if the bytes do not begin with a varint. */
size_t varint_read(const uint8_t *bytes, size_t size, uint64_t *out);

void *one_more(void *list, size_t count, size_t *room, size_t item_size);
void *must(void *memory);

#endif
