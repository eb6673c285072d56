/* Parses bytes as a protobuf message up to the first error, and writes messages. Mutations need
   invalid messages, so the parser does not check values, and the writer can write any value. */
#ifndef SB_FUZZ_MESSAGE_H
#define SB_FUZZ_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 };

#define MAX_FIELDS 512

struct field {
    size_t begin; /* where the tag begins */
    size_t value; /* where the value begins: after the tag and, for BYTES, the length */
    size_t end;   /* where the field ends; the end tag of a group belongs to the field */
    uint32_t number;
    unsigned type;
};

struct message {
    const uint8_t *bytes;
    size_t size;
    size_t count; /* number of fields, at most MAX_FIELDS */
    size_t tail;  /* where the last field ends; the bytes from here on are not a field */
    struct field fields[MAX_FIELDS];
};

void message_parse(struct message *message, const uint8_t *bytes, size_t size);
/* Returns where a field begins; for field `count`, where the last field ends. */
size_t message_begin(const struct message *message, size_t field);
/* Returns whether the bytes are one or more fields and nothing else. */
bool message_is_whole(const uint8_t *bytes, size_t size);

/* Reads a varint; returns the number of bytes read; 0 if the bytes do not begin with a varint. */
size_t varint_read(const uint8_t *bytes, size_t size, uint64_t *out);

/* A buffer for writing. A write that does not fit writes nothing and sets `full`. */
struct buffer {
    uint8_t *bytes;
    size_t size, room;
    bool full;
};

void put_bytes(struct buffer *out, const void *bytes, size_t size);
/* Writes a varint, padded to at least `length` bytes. */
void put_varint(struct buffer *out, uint64_t value, size_t length);
void put_tag(struct buffer *out, uint32_t number, unsigned type);
void put_length_field(struct buffer *out, uint32_t number, const void *bytes, size_t size);

/* put_before writes the fields before `field`; put_from writes `field` and all bytes after it. */
void put_before(const struct message *message, size_t field, struct buffer *out);
void put_from(const struct message *message, size_t field, struct buffer *out);

/* Returns a random number from 0 to limit - 1; limit > 0. `dice` is the state for sb__draw. */
size_t below(uint64_t *dice, size_t limit);

/* Writes the message with a random edit; returns false if the edit is impossible. */
bool edit_message(const struct message *message, uint64_t *dice, struct buffer *out);

/* libFuzzer's function. Mutates bytes, also with words of the dictionary; returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#endif
