/* Tests that errors describe a file that is not a Caffe message, if the file's kind is certain. */
#include "callbacks.h"
#include "files.h"
#include "foreign.h"
#include "nets.h"
#include "support.h"
#include "wire_builder.h"

#include "format/layout.h"

#include <unistd.h>

#define BEFORE "; this is "
/* B: the bytes of a string and their number. W: both as a struct wire. */
#define B(s) s, sizeof s - 1
#define W(s)                                                                                       \
    { (unsigned char *)(s), sizeof(s) - 1, 0 }

#define PYTORCH   "a PyTorch file: export it from Python as .safetensors or .npz"
#define PICKLE    "a Python pickle: load it in Python, save its arrays as .npz"
#define HTML      "an HTML page, not the file that it shows: download the raw file"
#define GRAPH     "a TensorFlow graph"
#define LETTERS   "AbcdefghijklmnopqrstuvwxyzAbcdefghijklmnopqrstuvwxyzAbcdefghijkl"
#define LFS       "version https://git-lfs.github.com/spec/v1\n"
#define LFS_WORDS "a Git LFS pointer"
#define FETCH     ": `git lfs pull` fetches them"
#define PROTOTXT                                                                                   \
    "protobuf's text format (.prototxt), which describes a net: the weights are in another file"

/* --- kinds of foreign files ----------------------------------------------------------- */

/* The kinds of foreign files: the rows of foreign.txt, each with the description in errors. */
struct kinds {
    struct foreign_list all;
    char path[32]; /* of a file that the test may overwrite */
};

static void kinds_open(struct kinds *kinds) {
    *kinds = (struct kinds){foreign_list(), "/tmp/syncblob-foreign-XXXXXX"};
    assert_int_equal(close(mkstemp(kinds->path)), 0); /* Windows overwrites only closed files */
}

static void kinds_close(struct kinds *kinds) {
    assert_int_equal(unlink(kinds->path), 0);
}

/* --- the readers ---------------------------------------------------------------------- */

/* Bytes, and the objects that a reader reads into. */
struct given {
    struct wire wire;
    const char *path; /* a file with these bytes; NULL for readers of memory */
    sb_source source; /* a source of these bytes */
    sb_blob *blob;    /* a blob of one element */
    sb_model *model;
};

typedef sb_status reader(struct given *given, sb_error *err);

static sb_status model_bytes(struct given *given, sb_error *err) {
    return sb_model_open_bytes(NULL, SB_FORMAT_AUTO, given->wire.bytes, given->wire.size, NULL,
                               NULL, NULL, &given->model, err);
}

static sb_status solver_state_bytes(struct given *given, sb_error *err) {
    return sb_model_open_bytes(NULL, SB_FORMAT_SOLVERSTATE, given->wire.bytes, given->wire.size,
                               NULL, NULL, NULL, &given->model, err);
}

static sb_status model_file(struct given *given, sb_error *err) {
    return sb_model_open_file(NULL, SB_FORMAT_CAFFEMODEL, given->path, 0, NULL, &given->model, err);
}

static sb_status solver_state_mapped(struct given *given, sb_error *err) {
    return sb_model_open_file(NULL, SB_FORMAT_SOLVERSTATE, given->path, SB_OPEN_MAPPED, NULL,
                              &given->model, err);
}

static sb_status model_source(struct given *given, sb_error *err) {
    return sb_model_open_source(NULL, SB_FORMAT_CAFFEMODEL, &given->source, NULL, NULL,
                                &given->model, err);
}

static sb_status model_spans(struct given *given, sb_error *err) {
    const unsigned char *bytes = given->wire.bytes;
    const size_t half = given->wire.size / 2;
    const sb_span spans[] = {{bytes, half}, {bytes + half, given->wire.size - half}};
    sb_source source = SB_SOURCE_INIT;
    assert_int_equal(sb_source_of_spans(NULL, spans, 2, &source, NULL), SB_OK);
    sb_status st =
        sb_model_open_source(NULL, SB_FORMAT_AUTO, &source, NULL, NULL, &given->model, err);
    if (st != SB_OK)
        source.close(source.user);
    return st;
}

static sb_status blob_bytes(struct given *given, sb_error *err) {
    return sb_blob_from_proto(given->blob, given->wire.bytes, given->wire.size, SB_PROTO_RESHAPE,
                              NULL, err);
}

static sb_status blob_equals(struct given *given, sb_error *err) {
    int32_t equal;
    return sb_blob_shape_equals_proto(given->blob, given->wire.bytes, given->wire.size, &equal,
                                      err);
}

static sb_status blob_file(struct given *given, sb_error *err) {
    return sb_blob_load_file(given->blob, given->path, 0, NULL, err);
}

static sb_status blob_source(struct given *given, sb_error *err) {
    return sb_blob_load_source(given->blob, &given->source, SB_PROTO_RESHAPE, NULL, NULL, err);
}

static sb_status read_by(reader *read, const void *bytes, size_t size, const char *path,
                         sb_error *err) {
    const struct wire wire = {(unsigned char *)bytes, size, size};
    struct test_source from = {.wire = NULL};
    struct given given = {wire, path, test_source_of(&from, &wire), NULL, NULL};
    const int64_t one = 1;
    assert_int_equal(sb_blob_create_shaped(NULL, SB_DTYPE_F32, &one, 1, &given.blob, NULL), SB_OK);
    const sb_status st = read(&given, err);
    sb_blob_destroy(given.blob);
    sb_model_destroy(given.model);
    return st;
}

/* Returns how `err` describes the bytes; "": not at all. */
static const char *description(void) {
    const char *words = strstr(err.message, BEFORE);
    return words ? words + strlen(BEFORE) : "";
}

