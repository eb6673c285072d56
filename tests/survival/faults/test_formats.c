/* Makes each step of every call on formats fail in turn. */
#include "blobs.h"
#include "files.h"
#include "nets.h"
#include "pointers.h"
#include "system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A blob of the shape `large` is larger than any window of a reader. */
static const int64_t large[] = {6000}, two[] = {2}, four[] = {4};

enum origin { MEMORY, A_FILE, CALLBACKS };

enum { NET, STATE, RAW, OPENED, SOURCES };

struct scene {
    struct rig rig;
    enum origin origin;
    int32_t format;
    struct wire bytes[SOURCES];
    const char *paths[SOURCES], *target; /* the file `target` contains "old" */
    struct test_source sources[SOURCES];
    struct test_sink sink;
    struct test_progress progress;
    sb_model *net, *state, *raw;
    sb_blob *given, *single, *real, *integers;
    sb_blob *shared, *sharer; /* blobs with shared data; `shared` has spare capacity */
    sb_model *made;
    sb_blob *lent;
    unsigned char *buffer;
    size_t room;
};

/* Appends a net with a field that is longer than a window. */
static void put_net(struct wire *wire) {
    static const unsigned char filling[5000];
    struct wire layer = {0}, message = wire_of("1:'conv' 50:{[6000]1}");
    wire_write(wire, "1:'net'");
    wire_bytes(&message, 2, filling, 4092);
    wire_number(&message, 8, 3); /* the reader's window ends between the tag and the number */
    wire_bytes(&layer, 2, filling, sizeof filling);
    wire_message(&layer, 1, &message);
    wire_write(&layer, "1:{50:{[2]1}}");
    wire_message(wire, 2, &layer);
    for (int i = 0; i < 20; i++)
        wire_bytes(wire, 2000, filling, sizeof filling);
    wire_write(wire, "2:{4:'relu'}");
}

/* Each value of the second blob is a separate field. */
static void put_state(struct wire *wire) {
    struct wire unpacked = {0};
    for (int64_t i = 0; i < *large; i++)
        wire_float(&unpacked, 5, (float)i);
    wire_write(&unpacked, "7:{1:6000}");
    wire_write(wire, "1:5 2:'learned' 3:{[6000]1}");
    wire_message(wire, 3, &unpacked);
    wire_write(wire, "3:{[2]9}");
}

static void put_blob(struct wire *wire) {
    static float diff[6000];
    wire_write(wire, "[6000]3");
    wire_floats(wire, 6, diff, 6000);
}

static void put_layers(struct wire *wire) {
    for (int i = 0; i < 2; i++)
        wire_write(wire, "100:{1:'conv' 2:'Convolution' 7:{[6000]1}}");
}

static void put_odd(struct wire *wire) {
    wire_write(wire, "1:5 3:{[6000]1}");
    for (uint64_t i = 0; i < 64; i++)
        wire_number(wire, 4, i);
    wire_write(wire, "1:'net'");
}

static void put_vector(struct wire *wire) {
    wire_write(wire, "1:{[6000]1} 1:{[2]9}");
}

static sb_status open_from(struct scene *s, int from, int32_t format, sb_model **out,
                           sb_error *err) {
    const struct wire *wire = &s->bytes[from];
    const sb_progress progress = test_progress_of(&s->progress);
    if (s->origin == MEMORY)
        return sb_model_open_bytes(s->rig.context, format, wire->bytes, wire->size, NULL, NULL,
                                   NULL, out, err);
    if (s->origin == A_FILE)
        return sb_model_open_file(s->rig.context, format, s->paths[from], 0, NULL, out, err);
    const sb_source source = test_source_of(&s->sources[from], wire);
    return sb_model_open_source(s->rig.context, format, &source, NULL, &progress, out, err);
}

static sb_blob *blob_with_diff(struct scene *s, int32_t dtype, const int64_t *dims) {
    sb_blob *blob = test_vector(s->rig.context, dtype, *dims);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
        memset(blob_pointer(blob, part, OVERWRITE_CPU), part == SB_DATA ? 0x41 : 0x42,
               (size_t)*dims * sb_dtype_size(dtype));
    return blob;
}

