/* Compares the library's reader with protobuf-c's: both read random valid messages, and messages
   that are damaged at random. */
#include "blobs.h"
#include "halves.h"
#include "syncblob.pb-c.h"
#include "wire_builder.h"

static uint64_t seed = 20240229;

static size_t below(size_t n) {
    return (size_t)(test_random(&seed) % n);
}

static void put_payload(struct wire *wire, uint32_t field, int64_t count) {
    bool wide = field >= 8;
    while (count > 0) {
        int64_t chunk = 1 + (int64_t)below((size_t)count);
        if (below(2))
            chunk = 1;
        double values[96];
        float singles[96];
        for (int64_t i = 0; i < chunk; i++) {
            values[i] = (double)(int64_t)below(2000) / 8 - 100;
            singles[i] = (float)values[i];
        }
        if (chunk == 1 && wide)
            wire_double(wire, field, values[0]);
        else if (chunk == 1)
            wire_float(wire, field, singles[0]);
        else if (wide)
            wire_doubles(wire, field, values, (size_t)chunk);
        else
            wire_floats(wire, field, singles, (size_t)chunk);
        count -= chunk;
    }
}

/* NVCaffe's numbers of the types of raw values, and a number that NVCaffe does not use. */
enum { DOUBLE, FLOAT, FLOAT16, INT, UINT, UNKNOWN_TYPE };
static const size_t widths[] = {8, 4, 2, 4, 4, 3};

static void put_raw_value(struct wire *wire, uint64_t type) {
    const double wide = (double)(int64_t)below(2000) / 8 - 100;
    const float single = (float)wide;
    const int32_t number = (int32_t)wide;
    const uint16_t half = (uint16_t)below(1 << 16);
    const void *const values[] = {&wide, &single, &half, &number, &number, &number};
    wire_value(wire, values[type], widths[type]);
}

static void put_raw(struct wire *wire, uint32_t field, int64_t count) {
    struct wire values = {0};
    const uint64_t type = below(UNKNOWN_TYPE + 1), written = below(2) ? type : below(8);
    const bool type_first = below(2);
    if (type_first)
        wire_number(wire, field - 2, written);
    for (int64_t i = 0; i < count; i++)
        put_raw_value(&values, type);
    wire_message(wire, field, &values);
    if (!type_first)
        wire_number(wire, field - 2, written);
}

static void put_dims(struct wire *wire, const int64_t *dims, size_t axes) {
    size_t first = below(axes + 1);
    for (int part = 0; part < 2; part++) {
        struct wire shape = {0};
        size_t from = part ? first : 0, to = part ? axes : first;
        if (below(2))
            wire_numbers(&shape, 1, dims + from, to - from);
        else
            for (size_t i = from; i < to; i++)
                wire_number(&shape, 1, (uint64_t)dims[i]);
        wire_message(wire, 7, &shape);
    }
}

static void put_unknown(struct wire *wire) {
    const size_t kind = below(4);
    if (kind == 0)
        wire_number(wire, 10 + (uint32_t)below(100), test_random(&seed));
    if (kind == 1)
        wire_text(wire, 17, "unknown");
    if (kind == 2)
        wire_float(wire, 18, 2);
}

static void random_message(struct wire *wire) {
    int64_t dims[4], count = 1;
    size_t axes = below(5);
    bool legacy = axes == 4 && below(2);
    for (size_t i = 0; i < axes; i++) {
        dims[i] = (int64_t)below(3) + (below(10) > 0);
        count *= dims[i];
    }
    if (count > 0 || below(2))
        below(3) ? put_payload(wire, below(2) ? 5 : 8, count) : put_raw(wire, 12, count);
    put_unknown(wire);
    for (uint32_t i = 0; legacy && i < 4; i++)
        wire_number(wire, 1 + i, (uint64_t)dims[i]);
    if (!legacy || below(2))
        put_dims(wire, dims, axes);
    put_unknown(wire);
    if (below(2))
        below(3) ? put_payload(wire, below(2) ? 6 : 9, count) : put_raw(wire, 13, count);
    if (below(4) == 0)
        below(2) ? put_payload(wire, 5, (int64_t)below(5)) : put_raw(wire, 12, (int64_t)below(5));
}

/* --- the values of a message that protobuf-c has read, by Caffe's rules ------------------- */

#define MAX_VALUES 2048

struct side {
    size_t count;
    double values[MAX_VALUES];
    bool malformed;
};

struct reading {
    size_t axes;
    int64_t dims[SB_MAX_AXES];
    int64_t count;
    struct side data, diff;
    sb_status status;
};

static double raw_value(uint64_t type, const uint8_t *bytes) {
    uint64_t bits = 0;
    double wide;
    float single;
    for (size_t i = 0; i < widths[type]; i++)
        bits |= (uint64_t)bytes[i] << (8 * i);
    const uint32_t low = (uint32_t)bits;
    switch (type) {
    case DOUBLE:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    case FLOAT:
        memcpy(&single, &low, sizeof single);
        return (double)single;
    case FLOAT16:
        return value_of_half(SB_DTYPE_F16, (uint16_t)low);
    case INT:
        return (double)(int32_t)low;
    default:
        return (double)low;
    }
}

static void judge_raw(const ProtobufCMessageUnknownField *type,
                      const ProtobufCMessageUnknownField *bytes, struct side *out) {
    size_t prefix = 1;
    while (bytes->data[prefix - 1] & 0x80)
        prefix++;
    const size_t size = bytes->len - prefix;
    const size_t width = type ? widths[type->data[0] & 0x7f] : 1;
    out->malformed = size > 0 && (!type || size % width != 0);
    out->count = size / width;
    for (size_t i = 0; i < out->count && i < MAX_VALUES && type; i++)
        out->values[i] = raw_value(type->data[0] & 0x7f, bytes->data + prefix + i * width);
}