static reader *const readers[] = {
    blob_bytes,  model_bytes, solver_state_bytes, blob_source, model_source,
    model_spans, blob_equals, blob_file,          model_file,  solver_state_mapped,
};
#define NUM_READERS (sizeof readers / sizeof *readers)
#define FIRST_FILE  7 /* the readers from this index on read a file */

static sb_status open_as(int32_t format, const struct wire *wire, const sb_limits *limits,
                         sb_error *err) {
    sb_model *model = NULL;
    sb_status st =
        sb_model_open_bytes(NULL, format, wire->bytes, wire->size, limits, NULL, NULL, &model, err);
    sb_model_destroy(model);
    return st;
}

/* Returns whether the bytes are a valid protobuf message, but of another program. */
static bool is_message(const struct foreign *kind) {
    return strstr(kind->words, "ONNX") || strstr(kind->words, "TensorFlow graph") ||
           strstr(kind->words, "SavedModel");
}

/* --- every kind, every reader ------------------------------------------------------------ */

/* By protobuf's rules, messages of other programs are also messages of Caffe, of each format. */
TEST_ON(kinds, every_reader_describes_the_bytes) {
    for (size_t k = 0; k < f->all.count; k++) {
        const struct foreign *kind = &f->all.rows[k];
        const struct wire wire = {(unsigned char *)kind->bytes, kind->size, kind->size};
        file_write(f->path, kind->bytes, kind->size);
        for (size_t r = 0; r < NUM_READERS; r++) {
            support_poison_error(&err);
            if (read_by(readers[r], kind->bytes, kind->size, f->path, &err) == SB_OK)
                fail_with("reader %zu accepts \"%s\"", r, kind->words);
            if (strcmp(description(), kind->words) != 0 || err.message[0] == *BEFORE)
                fail_with("reader %zu: \"%s\" does not end in \"%s\"", r, err.message, kind->words);
        }
        for (int32_t as = SB_FORMAT_AUTO; as <= SB_FORMAT_BLOB_VECTOR && is_message(kind); as++) {
            assert_status(SB_ERR_MALFORMED, open_as(as, &wire, NULL, &err));
            if (strstr(err.message, "the fields do not belong to")) /* not about one field */
                assert_int_equal(err.offset, 0);
            assert_string_equal(description(), kind->words);
        }
    }
}