static void scene_open_from(struct scene *s, enum origin origin,
                            void (*put_opened)(struct wire *wire)) {
    static const char *const names[SOURCES] = {"net", "state", "blob", "opened"};
    void (*const puts[SOURCES])(struct wire *) = {put_net, put_state, put_blob, put_opened};
    memset(s, 0, sizeof *s);
    s->origin = origin;
    rig_open_on(&s->rig, "cpu", SB_CONTEXT_NO_HOST_CACHE);
    for (int i = 0; i < SOURCES; i++) {
        puts[i](&s->bytes[i]);
        s->paths[i] = rig_path(&s->rig, names[i]);
        if (origin == A_FILE || i == OPENED)
            file_write_wire(s->paths[i], &s->bytes[i]);
    }
    s->target = rig_path(&s->rig, "target");
    file_write(s->target, "old", 3);
    (void)!chown(s->target, 12345, 23456); /* if root: the save must keep the owner */
    assert_ok(open_from(s, NET, SB_FORMAT_CAFFEMODEL, &s->net, &err));
    assert_ok(open_from(s, STATE, SB_FORMAT_AUTO, &s->state, &err));
    assert_ok(open_from(s, RAW, SB_FORMAT_BLOB, &s->raw, &err));
    s->given = blob_with_diff(s, SB_DTYPE_F32, four);
    s->single = blob_with_diff(s, SB_DTYPE_F32, two);
    s->real = blob_with_diff(s, SB_DTYPE_F64, two);
    s->integers = blob_with_diff(s, SB_DTYPE_I32, four);
    s->sharer = blob_with_diff(s, SB_DTYPE_F32, large);
    s->shared = blob_with_diff(s, SB_DTYPE_F32, large);
    assert_ok(sb_blob_share(s->shared, SB_DATA, s->sharer, &err));
    assert_ok(sb_blob_reshape(s->shared, two, 1, NULL, &err));
    assert_ok(sb_model_set_blob(s->net, 0, 1, s->given, 0, &err));
    assert_ok(sb_model_set_blob(s->state, SB_NO_LAYER, 2, s->given, 0, &err));
    for (int i = 0; i < 3; i++) /* the list of edits is now full */
        assert_ok(sb_model_add_blob(s->state, SB_NO_LAYER, s->given, 0, &err));
    s->room = s->bytes[STATE].size + s->bytes[NET].size + s->bytes[RAW].size;
    s->buffer = malloc(s->room);
    s->progress = (struct test_progress){.reports = 0};
}

static void scene_open(struct scene *s) {
    scene_open_from(s, A_FILE, put_vector);
}

static void scene_close(struct scene *s) {
    sb_model_destroy(s->made);
    sb_model_destroy(s->net);
    sb_model_destroy(s->state);
    sb_model_destroy(s->raw);
    assert_int_equal(s->sources[STATE].closes, s->origin == CALLBACKS);
    assert_false(s->sink.after_failure);
    for (int i = 0; i < SOURCES; i++)
        assert_false(s->sources[i].outside);
    free(s->buffer);
    rig_close(&s->rig); /* also checks that the folder has no other file */
}

static void see_model(struct wire *seen, const sb_model *model) {
    struct test_sink got = {.writes = 0};
    const sb_sink sink = test_sink_of(&got);
    /* If a fault is still armed, the save may fail. */
    wire_varint(seen, (uint64_t)sb_model_save_sink(model, &sink, NULL));
    wire_raw(seen, got.got.bytes, got.got.size);
    wire_raw(seen, name_of(model).bytes, name_of(model).size);
    for (int64_t l = SB_NO_LAYER; l < sb_model_num_layers(model); l++)
        wire_varint(seen, (uint64_t)num_blobs(model, l));
    wire_free(&got.got);
}

/* `handles` also records addresses, which differ between scenes. */
static void see_blob(struct wire *seen, const sb_blob *blob, bool handles) {
    wire_numbers(seen, 1, sb_blob_shape(blob), (size_t)sb_blob_num_axes(blob));
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        const sb_mem *mem;
        const void *p;
        assert_ok(sb_blob_mem(blob, part, &mem, &err));
        wire_varint(seen, (uint64_t)sb_mem_head(mem));
        assert_ok(sb_mem_cpu(mem, &p, &err));
        wire_varint(seen, handles ? (uint64_t)(uintptr_t)mem : 0);
        wire_varint(seen, handles ? (uint64_t)(uintptr_t)p : 0);
        wire_raw(seen, p, sb_mem_size(mem));
    }
}

