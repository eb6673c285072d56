/* Every call that reads or writes through callbacks, with the n-th of them
   failing, finding other bytes or saying stop, for every n: the status, nothing
   changed, and the same call succeeds afterwards. */
#include "callbacks.h"
#include "files.h"
#include "nets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t large[] = {12000}, two[] = {2};

/* A solver state, so that one source serves all: blobs larger than any window, one of values one
   by one. */
struct scene {
    struct wire bytes, blob_bytes, net_bytes;
    struct wire new_bytes, odd_bytes, vector_bytes; /* made when they are opened */
    struct test_source source, other, blob_source, net_source, raw_source;
    struct test_sink sink;
    struct test_progress progress;
    sb_model *model, *made; /* `model` was opened from `source` and has an edit */
    sb_model *net, *raw;    /* a net with an edit; a blob without */
    sb_blob *blob;          /* of two values */
    char path[64];          /* a file that holds "old" */
    unsigned char *buffer;
};

static void put_unpacked(struct wire *wire) {
    struct wire blob = {0}, shape = {0};
    for (int64_t i = 0; i < *large; i++)
        wire_float(&blob, 5, (float)i);
    wire_numbers(&shape, 1, large, 1);
    wire_message(&blob, 7, &shape);
    wire_message(wire, 3, &blob);
    wire_free(&blob);
    wire_free(&shape);
}

/* An old layer of two messages, of which the second has the edit, and more than one window. */
static void put_net(struct wire *wire) {
    static const unsigned char filling[5000];
    struct wire layer = {0}, message = {0};
    wire_text(wire, 1, "net");
    wire_text(&message, 1, "conv");
    wire_blob_field(&message, 50, large, 1, 1);
    wire_message(&layer, 1, &message);
    wire_free(&message);
    wire_blob_field(&message, 50, two, 1, 1);
    wire_message(&layer, 1, &message);
    wire_message(wire, 2, &layer);
    for (int i = 0; i < 20; i++)
        wire_bytes(wire, 2000, filling, sizeof filling);
    wire_free(&message);
    wire_free(&layer);
}

/* Layers whose first lies far before what comes behind it. */
static void put_new(struct wire *wire) {
    struct wire layer = {0};
    wire_text(&layer, 1, "conv");
    wire_text(&layer, 2, "Convolution");
    wire_blob_field(&layer, 7, large, 1, 1);
    for (int i = 0; i < 2; i++)
        wire_message(wire, 100, &layer);
    wire_free(&layer);
}

/* A solver state by its first 64 fields, a net by a later one. */
static void put_odd(struct wire *wire) {
    wire_number(wire, 1, 5);
    wire_blob_field(wire, 3, large, 1, 1);
    for (uint64_t i = 0; i < 64; i++)
        wire_number(wire, 4, i);
    wire_text(wire, 1, "net");
}

/* Blobs alone, the first larger than any window. */
static void put_vector(struct wire *wire) {
    wire_blob_field(wire, 1, large, 1, 1);
    wire_blob_field(wire, 1, two, 1, 9);
}

static sb_model *opened(struct test_source *from, int32_t format, const struct wire *wire) {
    const sb_source source = test_source_of(from, wire);
    sb_model *model;
    assert_ok(sb_model_open_source(NULL, format, &source, NULL, NULL, &model, &err));
    return model;
}

static void scene_open(struct scene *s) {
    memset(s, 0, sizeof *s);
    wire_number(&s->bytes, 1, 5);
    wire_blob_field(&s->bytes, 3, large, 1, 1);
    put_unpacked(&s->bytes);
    wire_blob_field(&s->bytes, 3, two, 1, 9);
    wire_blob(&s->blob_bytes, large, 1, 3);
    put_net(&s->net_bytes);
    s->model = opened(&s->source, SB_FORMAT_AUTO, &s->bytes);
    s->net = opened(&s->net_source, SB_FORMAT_CAFFEMODEL, &s->net_bytes);
    s->raw = opened(&s->raw_source, SB_FORMAT_BLOB, &s->blob_bytes);
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, two, 1, &s->blob, &err));
    assert_ok(sb_model_set_blob(s->model, SB_NO_LAYER, 2, s->blob, 0, &err));
    assert_ok(sb_model_set_blob(s->net, 0, 1, s->blob, 0, &err));
    strcpy(s->path, "/tmp/syncblob-callbacks-XXXXXX");
    assert_int_equal(close(mkstemp(s->path)), 0);
    file_write(s->path, "old", 3);
    s->buffer = malloc(s->net_bytes.size);
}