/* Returns how the reader describes a copy of exactly `size` bytes; "": not at all. */
static const char *words_of(reader *read, const void *bytes, size_t size) {
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    if (size > 0)
        memcpy(exact, bytes, size);
    support_poison_error(&err);
    const sb_status st = read_by(read, exact, size, NULL, &err);
    free(exact);
    return st == SB_OK ? "" : description();
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Returns whether `words` may describe the beginning of a file of `kind`, perhaps as plain text. */
static bool fits_beginning(const struct foreign *kind, const char *words) {
    return *words == '\0' || strcmp(words, kind->words) == 0 ||
           (kind->shorter && strcmp(words, kind->shorter) == 0) ||
           starts(words, "text, which begins \"") || starts(words, "empty") ||
           starts(words, "nothing but ");
}

TEST_ON(kinds, beginnings_are_not_described_as_another_kind) {
    for (const struct foreign *kind = f->all.rows; kind < f->all.rows + f->all.count; kind++)
        for (size_t size = 0; size <= kind->size; size++)
            for (size_t r = 0; r < FIRST_FILE; r++) {
                const char *words = words_of(readers[r], kind->bytes, size);
                if (!fits_beginning(kind, words))
                    fail_with("%zu of %zu bytes of \"%s\" are \"%s\"", size, kind->size,
                              kind->words, words);
            }
}

TEST_ON(kinds, near_misses_are_not_the_kind) {
    for (const struct foreign *kind = f->all.rows; kind < f->all.rows + f->all.count; kind++)
        for (size_t i = kind->from; i < kind->to; i++) {
            struct wire near = {0};
            wire_raw(&near, kind->bytes, kind->size);
            near.bytes[i] ^= 5;
            const char *words = words_of(blob_bytes, near.bytes, near.size);
            if (strcmp(words, kind->words) == 0)
                fail_with("described as \"%s\" although byte %zu differs", words, i);
        }
}

/* The first n bytes of `bytes` must be described with `words` if and only if n is at least `least`;
   99 means never. The test reads the longest beginning first, so that it notices a read of
   stale bytes. */
static const struct {
    const char *bytes;
    size_t size, least;
    const char *words;
} bounds[] = {
    {B("\x1f\x8b\x08"), 3, "gzip data: unpack it first"},
    {B("\x1c\0\0\0TFL3"), 8, "a TensorFlow Lite model"},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\x09\0ab/data.pkl"), 39, PYTORCH},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\x0a\0aba/data.pkl.."), 40, PYTORCH},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\4\0ab.npy"), 34, "an archive of NumPy arrays (.npz)"},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\5\0aba.npy"), 35, "an archive of NumPy arrays (.npz)"},
    {B("PK\3\4ghijklmnopqrstuvwxyzgh\4\1ab.npy"), 99, "an archive of NumPy arrays (.npz)"},
    /* The header of a safetensors file has 2 to 100000000 bytes. */
    {B("\1\0\0\0\0\0\0\0{\""), 99, "a safetensors file"},
    {B("\2\0\0\0\0\0\0\0{\""), 10, "a safetensors file"},
    {B("\0\1\0\0\0\0\0\0{\""), 10, "a safetensors file"},
    {B("\x00\xe1\xf5\5\0\0\0\0{\""), 10, "a safetensors file"},
    {B("\x01\xe1\xf5\5\0\0\0\0{\""), 99, "a safetensors file"},
    {B("\x80\2\x8a"), 3, PICKLE},
    {B("\x80\4\x95\0\0\0\0\0\0\0\0"), 11, PICKLE},
    {B("\x80\5\x95\1\0\0\0\0\0\0\0."), 12, PICKLE},
    {B("\x80\4\x95\2\0\0\0\0\0\0\0."), 99, PICKLE},
    {B("\0\0\0\0\0\0\0\0"), 8, "nothing but 8 zeros: its contents were never written"},
    {B("\r<html"), 6, HTML},
    {B("\x0e<html"), 99, HTML},
    {B("\xef\xbb\xbf<html"), 8, HTML},
    {B("     <html>"), 10, HTML},
    {B(LFS "size 1029\n"), sizeof LFS + 9, LFS_WORDS " to 1029 bytes that are not here" FETCH},
    {B(LFS "o\nsize 3\n"), sizeof LFS + 8, LFS_WORDS " to 3 bytes that are not here" FETCH},
    {B(LFS "size 1:\n"), sizeof LFS - 4, LFS_WORDS " to bytes that are not here" FETCH},
    {B(LFS "size:3\nsize 5\n"), sizeof LFS + 13, LFS_WORDS " to 5 bytes that are not here" FETCH},
    {B(LFS "size 10000000000000000000\n"), sizeof LFS - 4,
     LFS_WORDS " to bytes that are not here" FETCH},
    {B("name: \"x"), 8, PROTOTXT},
    {B("# aaaaaa\nname:"), 14, PROTOTXT},
    {B("# aaaaaaa\nname :"), 16, PROTOTXT},
    {B("# aaaaaaa\n# b\nbase_lr:"), 22, PROTOTXT},
    {B("# aaaaaaa\nlayers {"), 18, PROTOTXT},
    {B("{\"a\": 12"), 8, "JSON"},
    {B("{        \"a"), 10, "JSON"},
    {B("gggg\tgg\r\ngg"), 8, "text, which begins \"gggg\""},
    {B("aaaaaaab"), 8, "text, which begins \"aaaaaaab\""},
    {B("# aaaaaaa#"), 10, "text, which begins \"# aaaaaaa#\""},
    {B("0123456789012345678901234567890123456789"), 40,
     "text, which begins \"0123456789012345678901234567890123456789\""},
    {B("01234567890123456789012345678901234567890"), 40,
     "text, which begins \"0123456789012345678901234567890123456789\""},
    {B("gggg\x7f"
       "bbbb"),
     99, "text, which begins \"gggg\""},
    {B("\x0a\x08\x0a\2in\x12\2Ab"), 10, GRAPH},
    {B("\x0a\7\x0a\2in\x12\1A"), 99, GRAPH},
    {B("\x0a\x46\x0a\2in\x12\x40" LETTERS), 72, GRAPH},
    {B("\x0a\x47\x0a\2in\x12\x41"
       "A" LETTERS),
     99, GRAPH},
    {B("\x0a\6\x0a\2inAb"), 99, GRAPH},
    {B("\x0a\3Abc\x12\2De"), 99, GRAPH},
    {B("\x0a\x88\0\x0a\2in\x12\2Ab"), 11, GRAPH},
    {B("\x0a\x88\x80\x80\x80\0\x0a\2in\x12\2Ab"), 14, GRAPH},
    {B("\x0a\x88\x80\x80\x80\x80\0\x0a\2in\x12\2Ab"), 99, GRAPH},
    {B("\x0a\x87\1\x0a\x80\1" LETTERS LETTERS "\x12\2Ab"), 138, GRAPH},
    {B("\1aaaaaaaa"), 99, "text, which begins \"\""},
};

TEST(beginnings_are_described_from_their_least_size) {
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (size_t size = bounds[i].size + 1; size--;) {
            const char *words = words_of(model_bytes, bounds[i].bytes, size);
            const bool is_named = strcmp(words, bounds[i].words) == 0;
            if (is_named != (size >= bounds[i].least))
                fail_with("%zu bytes of \"%s\" are \"%s\"", size, bounds[i].words, words);
        }
}

/* In pickles of version 2 or 3, an opcode follows the version; only some opcodes can be first. */
TEST(a_pickle_begins_with_its_version_and_an_opcode) {
    for (int version = 0; version < 7; version++)
        for (int c = 1; c < 256; c++) {
            const char bytes[] = {'\x80', (char)version, (char)c, '\xff', '\xff'};
            const char *words = words_of(model_bytes, bytes, sizeof bytes);
            const bool is_one =
                (version == 2 || version == 3) && (strchr("}])(cX", c) || c == 0x8a);
            assert_int_equal(strcmp(words, PICKLE) == 0, is_one);
        }
}

