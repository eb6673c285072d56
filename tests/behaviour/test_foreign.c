/* Tests that errors describe files that are not Caffe messages. */
#include "blobs.h"
#include "files.h"
#include "nets.h"
#include "support.h"
#include "wire_builder.h"

#include <unistd.h>

/* A row of foreign.txt. The bytes from `from` to `to` identify the kind of the file. */
struct foreign {
    const char *words, *shorter; /* `shorter` is NULL if no shorter words apply */
    size_t from, to;
    struct wire wire;
};

struct foreign_list {
    struct foreign rows[64];
    size_t count;
};

static char *cut(char **text, char at) {
    char *begin = *text, *end = strchr(begin, at);
    assert_non_null(end);
    *end = '\0';
    *text = end + 1;
    return begin;
}

static size_t decode(char *text) {
    size_t size = 0;
    int length;
    for (const char *from = text; *from; from += length) {
        unsigned byte = (unsigned char)*from;
        length = 1;
        if (*from == '\\')
            assert_int_equal(sscanf(from, "\\x%2x%n", &byte, &length), 1);
        text[size++] = (char)byte;
    }
    return size;
}

static struct foreign row_of(char *line) {
    struct foreign row = {.words = cut(&line, '\t')};
    row.from = strtoul(cut(&line, '-'), NULL, 10);
    row.to = strtoul(cut(&line, '\t'), NULL, 10);
    row.shorter = cut(&line, '\t');
    if (!*row.shorter)
        row.shorter = NULL;
    row.wire = (struct wire){(unsigned char *)line, decode(line), 0};
    return row;
}

static struct foreign_list foreign_list(void) {
    struct wire file = wire_of_file(SB_SOURCE_DIR "/tests/support/foreign.txt");
    struct foreign_list list = {.count = 0};
    wire_raw(&file, "", 1);
    for (char *rest = (char *)file.bytes; *rest;) {
        char *line = cut(&rest, '\n');
        if (*line == '#')
            continue;
        assert_true(list.count < sizeof list.rows / sizeof *list.rows);
        list.rows[list.count++] = row_of(line);
    }
    return list;
}

#define AUTO   SB_FORMAT_AUTO
#define BLOB   SB_FORMAT_BLOB
#define BEFORE "; this is "
#define B(s)   s, sizeof s - 1

#define PYTORCH   "a PyTorch file: export it from Python as .safetensors or .npz"
#define PICKLE    "a Python pickle: load it in Python, save its arrays as .npz"
#define HTML      "an HTML page, not the file that it shows: download the raw file"
#define GRAPH     "a TensorFlow graph"
#define ONNX      "an ONNX model"
#define LETTERS   "AbcdefghijklmnopqrstuvwxyzAbcdefghijklmnopqrstuvwxyzAbcdefghijkl"
#define LFS       "version https://git-lfs.github.com/spec/v1\n"
#define LFS_WORDS "a Git LFS pointer"
#define FETCH     ": `git lfs pull` fetches them"
#define PROTOTXT                                                                                   \
    "protobuf's text format (.prototxt), which describes a net: the weights are in another file"

struct kinds {
    struct foreign_list all;
    char path[32];
};

static void kinds_open(struct kinds *kinds) {
    *kinds = (struct kinds){foreign_list(), "/tmp/syncblob-foreign-XXXXXX"};
    assert_int_equal(close(mkstemp(kinds->path)), 0); /* Windows overwrites only closed files */
}

static void kinds_close(struct kinds *kinds) {
    assert_int_equal(unlink(kinds->path), 0);
}

enum origin { BYTES, SOURCE, EQUALS, A_FILE, MAPPED };

struct reader {
    enum origin from;
    int32_t as;
};