static void scene_close(struct scene *s) {
    sb_model_destroy(s->made);
    sb_model_destroy(s->model);
    sb_model_destroy(s->net);
    sb_model_destroy(s->raw);
    assert_int_equal(s->source.closes, 1);
    assert_false(s->source.outside || s->other.outside || s->blob_source.outside ||
                 s->net_source.outside || s->raw_source.outside);
    assert_false(s->sink.after_failure);
    assert_false(s->progress.wrong);
    sb_blob_destroy(s->blob);
    (void)unlink(s->path);
    wire_free(&s->bytes);
    wire_free(&s->blob_bytes);
    wire_free(&s->net_bytes);
    wire_free(&s->new_bytes);
    wire_free(&s->odd_bytes);
    wire_free(&s->vector_bytes);
    wire_free(&s->sink.got);
    free(s->buffer);
}

/* --- the calls ---------------------------------------------------------------------------- */

static sb_status open_as(struct scene *s, int32_t format, const struct wire *wire, sb_error *err) {
    const sb_progress progress = test_progress_of(&s->progress);
    const sb_source source = test_source_of(&s->other, wire);
    return sb_model_open_source(NULL, format, &source, NULL, &progress, &s->made, err);
}

static const struct wire *made(struct wire *wire, void (*put)(struct wire *wire)) {
    if (!wire->size)
        put(wire);
    return wire;
}

#define CALL(name, expression)                                                                     \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return expression;                                                                         \
    }

CALL(open_source, open_as(s, SB_FORMAT_AUTO, &s->bytes, err))
CALL(open_named, open_as(s, SB_FORMAT_BLOB, &s->blob_bytes, err))
CALL(open_said, open_as(s, SB_FORMAT_SOLVERSTATE, &s->bytes, err))
CALL(open_net, open_as(s, SB_FORMAT_AUTO, &s->net_bytes, err))
CALL(open_new, open_as(s, SB_FORMAT_CAFFEMODEL, made(&s->new_bytes, put_new), err))
CALL(open_odd, open_as(s, SB_FORMAT_CAFFEMODEL, made(&s->odd_bytes, put_odd), err))
CALL(open_vector, open_as(s, SB_FORMAT_AUTO, made(&s->vector_bytes, put_vector), err))
CALL(open_said_vector, open_as(s, SB_FORMAT_BLOB_VECTOR, made(&s->vector_bytes, put_vector), err))
CALL(load_blob, sb_model_load_blob(s->model, SB_NO_LAYER, 0, s->blob, err))
CALL(load_unpacked, sb_model_load_blob(s->model, SB_NO_LAYER, 1, s->blob, err))

static sb_status blob_info(struct scene *s, sb_error *err) {
    sb_blob_info info = SB_BLOB_INFO_INIT;
    return sb_model_blob_info(s->model, SB_NO_LAYER, 1, &info, err);
}

CALL(read_values, sb_model_read_values(s->model, SB_NO_LAYER, 0, SB_DATA, 3000, 6000, SB_DTYPE_F64,
                                       s->buffer, 6000 * sizeof(double), err))
CALL(read_unpacked, sb_model_read_values(s->model, SB_NO_LAYER, 1, SB_DATA, 3000, 6000,
                                         SB_DTYPE_F32, s->buffer, 6000 * sizeof(float), err))
CALL(message_of_file,
     sb_model_layer_message(s->model, SB_NO_LAYER, s->buffer, s->bytes.size, NULL, err))