static struct wire see(const struct scene *s, bool handles, bool target) {
    struct wire seen = {0};
    const sb_model *const models[] = {s->net, s->state, s->raw, s->made};
    const sb_blob *const blobs[] = {s->given,    s->single, s->real,
                                    s->integers, s->shared, s->sharer};
    for (int i = 0; i < 4; i++)
        if (models[i])
            see_model(&seen, models[i]);
    for (int i = 0; i < 6; i++)
        see_blob(&seen, blobs[i], handles);
    if (target) {
        struct wire file = wire_of_file(s->target);
        wire_raw(&seen, file.bytes, file.size);
        wire_free(&file);
    }
    wire_raw(&seen, s->sink.got.bytes, s->sink.got.size);
    return seen;
}

static bool same_seen(struct wire *a, struct wire *b) {
    const bool same = a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
    wire_free(b);
    return same;
}

enum {
    CALLS_SYSTEM = 1,
    READS = 2,
    WRITES = 4,
    REPORTS = 8,
    REPLACES = 16, /* not a step: the call replaces the file `target` */
    OPENS = CALLS_SYSTEM | READS | REPORTS,
};

static struct row {
    const char *name;
    sb_status (*call)(struct scene *s, sb_error *err);
    uint32_t steps;
    int least; /* the least number of allocations if all bytes are in memory */
    void (*put)(struct wire *wire);
    int32_t format;
} rows[64];
static int num_rows;

#define ROW_OF(name, steps, least, put, format)                                                    \
    __attribute__((constructor)) static void add_##name##_##put##_##format(void) {                 \
        rows[num_rows++] = (struct row){#name " " #put, name, steps, least, put, format};          \
    }
#define ROW(name, steps, least) ROW_OF(name, steps, least, put_vector, SB_FORMAT_AUTO)
#define FUNCTION(name, expression)                                                                 \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        sb_model *const state = s->state, *const net = s->net;                                     \
        const sb_sink sink = test_sink_of(&s->sink);                                               \
        (void)state, (void)net, (void)sink;                                                        \
        return expression;                                                                         \
    }
#define CALL(name, steps, least, expression) FUNCTION(name, expression) ROW(name, steps, least)

FUNCTION(open_model, open_from(s, OPENED, s->format, &s->made, err))
ROW_OF(open_model, OPENS, 2, put_state, SB_FORMAT_AUTO)
ROW_OF(open_model, OPENS, 1, put_blob, SB_FORMAT_BLOB)
ROW_OF(open_model, READS | REPORTS, 2, put_state, SB_FORMAT_SOLVERSTATE)
ROW_OF(open_model, READS | REPORTS, 2, put_net, SB_FORMAT_AUTO)
ROW_OF(open_model, READS | REPORTS, 2, put_layers, SB_FORMAT_CAFFEMODEL)
ROW_OF(open_model, READS | REPORTS, 1, put_odd, SB_FORMAT_CAFFEMODEL)
ROW_OF(open_model, READS | REPORTS, 1, put_vector, SB_FORMAT_AUTO)
ROW_OF(open_model, READS | REPORTS, 1, put_vector, SB_FORMAT_BLOB_VECTOR)
FUNCTION(open_mapped, sb_model_open_file(s->rig.context, SB_FORMAT_AUTO, s->paths[OPENED],
                                         SB_OPEN_MAPPED, NULL, &s->made, err))
ROW_OF(open_mapped, CALLS_SYSTEM, 2, put_state, 0)

static sb_status open_descriptor(struct scene *s, sb_error *err) {
    sb_source source = SB_SOURCE_INIT;
    sb_status st = SB_ERR_IO;
    int fd;
    do
        fd = open(s->paths[OPENED], O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0)
        st = sb_source_of_descriptor(fd, SB_SOURCE_CLOSES, &source, err);
    else
        ignore(sb_error_fill(err, st, errno, NULL));
    if (st == SB_OK)
        st = sb_model_open_source(s->rig.context, SB_FORMAT_AUTO, &source, NULL, NULL, &s->made,
                                  err);
    if (st != SB_OK && fd >= 0)
        (void)close(fd);
    return st;
}
ROW_OF(open_descriptor, CALLS_SYSTEM, 2, put_state, 0)