static const struct reader readers[] = {
    {BYTES, SB_FORMAT_BLOB},  {BYTES, SB_FORMAT_AUTO},        {BYTES, SB_FORMAT_SOLVERSTATE},
    {SOURCE, SB_FORMAT_BLOB}, {SOURCE, SB_FORMAT_CAFFEMODEL}, {EQUALS, SB_FORMAT_BLOB},
    {A_FILE, SB_FORMAT_BLOB}, {A_FILE, SB_FORMAT_CAFFEMODEL}, {MAPPED, SB_FORMAT_SOLVERSTATE},
};
#define NUM_READERS (sizeof readers / sizeof *readers)
#define FIRST_FILE  6 /* the readers from this index on read a file */
static const struct reader blob_bytes = {BYTES, SB_FORMAT_BLOB};
static const struct reader model_bytes = {BYTES, SB_FORMAT_AUTO};

static sb_status open_as(int32_t format, const struct wire *wire, const sb_limits *limits,
                         sb_error *err) {
    sb_model *model = NULL;
    sb_status st = open_wire(NULL, format, wire, limits, &model, err);
    sb_model_destroy(model);
    return st;
}

static sb_status read_by(const struct reader *reader, const struct wire *wire, const char *path,
                         sb_error *err) {
    const bool is_blob = reader->as == SB_FORMAT_BLOB;
    struct test_source from = {.wire = NULL};
    const sb_source source = test_source_of(&from, wire);
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 1);
    sb_model *model = NULL;
    sb_status st;
    int32_t equal;
    if (reader->from == EQUALS)
        st = sb_blob_shape_equals_proto(blob, wire->bytes, wire->size, &equal, err);
    else if (reader->from == BYTES)
        st = is_blob ? read_wire(blob, wire, err) : open_as(reader->as, wire, NULL, err);
    else if (reader->from == SOURCE)
        st = is_blob ? sb_blob_load_source(blob, &source, SB_PROTO_RESHAPE, NULL, NULL, err)
                     : sb_model_open_source(NULL, reader->as, &source, NULL, NULL, &model, err);
    else
        st = is_blob ? sb_blob_load_file(blob, path, 0, NULL, err)
                     : sb_model_open_file(NULL, reader->as, path,
                                          reader->from == MAPPED ? SB_OPEN_MAPPED : 0, NULL, &model,
                                          err);
    sb_model_destroy(model);
    test_end(blob);
    return st;
}

static const char *description(void) {
    const char *words = strstr(err.message, BEFORE);
    return words ? words + strlen(BEFORE) : "";
}

/* Returns whether the bytes are a valid protobuf message of another program. */
static bool is_message(const struct foreign *kind) {
    return strstr(kind->words, "ONNX") || strstr(kind->words, "TensorFlow graph") ||
           strstr(kind->words, "SavedModel");
}

/* A protobuf message of another program is also a valid message of each Caffe format. */
TEST_ON(kinds, every_reader_describes_the_bytes) {
    for (size_t k = 0; k < f->all.count; k++) {
        const struct foreign *kind = &f->all.rows[k];
        file_write_wire(f->path, &kind->wire);
        for (size_t r = 0; r < NUM_READERS; r++) {
            support_poison_error(&err);
            if (read_by(&readers[r], &kind->wire, f->path, &err) == SB_OK)
                fail_with("reader %zu accepts \"%s\"", r, kind->words);
            if (strcmp(description(), kind->words) != 0 || err.message[0] == *BEFORE)
                fail_with("reader %zu: \"%s\" does not end in \"%s\"", r, err.message, kind->words);
        }
        for (int32_t as = SB_FORMAT_AUTO; as <= SB_FORMAT_BLOB_VECTOR && is_message(kind); as++) {
            assert_status(SB_ERR_MALFORMED, open_as(as, &kind->wire, NULL, &err));
            if (strstr(err.message, "the fields do not belong to"))
                assert_int_equal(err.offset, 0);
            assert_string_equal(description(), kind->words);
        }
    }
}