CALL(message_of_layer, sb_model_layer_message(s->net, 0, s->buffer, s->net_bytes.size, NULL, err))
CALL(model_size, sb_model_size(s->model, &(size_t){0}, err))
CALL(save, sb_model_save(s->model, s->buffer, s->bytes.size, NULL, err))
CALL(save_net, sb_model_save(s->net, s->buffer, s->net_bytes.size, NULL, err))
CALL(save_raw, sb_model_save(s->raw, s->buffer, s->blob_bytes.size, NULL, err))
CALL(save_file, sb_model_save_file(s->model, s->path, err))

static sb_status save_sink(struct scene *s, sb_error *err) {
    const sb_sink sink = test_sink_of(&s->sink);
    return sb_model_save_sink(s->model, &sink, err);
}

static sb_status read_source(struct scene *s, sb_error *err) {
    const sb_progress progress = test_progress_of(&s->progress);
    const sb_source source = test_source_of(&s->blob_source, &s->blob_bytes);
    return sb_blob_load_source(s->blob, &source, SB_PROTO_RESHAPE, NULL, &progress, err);
}

static sb_status write_sink(struct scene *s, sb_error *err) {
    const sb_progress progress = test_progress_of(&s->progress);
    const sb_sink sink = test_sink_of(&s->sink);
    sb_blob *blob;
    sb_status st = sb_blob_create_shaped(NULL, SB_DTYPE_F32, large, 1, &blob, err);
    if (st == SB_OK)
        st = sb_blob_save_sink(blob, &sink, 0, &progress, err);
    sb_blob_destroy(blob);
    return st;
}

static const struct {
    const char *name;
    sb_status (*call)(struct scene *, sb_error *);
    bool reads, writes, tells; /* through callbacks */
} calls[] = {
    {"open_source", open_source, true, false, true},
    {"open_source, named", open_named, true, false, true},
    {"open_source, said", open_said, true, false, true},
    {"open_source, a net", open_net, true, false, true},
    {"open_source, layers", open_new, true, false, true},
    {"open_source, odd", open_odd, true, false, true},
    {"open_source, a vector", open_vector, true, false, true},
    {"open_source, said a vector", open_said_vector, true, false, true},
    {"load_blob", load_blob, true, false, true},
    {"load_blob, unpacked", load_unpacked, true, false, true},
    {"blob_info", blob_info, true, false, false},
    {"layer_message, the file's", message_of_file, true, false, false},
    {"layer_message", message_of_layer, true, false, false},
    {"read_values", read_values, true, false, true},
    {"read_values, unpacked", read_unpacked, true, false, true},
    {"size", model_size, true, false, false},
    {"save", save, true, false, true},
    {"save, a net", save_net, true, false, true},
    {"save, a blob", save_raw, true, false, true},
    {"save_file", save_file, true, false, true},
    {"save_sink", save_sink, true, true, true},
    {"read_source", read_source, true, false, true},
    {"write_sink", write_sink, false, true, true},
};
#define CALLS (sizeof calls / sizeof *calls)

/* --- one fault of one call -------------------------------------------------------------------- */

static void check_unchanged(const struct scene *s, size_t call) {
    if (sb_blob_count(s->blob) != 2 || s->made || !file_holds(s->path, "old"))
        fail_with("%s changed something", calls[call].name);
}

static void expect(size_t call, int n, sb_status expected, sb_status st, const sb_error *err) {
    if (st != expected || (st != SB_OK && err->code != st))
        fail_with("%s, call %d: %s: %s", calls[call].name, n, sb_status_name(st),
                  st == SB_OK ? "" : err->message);
}

enum where { READS, WRITES, REPORTS };

static void arm(struct scene *s, enum where where, int n, sb_status status) {
    const struct test_fault fault = {n, status, false};
    if (where == READS)
        s->source.fault = s->other.fault = s->blob_source.fault = s->net_source.fault =
            s->raw_source.fault = fault;
    else if (where == WRITES)
        s->sink.fault = fault;
    else
        s->progress.cancels_at = n;
}

static bool disarm(struct scene *s, enum where where, int n) {
    bool fired;
    if (where == READS)
        fired = !s->source.fault.left || !s->other.fault.left || !s->blob_source.fault.left ||
                !s->net_source.fault.left || !s->raw_source.fault.left;
    else if (where == WRITES)
        fired = !s->sink.fault.left;
    else
        fired = s->progress.reports >= n;
    const struct test_fault none = {0, SB_OK, false};
    s->source.fault = s->other.fault = s->blob_source.fault = s->net_source.fault =
        s->raw_source.fault = s->sink.fault = none;
    return fired;
}