static sb_status open_spans(struct scene *s, sb_error *err) {
    const sb_span halves[] = {{s->bytes[OPENED].bytes, 9},
                              {s->bytes[OPENED].bytes + 9, s->bytes[OPENED].size - 9}};
    sb_source source = SB_SOURCE_INIT;
    sb_status st = sb_source_of_spans(s->rig.context, halves, 2, &source, err);
    if (st != SB_OK) {
        assert_null(source.user);
        return st;
    }
    st = sb_model_open_source(s->rig.context, SB_FORMAT_AUTO, &source, NULL, NULL, &s->made, err);
    if (st != SB_OK)
        source.close(source.user);
    return st;
}
ROW_OF(open_spans, 0, 3, put_state, 0)

static sb_status read_blob(struct scene *s, sb_blob *blob, sb_error *err) {
    const sb_progress progress = test_progress_of(&s->progress);
    if (s->origin == MEMORY)
        return sb_blob_from_proto(blob, s->bytes[RAW].bytes, s->bytes[RAW].size, SB_PROTO_RESHAPE,
                                  NULL, err);
    if (s->origin == A_FILE)
        return sb_blob_load_file(blob, s->paths[RAW], SB_PROTO_RESHAPE, NULL, err);
    const sb_source source = test_source_of(&s->sources[OPENED], &s->bytes[RAW]);
    return sb_blob_load_source(blob, &source, SB_PROTO_RESHAPE, NULL, &progress, err);
}

CALL(read_single, OPENS, 2, read_blob(s, s->single, err))
CALL(read_shared, OPENS, 0, read_blob(s, s->shared, err))
CALL(read_integers, OPENS, 2, read_blob(s, s->integers, err))
CALL(reshape_proto, 0, 0, sb_blob_reshape_proto(s->single, "\x08\x09", 2, NULL, err))
CALL(shape_equals_proto, 0, 0,
     sb_blob_shape_equals_proto(s->single, s->bytes[RAW].bytes, s->bytes[RAW].size, &(int32_t){0},
                                err))
CALL(proto_size, 0, 0, sb_blob_proto_size(s->given, SB_PROTO_WRITE_DIFF, &(size_t){0}, err))
CALL(to_proto, 0, 0, sb_blob_to_proto(s->given, SB_PROTO_WRITE_DIFF, s->buffer, s->room, NULL, err))
CALL(write_file, CALLS_SYSTEM | REPLACES, 0, sb_blob_save_file(s->given, s->target, 0, err))

static sb_status write_sink(struct scene *s, sb_error *err) {
    const sb_progress progress = test_progress_of(&s->progress);
    const sb_sink sink = test_sink_of(&s->sink);
    sb_blob *blob = NULL;
    sb_status st = sb_blob_create_shaped(s->rig.context, SB_DTYPE_F32, large, 1, &blob, err);
    if (st == SB_OK)
        st = sb_blob_save_sink(blob, &sink, SB_PROTO_WRITE_DIFF, &progress, err);
    sb_blob_destroy(blob);
    return st;
}
ROW(write_sink, WRITES | REPORTS, 3)

CALL(create, 0, 1, sb_model_create(s->rig.context, SB_FORMAT_CAFFEMODEL, &s->made, err))
CALL(load_real, OPENS, 1, sb_model_load_blob(state, SB_NO_LAYER, 0, s->real, err))
CALL(load_single, OPENS, 1, sb_model_load_blob(state, SB_NO_LAYER, 0, s->single, err))
CALL(load_shared, OPENS, 0, sb_model_load_blob(state, SB_NO_LAYER, 0, s->shared, err))
CALL(load_unpacked, OPENS, 0, sb_model_load_blob(state, SB_NO_LAYER, 1, s->shared, err))
CALL(load_edited, 0, 1, sb_model_load_blob(net, 0, 1, s->single, err))
CALL(blob_info, CALLS_SYSTEM | READS, 0,
     sb_model_blob_info(state, SB_NO_LAYER, 1, &(sb_blob_info)SB_BLOB_INFO_INIT, err))
CALL(message_of_file, CALLS_SYSTEM | READS, 0,
     sb_model_layer_message(state, SB_NO_LAYER, s->buffer, s->room, NULL, err))
CALL(message_of_layer, READS, 0, sb_model_layer_message(net, 0, s->buffer, s->room, NULL, err))
CALL(read_values, OPENS, 0,
     sb_model_read_values(state, SB_NO_LAYER, 0, SB_DATA, 1500, 3000, SB_DTYPE_F64, s->buffer,
                          3000 * sizeof(double), err))
