/* Tests that a message in several pieces of memory is read as if the pieces were joined. */
#include "blobs.h"
#include "nets.h"

#define SPANS_MOST 64

static const int64_t dims[] = {2, 3};

/* Pieces of a message, each in separate memory, so that sanitizers notice a read beyond a piece.
   The end of the test frees the pieces. */
struct pieces {
    sb_span spans[SPANS_MOST];
    size_t count;
};

static void cut(struct pieces *pieces, const struct wire *wire, size_t step) {
    pieces->count = 0;
    for (size_t at = 0; at < wire->size; at += step) {
        const size_t size = wire->size - at < step ? wire->size - at : step;
        void *bytes = malloc(size);
        assert_true(bytes && pieces->count + 2 <= SPANS_MOST);
        test_own_loan(bytes, free);
        memcpy(bytes, wire->bytes + at, size);
        pieces->spans[pieces->count++] = (sb_span){bytes, size};
        pieces->spans[pieces->count++] = (sb_span){NULL, 0};
    }
}

static sb_source source_of(sb_context *context, const struct pieces *pieces) {
    sb_source source = SB_SOURCE_INIT;
    assert_ok(sb_source_of_spans(context, pieces->spans, pieces->count, &source, &err));
    assert_null(source.version); /* pieces do not change */
    return source;
}

TEST(a_blob_is_read_from_pieces_of_any_size) {
    struct wire wire = {0};
    wire_blob(&wire, dims, 2, 1);
    for (size_t step = 2; step <= wire.size; step++) {
        struct pieces pieces;
        cut(&pieces, &wire, step);
        sb_source source = source_of(NULL, &pieces);
        assert_int_equal(source.size, wire.size);
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
        assert_ok(sb_blob_load_source(blob, &source, SB_PROTO_RESHAPE, NULL, NULL, &err));
        assert_values(blob, SB_DATA, 6, 1);
        source.close(source.user);
    }
}

TEST(every_range_equals_the_joined_bytes) {
    struct wire wire = {0};
    struct pieces pieces;
    char seen[32];
    wire_raw(&wire, "abcdefghijklmnopqrstuvwxyz", 26);
    cut(&pieces, &wire, 7);
    const sb_source source = source_of(NULL, &pieces);
    for (size_t begin = 0; begin < wire.size; begin++)
        for (size_t end = begin + 1; end <= wire.size; end++) {
            memset(seen, '?', sizeof seen);
            assert_ok(source.read_at(source.user, begin, seen, end - begin, &err));
            assert_memory_equal(seen, wire.bytes + begin, end - begin);
            assert_int_equal(seen[end - begin], '?');
        }
    assert_status(SB_ERR_IO, source.read_at(source.user, 1, seen, wire.size, &err));
    assert_status(SB_ERR_IO, source.read_at(source.user, wire.size, seen, 1, &err));
    assert_status(SB_ERR_IO, source.read_at(source.user, UINT64_MAX, seen, 2, &err));
    assert_status(SB_ERR_IO, source.read_at(source.user, 0, seen, wire.size + 1, &err));
    source.close(source.user);
}

/* The source has a copy of the list of pieces; the bytes remain the caller's. */
TEST_ON(rig, a_model_keeps_its_pieces) {
    struct wire net = {0};
    struct pieces pieces;
    sb_model *model;
    net_current(&net);
    cut(&pieces, &net, 5);
    sb_source source = source_of(f->context, &pieces);
    memset(&pieces, 0, sizeof pieces);
    assert_ok(sb_model_open_source(f->context, SB_FORMAT_AUTO, &source, NULL, NULL, &model, &err));
    assert_int_equal(sb_model_num_layers(model), 2);
    assert_loads(model, 0, 1, "2 (2)", 100);
    unsigned char saved[1024];
    size_t size;
    assert_ok(sb_model_save(model, saved, sizeof saved, &size, &err));
    assert_int_equal(size, net.size);
    assert_memory_equal(saved, net.bytes, net.size);
    sb_model_destroy(model); /* frees the list */
}

TEST(a_fault_is_reported_with_its_offset_in_the_whole_message) {
    struct wire wire = {0};
    struct pieces pieces;
    wire_blob(&wire, dims, 2, 1);
    wire_tag(&wire, 5, 2); /* data, without a length */
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    assert_status(SB_ERR_MALFORMED,
                  sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    const sb_error joined = err;
    cut(&pieces, &wire, 3);
    const sb_source source = source_of(NULL, &pieces);
    assert_status(SB_ERR_MALFORMED,
                  sb_blob_load_source(blob, &source, SB_PROTO_RESHAPE, NULL, NULL, &err));
    assert_int_equal(err.offset, joined.offset);
    assert_string_equal(err.message, joined.message);
    source.close(source.user);
}

TEST(no_pieces_are_an_empty_message) {
    const sb_span nothing[] = {{NULL, 0}, {"x", 0}};
    const float one[] = {7};
    for (size_t count = 0; count <= 2; count += 2) {
        sb_source source = SB_SOURCE_INIT;
        assert_ok(sb_source_of_spans(NULL, count ? nothing : NULL, count, &source, &err));
        assert_int_equal(source.size, 0);
        sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 0, NULL);
        assert_ok(sb_blob_set_cpu(blob, SB_DATA, (void *)one, sizeof one, SB_READ_ONLY, NULL, NULL,
                                  &err));
        assert_status(SB_ERR_LENGTH_MISMATCH,
                      sb_blob_load_source(blob, &source, 0, NULL, NULL, &err));
        source.close(source.user);
    }
}

TEST(invalid_lists_of_pieces_are_refused) {
    const sb_span lies[] = {{"x", SIZE_MAX}, {"y", 1}}, missing[] = {{"x", 1}, {NULL, 1}};
    const sb_span large[] = {{"x", INT32_MAX}, {"y", 1}};
    sb_source source = SB_SOURCE_INIT;
    assert_status(INVALID, sb_source_of_spans(NULL, missing, 2, &source, &err));
    assert_status(INVALID, sb_source_of_spans(NULL, NULL, 1, &source, &err));
    assert_status(SB_ERR_SIZE_OVERFLOW, sb_source_of_spans(NULL, lies, 2, &source, &err));
    assert_non_null(strstr(err.message, "the first 2 spans have more"));
    assert_null(source.user);
    assert_ok(sb_source_of_spans(NULL, large, 2, &source, &err));
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    /* Without `err`, the library must not read the bytes, which do not exist, to describe them. */
    assert_int_equal(sb_blob_load_source(blob, &source, 0, NULL, NULL, NULL), SB_ERR_DATA_LIMIT);
    source.close(source.user);
}
