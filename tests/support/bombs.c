#include "bombs.h"

#include <syncblob/model.h>

/* Special values of bomb.count. PER_UNIT: one element for each unit in the message. */
enum { NO_SHAPE, PER_UNIT = -1, EMPTY = -2 };

static void wrap(struct wire *wire, uint32_t field) {
    struct wire inside = *wire;
    *wire = (struct wire){0};
    wire_message(wire, field, &inside);
    wire_free(&inside);
}

void bomb_build(const struct bomb *bomb, struct wire *wire, size_t size) {
    struct wire whole = {0}, units = {0};
    int64_t count = 0;
    wire_raw(&whole, bomb->head, bomb->head_size);
    for (; units.size < size; count++)
        wire_raw(&units, bomb->unit, bomb->unit_size);
    if (bomb->repeated_in)
        wire_message(&whole, bomb->repeated_in, &units);
    else
        wire_raw(&whole, units.bytes, units.size);
    wire_raw(&whole, bomb->tail, bomb->tail_size);
    if (bomb->count != PER_UNIT)
        count = bomb->count == EMPTY ? 0 : bomb->count;
    if (bomb->count != NO_SHAPE)
        wire_shape(&whole, &count, 1);
    for (int i = 0; i < 2 && bomb->within[i]; i++)
        wrap(&whole, bomb->within[i]);
    wire_raw(wire, whole.bytes, whole.size);
    wire_free(&units);
    wire_free(&whole);
}

#define X10(text)  text text text text text text text text text text
#define UNIT(text) .unit = (text), .unit_size = sizeof(text) - 1
#define HEAD(text) .head = (text), .head_size = sizeof(text) - 1
#define TAIL(text) .tail = (text), .tail_size = sizeof(text) - 1
#define NAME       HEAD("\x0a\x01n") /* the name of a net */
#define ITER       HEAD("\x08\x01")  /* the iteration of a solver state */
#define HALF       HEAD("\x50\x02")  /* the type of raw data: F16 */
#define SCALAR     TAIL("\x2a\x04\x01\x02\x03\x04")

/* A layer with a name of 40,000 bytes, a little more than half of a typical chunk of an arena. */
static const unsigned char long_name[40009] = {0xa2, 6, 0xc4, 0xb8, 2, 0x0a, 0xc0, 0xb8, 2};