static void run(size_t call, enum where where, int n, sb_status status, bool *fired) {
    struct scene s;
    sb_error err = {.code = SB_OK};
    scene_open(&s);
    const sb_progress progress = test_progress_of(&s.progress);
    assert_ok(sb_model_set_progress(s.model, &progress, &err));
    assert_ok(sb_model_set_progress(s.net, &progress, &err));
    assert_ok(sb_model_set_progress(s.raw, &progress, &err));
    arm(&s, where, n, status);
    sb_status st = calls[call].call(&s, &err);
    *fired = disarm(&s, where, n);
    expect(call, n, *fired ? status : SB_OK, st, &err);
    assert_false(s.progress.wrong);
    if (*fired) {
        check_unchanged(&s, call);
        s.progress = (struct test_progress){.cancels_at = 0};
        wire_free(&s.sink.got);
        st = calls[call].call(&s, &err);
        expect(call, n, SB_OK, st, &err);
    }
    scene_close(&s);
}

static void run_all(enum where where, sb_status status) {
    for (size_t call = 0; call < CALLS; call++) {
        const bool concerned[] = {calls[call].reads, calls[call].writes, calls[call].tells};
        int n = 0;
        for (bool fired = concerned[where]; fired;)
            run(call, where, ++n, status, &fired);
        if (concerned[where])
            print_message("  %-20s %d calls\n", calls[call].name, n - 1);
        assert_true(n > 1 || !concerned[where]);
    }
}

TEST(test_every_read_fails_in_turn) {
    run_all(READS, SB_ERR_IO);
    run_all(READS, SB_ERR_OUT_OF_MEMORY);
}

TEST(test_every_write_fails_in_turn) {
    run_all(WRITES, SB_ERR_IO);
    run_all(WRITES, SB_ERR_CANCELLED);
}

TEST(test_every_report_cancels_in_turn) {
    run_all(REPORTS, SB_ERR_CANCELLED);
}

/* What is measured before is told, too. */
TEST_ON(scene, test_a_save_is_stopped_before_it_writes) {
    const sb_progress progress = test_progress_of(&f->progress);
    const sb_sink sink = test_sink_of(&f->sink);
    assert_ok(sb_model_set_progress(f->net, &progress, &err));
    f->progress.cancels_at = 1;
    assert_status(SB_ERR_CANCELLED, sb_model_save_sink(f->net, &sink, &err));
    assert_int_equal(f->sink.writes, 0);
}

TEST(test_the_error_may_be_null) {
    for (size_t call = 0; call < CALLS; call++) {
        const enum where where = calls[call].reads ? READS : WRITES;
        bool fired = true;
        for (int n = 1; fired; n++) {
            struct scene s;
            scene_open(&s);
            arm(&s, where, n, SB_ERR_IO);
            const sb_status st = calls[call].call(&s, NULL);
            fired = disarm(&s, where, n);
            assert_int_equal(st, fired ? SB_ERR_IO : SB_OK);
            scene_close(&s);
        }
    }
}

/* --- bytes that change between one read and the next ----------------------------------------- */

static void corrupt(struct wire *wire, size_t every) {
    for (size_t i = every / 2; i < wire->size; i += every)
        wire->bytes[i] ^= (unsigned char)(0x11 * (1 + i % 14));
}

/* Whatever comes of it, it is a fair status, and the loaded blob is the old or a whole one. */
static void change(size_t call, const struct wire *other, int n, bool *fired) {
    struct scene s;
    scene_open(&s);
    s.source.other = s.other.other = s.blob_source.other = s.net_source.other = s.raw_source.other =
        other;
    arm(&s, READS, n, SB_OK);
    sb_status st = calls[call].call(&s, &err);
    *fired = s.source.fault.left <= 1 || s.other.fault.left <= 1 || s.blob_source.fault.left <= 1 ||
             s.net_source.fault.left <= 1 || s.raw_source.fault.left <= 1;
    if (st != SB_OK && st != SB_ERR_IO && (st > SB_ERR_MALFORMED || st < SB_ERR_DATA_LIMIT))
        fail_with("%s, read %d: %s", calls[call].name, n, sb_status_name(st));
    if (st != SB_OK)
        check_unchanged(&s, call);
    s.source.other = s.other.other = s.blob_source.other = s.net_source.other = s.raw_source.other =
        NULL;
    (void)disarm(&s, READS, n);
    scene_close(&s);
}

