#include "bombs.h"

#include <stdlib.h>
#include <syncblob/model.h>

/* --- building ------------------------------------------------------------------- */

static void fill(struct wire *wire, const void *unit, size_t unit_size, size_t size) {
    for (size_t used = 0; used < size; used += unit_size)
        wire_raw(wire, unit, unit_size);
}

/* One field whose message is `unit` over and over. */
static void wrap(struct wire *wire, uint32_t field, const void *unit, size_t unit_size,
                 size_t size) {
    struct wire inside = {0};
    fill(&inside, unit, unit_size, size);
    wire_message(wire, field, &inside);
    wire_free(&inside);
}

#define FILL(text)        fill(w, text, sizeof(text) - 1, size)
#define WRAP(field, text) wrap(w, field, text, sizeof(text) - 1, size)

/* --- layers --------------------------------------------------------------------- */

static void empty_layers(struct wire *w, size_t size) {
    FILL("\xa2\x06\x00");
}

static void empty_v1_layers(struct wire *w, size_t size) {
    FILL("\x12\x00");
}

static void empty_v0_layers(struct wire *w, size_t size) {
    FILL("\x12\x02\x0a\x00");
}

/* The V0 part of one layer, over and over: it is merged. */
static void one_layer_of_many_parts(struct wire *w, size_t size) {
    WRAP(2, "\x0a\x00");
}

static void one_layer_of_parts_with_blobs(struct wire *w, size_t size) {
    WRAP(2, "\x0a\x06\x92\x03\x00\x92\x03\x00");
}

/* Types that are longer as names than as numbers. */
static void typed_v1_layers(struct wire *w, size_t size) {
    FILL("\x12\x02\x28\x1b");
}

static void v1_layers_of_unknown_types(struct wire *w, size_t size) {
    FILL("\x12\x06\x28\xff\xff\xff\xff\x07");
}

static void named_layers(struct wire *w, size_t size) {
    FILL("\xa2\x06\x06\x0a\x01n\x12\x01t");
}

/* Each a little over half of any chunk that an arena might have. */
static void long_names(struct wire *w, size_t size) {
    enum { NAME = 40000 };
    struct wire layer = {0};
    char *name = calloc(1, NAME);
    wire_bytes(&layer, 1, name, NAME);
    for (size_t used = 0; used < size; used += layer.size)
        wire_message(w, 100, &layer);
    wire_free(&layer);
    free(name);
}

/* Given again and again; the last one counts. */
static void one_layer_of_many_names(struct wire *w, size_t size) {
    WRAP(100, "\x0a\x0a"
              "0123456789");
}

static void many_names_of_a_net(struct wire *w, size_t size) {
    FILL("\x0a\x0a"
         "0123456789");
}

/* --- blobs ------------------------------------------------------------------------ */

static void empty_blobs(struct wire *w, size_t size) {
    WRAP(100, "\x3a\x00");
}

static void layers_of_ten_empty_blobs(struct wire *w, size_t size) {
    FILL("\x12\x14\x32\x00\x32\x00\x32\x00\x32\x00\x32\x00\x32\x00\x32\x00\x32\x00\x32\x00\x32"
         "\x00");
}

/* Blobs of one value each. */
static void small_blobs(struct wire *w, size_t size) {
    WRAP(100, "\x3a\x06\x2a\x04\x00\x00\x80\x3f");
}

static void empty_history(struct wire *w, size_t size) {
    wire_number(w, 1, 1);
    FILL("\x1a\x00");
}

static void small_history(struct wire *w, size_t size) {
    wire_number(w, 1, 1);
    FILL("\x1a\x06\x2a\x04\x00\x00\x80\x3f");
}

static void a_vector_of_empty_blobs(struct wire *w, size_t size) {
    FILL("\x0a\x00");
}

/* --- shapes ------------------------------------------------------------------------- */

static void empty_shapes(struct wire *w, size_t size) {
    FILL("\x3a\x00");
    wire_text(w, 5, "\x01\x02\x03\x04"); /* a scalar */
}

/* More than 32 axes: refused, once all are seen. */
static void repeated_shapes(struct wire *w, size_t size) {
    FILL("\x3a\x02\x08\x01");
}

static void packed_axes(struct wire *w, size_t size) {
    struct wire shape = {0};
    wrap(&shape, 1, "\x01", 1, size);
    wire_message(w, 7, &shape);
    wire_free(&shape);
}

static void repeated_legacy_dimensions(struct wire *w, size_t size) {
    FILL("\x08\x01\x10\x01\x18\x01\x20\x01");
    wire_text(w, 5, "\x01\x02\x03\x04");
}

/* --- payloads ------------------------------------------------------------------------- */

static void shape_of(struct wire *w, size_t count) {
    const int64_t dims[] = {(int64_t)count};
    struct wire shape = {0};
    wire_numbers(&shape, 1, dims, 1);
    wire_message(w, 7, &shape);
    wire_free(&shape);
}

static void unpacked_floats(struct wire *w, size_t size) {
    FILL("\x2d\x00\x00\x80\x3f");
    shape_of(w, (size + 4) / 5);
}

static void unpacked_doubles(struct wire *w, size_t size) {
    FILL("\x41\x00\x00\x00\x00\x00\x00\xf0\x3f");
    shape_of(w, (size + 8) / 9);
}

static void chunks_of_one_float(struct wire *w, size_t size) {
    FILL("\x2a\x04\x00\x00\x80\x3f");
    shape_of(w, (size + 5) / 6);
}

static void empty_chunks(struct wire *w, size_t size) {
    FILL("\x2a\x00");
    shape_of(w, 0);
}

static void packed_floats(struct wire *w, size_t size) {
    wrap(w, 5, "\x00\x00\x80\x3f", 4, size);
    shape_of(w, (size + 3) / 4);
}