static const char *words_of(const struct reader *reader, const void *bytes, size_t size) {
    struct wire exact = {malloc(size ? size : 1), size, 0};
    assert_non_null(exact.bytes);
    if (size > 0)
        memcpy(exact.bytes, bytes, size);
    support_poison_error(&err);
    const sb_status st = read_by(reader, &exact, NULL, &err);
    free(exact.bytes);
    return st == SB_OK ? "" : description();
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool fits_beginning(const struct foreign *kind, const char *words) {
    return *words == '\0' || strcmp(words, kind->words) == 0 ||
           (kind->shorter && strcmp(words, kind->shorter) == 0) ||
           starts(words, "text, which begins \"") || starts(words, "empty") ||
           starts(words, "nothing but ");
}

TEST_ON(kinds, parts_and_near_misses_are_not_described_as_another_kind) {
    for (const struct foreign *kind = f->all.rows; kind < f->all.rows + f->all.count; kind++) {
        unsigned char *bytes = kind->wire.bytes;
        for (size_t size = 0; size <= kind->wire.size; size++)
            for (size_t r = 0; r < FIRST_FILE; r++) {
                const char *words = words_of(&readers[r], bytes, size);
                if (!fits_beginning(kind, words))
                    fail_with("%zu of %zu bytes of \"%s\" are \"%s\"", size, kind->wire.size,
                              kind->words, words);
            }
        if (strstr(kind->words, "a tar archive")) /* the checksum needs the whole header */
            assert_string_equal(words_of(&model_bytes, bytes, kind->wire.size - 1), "");
        for (size_t i = kind->from; i < kind->to; i++) {
            bytes[i] ^= 5;
            if (strcmp(words_of(&blob_bytes, bytes, kind->wire.size), kind->words) == 0)
                fail_with("described as \"%s\" although byte %zu differs", kind->words, i);
            bytes[i] ^= 5;
        }
    }
}

/* `words` describes each prefix of at least `least` bytes (99: no prefix). */
static const struct {
    const char *bytes;
    size_t size, least;
    const char *words;
} bounds[] = {
    {B("\x1f\x8b\x08"), 3, "gzip data: unpack it first"},
    {B("\x1c\0\0\0TFL3"), 8, "a TensorFlow Lite model"},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\x0a\0aba/data.pkl.."), 40, PYTORCH},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\5\0aba.npy"), 35, "an archive of NumPy arrays (.npz)"},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\4\1ab.npy"), 99, "an archive of NumPy arrays (.npz)"},
    /* The header of a safetensors file has 2 to 100000000 bytes. */
    {B("\1\0\0\0\0\0\0\0{\""), 99, "a safetensors file"},
    {B("\2\0\0\0\0\0\0\0{\""), 10, "a safetensors file"},
    {B("\0\1\0\0\0\0\0\0{\""), 10, "a safetensors file"},
    {B("\x01\xe1\xf5\5\0\0\0\0{\""), 99, "a safetensors file"},
    {B("\x80\2\x8a"), 3, PICKLE},
    {B("\x80\4\x95\0\0\0\0\0\0\0\0"), 11, PICKLE},
    {B("\x80\5\x95\1\0\0\0\0\0\0\0."), 12, PICKLE},
    {B("\x80\4\x95\2\0\0\0\0\0\0\0."), 99, PICKLE},
    {B("\0\0\0\0\0\0\0\0"), 8, "nothing but 8 zeros: its contents were never written"},
    {B("\x0e<html"), 99, HTML},
    {B("\xef\xbb\xbf<html"), 8, HTML},
    {B(LFS "size 1029\n"), sizeof LFS + 9, LFS_WORDS " to 1029 bytes that are not here" FETCH},
    {B(LFS "o\nsize 3\n"), sizeof LFS + 8, LFS_WORDS " to 3 bytes that are not here" FETCH},
    {B(LFS "size 1:\n"), sizeof LFS - 4, LFS_WORDS " to bytes that are not here" FETCH},
    {B(LFS "size 10000000000000000000\n"), sizeof LFS - 4,
     LFS_WORDS " to bytes that are not here" FETCH},
    {B("# aaaaaa\nname:"), 14, PROTOTXT},
    {B("# aaaaaaa\nname :"), 16, PROTOTXT},
    {B("# aaaaaaa\n# b\nbase_lr:"), 22, PROTOTXT},
    {B("# aaaaaaa\nlayers {"), 18, PROTOTXT},
    {B("{\"a\": 12"), 8, "JSON"},
    {B("{        \"a"), 10, "JSON"},
    {B("{}"), 2, "JSON"},
    {B("[]\n"), 2, "JSON"},
    {B("{\"a\":1}"), 7, "JSON"},
    {B("[{}]"), 3, "JSON"},
    {B("{\"a\":\x01}"), 99, "JSON"},
    {B("{a}"), 99, "JSON"},
    {B("gggg\tgg\r\ngg"), 8, "text, which begins \"gggg\""},
    {B("aaaaaaab"), 8, "text, which begins \"aaaaaaab\""},
    {B("# aaaaaaa#"), 10, "text, which begins \"# aaaaaaa#\""},
    {B("0123456789012345678901234567890123456789"), 40,
     "text, which begins \"0123456789012345678901234567890123456789\""},
    {B("gggg\x7f"
       "bbbb"),
     99, "text, which begins \"gggg\""},
    {B("\x0a\7\x0a\2in\x12\1A"), 99, GRAPH},
    {B("\x0a\x46\x0a\2in\x12\x40" LETTERS), 72, GRAPH},
    {B("\x0a\x47\x0a\2in\x12\x41"
       "A" LETTERS),
     99, GRAPH},
    {B("\x0a\6\x0a\2inAb"), 99, GRAPH},
    {B("\x0a\3Abc\x12\2De"), 99, GRAPH},
    {B("\x0a\x88\x80\x80\x80\0\x0a\2in\x12\2Ab"), 14, GRAPH},
    {B("\x0a\x88\x80\x80\x80\x80\0\x0a\2in\x12\2Ab"), 99, GRAPH},
    {B("\x0a\x87\1\x0a\x80\1" LETTERS LETTERS "\x12\2Ab"), 138, GRAPH},
};