static const struct wire *read_by(const struct scene *s, size_t call) {
    if (calls[call].call == open_net || calls[call].call == save_net)
        return &s->net_bytes;
    return calls[call].call == read_source || calls[call].call == open_named ||
                   calls[call].call == save_raw
               ? &s->blob_bytes
               : &s->bytes;
}

TEST(test_a_source_that_changes_is_survived) {
    static const size_t every[] = {1, 7, 1000};
    for (size_t call = 0; call < CALLS; call++)
        for (size_t i = 0; i < sizeof every / sizeof *every && calls[call].reads; i++) {
            struct scene s;
            scene_open(&s);
            const struct wire *other = read_by(&s, call);
            struct wire changed = {0};
            wire_raw(&changed, other->bytes, other->size);
            corrupt(&changed, every[i]);
            int n = 0;
            for (bool fired = true; fired;)
                change(call, &changed, ++n, &fired);
            wire_free(&changed);
            scene_close(&s);
        }
}

/* One V1 layer or several, then so much that the second walk over the file has to read it again. */
static struct wire net_of_layers(const unsigned char layers[6]) {
    static const unsigned char filling[40000];
    struct wire net = {0};
    wire_raw(&net, layers, 6);
    wire_bytes(&net, 2000, filling, sizeof filling);
    wire_number(&net, 2000, 1);
    return net;
}

/* Each is as long as the model says. */
static void check_names(const sb_model *model) {
    for (int64_t i = 0; i < sb_model_num_layers(model); i++) {
        sb_layer_info layer = SB_LAYER_INFO_INIT;
        assert_ok(sb_model_layer_info(model, i, &layer, &err));
        assert_int_equal(strlen(layer.name.bytes), layer.name.size);
    }
}

/* How often a net is refused, the n-th read and later ones finding another, for every n. */
static int refusals(const struct wire *before, const struct wire *after) {
    int refused = 0;
    bool fired = true;
    for (int n = 1; fired; n++) {
        struct test_source s = {.other = after, .fault = {.left = n}};
        const sb_source source = test_source_of(&s, before);
        sb_model *model = NULL;
        sb_error err = {.code = SB_OK};
        sb_status st =
            sb_model_open_source(NULL, SB_FORMAT_CAFFEMODEL, &source, NULL, NULL, &model, &err);
        fired = s.fault.left <= 1;
        if (st != SB_OK) {
            assert_int_equal(st, SB_ERR_IO);
            assert_non_null(strstr(err.message, "changed"));
            refused++;
        }
        check_names(model);
        sb_model_destroy(model);
    }
    return refused;
}

/* Of two looks at the layer the second finds what the first made no room for, or left room for. */
TEST(test_a_layer_that_changes_between_two_looks_is_refused) {
    static const unsigned char layers[6][6] = {
        {0x12, 4, 0x28, 4, 0x32, 0},    /* a type with a name, a blob */
        {0x12, 4, 0x28, 0x7f, 0x32, 0}, /* a type without */
        {0x12, 4, 0x28, 4, 0x3a, 0},    /* no blob */
        {0x12, 4, 0x22, 2, 'a', 'b'},   /* a name alone */
        {0x12, 4, 0x22, 0, 0x22, 0},    /* an empty one */
        {0x12, 0, 0x12, 0, 0x12, 0},    /* three layers */
    };
    struct wire nets[6];
    for (int i = 0; i < 6; i++)
        nets[i] = net_of_layers(layers[i]);
    assert_int_equal(refusals(&nets[0], &nets[0]), 0);
    assert_true(refusals(&nets[0], &nets[1]) > 0);
    assert_true(refusals(&nets[0], &nets[2]) > 0);
    assert_true(refusals(&nets[2], &nets[0]) > 0);
    assert_true(refusals(&nets[4], &nets[3]) > 0);
    assert_true(refusals(&nets[4], &nets[5]) > 0);
    for (int i = 0; i < 6; i++)
        wire_free(&nets[i]);
}

