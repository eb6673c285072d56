/* Mutations for protobuf's wire format. Each mutation edits one message, at any depth of the input,
   and corrects the lengths of the enclosing messages. */
#include "message.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 6
/* Mutation does not enlarge an input beyond this size, because many runs of small inputs find more
   than a few runs of large inputs. */
#define LARGE_BYTES 512

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_size, unsigned seed);

/* Returns the index of a random field that holds a message; `count` if it finds no such field. */
static size_t choose_child(const struct message *message, uint64_t *dice) {
    for (int tries = 0; tries < 8 && message->count > 0; tries++) {
        size_t at = below(dice, message->count);
        const struct field *field = &message->fields[at];
        if (field->type == BYTES &&
            message_is_whole(message->bytes + field->value, field->end - field->value))
            return at;
    }
    return message->count;
}

static bool mutate(const uint8_t *bytes, size_t size, uint64_t *dice, int depth,
                   struct buffer *out);

static bool mutate_child(const struct message *message, size_t at, uint64_t *dice, int depth,
                         struct buffer *out) {
    const struct field *field = &message->fields[at];
    struct buffer inside = {malloc(out->room + 1), 0, out->room, false};
    bool done = inside.bytes && mutate(message->bytes + field->value, field->end - field->value,
                                       dice, depth + 1, &inside);
    if (done) {
        put_before(message, at, out);
        put_length_field(out, field->number, inside.bytes, inside.size);
        put_from(message, at + 1, out);
    }
    out->full |= inside.full;
    free(inside.bytes);
    return done;
}

static bool mutate(const uint8_t *bytes, size_t size, uint64_t *dice, int depth,
                   struct buffer *out) {
    struct message *message = malloc(sizeof *message);
    if (!message)
        return false;
    message_parse(message, bytes, size);
    size_t child = message->count;
    if (depth < MAX_DEPTH && below(dice, 4) != 0)
        child = choose_child(message, dice);
    bool done = child < message->count ? mutate_child(message, child, dice, depth, out)
                                       : edit_message(message, dice, out);
    free(message);
    return done;
}

static size_t grown_size(size_t size, size_t max_size) {
    size_t grown = size > LARGE_BYTES ? size : LARGE_BYTES;
    return grown < max_size ? grown : max_size;
}

/* Edits a message. If edits fail, and at random otherwise, uses libFuzzer's mutation instead. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint64_t dice = seed;
    max_size = grown_size(size, max_size);
    for (int tries = 0; tries < 4 && below(&dice, 8) != 0; tries++) {
        struct buffer out = {malloc(max_size + 1), 0, max_size, false};
        bool done = out.bytes && mutate(data, size, &dice, 0, &out) && !out.full;
        if (done && out.size > 0)
            memcpy(data, out.bytes, out.size);
        free(out.bytes);
        if (done && out.size > 0)
            return out.size;
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

/* Inserts a few fields of the second message into the first message. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_size, unsigned seed) {
    uint64_t dice = seed;
    struct buffer crossed = {out, 0, max_size, false};
    struct message *first = malloc(sizeof *first), *second = malloc(sizeof *second);
    crossed.room = grown_size(size1, max_size);
    if (first && second) {
        message_parse(first, data1, size1);
        message_parse(second, data2, size2);
        size_t at = below(&dice, first->count + 1);
        size_t from = below(&dice, second->count + 1);
        size_t to = from + below(&dice, second->count - from + 1);
        size_t begin = message_begin(second, from), end = message_begin(second, to);
        put_before(first, at, &crossed);
        put_bytes(&crossed, data2 + begin, end - begin);
        put_from(first, at, &crossed);
    }
    free(first);
    free(second);
    return crossed.full ? 0 : crossed.size; /* 0: no result */
}
