/* Tests the reader of protobuf's wire format, and the sink. */
#include "blobs.h"
#include "files.h"

#include "format/open.h"
#include "wire/sink.h"
#include "wire/wire.h"

static const struct sb__field_name names[] = {{1, "one"}, {2, "two"}, {0, NULL}};
static const struct sb__path root = {NULL, "", -1, names};

static sb_status walk(const struct sb__source *source, int *fields, sb_error *err) {
    struct sb__reader *reader = malloc(sizeof *reader);
    struct sb__field field = {.end = 0};
    sb_status st;
    *fields = 0;
    sb__reader_init(reader, source);
    while ((st = sb__wire_next(reader, &root, source->size, &field, err)) == SB_OK &&
           field.number != 0)
        ++*fields;
    free(reader);
    return st;
}

struct row {
    const char *claim;
    const char *bytes;
    size_t size;
    int64_t number;   /* the number of fields, or the error's offset */
    const char *part; /* a part of the error message; NULL if the message is valid */
};

#define B(s) s, sizeof s - 1

static const struct row rows[] = {
    {"nothing is a message", B(""), 0, NULL},
    {"every wire type", B("\x08\x01\x11\1\2\3\4\5\6\7\x08\x1a\x01x\x25\1\2\3\4"), 4, NULL},
    {"a varint of 10 bytes", B("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1, NULL},
    {"an overlong varint", B("\x08\x85\x80\x80\x00"), 1, NULL},
    {"an overlong tag", B("\x88\x80\x00\x05"), 1, NULL},
    {"an overlong length", B("\x0a\x81\x80\x00x"), 1, NULL},
    {"the highest field number", B("\xf8\xff\xff\xff\x0f\x01"), 1, NULL},
    {"a group of fields of every wire type",
     B("\x0b\x10\x01\x1a\x01x\x25\1\2\3\4\x29\1\2\3\4\5\6\7\x08\x0c"), 1, NULL},
    {"groups in groups", B("\x0b\x13\x0b\x0c\x14\x0c\x08\x01"), 2, NULL},

    {"tag 0", B("\x08\x01\x00"), 2, "the field number 0 is invalid at offset 2"},
    {"a field number beyond 29 bits", B("\x80\x80\x80\x80\x10\x01"), 0, "number 536870912"},
    {"a tag beyond 64 bits", B("\x88\x80\x80\x80\x80\x80\x80\x80\x80\x02\x05"), 0,
     "the number has bits beyond 64; it begins at offset 0"},
    {"a number beyond 64 bits", B("\x08\x85\x80\x80\x80\x80\x80\x80\x80\x80\x02"), 1,
     "one: the number has bits beyond 64; it begins at offset 1"},
    {"a number beyond 64 bits in a group",
     B("\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03\x0c"), 2,
     "two: the number has bits beyond 64"},
    {"wire type 6", B("\x0e\x01"), 0, "one: wire type 6 is unknown"},
    {"a tag without its number", B("\x08"), 1, "one: 1 byte is missing at offset 1"},
    {"a varint of 11 bytes", B("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), 1,
     "one: a number of more than 10 bytes begins at offset 1"},
    {"4 bytes cut to 3", B("\x15\1\2\3"), 4, "two: 1 byte is missing at offset 4"},
    {"a length past the end", B("\x12\15abc"), 5, "two: 10 bytes are missing at offset 5"},
    {"a length of 2^63", B("\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), 11,
     "bytes are missing"},
    {"a group with the end tag of another", B("\x0b\x14"), 1, "two: an unmatched group end tag"},
    {"a group that only ends", B("\x0c"), 0, "one: an unmatched group end tag"},
    {"a group around wire type 6", B("\x0b\x16\x0c"), 1, "wire type 6"},

};

static void check_row(const struct row *row, const struct sb__source *source) {
    int fields;
    const sb_status st = walk(source, &fields, &err);
    if (st != (row->part ? SB_ERR_MALFORMED : SB_OK))
        fail_with("%s: %s", row->claim, sb_status_name(st));
    if (st == SB_OK && fields != row->number)
        fail_with("%s: %d fields", row->claim, fields);
    if (st != SB_OK && (err.offset != row->number || !strstr(err.message, row->part)))
        fail_with("%s: \"%s\" (offset %lld)", row->claim, err.message, (long long)err.offset);
}

TEST_ON(rig, test_language) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sb__source source;
        assert_ok(sb__source_of_bytes(&source, rows[i].bytes, rows[i].size, &err));
        check_row(&rows[i], &source);
        file_write(rig_path(f, "message"), rows[i].bytes, rows[i].size);
        for (int mapped = 0; mapped < 2; mapped++) {
            assert_ok(sb__source_open(&source, rig_path(f, "message"), mapped, &err));
            check_row(&rows[i], &source);
            sb__source_close(&source);
        }
    }
}

TEST(a_memory_takes_what_fits) {
    static unsigned char all[] = "1234567abcd";
    const struct wire wire = {all + 7, 4, 4};
    struct test_source from = {.reads = 0};
    const sb_source theirs = test_source_of(&from, &wire);
    struct sb__source source;
    assert_ok(sb__source_of(&source, &theirs, &err));
    for (size_t capacity = 0; capacity <= 12; capacity++) {
        unsigned char memory[16] = {0};
        struct sb__sink sink = sb__sink_memory(memory, capacity);
        sb__sink_bytes(&sink, all, 5);
        sb__sink_bytes(&sink, all + 5, 2);
        assert_int_equal(sink.written, 7);
        assert_status(capacity < 11 ? SB_ERR_IO : SB_OK, sb__sink_span(&sink, &source, 0, 4, &err));
        const size_t stored = capacity < 5 ? 0 : capacity < 7 ? 5 : capacity < 11 ? capacity : 11;
        assert_memory_equal(memory, all, stored);
        for (size_t i = stored; i < sizeof memory; i++)
            assert_int_equal(memory[i], 0);
    }
}

TEST(test_more_bytes_than_a_message_can_have_are_refused) {
    struct sb__source source;
    /* The memory has fewer bytes, so a read would crash. */
    assert_int_equal(sb__source_of_bytes(&source, "", (size_t)INT32_MAX + 1, NULL),
                     SB_ERR_DATA_LIMIT);
    assert_status(SB_ERR_DATA_LIMIT,
                  sb__source_of_bytes(&source, "", (size_t)PTRDIFF_MAX + 1, &err));
    assert_ok(sb__source_of_bytes(&source, "", INT32_MAX, &err));
    assert_ok(sb__source_of_bytes(&source, NULL, 0, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb__source_of_bytes(&source, NULL, 1, &err));
}