/* One value, then what no reader's window holds beside it, then the shape. */
static struct wire value_before(const unsigned char bytes[24]) {
    static const unsigned char filling[40000];
    const int64_t one[] = {1};
    struct wire blob = {0}, shape = {0};
    wire_raw(&blob, bytes, 24);
    wire_bytes(&blob, 2000, filling, sizeof filling);
    wire_numbers(&shape, 1, one, 1);
    wire_message(&blob, 7, &shape);
    wire_free(&shape);
    return blob;
}

/* The walk over the fields counts the values, and the copy finds none, or more and then one. */
TEST(test_values_that_change_after_they_were_counted_are_refused) {
    static const unsigned char values[3][24] = {
        {0x2a, 4, 0, 0, 0, 0, 0xfa, 1, 15},                              /* one */
        {0xfa, 1, 21},                                                   /* none */
        {0x2a, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x2d, 0, 0, 0, 0, 0xfa, 1, 6}, /* two and one */
    };
    struct wire blobs[3];
    for (int i = 0; i < 3; i++)
        blobs[i] = value_before(values[i]);
    for (int i = 0; i < 3; i++) {
        int refused = 0;
        bool fired = true;
        for (int n = 2; fired; n++) {
            struct test_source s = {.other = &blobs[i], .fault = {.left = n}};
            const sb_source source = test_source_of(&s, &blobs[0]);
            sb_error err = {.code = SB_OK};
            sb_blob *blob;
            assert_ok(sb_blob_create(NULL, SB_DTYPE_F32, &blob, &err));
            sb_status st = sb_blob_load_source(blob, &source, SB_PROTO_RESHAPE, NULL, NULL, &err);
            fired = s.fault.left <= 1;
            refused += st == SB_ERR_IO && strstr(err.message, "changed");
            sb_blob_destroy(blob);
        }
        assert_int_equal(refused > 0, i > 0);
    }
    for (int i = 0; i < 3; i++)
        wire_free(&blobs[i]);
}

/* A solver state, the n-th read of which and later ones find another, saved with a new blob:
   whether the save has as many bytes as it says, or is refused. */
static bool is_saved_whole(const struct wire *before, const struct wire *after, int n,
                           int *refused) {
    struct test_source s = {.other = after, .fault = {.left = n}};
    const sb_source source = test_source_of(&s, before);
    unsigned char out[64];
    sb_model *model = NULL;
    sb_blob *blob;
    size_t size = 0;
    sb_status st =
        sb_model_open_source(NULL, SB_FORMAT_SOLVERSTATE, &source, NULL, NULL, &model, &err);
    if (st != SB_OK)
        return st == SB_ERR_IO;
    memset(out, 0x5a, sizeof out);
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, two, 1, &blob, &err));
    assert_ok(sb_model_set_blob(model, SB_NO_LAYER, 0, blob, 0, &err));
    st = sb_model_save(model, out, sizeof out, &size, &err);
    *refused += st == SB_ERR_IO && strstr(err.message, "changed");
    sb_model_destroy(model);
    sb_blob_destroy(blob);
    return st == SB_OK ? out[size - 1] != 0x5a && out[size] == 0x5a : st == SB_ERR_IO;
}

/* The blob that the new one replaces is longer by now, and what follows on it shorter. */
TEST(test_a_save_is_as_long_as_it_was_measured) {
    static const char bytes[2][18] = {"\x08\5\x1a\2\x2a\0\xfa\1\x08",
                                      "\x08\5\x1a\6\x2a\4\0\0\0\0\xfa\1\4"};
    const struct wire before = {(unsigned char *)bytes[0], 17, 17};
    const struct wire after = {(unsigned char *)bytes[1], 17, 17};
    int refused = 0;
    for (int n = 1; n < 12; n++)
        assert_true(is_saved_whole(&before, &after, n, &refused));
    assert_true(refused > 0);
}