TEST(beginnings_are_described_from_their_least_size) {
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        /* The longest prefix comes first, so that the test notices a read of stale bytes. */
        for (size_t size = bounds[i].size + 1; size--;) {
            const char *words = words_of(&model_bytes, bounds[i].bytes, size);
            const bool is_named = strcmp(words, bounds[i].words) == 0;
            if (is_named != (size >= bounds[i].least))
                fail_with("%zu bytes of \"%s\" are \"%s\"", size, bounds[i].words, words);
        }
}

TEST(a_pickle_begins_with_its_version_and_an_opcode) {
    for (int version = 0; version < 7; version++)
        for (int c = 1; c < 256; c++) {
            const char bytes[] = {'\x80', (char)version, (char)c, '\xff', '\xff'};
            const char *words = words_of(&model_bytes, bytes, sizeof bytes);
            const bool is_one =
                (version == 2 || version == 3) && (strchr("}])(cX", c) || c == 0x8a);
            assert_int_equal(strcmp(words, PICKLE) == 0, is_one);
        }
}

TEST(an_operation_has_letters_and_digits) {
    for (int at = 0; at < 3; at++)
        for (int c = 0; c < 256; c++) {
            char graph[] = "\x0a\x09\x0a\2in\x12\3AbC";
            graph[8 + at] = (char)c;
            const char *words = words_of(&model_bytes, graph, sizeof graph - 1);
            const bool is_large = c >= 'A' && c <= 'Z';
            const bool is_one =
                is_large || (at && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')));
            assert_int_equal(strcmp(words, "a TensorFlow graph") == 0, is_one);
        }
}

TEST(zeros_are_counted_as_far_as_they_were_read) {
    unsigned char zeros[5000] = {0};
    assert_string_equal(words_of(&model_bytes, NULL, 0), "empty: there are no bytes");
    assert_string_equal(words_of(&blob_bytes, NULL, 0), "empty: there are no bytes");
    assert_string_equal(words_of(&model_bytes, zeros, 7), "");
    assert_string_equal(words_of(&model_bytes, zeros, 1024),
                        "nothing but 1024 zeros: its contents were never written");
    zeros[4999] = 1;
    assert_string_equal(words_of(&model_bytes, zeros, sizeof zeros),
                        "a file that begins with 1024 zeros: its contents were never written");
    zeros[1023] = 1;
    assert_string_equal(words_of(&model_bytes, zeros, sizeof zeros), "");
}

TEST_ON(kinds, a_file_larger_than_a_message_is_described) {
    const struct foreign *kind = &f->all.rows[0];
    file_write_wire(f->path, &kind->wire);
    assert_int_equal(truncate(f->path, (off_t)INT32_MAX + 1), 0);
    for (size_t r = FIRST_FILE; r < NUM_READERS; r++) {
        support_poison_error(&err);
        assert_status(SB_ERR_DATA_LIMIT, read_by(&readers[r], &kind->wire, f->path, &err));
        assert_true(starts(description(), kind->words));
    }
}

/* The net has more fields than the library examines. */
static struct wire many_layers(void) {
    struct wire net = wire_of("1:'net'");
    for (int i = 0; i < 70; i++)
        wire_write(&net, "100:{1:'n' 2:'t' 7:{[1]0}}");
    return net;
}

static const char *name_of_format(int32_t format) {
    return format == SB_FORMAT_BLOB          ? "a blob such as a mean file"
           : format == SB_FORMAT_CAFFEMODEL  ? "a caffemodel"
           : format == SB_FORMAT_SOLVERSTATE ? "a solver state"
                                             : "a vector of blobs";
}

static const struct {
    const char *fields; /* if NULL, the fields of many_layers() */
    int32_t format;
    size_t known; /* the length of the shortest recognised prefix */
} ours[] = {
    {"1:'net' 100:{1:'conv' 2:'Convolution' 7:{[2 3]1}} 100:{1:'relu' 2:'ReLU'}",
     SB_FORMAT_CAFFEMODEL, 15},
    {"1:'net' 2:{4:'conv' 5:4 2:'data' 6:{[2 3]1}} 2:{4:'relu' 5:18}", SB_FORMAT_CAFFEMODEL, 14},
    {NULL, SB_FORMAT_CAFFEMODEL, 12},
    {"1:4000 2:'net_iter_4000.caffemodel' 3:{[2 3]1} 4:2", SB_FORMAT_SOLVERSTATE, 58},
    {"1:4000 3:{[2 3]1}", SB_FORMAT_SOLVERSTATE, 32},
    {"1:1 2:6 3:1 4:1 5:'----+++-***-,,,,...,////'", SB_FORMAT_BLOB, 9}, /* a mean file */
    {"[2 3]1", SB_FORMAT_BLOB, 27},
    {"1:{[2 3]1} 1:{[1]1}", SB_FORMAT_BLOB_VECTOR, 35},
};
#define NUM_OURS (sizeof ours / sizeof *ours)

static struct wire build(size_t i) {
    return ours[i].fields ? wire_of("%s", ours[i].fields) : many_layers();
}

static void assert_named(int32_t format, int32_t wanted) {
    char expected[160];
    (void)snprintf(expected, sizeof expected, "%s, not %s", name_of_format(format),
                   name_of_format(wanted));
    assert_string_equal(description(), expected);
    if (strstr(err.message, "the fields"))
        assert_int_equal(err.offset, 0);
}

TEST_ON(kinds, a_message_of_another_format_is_refused_by_name) {
    sb_limits least = SB_LIMITS_INIT;
    least.max_axes = least.max_layers = least.max_blobs = 1;
    least.max_name_bytes = 1;
    for (size_t i = 0; i < NUM_OURS; i++) {
        const struct wire wire = build(i);
        file_write_wire(f->path, &wire);
        assert_status(SB_ERR_DATA_LIMIT, open_as(AUTO, &wire, &least, &err));
        assert_string_equal(description(), "");
        assert_status(SB_ERR_DATA_LIMIT, open_as(ours[i].format, &wire, &least, &err));
        assert_string_equal(description(), "");
        for (int32_t wanted = SB_FORMAT_BLOB; wanted <= SB_FORMAT_BLOB_VECTOR; wanted++)
            if (open_as(wanted, &wire, NULL, &err) != SB_OK)
                assert_named(ours[i].format, wanted);
            else
                assert_int_equal(wanted, ours[i].format);
        for (size_t r = 0; ours[i].format != SB_FORMAT_BLOB && r < NUM_READERS; r++)
            if (readers[r].as == SB_FORMAT_BLOB) {
                assert_status(SB_ERR_MALFORMED, read_by(&readers[r], &wire, f->path, &err));
                assert_named(ours[i].format, SB_FORMAT_BLOB);
            }
    }
}

/* The first field of PLACEHOLDER is a net's name in Caffe and a node in TensorFlow. */
#define PLACEHOLDER "1:{1:'input' 2:'Placeholder'}"
#define SAVED_MODEL(op)                                                                            \
    "1:1 2:{1:{2:{1:{1:'" op "'}} 4:'serve'} 2:{1:{1:'input' 2:'Placeholder'} 4:{1:24}}}"

TEST(messages_of_another_format_or_program_are_recognised) {
    static const struct {
        int32_t as;
        sb_status status;
        const char *fields, *words; /* `words` is NULL if the error does not describe the message */
        uint32_t longest;           /* the limit for names, or 0 for the default */
    } rows[] = {
        {BLOB, SB_ERR_MALFORMED, "1:1 2:'abc'", "not belong to a blob but to a solverstate", 0},
        {BLOB, SB_ERR_MALFORMED, "1:1 3:''", "not belong to a blob but to a solverstate", 0},
        {BLOB, SB_ERR_MALFORMED, "1:'n' 8:{1:1 1:3 1:5 1:5}",
         "not belong to a blob but to a caffemodel", 0},
        {BLOB, SB_ERR_MALFORMED, "4:'x'", "not belong to a blob but to a caffemodel", 0},
        {BLOB, SB_ERR_MALFORMED, "100:''", "not belong to a blob but to a caffemodel", 0},
        {BLOB, SB_OK, "1:1 2:0 3:0 4:0", NULL, 0},
        {BLOB, SB_OK, "1:1", NULL, 0},
        {BLOB, SB_OK, "7:{1:0} 100:1", NULL, 0},
        {BLOB, SB_OK, "7:{1:0} 100:''", NULL, 0},
        {BLOB, SB_OK, "1:'n' [1]0", NULL, 0},
        {AUTO, SB_ERR_MALFORMED, PLACEHOLDER, GRAPH, 0},
        {AUTO, SB_OK, PLACEHOLDER "100:{7:{[2]1}}", NULL, 0},
        {BLOB, SB_ERR_MALFORMED, PLACEHOLDER, GRAPH, 0},
        {BLOB, SB_ERR_MALFORMED, PLACEHOLDER "4:'----'", GRAPH, 0},
        {BLOB, SB_OK, PLACEHOLDER "5:'----'", NULL, 0},
        {BLOB, SB_OK, PLACEHOLDER "5:'----' 6:'----'", NULL, 0},
        {BLOB, SB_OK, PLACEHOLDER "6:f1", NULL, 0},
        {AUTO, SB_ERR_DATA_LIMIT, PLACEHOLDER "4:{1:24}", GRAPH, 8},
        {AUTO, SB_ERR_DATA_LIMIT, "1:{1:'input' 2:'Place-older'}", NULL, 8},
        {AUTO, SB_ERR_DATA_LIMIT, SAVED_MODEL("Add"), "a TensorFlow SavedModel", 8},
        {AUTO, SB_ERR_DATA_LIMIT, SAVED_MODEL("add"), NULL, 8},
        {AUTO, SB_ERR_MALFORMED, "1:7 7:{1:{1:'x' 4:'Relu'}}", ONNX, 0},
        {AUTO, SB_ERR_MALFORMED, "1:7 7:{1:{2:'y' 4:'Relu'}}", ONNX, 0},
        {AUTO, SB_OK, "1:7 7:{1:{4:'Relu'}}", NULL, 0},
        {AUTO, SB_OK, "1:7 7:{1:{1:'x' 2:'y'}}", NULL, 0},
        {AUTO, SB_OK, "1:7 7:{1:{1:'x' 2:'y' 4:''}}", NULL, 0},
        {AUTO, SB_OK, "1:7 7:{1:{1:'x' 2:'y' 4:4}}", NULL, 0},
        {AUTO, SB_OK, "1:7 7:{1:{1:'x' 2:'y' 4:'Relu' 11:1}}", NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct wire wire = wire_of("%s", rows[i].fields);
        const struct reader reader = {BYTES, rows[i].as};
        sb_limits limits = SB_LIMITS_INIT;
        limits.max_name_bytes = rows[i].longest;
        const sb_status st = open_as(rows[i].as, &wire, &limits, &err);
        if (st != rows[i].status ||
            (st != SB_OK && !strstr(err.message, rows[i].words ? rows[i].words : "")) ||
            (st != SB_OK && !rows[i].words && strstr(err.message, BEFORE)))
            fail_with("%s: %s %s", rows[i].fields, sb_status_name(st), err.message);
        if (rows[i].as == BLOB) /* a read of a blob may also fail because values are missing */
            assert_int_equal(read_by(&reader, &wire, NULL, &err) == SB_ERR_MALFORMED,
                             st == SB_ERR_MALFORMED);
    }
}

TEST(other_messages_are_not_described_as_caffes) {
    static const char *const rows[] = {
        "1:1 2:'abc'", "1:1 2:'abc' 3:'abc'", "1:'abc'", "1:'abc' 2:{1:1}",
        /* blobs with a missing, a wrong or an unknown field */
        "7:{1:1}", "2:1 3:1 4:1 5:'----'", "1:1 3:1 4:1 5:'----'", "1:1 2:1 4:1 5:'----'",
        "1:1 2:1 3:1 5:'----'", "1:1 [1]0", "2:1 [1]0", "3:1 [1]0", "4:1 [1]0",
        "1:1 2:1 3:1 4:1 [1]0", "1:'' [1]0", "[1]0 20:1", "[1]0 100:1",
        /* layers without a name or a type, and an unknown field */
        "1:'n' 100:{1:'n'}", "1:'n' 100:{2:'n'}", "1:'n' 2:{4:'n'}", "1:'n' 2:{5:4}",
        "100:{1:'n' 2:'t'} 19:1",
        /* solver states: the history is not a blob, or iter is not a number */
        "1:5 3:{1:1}", "3:{[1]0}", "2:'n' 3:{[1]0}", "1:'n' 3:{[1]0}",
        /* incomplete TensorFlow graphs */
        "7:{1:{2:'y' 4:''} 2:'g'}", "1:7 7:{1:{2:'y' 4:''} 2:'g'} 8:1", "1:7 7:{1:{2:'y' 4:''}}",
        "1:7 2:'p' 7:{2:'g'}"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct wire wire = wire_of("%s", rows[i]);
        for (int32_t format = SB_FORMAT_AUTO; format <= SB_FORMAT_BLOB_VECTOR; format++)
            if (open_as(format, &wire, NULL, &err) != SB_OK && strstr(err.message, BEFORE))
                fail_with("%s: %s", rows[i], err.message);
    }
}

struct span {
    size_t begin, value, end;
};

static struct span field_at(const struct wire *file, size_t at, struct span from) {
    while (at >= from.end) {
        size_t i = from.begin = from.end;
        size_t length = 0;
        const bool is_varint = (file->bytes[i] & 7) == 0;
        while (file->bytes[i++] >= 0x80)
            ;
        unsigned shift = 0;
        for (; file->bytes[i] >= 0x80; shift += 7)
            length |= (size_t)(file->bytes[i++] & 0x7f) << shift;
        length |= (size_t)file->bytes[i++] << shift;
        from.value = i;
        from.end = is_varint ? i : i + length;
    }
    return from;
}

TEST(a_cut_file_is_reported_with_its_missing_bytes) {
    for (size_t i = 0; i < NUM_OURS; i++) {
        const struct wire file = build(i);
        struct span field = {0, 0, 0};
        char missing[64], end[160];
        (void)snprintf(end, sizeof end, "the beginning of %s: the rest was cut off",
                       name_of_format(ours[i].format));
        for (size_t size = 1; size < file.size; size++) {
            field = field_at(&file, size, field);
            if (size == field.begin)
                continue;
            const char *found = words_of(&model_bytes, file.bytes, size);
            const size_t lacking = size < field.value ? 1 : field.end - size;
            (void)snprintf(missing, sizeof missing, "%zu byte%s missing at offset %zu", lacking,
                           lacking == 1 ? " is" : "s are", size);
            if (strcmp(found, size < ours[i].known ? "" : end) != 0 ||
                !strstr(err.message, missing))
                fail_with("%s, cut to %zu of %zu bytes: %s", end, size, file.size, err.message);
        }
    }
}

static sb_status open_failing(const struct wire *wire, int32_t format, int n, sb_error *err) {
    struct test_source from = {.fault = {.left = n, .status = SB_ERR_IO}};
    sb_model *model = NULL;
    const sb_source source = test_source_of(&from, wire);
    const sb_status st = sb_model_open_source(NULL, format, &source, NULL, NULL, &model, err);
    sb_model_destroy(model);
    return st;
}

TEST_ON(kinds, a_second_read_that_fails_keeps_the_original_error) {
    const struct foreign *kind = &f->all.rows[0];
    const struct reader model_source = {SOURCE, SB_FORMAT_CAFFEMODEL};
    assert_string_equal(words_of(&model_source, kind->wire.bytes, kind->wire.size), kind->words);
    const sb_error first = err;
    bool undescribed = false, is_described = false;
    for (int n = 2; n < 8; n++) {
        support_poison_error(&err);
        const sb_status st = open_failing(&kind->wire, SB_FORMAT_CAFFEMODEL, n, &err);
        if (st == SB_ERR_IO)
            continue;
        assert_int_equal(st, first.code);
        assert_int_equal(err.offset, first.offset);
        undescribed |= !strstr(err.message, BEFORE);
        is_described |= strstr(err.message, BEFORE) != NULL;
    }
    assert_true(undescribed && is_described);
}

/* The graph is larger than one read of the library. */
TEST(a_source_that_fails_is_not_opened) {
    struct wire wires[] = {wire_of(PLACEHOLDER), wire_of("1:7")}, graph = {0};
    for (int i = 0; i < 5000; i++)
        wire_write(&graph, "1:{1:'x' 2:'y' 4:'Relu'}");
    wire_message(&wires[1], 7, &graph);
    for (int i = 0; i < 2; i++) {
        int failed = 0, refused = 0;
        for (int n = 1; n < 160; n++) {
            const sb_status st = open_failing(&wires[i], SB_FORMAT_AUTO, n, NULL);
            assert_true(st == SB_ERR_IO || st == SB_ERR_MALFORMED);
            failed += st == SB_ERR_IO;
            refused += st == SB_ERR_MALFORMED;
        }
        assert_true(failed > 0 && refused > 0);
    }
}