/* The name of a TensorFlow operation has letters and digits, and begins with a capital letter. */
TEST(an_operation_has_letters_and_digits) {
    for (int at = 0; at < 3; at++)
        for (int c = 0; c < 256; c++) {
            char graph[] = "\x0a\x09\x0a\2in\x12\3AbC";
            graph[8 + at] = (char)c;
            const char *words = words_of(model_bytes, graph, sizeof graph - 1);
            const bool is_large = c >= 'A' && c <= 'Z';
            const bool is_one =
                is_large || (at && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')));
            assert_int_equal(strcmp(words, "a TensorFlow graph") == 0, is_one);
        }
}

/* Makes a tar header, whose checksum is in octal digits at offset 148, and one byte of contents. */
static struct wire tar_header(unsigned char other) {
    struct wire tar = {0};
    unsigned sum = 0;
    char digits[8];
    static const char name[] = "net/deploy.prototxt", blanks[] = "        ";
    unsigned char header[512] = {0};
    memcpy(header, name, sizeof name);
    memcpy(header + 124, "00000000006", 11);
    memcpy(header + 148, blanks, 8);
    memcpy(header + 257, "ustar  ", 7);
    header[156] = '5';
    header[400] = other;
    for (size_t i = 0; i < sizeof header; i++)
        sum += header[i];
    (void)snprintf(digits, sizeof digits, "%06o", sum);
    memcpy(header + 148, digits, 7);
    header[155] = '8'; /* not a digit */
    wire_raw(&tar, header, sizeof header);
    wire_raw(&tar, "\1", 1);
    return tar;
}

TEST(a_tar_is_recognised_by_its_checksum) {
    for (int other = 0; other < 64; other++) { /* for all values of the checksum's last digits */
        struct wire tar = tar_header((unsigned char)other);
        for (size_t more = 0; more < 2; more++)
            assert_string_equal(words_of(model_bytes, tar.bytes, 512 + more),
                                "a tar archive: unpack it first");
        assert_string_equal(words_of(model_bytes, tar.bytes, 511), "");
        tar.bytes[400]++;
        assert_string_equal(words_of(model_bytes, tar.bytes, tar.size), "");
    }
}

TEST(zeros_are_counted_as_far_as_they_were_read) {
    unsigned char zeros[5000] = {0};
    assert_string_equal(words_of(model_bytes, zeros, 7), "");
    assert_string_equal(words_of(model_bytes, zeros, 1024),
                        "nothing but 1024 zeros: its contents were never written");
    zeros[4999] = 1;
    assert_string_equal(words_of(model_bytes, zeros, sizeof zeros),
                        "a file that begins with 1024 zeros: its contents were never written");
    zeros[1023] = 1;
    assert_string_equal(words_of(model_bytes, zeros, sizeof zeros), "");
}

TEST(no_bytes_are_described_as_empty) {
    assert_string_equal(words_of(model_bytes, NULL, 0), "empty: there are no bytes");
    assert_string_equal(words_of(blob_bytes, NULL, 0), "empty: there are no bytes");
}

/* --- larger than a message ---------------------------------------------------------------- */

/* Sizes just above protobuf's limit and just above 2^32, and a far larger size. */
static const uint64_t large[] = {(uint64_t)INT32_MAX + 1, (uint64_t)UINT32_MAX + 2,
                                 (uint64_t)1 << 40};
#define NUM_LARGE (sizeof large / sizeof *large)

static void check_large(const struct foreign *kind, sb_status st) {
    const char *words =
        starts(kind->words, "nothing but") ? "a file that begins with 1024 zeros" : kind->words;
    assert_int_equal(st, SB_ERR_DATA_LIMIT);
    assert_int_equal(err.offset, INT32_MAX);
    if (!starts(description(), words))
        fail_with("\"%s\" does not end in \"%s\"", err.message, words);
}

/* Returns whether the kind is text, which is recognised only if all bytes read are text. */
static bool is_text(const struct foreign *kind) {
    return strstr(kind->words, "text, which") || strstr(kind->words, "JSON") ||
           strstr(kind->words, "text format");
}

/* Makes sparse files: the bytes of a kind, then blank lines if the kind is text, then zeros. */
TEST_ON(kinds, files_of_every_size_are_described) {
    static reader *const of_files[] = {blob_file, model_file, solver_state_mapped};
    char blanks[1024];
    memset(blanks, '\n', sizeof blanks);
    for (size_t k = 0; k < f->all.count; k++)
        for (size_t i = 0; i < NUM_LARGE; i++) {
            const struct foreign *kind = &f->all.rows[k];
            struct wire wire = {0};
            wire_raw(&wire, kind->bytes, kind->size);
            if (is_text(kind))
                wire_raw(&wire, blanks, sizeof blanks);
            file_write_wire(f->path, &wire);
            wire_free(&wire);
            if (truncate(f->path, (off_t)large[i]) != 0) {
                assert_int_not_equal(i, 0);
                print_message("skipped: the file system refuses a file of %llu bytes\n",
                              (unsigned long long)large[i]);
                continue;
            }
            for (size_t r = 0; r < sizeof of_files / sizeof *of_files; r++) {
                support_poison_error(&err);
                sb_status st = read_by(of_files[r], NULL, 0, f->path, &err);
                check_large(kind, st);
            }
        }
}

/* --- formats of Caffe -------------------------------------------------------------------- */

static void mean_file(struct wire *out) {
    const float values[] = {1, 2, 3, 4, 5, 6};
    for (uint32_t i = 1; i <= 4; i++)
        wire_number(out, i, i == 2 ? 6 : 1);
    wire_floats(out, 5, values, 6);
}

static void shaped_blob(struct wire *out) {
    wire_blob(out, (int64_t[]){2, 3}, 2, 1);
}

static void solver_state(struct wire *out) {
    wire_number(out, 1, 4000);
    wire_text(out, 2, "net_iter_4000.caffemodel");
    wire_blob_field(out, 3, (int64_t[]){2, 3}, 2, 1);
    wire_number(out, 4, 2);
}

static void blob_vector(struct wire *out) {
    wire_blob_field(out, 1, (int64_t[]){2, 3}, 2, 1);
    wire_blob_field(out, 1, (int64_t[]){1}, 1, 1);
}

/* Makes a solver state without the field learned_net, the path of the net's file. */
static void solver_alone(struct wire *out) {
    wire_number(out, 1, 4000);
    wire_blob_field(out, 3, (int64_t[]){2, 3}, 2, 1);
}

/* Makes a net with more fields than the library examines to recognise a format. */
static void many_layers(struct wire *out) {
    wire_text(out, 1, "net");
    for (int i = 0; i < 70; i++)
        wire_bytes(out, 100, B("\x0a\1n\x12\1t\x3a\x0b\x2a\4\0\0\0\0\x3a\3\x0a\1\1"));
}

static const char *name_of_format(int32_t format) {
    return format == SB_FORMAT_BLOB          ? "a blob such as a mean file"
           : format == SB_FORMAT_CAFFEMODEL  ? "a caffemodel"
           : format == SB_FORMAT_SOLVERSTATE ? "a solver state"
                                             : "a vector of blobs";
}

static const struct {
    void (*build)(struct wire *);
    int32_t format;
} ours[] = {
    {net_current, SB_FORMAT_CAFFEMODEL},   {net_v1, SB_FORMAT_CAFFEMODEL},
    {many_layers, SB_FORMAT_CAFFEMODEL},   {solver_state, SB_FORMAT_SOLVERSTATE},
    {solver_alone, SB_FORMAT_SOLVERSTATE}, {mean_file, SB_FORMAT_BLOB},
    {shaped_blob, SB_FORMAT_BLOB},         {blob_vector, SB_FORMAT_BLOB_VECTOR},
};
#define NUM_OURS (sizeof ours / sizeof *ours)

/* Asserts that `err` names the format of the bytes, and the requested format. */
static void assert_named(int32_t format, int32_t wanted) {
    char expected[160];
    (void)snprintf(expected, sizeof expected, "%s, not %s", name_of_format(format),
                   name_of_format(wanted));
    assert_string_equal(description(), expected);
    if (strstr(err.message, "the fields")) /* the error is not about one field */
        assert_int_equal(err.offset, 0);
}

TEST_ON(kinds, a_message_of_another_format_is_refused_by_name) {
    static reader *const of_blobs[] = {blob_bytes, blob_source, blob_file, blob_equals};
    for (size_t i = 0; i < NUM_OURS; i++) {
        struct wire wire = {0};
        ours[i].build(&wire);
        file_write_wire(f->path, &wire);
        for (int32_t wanted = SB_FORMAT_BLOB; wanted <= SB_FORMAT_BLOB_VECTOR; wanted++)
            if (open_as(wanted, &wire, NULL, &err) != SB_OK)
                assert_named(ours[i].format, wanted);
            else
                assert_int_equal(wanted, ours[i].format);
        for (size_t r = 0; ours[i].format != SB_FORMAT_BLOB && r < 4; r++) {
            assert_status(SB_ERR_MALFORMED,
                          read_by(of_blobs[r], wire.bytes, wire.size, f->path, &err));
            assert_named(ours[i].format, SB_FORMAT_BLOB);
        }
    }
}

/* By protobuf's rules, each row is a BlobProto of no elements or of one element. */
TEST(a_message_with_fields_of_another_format_is_not_a_blob) {
    static const struct {
        const char *named;
        struct wire wire;
    } rows[] = {
        {"not belong to a blob but to a solverstate", W("\x08\1\x12\3abc")},
        {"not belong to a blob but to a solverstate", W("\x08\1\x1a\0")},
        {"not belong to a blob but to a caffemodel", W("\x0a\1n\x42\x08\x08\1\x08\3\x08\5\x08\5")},
        {"not belong to a blob but to a caffemodel", W("\x22\1\1")},
        {"not belong to a blob but to a caffemodel", W("\xa2\6\0")},
        {NULL, W("\x08\1\x10\0\x18\0\x20\0")},
        {NULL, W("\x08\1")},
        {NULL, W("\x3a\3\x0a\1\0\xa0\6\1")},
        {NULL, W("\x3a\3\x0a\1\0\xa2\6\0")},
        {NULL, W("\x0a\1n\x2a\4\0\0\0\0\x3a\3\x0a\1\1")}, /* no format has all these fields */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int as_model = 0; as_model < 2; as_model++) {
            const struct wire *wire = &rows[i].wire;
            sb_status st = as_model ? open_as(SB_FORMAT_BLOB, wire, NULL, &err)
                                    : read_by(blob_bytes, wire->bytes, wire->size, NULL, &err);
            assert_int_equal(st, rows[i].named ? SB_ERR_MALFORMED : SB_OK);
            if (rows[i].named)
                assert_non_null(strstr(err.message, rows[i].named));
        }
}

/* A solver state is not accepted as a net. If a text in field 1 is appended, the message is
   accepted as a net, because field 1 of a solver state is a number. */
TEST(a_late_field_rules_out_another_format) {
    struct wire wire = {0};
    wire_number(&wire, 1, 4000);
    wire_blob_field(&wire, 3, (int64_t[]){2, 3}, 2, 1);
    for (uint64_t i = 0; i < 70; i++)
        wire_number(&wire, 4, i);
    assert_status(SB_ERR_MALFORMED, open_as(SB_FORMAT_CAFFEMODEL, &wire, NULL, &err));
    wire_text(&wire, 1, "net");
    assert_status(SB_OK, open_as(SB_FORMAT_CAFFEMODEL, &wire, NULL, &err));
}

/* Messages with missing or unknown fields need not be Caffe's, so no error calls them Caffe's. */
TEST(other_messages_are_not_described_as_caffes) {
    static const struct {
        const char *claim;
        struct wire wire;
    } rows[] = {
        {"a number and a text", W("\x08\1\x12\3abc")},
        {"a number and two texts", W("\x08\1\x12\3abc\x1a\3abc")},
        {"a text", W("\x0a\3abc")},
        {"a text with a length of six bytes", W("\x0a\x80\x80\x80\x80\x80\0\x0a\3abc")},
        {"a text, and a message that is not a layer", W("\x0a\3abc\x12\2\x08\1")},
        {"a blob with a shape and a dimension", W("\x08\1\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a blob with an unknown field", W("\x2a\4\0\0\0\0\x3a\3\x0a\1\1\xa0\6\1")},
        {"a blob without values", W("\x3a\3\x0a\1\1")},
        {"a blob without one of four dimensions", W("\x10\1\x18\1\x20\1\x2a\4\0\0\0\0")},
        {"a blob without one of four dimensions", W("\x08\1\x18\1\x20\1\x2a\4\0\0\0\0")},
        {"a blob without one of four dimensions", W("\x08\1\x10\1\x20\1\x2a\4\0\0\0\0")},
        {"a blob without one of four dimensions", W("\x08\1\x10\1\x18\1\x2a\4\0\0\0\0")},
        {"a blob with a shape and a dimension", W("\x10\1\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a blob with a shape and a dimension", W("\x18\1\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a blob with a shape and a dimension", W("\x20\1\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a blob with four dimensions and a shape",
         W("\x08\1\x10\1\x18\1\x20\1\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a blob with a text for a dimension", W("\x0a\0\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a blob with an unknown field below 100", W("\x2a\4\0\0\0\0\x3a\3\x0a\1\1\xa0\1\1")},
        {"a layer without a type", W("\x0a\1n\xa2\6\3\x0a\1n")},
        {"a layer without a name", W("\x0a\1n\xa2\6\3\x12\1n")},
        {"an old layer without a type", W("\x0a\1n\x12\3\x22\1n")},
        {"an old layer without a name", W("\x0a\1n\x12\2\x28\4")},
        {"iter, and a history that is not a blob", W("\x08\5\x1a\2\x08\1")},
        {"a history without iter", W("\x1a\x0b\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a history without iter, and a text", W("\x12\1n\x1a\x0b\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a history, and a text for iter", W("\x0a\1n\x1a\x0b\x2a\4\0\0\0\0\x3a\3\x0a\1\1")},
        {"a layer, and an unknown field below 100", W("\xa2\6\6\x0a\1n\x12\1t\x98\1\1")},
        {"a graph without a version", W("\x3a\x0a\x0a\5\x12\1y\x22\0\x12\1g")},
        {"a graph, and a number for its operators",
         W("\x08\7\x3a\x0a\x0a\5\x12\1y\x22\0\x12\1g\x40\1")},
        {"nodes without a name or a constant", W("\x08\7\x3a\7\x0a\5\x12\1y\x22\0")},
        {"a graph without nodes", W("\x08\7\x12\1p\x3a\3\x12\1g")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int32_t format = SB_FORMAT_AUTO; format <= SB_FORMAT_BLOB_VECTOR; format++) {
            if (open_as(format, &rows[i].wire, NULL, &err) != SB_OK && strstr(err.message, BEFORE))
                fail_with("%s: %s", rows[i].claim, err.message);
        }
    }
}

TEST(messages_over_a_limit_are_not_described_as_foreign) {
    for (size_t i = 0; i < NUM_OURS; i++) {
        struct wire wire = {0};
        sb_limits limits = SB_LIMITS_INIT;
        ours[i].build(&wire);
        limits.max_axes = limits.max_layers = limits.max_blobs = 1;
        limits.max_name_bytes = 1;
        for (int32_t format = SB_FORMAT_AUTO; format <= ours[i].format; format += ours[i].format) {
            assert_status(SB_ERR_DATA_LIMIT, open_as(format, &wire, &limits, &err));
            if (strstr(err.message, BEFORE))
                fail_with("%s: %s", name_of_format(ours[i].format), err.message);
        }
    }
}

/* --- ONNX -------------------------------------------------------------------------------- */

/* Makes an ONNX graph as exporters write it: the nodes, then the name, then the constants. */
static void onnx_graph(struct wire *out, size_t nodes, bool is_named) {
    struct wire node = {0}, constant = {0};
    wire_text(&node, 1, "x");
    wire_text(&node, 2, "y");
    wire_text(&node, 4, "BatchNormalization");
    for (size_t i = 0; i < nodes; i++)
        wire_message(out, 1, &node);
    if (is_named)
        wire_text(out, 2, "main_graph");
    wire_number(&constant, 1, 2);
    wire_number(&constant, 2, 1);
    wire_floats(&constant, 4, (const float[]){1, 2}, 2);
    wire_message(out, 5, &constant);
}

static void onnx_model(struct wire *out, size_t nodes, bool is_named, size_t properties) {
    struct wire graph = {0};
    wire_number(out, 1, 7);
    if (is_named) {
        wire_text(out, 2, "pytorch");
        wire_text(out, 3, "2.1.0");
    }
    for (size_t i = 0; i < properties; i++)
        wire_bytes(out, 14, B("\x0a\1a\x12\1b"));
    onnx_graph(&graph, nodes, is_named);
    wire_message(out, 7, &graph);
    wire_bytes(out, 8, B("\x10\x19"));
}

/* The graph's name follows its nodes; there may be more nodes than the library examines. */
TEST(onnx_models_of_every_size_are_named) {
    static const size_t nodes[] = {1, 63, 64, 65, 1000, 99999, 100000, 150000};
    const size_t rows = sizeof nodes / sizeof *nodes - (test_is_quick() ? 1 : 0);
    for (size_t i = 0; i < rows; i++)
        for (int named = 0; named < 2; named++) {
            struct wire wire = {0};
            onnx_model(&wire, nodes[i], named, 0);
            for (int32_t as = SB_FORMAT_AUTO; as <= SB_FORMAT_BLOB_VECTOR; as++) {
                assert_status(SB_ERR_MALFORMED, open_as(as, &wire, NULL, &err));
                if (!strstr(err.message, BEFORE "an ONNX model"))
                    fail_with("%zu nodes as %s: %s", nodes[i], sb__format_name(as), err.message);
            }
        }
}

TEST(an_onnx_model_with_its_graph_behind_other_fields_is_named) {
    for (size_t properties = 0; properties < 200; properties += 50) {
        struct wire wire = {0};
        onnx_model(&wire, 100, false, properties);
        assert_status(SB_ERR_MALFORMED, open_as(SB_FORMAT_AUTO, &wire, NULL, &err));
        assert_non_null(strstr(err.message, BEFORE "an ONNX model"));
    }
}

/* To decide whether a large graph is ONNX, the library examines the first node. */
TEST(a_large_graph_is_onnx_if_its_first_node_is) {
    static const struct {
        const char *claim, *node;
        size_t size;
        bool is_onnx;
    } rows[] = {
        {"takes a value", B("\x0a\1x\x22\4Relu"), true},
        {"makes a value", B("\x12\1y\x22\4Relu"), true},
        {"has no values", B("\x22\4Relu"), false},
        {"has no operation", B("\x0a\1x\x12\1y"), false},
        {"has an operation without a name", B("\x0a\1x\x12\1y\x22\0"), false},
        {"has a number for its operation", B("\x0a\1x\x12\1y\x20\4"), false},
        {"has an unknown field", B("\x0a\1x\x12\1y\x22\4Relu\x58\1"), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire wire = {0}, graph = {0};
        wire_number(&wire, 1, 7);
        wire_bytes(&graph, 1, rows[i].node, rows[i].size);
        wire_message(&wire, 7, &graph);
        sb_status st = open_as(SB_FORMAT_AUTO, &wire, NULL, &err);
        const bool is_onnx = st != SB_OK && strstr(err.message, BEFORE "an ONNX model");
        if (is_onnx != rows[i].is_onnx)
            fail_with("a node that %s", rows[i].claim);
    }
}

/* Appends a name that has the bytes of a TensorFlow node. */
static void placeholder(struct wire *out) {
    wire_bytes(out, 1, B("\x0a\5input\x12\x0bPlaceholder"));
}

/* A layer's blob proves that a message is a net, even if the net's name looks like a node. */
TEST(a_net_with_blobs_is_a_net_whatever_its_name) {
    struct wire wire = {0}, layer = {0};
    placeholder(&wire);
    assert_status(SB_ERR_MALFORMED, open_as(SB_FORMAT_AUTO, &wire, NULL, &err));
    wire_blob_field(&layer, 7, (int64_t[]){2}, 1, 1); /* one blob is enough */
    wire_message(&wire, 100, &layer);
    assert_status(SB_OK, open_as(SB_FORMAT_AUTO, &wire, NULL, &err));
}

/* Values prove that a message is a blob, even if field 1 has the bytes of a TensorFlow node. */
TEST(a_blob_with_values_is_a_blob) {
    for (uint32_t field = 4; field <= 6; field++) { /* 4: no values; 5: data; 6: diff */
        struct wire wire = {0};
        placeholder(&wire);
        wire_float(&wire, field, 1);
        assert_status(field < 5 ? SB_ERR_MALFORMED : SB_OK,
                      open_as(SB_FORMAT_BLOB, &wire, NULL, &err));
    }
}

TEST(short_json_is_named) {
    static const struct {
        const char *text;
        bool is_json;
    } rows[] = {{"{}", true},      {"[]\n", true},          {"{\"a\":1}", true}, {"[{}]", true},
                {"{\"a\"", false}, {"{\"a\":\x01}", false}, {"{a}", false},      {"[", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *words = words_of(model_bytes, rows[i].text, strlen(rows[i].text));
        assert_int_equal(strcmp(words, "JSON") == 0, rows[i].is_json);
    }
}

/* The first field of a real graph is so large that it exceeds the limit for names when the library
   reads it as the name of a net. */
TEST(large_graphs_are_named) {
    static const struct {
        struct wire wire;
        const char *words;
    } rows[] = {
        {W("\x0a\x14\x0a\5input\x12\x0bPlaceholder\"\2\x08\x18"), BEFORE "a TensorFlow graph"},
        {W("\x08\1\x12\x2e\x0a\x10\x12\7\x0a\5\x0a\3Add\"\5serve\x12\x1a\x0a\x14\x0a\5input\x12\x0b"
           "Placeholder\"\2\x08\x18"),
         BEFORE "a TensorFlow SavedModel"},
        {W("\x0a\x94\0\x0a\5input\x12\x0bPlaceholder\"\2\x08\x18"), BEFORE "a TensorFlow graph"},
        {W("\x0a\x14\x0a\5input\x12\x0bPlace-older\"\2\x08\x18"), NULL},
        {W("\x08\1\x12\x2e\x0a\x10\x12\7\x0a\5\x0a\3add\"\5serve\x12\x1a\x0a\x14\x0a\5input\x12\x0b"
           "Placeholder\"\2\x08\x18"),
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sb_limits limits = SB_LIMITS_INIT;
        limits.max_name_bytes = 8;
        assert_status(SB_ERR_DATA_LIMIT, open_as(SB_FORMAT_AUTO, &rows[i].wire, &limits, &err));
        const char *words = strstr(err.message, BEFORE);
        assert_true(words ? rows[i].words && strcmp(words, rows[i].words) == 0 : !rows[i].words);
    }
}

/* --- cut off --------------------------------------------------------------------------------- */

struct span {
    size_t begin, value, end;
};

/* Returns the outermost field that contains the offset `at`, searching from `from`. In real files
   all such fields are varints or bytes. */
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

/* Checks the error for a file that is truncated to `size` bytes, inside `field`. If `size` is
   `known` or more, the error must describe the file with `words`. */
static void check_cut(const struct wire *file, size_t size, struct span field, size_t known,
                      const char *words) {
    char missing[64], end[160];
    const char *found = words_of(model_bytes, file->bytes, size);
    const size_t lacking = size < field.value ? 1 : field.end - size;
    (void)snprintf(missing, sizeof missing, "%zu byte%s missing at offset %zu", lacking,
                   lacking == 1 ? " is" : "s are", size);
    (void)snprintf(end, sizeof end, "the beginning of %s: the rest was cut off", words);
    const bool is_right = *found ? strcmp(found, end) == 0 : size < known;
    if (!is_right || !strstr(err.message, missing))
        fail_with("cut to %zu bytes, expected \"%s\": %s", size, missing, err.message);
}

/* Truncates the file inside its fields. The error must report how many bytes of the field are
   missing. A file that is truncated between two fields is a valid message. */
static void check_every_cut(const struct wire *file, size_t known, const char *words) {
    struct span field = {0, 0, 0};
    const size_t stride = test_is_quick() ? 1009 : 7;
    for (size_t size = 1; size < file->size; size++) {
        field = field_at(file, size, field);
        const bool is_near = size - field.begin < 16 || field.end - size < 4;
        if (size == field.begin || (!is_near && size % stride != 0))
            continue;
        check_cut(file, size, field, known, words);
    }
}

TEST(a_cut_real_file_is_reported_with_its_missing_bytes) {
    static const struct {
        const char *file, *words;
        size_t known; /* truncated files of this size or more must be recognised */
    } rows[] = {
        {"mean_cifar10_skywang666.binaryproto", "a blob such as a mean file", 16},
        {"cifar10_full_everpeace_iter70000.caffemodel", "a caffemodel", 200},
        {"cifar10_quick_skywang666_iter4000.caffemodel", "a caffemodel", 200},
        {"mtcnn_kpzhang93_det1.caffemodel", "a caffemodel", 200},
        {"cifar10_full_everpeace_iter70000.solverstate", "a solver state", 200},
        {"cifar10_quick_skywang666_iter4000.solverstate", "a solver state", 9800},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char buffer[1024];
        const char *path = test_data_path(rows[i].file, buffer, sizeof buffer);
        if (!path)
            test_skip();
        struct wire file = wire_of_file(path);
        check_every_cut(&file, rows[i].known, rows[i].words);
    }
}

TEST(a_cut_generated_file_is_reported_with_its_missing_bytes) {
    for (size_t i = 0; i < NUM_OURS; i++) {
        struct wire wire = {0};
        ours[i].build(&wire);
        check_every_cut(&wire, wire.size - 4, name_of_format(ours[i].format));
    }
}

/* --- failures while bytes are recognised ------------------------------------------------- */

/* The library reads the source again to describe the bytes. If that read fails, the call returns
   the original error without a description. */
TEST_ON(kinds, a_second_read_that_fails_keeps_the_original_error) {
    struct wire wire = {(unsigned char *)f->all.rows[0].bytes, f->all.rows[0].size,
                        f->all.rows[0].size};
    assert_string_equal(words_of(model_source, wire.bytes, wire.size), f->all.rows[0].words);
    const sb_error first = err;
    bool undescribed = false, is_described = false;
    for (int n = 2; n < 8; n++) {
        struct test_source from = {0};
        sb_model *model = NULL;
        sb_source source = test_source_of(&from, &wire);
        from.fault = (struct test_fault){.left = n, .status = SB_ERR_IO};
        support_poison_error(&err);
        sb_status st =
            sb_model_open_source(NULL, SB_FORMAT_CAFFEMODEL, &source, NULL, NULL, &model, &err);
        if (st == SB_ERR_IO)
            continue; /* an earlier read failed */
        assert_int_equal(st, first.code);
        assert_int_equal(err.offset, first.offset);
        undescribed |= !strstr(err.message, BEFORE);
        is_described |= strstr(err.message, BEFORE) != NULL;
    }
    assert_true(undescribed && is_described);
}

/* Makes a graph that is larger than one read, so the library must read two parts a second time: the
   first node and the end. */
static void large_onnx(struct wire *out) {
    struct wire graph = {0};
    wire_number(out, 1, 7);
    for (int i = 0; i < 5000; i++)
        wire_bytes(&graph, 1, B("\x0a\1x\x12\1y\x22\4Relu"));
    wire_message(out, 7, &graph);
}

/* If a read fails while the library recognises the format, a message without blobs is not opened as
   a net or solver state. */
TEST(a_source_that_fails_is_not_opened) {
    static void (*const builders[])(struct wire *) = {placeholder, large_onnx};
    for (size_t i = 0; i < sizeof builders / sizeof *builders; i++) {
        struct wire wire = {0};
        int failed = 0, refused = 0;
        builders[i](&wire);
        for (int n = 1; n < 160; n++) {
            struct test_source from = {0};
            sb_model *model = NULL;
            sb_source source = test_source_of(&from, &wire);
            from.fault = (struct test_fault){.left = n, .status = SB_ERR_IO};
            sb_status st =
                sb_model_open_source(NULL, SB_FORMAT_AUTO, &source, NULL, NULL, &model, NULL);
            assert_true(st == SB_ERR_IO || st == SB_ERR_MALFORMED);
            failed += st == SB_ERR_IO;
            refused += st == SB_ERR_MALFORMED;
            sb_model_destroy(model);
        }
        assert_true(failed > 0 && refused > 0);
    }
}
