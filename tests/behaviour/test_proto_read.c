/* Tests reads of BlobProto messages into blobs. */
#include "blobs.h"

#include "nets.h"

static const int64_t two_by_three[] = {2, 3};

/* protobuf-c refuses groups, and known fields of a wrong wire type. */
TEST(test_overlong_dimensions_and_fields_of_a_wrong_wire_type_are_accepted) {
    static const float six[] = {1, 2, 3, 4, 5, 6};
    struct wire wire = wire_of("5:f1 5:4 8:f1 7:9 1:'num' 2:f2"), shape = wire_of("1:f2");
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
    wire_raw(&wire, "\x29two data\x3b\x3c", 11); /* data as 8 bytes, and shape as a group */
    wire_tag(&shape, 1, 0);
    wire_overlong(&shape, 2, 10);
    wire_tag(&shape, 1, 2);
    wire_varint(&shape, 4);
    wire_overlong(&shape, 3, 4);
    wire_message(&wire, 7, &shape);
    wire_floats(&wire, 5, six + 1, 5);
    assert_ok(read_wire(blob, &wire, &err));
    assert_shape_is(blob, "2 3 (6)");
    assert_values(blob, SB_DATA, 6, 1);
}

TEST(test_without_reshape_the_blob_keeps_its_shape) {
    static const float six[] = {1, 2, 3, 4, 5, 6};
    struct wire wire = {0};
    sb_blob *fresh = test_unshaped(NULL, SB_DTYPE_F32);
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 6);
    for (uint32_t k = 0; k < 4; k++)
        wire_number(&wire, 1 + k, k < 3 ? 1 : 6);
    wire_floats(&wire, 5, six, 6);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err));
    assert_shape_is(blob, "6 (6)");
    for (int i = 0; i < 2; i++) {
        assert_status(SB_ERR_SHAPE_MISMATCH,
                      sb_blob_from_proto(fresh, wire.bytes, wire.size, 0, NULL, &err));
        assert_ok(sb_blob_reshape(fresh, (int64_t[]){1, 1, 1, 1, 6}, 5, NULL, &err));
    }
    wire_free(&wire);
    wire_blob(&wire, two_by_three, 2, 1);
    assert_error(SB_ERR_SHAPE_MISMATCH,
                 sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err),
                 "the blob is 6 (6), but the message is 2 3 (6)");
    assert_values(blob, SB_DATA, 6, 1);
    wire_free(&wire);
    const int64_t long_dims[32] = {1,      1,      100000, 0,      100000, 100000, 100000, 100000,
                                   100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000};
    wire_shape(&wire, long_dims, 32);
    assert_reports(SB_ERR_SHAPE_MISMATCH,
                   sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err),
                   "the message is 1 1 100000 0 100000");
    assert_string_equal(err.message + strlen(err.message) - 7, "... (0)");
    wire_free(&wire);
    const int64_t ones[20] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    wire_shape(&wire, ones, 20);
    assert_error(SB_ERR_SHAPE_MISMATCH,
                 sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err),
                 "the blob is 6 (6), but the message is 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
                 "... (1)");
}

struct refusal {
    const char *claim;
    struct wire wire;
    sb_status status;
    int64_t offset;
    const char *part;
};

static const struct refusal refusals[] = {
    {"5 bytes of floats", W("\x2a\x05\0\0\0\0\0"), SB_ERR_MALFORMED, 2,
     "data: 5 bytes are not a whole number of 4-byte values at offset 2"},
    {"tag 0 in a shape", W("\x3a\x02\x00\x00"), SB_ERR_MALFORMED, 2,
     "shape: the field number 0 is invalid"},
    {"no payload for 6", W("\x3a\x04\x0a\x02\x02\x03"), SB_ERR_LENGTH_MISMATCH, 0,
     "data: 0 values for a shape of 6"},
    {"one value for 2", W("\x3a\x03\x0a\x01\x02\x2a\x04\0\0\0\0"), SB_ERR_LENGTH_MISMATCH, 5,
     "data: 1 values for a shape of 2 at offset 5"},
    {"one diff for 2", W("\x3a\x03\x0a\x01\x02\x2a\x08\0\0\0\0\0\0\0\0\x32\x04\0\0\0\0"),
     SB_ERR_LENGTH_MISMATCH, 15, "diff: 1 values for a shape of 2"},
    {"too many doubles, which replace the floats",
     W("\x2a\x04\0\0\0\0\x41\0\0\0\0\0\0\0\0\x41\0\0\0\0\0\0\0\0"), SB_ERR_LENGTH_MISMATCH, 6,
     "double_data: 2 values"},
    {"a dimension of 2^63", W("\x3a\x0c\x0a\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
     SB_ERR_BAD_SHAPE, 4, "beyond 63 bits"},
    {"a dimension beyond 64 bits", W("\x3a\x0c\x0a\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
     SB_ERR_MALFORMED, 4, "shape.dim: the number has bits beyond 64; it begins at offset 4"},
    {"a legacy dimension of 32 bits", W("\x18\x80\x80\x80\x80\x08"), SB_ERR_DATA_OVERFLOW, 0,
     "height: 2147483648 is beyond 31 bits"},
    {"legacy dimensions whose product does not fit",
     W("\x08\xff\xff\xff\xff\x07\x10\xff\xff\xff\xff\x07\x18\xff\xff\xff\xff\x07\x20\xff\xff\xff"
       "\xff\x07"),
     SB_ERR_DATA_OVERFLOW, 0, "product"},
    {"33 axes",
     W("\x3a\x23\x0a\x21\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"),
     SB_ERR_BAD_SHAPE, 4, "shape.dim: 33 axes are more than 32"},
    /* NVCaffe's fields raw_data and raw_diff */
    {"raw_data of an unknown type", W("\x3a\x03\x0a\x01\x01\x50\x05\x62\x02hh"), SB_ERR_MALFORMED,
     7, "raw_data: the type of its 2 bytes is missing or unknown at offset 7"},
    {"raw_diff without a type", W("\x2a\x04\0\0\0\0\x6a\x02hh"), SB_ERR_MALFORMED, 6,
     "raw_diff: the type of its 2 bytes is missing or unknown at offset 6"},
    {"3 bytes of halves", W("\x50\x02\x62\x03hhh"), SB_ERR_MALFORMED, 4,
     "raw_data: 3 bytes are not a whole number of 2-byte values at offset 4"},
};

TEST(test_refusals_change_nothing) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *row = &refusals[i];
        struct wire wire = {0};
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
        wire_blob(&wire, two_by_three, 2, 1);
        assert_ok(read_wire(blob, &wire, &err));
        const void *before = host_of(blob, SB_DATA);
        sb_status st = read_wire(blob, &row->wire, &err);
        if (st != row->status || err.offset != row->offset || !strstr(err.message, row->part))
            fail_with("%s: %s \"%s\" (offset %lld)", row->claim, sb_status_name(st), err.message,
                      (long long)err.offset);
        assert_int_equal(read_wire(blob, &row->wire, NULL), row->status);
        assert_shape_is(blob, "2 3 (6)");
        assert_values(blob, SB_DATA, 6, 1);
        assert_ptr_equal(host_of(blob, SB_DATA), before);
        test_end(blob);
    }
    sb_blob *bf16 = test_vector(NULL, SB_DTYPE_BF16, 1);
    struct wire wire = {0};
    wire_blob(&wire, two_by_three, 2, 1);
    assert_status(SB_ERR_UNSUPPORTED, read_wire(bf16, &wire, &err));
    sb_model *model = test_model_of(&wire, SB_FORMAT_BLOB);
    assert_status(SB_ERR_UNSUPPORTED, sb_model_load_blob(model, SB_NO_LAYER, 0, bf16, &err));
}

