/* Compares the library's reader with protobuf-c's: both read random valid messages, and messages
   that are damaged at random. The fuzz target `differential` compares NVCaffe's raw values, which
   Caffe's proto lacks. */
#include "blobs.h"
#include "nets.h"
#include "syncblob.pb-c.h"

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
        put_payload(wire, below(2) ? 5 : 8, count);
    put_unknown(wire);
    for (uint32_t i = 0; legacy && i < 4; i++)
        wire_number(wire, 1 + i, (uint64_t)dims[i]);
    if (!legacy || below(2))
        put_dims(wire, dims, axes);
    put_unknown(wire);
    if (below(2))
        put_payload(wire, below(2) ? 6 : 9, count);
    if (below(4) == 0)
        put_payload(wire, 5, (int64_t)below(5));
}

/* --- the values of a message that protobuf-c has read, by Caffe's rules ------------------- */

#define MAX_VALUES 2048

struct side {
    size_t count;
    double values[MAX_VALUES];
};

struct reading {
    size_t axes;
    int64_t dims[SB_MAX_AXES];
    int64_t count;
    struct side data, diff;
    sb_status status;
};

static void judge_side(const Sb__BlobProto *message, bool diff, struct side *out) {
    const size_t wides = diff ? message->n_double_diff : message->n_double_data;
    const size_t singles = diff ? message->n_diff : message->n_data;
    const double *wide = diff ? message->double_diff : message->double_data;
    const float *single = diff ? message->diff : message->data;
    *out = (struct side){.count = wides ? wides : singles};
    for (size_t i = 0; i < out->count && i < MAX_VALUES; i++)
        out->values[i] = wides ? wide[i] : (double)single[i];
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
    r->status = fits ? SB_OK : SB_ERR_LENGTH_MISMATCH;
}

static void compare_side(const void *found, const struct side *side) {
    const double *values = found;
    assert_true(side->count <= MAX_VALUES);
    for (size_t i = 0; i < side->count; i++)
        assert_true(values[i] == side->values[i]);
}

static void compare(const sb_blob *blob, const struct reading *r) {
    assert_int_equal(sb_blob_num_axes(blob), r->axes);
    if (r->axes > 0)
        assert_memory_equal(sb_blob_shape(blob), r->dims, r->axes * sizeof *r->dims);
    compare_side(host_of(blob, SB_DATA), &r->data);
    compare_side(host_of(blob, SB_DIFF), &r->diff);
}

static int rounds(void) {
    return test_is_quick() ? 4000 : 20000;
}

static Sb__BlobProto *unpack(const struct wire *wire) {
    return sb__blob_proto__unpack(NULL, wire->size, wire->bytes);
}

TEST(test_random_messages_read_as_protobuf_c_reads_them) {
    static struct reading r;
    int accepted = 0;
    for (int i = 0; i < rounds(); i++) {
        struct wire wire = {0};
        random_message(&wire);
        Sb__BlobProto *message = unpack(&wire);
        assert_non_null(message);
        judge(message, &r);
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
        assert_status(r.status, read_wire(blob, &wire, &err));
        accepted += r.status == SB_OK;
        if (r.status == SB_OK)
            compare(blob, &r);
        sb__blob_proto__free_unpacked(message, NULL);
    }
    assert_true(accepted > rounds() / 4);
}

/* The readers accept different messages: protobuf-c refuses groups and known fields of a wrong wire
   type, and accepts an overlong tag 0. If both readers accept a damaged message, they must read
   the same values. */
TEST(test_damaged_messages_never_read_differently) {
    static struct reading r;
    int both = 0;
    for (int i = 0; i < rounds(); i++) {
        struct wire wire = {0};
        random_message(&wire);
        for (uint64_t k = 1 + below(3); k > 0 && wire.size > 0; k--)
            wire.bytes[below(wire.size)] = (unsigned char)below(256);
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
        const sb_status st = read_wire(blob, &wire, &err);
        assert_true(st == SB_OK || (st <= SB_ERR_MALFORMED && st >= SB_ERR_DATA_LIMIT));
        Sb__BlobProto *message = st == SB_OK ? unpack(&wire) : NULL;
        if (!message)
            continue;
        judge(message, &r);
        assert_int_equal(r.data.count, sb_blob_count(blob));
        both++;
        sb__blob_proto__free_unpacked(message, NULL);
    }
    assert_true(both > rounds() / 20);
}