/* As doubles the halves take four times their bytes. */
static void raw_halves(struct wire *w, size_t size) {
    wire_number(w, 10, 2);
    wrap(w, 12, "\x00\x3c", 2, size);
    shape_of(w, (size + 1) / 2);
}

static void raw_data_that_loses(struct wire *w, size_t size) {
    FILL("\x50\x02\x62\x02\x00\x3c");
    shape_of(w, 1);
}

static void unpacked_floats_of_a_layer(struct wire *w, size_t size) {
    struct wire blob = {0}, layer = {0};
    unpacked_floats(&blob, size);
    wire_message(&layer, 7, &blob);
    wire_message(w, 100, &layer);
    wire_free(&blob);
    wire_free(&layer);
}

/* --- what nobody knows ------------------------------------------------------------------ */

static void unknown_numbers(struct wire *w, size_t size) {
    wire_text(w, 1, "n");
    FILL("\xf8\x01\x01");
}

static void unknown_texts(struct wire *w, size_t size) {
    wire_text(w, 1, "n");
    FILL("\xfa\x01\x00");
}

static void overlong_numbers(struct wire *w, size_t size) {
    wire_text(w, 1, "n");
    FILL("\xf8\x81\x80\x80\x80\x80\x80\x80\x80\x00\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00");
}

static void flat_groups(struct wire *w, size_t size) {
    wire_text(w, 1, "n");
    FILL("\xfb\x01\xfc\x01");
}

/* As deep as groups may nest, again and again. */
static void deep_groups(struct wire *w, size_t size) {
    struct wire nest = {0};
    wire_text(w, 1, "n");
    for (int i = 0; i < 100; i++)
        wire_tag(&nest, 31, 3);
    for (int i = 0; i < 100; i++)
        wire_tag(&nest, 31, 4);
    fill(w, nest.bytes, nest.size, size);
    wire_free(&nest);
}

/* Known fields of another wire type count as unknown. */
static void known_fields_of_a_wrong_type(struct wire *w, size_t size) {
    wire_text(w, 1, "n");
    FILL("\xa0\x06\x01");
}

const struct bomb bombs[] = {
    {"empty_layers", SB_FORMAT_CAFFEMODEL, empty_layers},
    {"empty_v1_layers", SB_FORMAT_CAFFEMODEL, empty_v1_layers},
    {"empty_v0_layers", SB_FORMAT_CAFFEMODEL, empty_v0_layers},
    {"one_layer_of_many_parts", SB_FORMAT_CAFFEMODEL, one_layer_of_many_parts},
    {"one_layer_of_parts_with_blobs", SB_FORMAT_CAFFEMODEL, one_layer_of_parts_with_blobs},
    {"typed_v1_layers", SB_FORMAT_CAFFEMODEL, typed_v1_layers},
    {"v1_layers_of_unknown_types", SB_FORMAT_CAFFEMODEL, v1_layers_of_unknown_types},
    {"named_layers", SB_FORMAT_CAFFEMODEL, named_layers},
    {"long_names", SB_FORMAT_CAFFEMODEL, long_names},
    {"one_layer_of_many_names", SB_FORMAT_CAFFEMODEL, one_layer_of_many_names},
    {"many_names_of_a_net", SB_FORMAT_CAFFEMODEL, many_names_of_a_net},
    {"empty_blobs", SB_FORMAT_CAFFEMODEL, empty_blobs},
    {"layers_of_ten_empty_blobs", SB_FORMAT_CAFFEMODEL, layers_of_ten_empty_blobs},
    {"small_blobs", SB_FORMAT_CAFFEMODEL, small_blobs},
    {"empty_history", SB_FORMAT_SOLVERSTATE, empty_history},
    {"small_history", SB_FORMAT_SOLVERSTATE, small_history},
    {"a_vector_of_empty_blobs", SB_FORMAT_BLOB_VECTOR, a_vector_of_empty_blobs},
    {"empty_shapes", SB_FORMAT_BLOB, empty_shapes},
    {"repeated_shapes", SB_FORMAT_BLOB, repeated_shapes},
    {"packed_axes", SB_FORMAT_BLOB, packed_axes},
    {"repeated_legacy_dimensions", SB_FORMAT_BLOB, repeated_legacy_dimensions},
    {"unpacked_floats", SB_FORMAT_BLOB, unpacked_floats},
    {"unpacked_doubles", SB_FORMAT_BLOB, unpacked_doubles},
    {"chunks_of_one_float", SB_FORMAT_BLOB, chunks_of_one_float},
    {"empty_chunks", SB_FORMAT_BLOB, empty_chunks},
    {"packed_floats", SB_FORMAT_BLOB, packed_floats},
    {"raw_halves", SB_FORMAT_BLOB, raw_halves},
    {"raw_data_that_loses", SB_FORMAT_BLOB, raw_data_that_loses},
    {"unpacked_floats_of_a_layer", SB_FORMAT_CAFFEMODEL, unpacked_floats_of_a_layer},
    {"unknown_numbers", SB_FORMAT_CAFFEMODEL, unknown_numbers},
    {"unknown_texts", SB_FORMAT_CAFFEMODEL, unknown_texts},
    {"overlong_numbers", SB_FORMAT_CAFFEMODEL, overlong_numbers},
    {"flat_groups", SB_FORMAT_CAFFEMODEL, flat_groups},
    {"deep_groups", SB_FORMAT_CAFFEMODEL, deep_groups},
    {"known_fields_of_a_wrong_type", SB_FORMAT_CAFFEMODEL, known_fields_of_a_wrong_type},
};
const size_t num_bombs = sizeof bombs / sizeof *bombs;
