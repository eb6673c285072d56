/* protobuf-c as an oracle: random valid messages, and random damage to them,
   read by both. */
#include "support.h"

#include "syncblob.pb-c.h"
#include "wire_builder.h"

#include <stdlib.h>
#include <string.h>

static uint64_t seed = 20240229;

static uint64_t below(uint64_t n) {
    return test_random(&seed) % n;
}

static void put_payload(struct wire *wire, uint32_t field, int64_t count) {
    bool wide = field >= 8;
    while (count > 0) {
        int64_t chunk = 1 + (int64_t)below((uint64_t)count);
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
        wire_free(&shape);
    }
}

static void put_unknown(struct wire *wire) {
    switch (below(4)) {
    case 0:
        wire_number(wire, 10 + (uint32_t)below(100), below(UINT64_MAX));
        break;
    case 1:
        wire_text(wire, 17, "unknown");
        break;
    case 2:
        wire_float(wire, 18, 2);
        break;
    default:
        break;
    }
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

/* What Caffe's rules make of protobuf-c's reading. */
struct reading {
    size_t axes;
    int64_t dims[SB_MAX_AXES];
    int64_t count;
    size_t num_data, num_diff;
    bool acceptable;
};

static struct reading judge(const Sb__BlobProto *message) {
    struct reading r = {.count = 1};
    if (message->has_num || message->has_channels || message->has_height || message->has_width) {
        const int64_t legacy[] = {message->num, message->channels, message->height, message->width};
        r.axes = 4;
        memcpy(r.dims, legacy, sizeof legacy);
    } else if (message->shape) {
        r.axes = message->shape->n_dim;
        for (size_t i = 0; i < r.axes; i++)
            r.dims[i] = message->shape->dim[i];
    }
    for (size_t i = 0; i < r.axes; i++)
        r.count *= r.dims[i];
    r.num_data = message->n_double_data ? message->n_double_data : message->n_data;
    r.num_diff = message->n_double_diff ? message->n_double_diff : message->n_diff;
    r.acceptable = r.num_data == (size_t)r.count && (!r.num_diff || r.num_diff == (size_t)r.count);
    return r;
}

static void compare(const sb_blob *blob, const Sb__BlobProto *message, const struct reading *r) {
    const void *p;
    sb_error err;
    assert_int_equal(sb_blob_num_axes(blob), r->axes);
    if (r->axes > 0)
        assert_memory_equal(sb_blob_shape(blob), r->dims, r->axes * sizeof *r->dims);
    assert_ok(sb_blob_cpu_data(blob, &p, &err));
    for (size_t i = 0; i < r->num_data; i++)
        assert_true(((const double *)p)[i] ==
                    (message->n_double_data ? message->double_data[i] : (double)message->data[i]));
    assert_ok(sb_blob_cpu_diff(blob, &p, &err));
    for (size_t i = 0; i < r->num_diff; i++)
        assert_true(((const double *)p)[i] ==
                    (message->n_double_diff ? message->double_diff[i] : (double)message->diff[i]));
}

static void test_random_messages_read_as_protobuf_c_reads_them(void **state) {
    (void)state;
    int accepted = 0;
    for (int i = 0; i < 20000; i++) {
        struct wire wire = {0};
        sb_blob *blob;
        sb_error err;
        random_message(&wire);
        Sb__BlobProto *message = sb__blob_proto__unpack(NULL, wire.size, wire.bytes);
        assert_non_null(message);
        struct reading r = judge(message);
        assert_ok(sb_blob_create(NULL, SB_DTYPE_F64, &blob, &err));
        sb_status st =
            sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err);
        assert_int_equal(st, r.acceptable ? SB_OK : SB_ERR_LENGTH_MISMATCH);
        accepted += r.acceptable;
        if (r.acceptable)
            compare(blob, message, &r);
        sb__blob_proto__free_unpacked(message, NULL);
        sb_blob_destroy(blob);
        wire_free(&wire);
    }
    assert_true(accepted > 5000);
}

/* protobuf-c refuses more than we do (groups, known fields of a wrong wire type) and takes an
   overlong tag 0, but what both take is the same, and damage never does worse than a status. */
static void test_damaged_messages_never_read_differently(void **state) {
    (void)state;
    int both = 0;
    for (int i = 0; i < 20000; i++) {
        struct wire wire = {0};
        sb_blob *blob;
        sb_error err;
        random_message(&wire);
        for (uint64_t k = 1 + below(3); k > 0 && wire.size > 0; k--)
            wire.bytes[below(wire.size)] = (unsigned char)below(256);
        assert_ok(sb_blob_create(NULL, SB_DTYPE_F64, &blob, &err));
        sb_status st =
            sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err);
        assert_true(st == SB_OK || (st <= SB_ERR_MALFORMED && st >= SB_ERR_DATA_LIMIT));
        Sb__BlobProto *message =
            st == SB_OK ? sb__blob_proto__unpack(NULL, wire.size, wire.bytes) : NULL;
        if (message) {
            struct reading r = judge(message);
            assert_int_equal(r.num_data, sb_blob_count(blob));
            both++;
        }
        if (message)
            sb__blob_proto__free_unpacked(message, NULL);
        sb_blob_destroy(blob);
        wire_free(&wire);
    }
    assert_true(both > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_messages_read_as_protobuf_c_reads_them),
        cmocka_unit_test(test_damaged_messages_never_read_differently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