CALL(read_unpacked, READS | REPORTS, 0,
     sb_model_read_values(state, SB_NO_LAYER, 1, SB_DATA, 1500, 3000, SB_DTYPE_F32, s->buffer,
                          3000 * sizeof(float), err))
CALL(model_size, CALLS_SYSTEM | READS, 0, sb_model_size(state, &(size_t){0}, err))
CALL(save_state, OPENS, 0, sb_model_save(state, s->buffer, s->room, NULL, err))
CALL(save_net, READS | REPORTS, 0, sb_model_save(net, s->buffer, s->room, NULL, err))
CALL(save_raw, READS | REPORTS, 0, sb_model_save(s->raw, s->buffer, s->room, NULL, err))
CALL(save_file, OPENS | REPLACES, 0, sb_model_save_file(state, s->target, err))
CALL(save_sink, READS | WRITES | REPORTS, 0, sb_model_save_sink(net, &sink, err))

static sb_status lend_fresh(void *user, int64_t layer, int64_t index, const sb_blob **out,
                            sb_error *err) {
    struct scene *s = user;
    const void *p;
    assert_null(s->lent);
    sb_status st = sb_blob_create_shaped(s->rig.context, SB_DTYPE_F32, four, 1, &s->lent, err);
    if (st == SB_OK)
        st = sb_blob_cpu(s->lent, SB_DATA, &p, err);
    *out = s->lent;
    return st;
}

static sb_status save_file_from(struct scene *s, sb_error *err) {
    sb_model *model = NULL;
    sb_status st = sb_model_create(s->rig.context, SB_FORMAT_BLOB, &model, err);
    if (st == SB_OK)
        st = sb_model_announce_blob(model, SB_NO_LAYER, s->given, err);
    if (st == SB_OK)
        st = sb_model_save_file_from(model, s->target, lend_fresh, s, err);
    sb_model_destroy(model);
    sb_blob_destroy(s->lent);
    s->lent = NULL;
    return st;
}
ROW(save_file_from, CALLS_SYSTEM | REPLACES, 3)

CALL(set_blob, 0, 1, sb_model_set_blob(net, 0, 0, s->given, SB_PROTO_WRITE_DIFF, err))
CALL(set_edited, 0, 1, sb_model_set_blob(net, 0, 1, s->single, 0, err))
CALL(add_blob, 0, 1, sb_model_add_blob(net, 1, s->given, 0, err))
CALL(add_history, 0, 2, sb_model_add_blob(state, SB_NO_LAYER, s->given, 0, err))
CALL(announce_blob, 0, 1, sb_model_announce_blob(net, 1, s->given, err))
CALL(announce_history, 0, 2, sb_model_announce_blob(state, SB_NO_LAYER, s->given, err))
CALL(add_layer, 0, 2, sb_model_add_layer(net, "name", 4, "type", 4, NULL, err))
CALL(set_name, 0, 1, sb_model_set_name(net, "other", 5, err))
CALL(set_solver_info, 0, 1,
     sb_model_set_solver_info(state, &(sb_solver_info){sizeof(sb_solver_info), {"other", 5}, 3, 4},
                              err))

static void open_row(struct scene *s, const struct row *row, enum origin origin) {
    scene_open_from(s, origin, row->put);
    s->format = row->format;
}

struct failure {
    uint32_t step; /* 0 if an allocation fails */
    uint32_t only;
    int error;
    sb_status status;
    enum origin origin;
};

static void arm(struct scene *s, const struct failure *how, int n) {
    const struct test_fault fault = {n, how->status, false};
    if (how->step == 0)
        s->rig.counting.fail_nth = n;
    else if (how->step == CALLS_SYSTEM)
        fault_set((struct system_fault){NULL, n, n, how->error, 0});
    else if (how->step == WRITES)
        s->sink.fault = fault;
    else if (how->step == REPORTS)
        s->progress.cancels_at = n;
    else
        for (int i = 0; i < SOURCES; i++)
            s->sources[i].fault = fault;
}

static bool disarm(struct scene *s, const struct failure *how, int n) {
    const struct test_fault none = {0, SB_OK, false};
    bool fired = false;
    if (how->step == 0)
        fired = s->rig.counting.fail_nth == 0;
    else if (how->step == CALLS_SYSTEM)
        fired = fault_end() >= n;
    else if (how->step == WRITES)
        fired = !s->sink.fault.left;
    else if (how->step == REPORTS)
        fired = s->progress.reports >= n;
    for (int i = 0; i < SOURCES; i++) {
        fired |= how->step == READS && !s->sources[i].fault.left;
        s->sources[i].fault = none;
    }
    s->rig.counting.fail_nth = 0;
    s->sink.fault = none;
    return fired;
}