TEST(test_a_shape_of_too_many_bytes_is_reported) {
    skip_on_32_bits("the shape exceeds the address space");
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
    assert_reports(
        SB_ERR_DATA_OVERFLOW,
        sb_blob_reshape_proto(blob, "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x10", 10, NULL, &err),
        "dim: the shape's byte count overflows");
    assert_int_equal(err.offset, 0);
}

/* Each piece is in separate memory, so that sanitizers notice a read beyond the piece. */
TEST_ON(rig, a_model_keeps_its_pieces) {
    enum { STEP = 5 };
    const struct wire net = small_net(SB_LAYER_CURRENT);
    sb_span pieces[64];
    sb_source source = SB_SOURCE_INIT;
    sb_model *model;
    size_t count = 0, size;
    unsigned char saved[1024];
    for (size_t at = 0; at < net.size; at += STEP) {
        const size_t bytes = net.size - at < STEP ? net.size - at : STEP;
        void *piece = malloc(bytes);
        assert_true(piece && count + 2 <= 64);
        test_own_loan(piece, free);
        memcpy(piece, net.bytes + at, bytes);
        pieces[count++] = (sb_span){piece, bytes};
        pieces[count++] = (sb_span){NULL, 0};
    }
    assert_ok(sb_source_of_spans(f->context, pieces, count, &source, &err));
    assert_null(source.version);
    memset(pieces, 0, sizeof pieces);
    for (size_t at = 0; at < net.size; at++) {
        assert_ok(source.read_at(source.user, at, saved, 1, &err));
        assert_int_equal(saved[0], net.bytes[at]);
    }
    assert_status(SB_ERR_IO, source.read_at(source.user, 1, saved, net.size, &err));
    assert_status(SB_ERR_IO, source.read_at(source.user, net.size, saved, 1, &err));
    assert_status(SB_ERR_IO, source.read_at(source.user, UINT64_MAX, saved, 2, &err));
    assert_status(SB_ERR_IO, source.read_at(source.user, 0, saved, net.size + 1, &err));
    assert_ok(sb_model_open_source(f->context, SB_FORMAT_AUTO, &source, NULL, NULL, &model, &err));
    assert_int_equal(sb_model_num_layers(model), 2);
    assert_loads(model, 0, 1, "2 (2)", 100);
    assert_ok(sb_model_save(model, saved, sizeof saved, &size, &err));
    assert_int_equal(size, net.size);
    assert_memory_equal(saved, net.bytes, net.size);
    sb_model_destroy(model);
}

TEST(invalid_lists_of_pieces_are_refused) {
    const sb_span lies[] = {{"x", SIZE_MAX}, {"y", 1}}, missing[] = {{"x", 1}, {NULL, 1}};
    const sb_span large[] = {{"x", INT32_MAX}, {"y", 1}};
    sb_source source = SB_SOURCE_INIT;
    assert_status(INVALID, sb_source_of_spans(NULL, missing, 2, &source, &err));
    assert_status(INVALID, sb_source_of_spans(NULL, NULL, 1, &source, &err));
    assert_reports(SB_ERR_SIZE_OVERFLOW, sb_source_of_spans(NULL, lies, 2, &source, &err),
                   "the first 2 spans have more");
    assert_null(source.user);
    assert_ok(sb_source_of_spans(NULL, NULL, 0, &source, &err));
    assert_int_equal(source.size, 0);
    source.close(source.user);
    assert_ok(sb_source_of_spans(NULL, large, 2, &source, &err));
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    /* The spans' bytes do not exist, so a read would crash. */
    assert_int_equal(sb_blob_load_source(blob, &source, 0, NULL, NULL, NULL), SB_ERR_DATA_LIMIT);
    source.close(source.user);
}