/* Finds raw values in the message's unknown fields, because Caffe's proto has no raw fields. */
static void find_raw(const Sb__BlobProto *message, uint32_t number, struct side *out) {
    const ProtobufCMessageUnknownField *type = NULL, *bytes = NULL;
    for (unsigned i = 0; i < message->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *field = &message->base.unknown_fields[i];
        uint64_t value = 0;
        for (size_t j = 0; j < field->len && j < 5; j++)
            value |= (uint64_t)(field->data[j] & 0x7f) << (7 * j);
        if (field->tag == number - 2 && field->wire_type == PROTOBUF_C_WIRE_TYPE_VARINT &&
            (uint32_t)value <= UINT)
            type = field;
        if (field->tag == number && field->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            bytes = field;
    }
    if (bytes)
        judge_raw(type, bytes, out);
}

static void judge_side(const Sb__BlobProto *message, bool diff, struct side *out) {
    const size_t wides = diff ? message->n_double_diff : message->n_double_data;
    const size_t singles = diff ? message->n_diff : message->n_data;
    const double *wide = diff ? message->double_diff : message->double_data;
    const float *single = diff ? message->diff : message->data;
    *out = (struct side){.count = wides ? wides : singles};
    for (size_t i = 0; i < out->count && i < MAX_VALUES; i++)
        out->values[i] = wides ? wide[i] : (double)single[i];
    if (out->count == 0)
        find_raw(message, diff ? 13 : 12, out);
}

static void judge_shape(const Sb__BlobProto *message, struct reading *r) {
    if (message->has_num || message->has_channels || message->has_height || message->has_width) {
        const int64_t legacy[] = {message->num, message->channels, message->height, message->width};
        r->axes = 4;
        memcpy(r->dims, legacy, sizeof legacy);
    } else if (message->shape) {
        r->axes = message->shape->n_dim;
        for (size_t i = 0; i < r->axes; i++)
            r->dims[i] = message->shape->dim[i];
    }
    r->count = 1;
    for (size_t i = 0; i < r->axes; i++)
        r->count *= r->dims[i];
}

static void judge(const Sb__BlobProto *message, struct reading *r) {
    memset(r, 0, sizeof *r);
    judge_shape(message, r);
    judge_side(message, false, &r->data);
    judge_side(message, true, &r->diff);
    const bool fits = r->data.count == (size_t)r->count &&
                      (r->diff.count == 0 || r->diff.count == (size_t)r->count);
    r->status = r->data.malformed || r->diff.malformed ? SB_ERR_MALFORMED
                : fits                                 ? SB_OK
                                                       : SB_ERR_LENGTH_MISMATCH;
}

static void compare_side(const void *found, const struct side *side) {
    const double *values = found;
    assert_true(side->count <= MAX_VALUES);
    for (size_t i = 0; i < side->count; i++)
        assert_true(values[i] == side->values[i] || (isnan(values[i]) && isnan(side->values[i])));
}

static void compare(const sb_blob *blob, const struct reading *r) {
    assert_int_equal(sb_blob_num_axes(blob), r->axes);
    if (r->axes > 0)
        assert_memory_equal(sb_blob_shape(blob), r->dims, r->axes * sizeof *r->dims);
    compare_side(host_of(blob, SB_DATA), &r->data);
    compare_side(host_of(blob, SB_DIFF), &r->diff);
}

TEST(test_random_messages_read_as_protobuf_c_reads_them) {
    static struct reading r;
    const int rounds = test_is_quick() ? 4000 : 20000;
    int accepted = 0, malformed = 0;
    for (int i = 0; i < rounds; i++) {
        struct wire wire = {0};
        random_message(&wire);
        Sb__BlobProto *message = sb__blob_proto__unpack(NULL, wire.size, wire.bytes);
        assert_non_null(message);
        judge(message, &r);
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
        sb_status st =
            sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err);
        assert_int_equal(st, r.status);
        accepted += st == SB_OK;
        malformed += st == SB_ERR_MALFORMED;
        if (st == SB_OK)
            compare(blob, &r);
        sb__blob_proto__free_unpacked(message, NULL);
    }
    assert_true(accepted > rounds / 4 && malformed > rounds / 40);
}

/* The readers accept different messages: protobuf-c refuses groups and known fields of a wrong wire
   type, and accepts an overlong tag 0. If both readers accept a damaged message, they must read
   the same values. */
TEST(test_damaged_messages_never_read_differently) {
    static struct reading r;
    const int rounds = test_is_quick() ? 4000 : 20000;
    int both = 0;
    for (int i = 0; i < rounds; i++) {
        struct wire wire = {0};
        random_message(&wire);
        for (uint64_t k = 1 + below(3); k > 0 && wire.size > 0; k--)
            wire.bytes[below(wire.size)] = (unsigned char)below(256);
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
        sb_status st =
            sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err);
        assert_true(st == SB_OK || (st <= SB_ERR_MALFORMED && st >= SB_ERR_DATA_LIMIT));
        Sb__BlobProto *message =
            st == SB_OK ? sb__blob_proto__unpack(NULL, wire.size, wire.bytes) : NULL;
        if (!message)
            continue;
        judge(message, &r);
        assert_int_equal(r.data.count, sb_blob_count(blob));
        both++;
        sb__blob_proto__free_unpacked(message, NULL);
    }
    assert_true(both > rounds / 20);
}