static bool failed(const char *system_call) {
    return strcmp(failed_function, system_call) == 0;
}

/* The library may ignore a failed close or fchown. */
static bool is_expected(const struct failure *how, sb_status st) {
    if (how->step != CALLS_SYSTEM)
        return st == how->status;
    if (failed("close") || failed("fchown"))
        return st == SB_OK || st == how->status;
    const bool is_resumed =
        how->error == EINTR || (how->error == SHORT && (failed("pread") || failed("write")));
    return st == (is_resumed ? SB_OK : how->status);
}

static void blame(const struct row *row, int n, const char *what) {
    fail_with("%s, step %d (%s) failing: %s", row->name, n, failed_function, what);
}

static bool target_is_replaced(const struct scene *s, const struct row *row, const sb_error *err,
                               int n) {
    const bool in_place = !file_holds(s->target, "old");
    if (in_place != (strstr(err->message, "is in place") != NULL))
        blame(row, n, err->message);
    return in_place;
}

static void check_words(const struct row *row, const struct failure *how, int n,
                        const sb_error *err) {
    if (how->error == ENDS && failed("pread"))
        assert_non_null(strstr(err->message, "changed while it was read"));
    if (failed("fstat"))
        assert_null(strstr(err->message, "changed while"));
    if (strstr(err->message, "\"cannot") || strstr(err->message, "\"is in place"))
        blame(row, n, err->message); /* the message must contain the file's name */
}

static struct wire reference(const struct row *row, const struct failure *how) {
    struct scene s;
    open_row(&s, row, how->origin);
    assert_ok(row->call(&s, &err));
    struct wire after = see(&s, false, true);
    (void)test_disown(after.bytes);
    scene_close(&s);
    return after;
}

static bool run(const struct row *row, const struct failure *how, int n, struct wire *after) {
    struct scene s;
    open_row(&s, row, how->origin);
    const sb_progress progress = test_progress_of(&s.progress);
    sb_model *const models[] = {s.net, s.state, s.raw};
    for (int i = 0; i < 3 && how->step == REPORTS; i++)
        assert_ok(sb_model_set_progress(models[i], &progress, &err));
    struct wire before = see(&s, true, true), other = see(&s, true, false);
    s.progress = (struct test_progress){.reports = 0};
    const int64_t blocks = s.rig.counting.live_blocks;
    const int files = files_in("/proc/self/fd");
    arm(&s, how, n);
    support_poison_error(&err);
    sb_status st = row->call(&s, &err);
    const bool fired = disarm(&s, how, n);
    support_check_status(fired && is_expected(how, st) ? st : SB_OK, st, &err, row->name, __FILE__,
                         __LINE__);
    if (fired && !is_expected(how, st))
        blame(row, n, "the failure is not reported");
    if (s.progress.wrong || files_in("/proc/self/fd") - files > (s.made != NULL))
        blame(row, n, "a progress report is wrong, or a file was left open");
    if (descriptors.inherited)
        blame(row, n, "another program would inherit an open file");
    if (row->call == save_sink && how->step == REPORTS && n == 1)
        assert_int_equal(s.sink.writes, 0); /* the first report precedes the first write */
    if (st != SB_OK) {
        bool replaced = false;
        if (how->step == CALLS_SYSTEM) {
            replaced = target_is_replaced(&s, row, &err, n);
            check_words(row, how, n, &err);
        }
        s.progress = (struct test_progress){.reports = 0};
        wire_free(&s.sink.got);
        struct wire now = see(&s, true, !replaced);
        if (s.made || !same_seen(replaced ? &other : &before, &now))
            blame(row, n, "a failed call has changed something");
        if (s.rig.counting.live_blocks > blocks + 1) /* the list of edits may be a new block */
            blame(row, n, "memory has leaked");
        s.progress = (struct test_progress){.reports = 0};
        if (n == 1) { /* makes the call fail again, with NULL as the error */
            arm(&s, how, 1);
            st = row->call(&s, NULL);
            assert_true(disarm(&s, how, 1) && is_expected(how, st));
            s.progress = (struct test_progress){.reports = 0};
            wire_free(&s.sink.got);
        }
        assert_ok(row->call(&s, &err));
        assert_false(s.progress.wrong);
    }
    s.progress = (struct test_progress){.reports = 0};
    struct wire now = see(&s, false, true);
    if (!same_seen(after, &now))
        blame(row, n, "the result differs from the result without a failure");
    scene_close(&s);
    return fired;
}