const struct bomb bombs[] = {
    {"empty_layers", SB_FORMAT_CAFFEMODEL, UNIT("\xa2\x06\x00")},
    {"empty_v1_layers", SB_FORMAT_CAFFEMODEL, UNIT("\x12\x00")},
    {"empty_v0_layers", SB_FORMAT_CAFFEMODEL, UNIT("\x12\x02\x0a\x00")},
    /* One layer repeats its V0 parameter. A reader merges the repetitions. */
    {"one_layer_of_many_parts", SB_FORMAT_CAFFEMODEL, 2, UNIT("\x0a\x00")},
    {"one_layer_of_parts_with_blobs", SB_FORMAT_CAFFEMODEL, 2,
     UNIT("\x0a\x06\x92\x03\x00\x92\x03\x00")},
    /* The file has a layer type's number. The type's name, which a reader stores, is longer. */
    {"typed_v1_layers", SB_FORMAT_CAFFEMODEL, UNIT("\x12\x02\x28\x1b")},
    {"v1_layers_of_unknown_types", SB_FORMAT_CAFFEMODEL, UNIT("\x12\x06\x28\xff\xff\xff\xff\x07")},
    {"named_layers", SB_FORMAT_CAFFEMODEL, UNIT("\xa2\x06\x06\x0a\x01n\x12\x01t")},
    {"long_names", SB_FORMAT_CAFFEMODEL, .unit = long_name, .unit_size = sizeof long_name},
    /* A message repeats the field `name`. A reader keeps only the last name. */
    {"one_layer_of_many_names", SB_FORMAT_CAFFEMODEL, 100,
     UNIT("\x0a\x0a"
          "0123456789")},
    {"many_names_of_a_net", SB_FORMAT_CAFFEMODEL,
     UNIT("\x0a\x0a"
          "0123456789")},
    {"empty_blobs", SB_FORMAT_CAFFEMODEL, 100, UNIT("\x3a\x00")},
    {"layers_of_ten_empty_blobs", SB_FORMAT_CAFFEMODEL, UNIT("\x12\x14" X10("\x32\x00"))},
    {"small_blobs", SB_FORMAT_CAFFEMODEL, 100, UNIT("\x3a\x06\x2a\x04\x00\x00\x80\x3f")},
    {"empty_history", SB_FORMAT_SOLVERSTATE, ITER, UNIT("\x1a\x00")},
    {"small_history", SB_FORMAT_SOLVERSTATE, ITER, UNIT("\x1a\x06\x2a\x04\x00\x00\x80\x3f")},
    {"a_vector_of_empty_blobs", SB_FORMAT_BLOB_VECTOR, UNIT("\x0a\x00")},
    {"empty_shapes", SB_FORMAT_BLOB, UNIT("\x3a\x00"), SCALAR},
    /* A reader refuses a shape of more than 32 axes only after it has read the last axis. */
    {"repeated_shapes", SB_FORMAT_BLOB, UNIT("\x3a\x02\x08\x01")},
    {"packed_axes", SB_FORMAT_BLOB, 1, UNIT("\x01"), .within = {7}},
    {"repeated_legacy_dimensions", SB_FORMAT_BLOB, UNIT("\x08\x01\x10\x01\x18\x01\x20\x01"),
     SCALAR},
    {"unpacked_floats", SB_FORMAT_BLOB, UNIT("\x2d\x00\x00\x80\x3f"), .count = PER_UNIT},
    {"unpacked_doubles", SB_FORMAT_BLOB, UNIT("\x41\x00\x00\x00\x00\x00\x00\xf0\x3f"),
     .count = PER_UNIT},
    {"chunks_of_one_float", SB_FORMAT_BLOB, UNIT("\x2a\x04\x00\x00\x80\x3f"), .count = PER_UNIT},
    {"empty_chunks", SB_FORMAT_BLOB, UNIT("\x2a\x00"), .count = EMPTY},
    {"packed_floats", SB_FORMAT_BLOB, 5, UNIT("\x00\x00\x80\x3f"), .count = PER_UNIT},
    /* Halves that are loaded as doubles need four times as many bytes. */
    {"raw_halves", SB_FORMAT_BLOB, 12, HALF, UNIT("\x00\x3c"), .count = PER_UNIT},
    {"raw_data_that_loses", SB_FORMAT_BLOB, UNIT("\x50\x02\x62\x02\x00\x3c"), .count = 1},
    {"unpacked_floats_of_a_layer", SB_FORMAT_CAFFEMODEL, UNIT("\x2d\x00\x00\x80\x3f"),
     .count = PER_UNIT, .within = {7, 100}},
    {"unknown_numbers", SB_FORMAT_CAFFEMODEL, NAME, UNIT("\xf8\x01\x01")},
    {"unknown_texts", SB_FORMAT_CAFFEMODEL, NAME, UNIT("\xfa\x01\x00")},
    {"overlong_numbers", SB_FORMAT_CAFFEMODEL, NAME,
     UNIT("\xf8\x81\x80\x80\x80\x80\x80\x80\x80\x00\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00")},
    {"flat_groups", SB_FORMAT_CAFFEMODEL, NAME, UNIT("\xfb\x01\xfc\x01")},
    /* Groups are nested as deeply as a reader allows. */
    {"deep_groups", SB_FORMAT_CAFFEMODEL, NAME, UNIT(X10(X10("\xfb\x01")) X10(X10("\xfc\x01")))},
    /* A known field number with a wrong wire type counts as an unknown field. */
    {"known_fields_of_a_wrong_type", SB_FORMAT_CAFFEMODEL, NAME, UNIT("\xa0\x06\x01")},
};
const size_t num_bombs = sizeof bombs / sizeof *bombs;
