#include "format/detect.h"

#include "base/error.h"
#include "format/outline.h"

#include <syncblob/model.h>

/* Detects a format by the outermost fields. For each format, the table has the wire types that each
   field may have, and the field's weight. A field of another wire type excludes the format. Of the
   remaining formats, the format with the largest sum of weights is chosen. The weights suit Caffe's
   output. A solver state always has the field iter. A net has a name or layers, and a blob has
   values. */
#define VARINT (1u << SB__WIRE_VARINT)
#define BYTES  (1u << SB__WIRE_BYTES)
#define FLOATS (BYTES | 1u << SB__WIRE_FIXED32)
#define WIDES  (BYTES | 1u << SB__WIRE_FIXED64)
#define LAYER  100u
#define FIELDS 15 /* indices 1 to 13 are field numbers, and 14 is LAYER */

struct evidence {
    uint32_t types;
    int weight;
};

static const struct {
    int32_t format;
    struct evidence fields[FIELDS];
} formats[] = {
    {SB_FORMAT_SOLVERSTATE, {[1] = {VARINT, 4}, {BYTES, 2}, {BYTES, 2}, {VARINT, 1}}},
    {SB_FORMAT_BLOB,
     {[1] = {VARINT, 2},
      {VARINT, 2},
      {VARINT, 2},
      {VARINT, 2},
      {FLOATS | VARINT, 3},
      {FLOATS, 3},
      {BYTES, 3},
      {WIDES, 3},
      {WIDES, 3},
      {VARINT, 1},
      {VARINT, 1},
      {BYTES, 3},
      {BYTES, 3}}},
    {SB_FORMAT_CAFFEMODEL,
     {[1] = {BYTES, 4},
      {BYTES, 4},
      {BYTES, 1},
      {VARINT | BYTES, 1},
      {VARINT, 1},
      {BYTES, 1},
      {VARINT, 1},
      {BYTES, 1},
      [FIELDS - 1] = {BYTES, 4}}},
};

static int weigh(const struct evidence *fields, const uint32_t *seen) {
    int weight = 0;
    for (int i = 1; i < FIELDS; i++) {
        if (fields[i].types != 0 && (seen[i] & ~fields[i].types) != 0)
            return 0;
        if (seen[i] & fields[i].types)
            weight += fields[i].weight;
    }
    return weight;
}

/* Distinguishes a vector of blobs from a net that has only a name. A vector's blobs and a net's
   name have the same field number. */
static sb_status detect_vector(struct sb__reader *reader, int32_t *out, sb_error *err) {
    struct sb__outline outline;
    bool is_vector = false;
    sb_status st = sb__outline_read(reader, 0, reader->source->size, 1, &outline, err);
    if (st == SB_OK)
        st = sb__outline_is_vector(&outline, reader, &is_vector, err);
    if (is_vector)
        *out = SB_FORMAT_BLOB_VECTOR;
    return st;
}

sb_status sb__detect_format(struct sb__reader *reader, int32_t *out, sb_error *err) {
    static const struct sb__field_name no_names[] = {{0, NULL}};
    static const struct sb__path path = {NULL, "", -1, no_names};
    uint32_t seen[FIELDS] = {0};
    bool is_one_number = true;
    struct sb__field field = {.end = 0};
    sb_status st;
    while ((st = sb__wire_next(reader, &path, reader->source->size, &field, err)) == SB_OK &&
           field.number != 0) {
        is_one_number = is_one_number && field.number == 1;
        if (field.number < FIELDS - 1)
            seen[field.number] |= 1u << field.type;
        else if (field.number == LAYER)
            seen[FIELDS - 1] |= 1u << field.type;
    }
    if (st != SB_OK)
        return st;
    int best = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        int weight = weigh(formats[i].fields, seen);
        if (weight <= best)
            continue;
        *out = formats[i].format;
        best = weight;
    }
    if (best == 0)
        return sb__fail_at(err, SB_ERR_MALFORMED, 0,
                           "the fields do not belong to a Caffe model, solver state or blob");
    return is_one_number ? detect_vector(reader, out, err) : SB_OK;
}
