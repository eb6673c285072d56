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
    uint64_t value;       /* set only for a VARINT */
    const uint8_t *begin; /* the tag */
    const uint8_t *bytes; /* the value, which follows the tag and the length (if BYTES) */
    size_t size;          /* the value's size; a GROUP's size includes the end tag */
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
/* Returns the size of a varint, or 0 if the bytes do not begin with a varint of at most 64 bits. */
size_t varint_read(const uint8_t *bytes, size_t size, uint64_t *out);

/* Returns `list`, or a larger copy if the list has no room for one more item. */
void *one_more(void *list, size_t count, size_t *room, size_t item_size);
/* Returns `memory`. If `memory` is NULL, ends the program. */
void *must(void *memory);

#endif