static bool concerns(const struct failure *how, const struct row *row) {
    const uint32_t steps = how->step | how->only;
    const bool loops = how->error == EINTR || how->error == SHORT; /* a mapping needs no retries */
    return (row->steps & steps) == steps && !(loops && row->call == open_mapped);
}

static void fail_each(const struct failure *how) {
    for (const struct row *row = rows; row < rows + num_rows; row++) {
        if (!concerns(how, row))
            continue;
        int n = 1;
        struct wire after = reference(row, how);
        while (run(row, how, n, &after))
            n++;
        free(after.bytes);
        print_message("  %-26s %d steps\n", row->name, n - 1);
        assert_true(n > (how->step ? 1 : row->least));
    }
}

static const struct failure failures[] = {
    {0, 0, 0, SB_ERR_OUT_OF_MEMORY, MEMORY},
    {CALLS_SYSTEM, 0, EIO, SB_ERR_IO, A_FILE},
    {CALLS_SYSTEM, 0, EINTR, SB_ERR_IO, A_FILE},
    {CALLS_SYSTEM, 0, SHORT, SB_ERR_IO, A_FILE},
    {CALLS_SYSTEM, 0, ENDS, SB_ERR_IO, A_FILE},
    {CALLS_SYSTEM, REPLACES, NOTHING, SB_ERR_IO, A_FILE},
    {READS, 0, EIO, SB_ERR_IO, CALLBACKS},
    {READS, 0, EIO, SB_ERR_OUT_OF_MEMORY, CALLBACKS},
    {WRITES, 0, EIO, SB_ERR_IO, CALLBACKS},
    {WRITES, 0, EIO, SB_ERR_CANCELLED, CALLBACKS},
    {REPORTS, 0, 0, SB_ERR_CANCELLED, CALLBACKS},
};
enum { FAILURES = sizeof failures / sizeof *failures };

TEST(each_step_of_each_call_may_fail) {
    for (int i = 0; i < FAILURES; i++)
        fail_each(&failures[i]);
    if (!test_is_quick())
        fail_each(&(struct failure){0, 0, 0, SB_ERR_OUT_OF_MEMORY, A_FILE});
}

/* The library also reads a file of size 0: files in /proc have the size 0, but have bytes. */
TEST_ON(scene, an_empty_file_that_cannot_be_read_is_an_error) {
    file_write(f->target, "", 0);
    fault_set((struct system_fault){"pread", 1, 1, EIO, 0});
    assert_status(SB_ERR_IO, sb_blob_load_file(f->single, f->target, 0, NULL, &err));
    assert_int_equal(fault_end(), 1);
}

/* A surviving child raises another signal, because valgrind reports leaks at a normal exit. */
static bool killed_at(const struct row *row, int n, struct scene *s) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fault_set((struct system_fault){NULL, n, n, KILLS, 0});
        raise(row->call(s, NULL) == SB_OK ? SIGTERM : SIGABRT);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_not_equal(WTERMSIG(status), SIGABRT);
    return WTERMSIG(status) == SIGKILL;
}

TEST(a_killed_writer_leaves_the_old_file_or_the_new_one) {
    for (const struct row *row = rows; row < rows + num_rows; row++) {
        bool killed = row->steps & REPLACES;
        for (int n = 1; killed; n++) {
            struct scene s;
            scene_open(&s);
            const int files = files_in(s.rig.folder);
            killed = killed_at(row, n, &s);
            const bool is_old = file_holds(s.target, "old");
            const struct wire left = wire_of_file(s.target);
            assert_true(killed || !is_old);
            assert_true(files_in(s.rig.folder) <= files + killed);
            assert_ok(row->call(&s, &err));
            const struct wire whole = wire_of_file(s.target);
            assert_true(is_old || (left.size == whole.size &&
                                   memcmp(left.bytes, whole.bytes, whole.size) == 0));
            (void)remove_leftovers(s.rig.folder);
            scene_close(&s);
        }
    }
}
