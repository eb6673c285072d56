/* Every call that reads or writes formats, with its n-th allocation failing,
   for every n: a status, nothing changed, nothing leaked, and the same call
   succeeds afterwards. */
#include "support.h"

#include "callbacks.h"
#include "files.h"
#include "nets.h"

#include <syncblob/sim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t two[] = {2}, four[] = {4};

struct scene {
    struct counting_allocator counting;
    sb_context *context;
    struct wire net, state, blob_bytes;
    struct test_source net_source;
    char folder[64], net_path[96], blob_path[96], target_path[96];
    sb_model *model, *solver; /* of net and state, each with an edit */
    sb_blob *source, *target; /* both with data and diff */
    sb_blob *integers;        /* of I32, likewise, with room for what is read */
    sb_model *made;           /* what the call made */
    sb_blob *lent;
    void *bytes;
};

static sb_blob *new_integers(sb_context *context) {
    sb_blob *blob;
    int32_t *data, *diff;
    assert_ok(sb_blob_create_shaped(context, SB_DTYPE_I32, four, 1, &blob, &err));
    assert_ok(sb_blob_mutable_cpu_i32(blob, SB_DATA, &data, &err));
    assert_ok(sb_blob_mutable_cpu_i32(blob, SB_DIFF, &diff, &err));
    data[0] = diff[3] = 8;
    return blob;
}

static sb_blob *new_blob(sb_context *context, const int64_t *dims, float first) {
    sb_blob *blob;
    void *data, *diff;
    assert_ok(sb_blob_create_shaped(context, SB_DTYPE_F32, dims, 1, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &data, &err));
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DIFF, &diff, &err));
    for (int64_t i = 0; i < dims[0]; i++)
        ((float *)data)[i] = ((float *)diff)[i] = first + (float)i;
    return blob;
}

static void scene_open(struct scene *s) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    s->counting = (struct counting_allocator)COUNTING_ALLOCATOR_INIT;
    options.allocator = counting_allocator_table(&s->counting);
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    assert_ok(sb_context_create(&options, &s->context, &err));
    net_v0(&s->net);
    wire_number(&s->state, 1, 7);
    wire_text(&s->state, 2, "learned");
    wire_blob_field(&s->state, 3, two, 1, 1);
    wire_blob(&s->blob_bytes, four, 1, 40);
    wire_floats(&s->blob_bytes, 6, (const float[]){1, 2, 3, 4}, 4);
    strcpy(s->folder, "/tmp/syncblob-faults-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    (void)snprintf(s->net_path, sizeof s->net_path, "%s/net", s->folder);
    (void)snprintf(s->blob_path, sizeof s->blob_path, "%s/blob", s->folder);
    (void)snprintf(s->target_path, sizeof s->target_path, "%s/target", s->folder);
    file_write_wire(s->net_path, &s->net);
    file_write_wire(s->blob_path, &s->blob_bytes);
    file_write_wire(s->target_path, &s->blob_bytes);
    assert_ok(sb_model_open_bytes(s->context, SB_FORMAT_AUTO, s->net.bytes, s->net.size, NULL, NULL,
                                  NULL, &s->model, &err));
    assert_ok(sb_model_open_bytes(s->context, SB_FORMAT_AUTO, s->state.bytes, s->state.size, NULL,
                                  NULL, NULL, &s->solver, &err));
    s->source = new_blob(s->context, four, 10);
    s->target = new_blob(s->context, two, 20);
    s->integers = new_integers(s->context);
    assert_ok(sb_model_set_blob(s->model, 0, 1, s->source, 0, &err));
    assert_ok(sb_model_set_blob(s->solver, SB_NO_LAYER, 0, s->source, 0, &err));
    for (int i = 0; i < 3; i++) /* one more, and the list of edits grows */
        assert_ok(sb_model_add_blob(s->solver, SB_NO_LAYER, s->source, 0, &err));
}

static void scene_close(struct scene *s) {
    sb_model_destroy(s->model);
    sb_model_destroy(s->solver);
    sb_model_destroy(s->made);
    sb_blob_destroy(s->source);
    sb_blob_destroy(s->target);
    sb_blob_destroy(s->integers);
    sb_context_release(s->context);
    counting_allocator_assert_clean(&s->counting);
    (void)unlink(s->net_path);
    (void)unlink(s->blob_path);
    (void)unlink(s->target_path);
    assert_int_equal(rmdir(s->folder), 0);
    wire_free(&s->net);
    wire_free(&s->state);
    wire_free(&s->blob_bytes);
}

/* --- all that a caller can see, as bytes -------------------------------------------- */

static void see_model(struct wire *seen, const sb_model *model) {
    unsigned char bytes[1024];
    size_t size;
    assert_ok(sb_model_save(model, bytes, sizeof bytes, &size, &err));
    wire_raw(seen, bytes, size);
    wire_raw(seen, name_of(model).bytes, name_of(model).size);
    wire_varint(seen, (uint64_t)sb_model_num_layers(model));
    for (int64_t l = SB_NO_LAYER; l < sb_model_num_layers(model); l++)
        wire_varint(seen, (uint64_t)num_blobs(model, l));
}

static void see_memory(struct wire *seen, const sb_mem *mem) {
    const void *p;
    wire_varint(seen, (uint64_t)sb_mem_head(mem));
    wire_varint(seen, (uint64_t)(uintptr_t)mem);
    assert_ok(sb_mem_cpu(mem, &p, &err));
    wire_varint(seen, (uint64_t)(uintptr_t)p);
    wire_raw(seen, p, sb_mem_size(mem));
}

static void see_blob(struct wire *seen, const sb_blob *blob) {
    const sb_mem *mem;
    wire_numbers(seen, 1, sb_blob_shape(blob), (size_t)sb_blob_num_axes(blob));
    assert_ok(sb_blob_mem(blob, SB_DATA, &mem, &err));
    see_memory(seen, mem);
    assert_ok(sb_blob_mem(blob, SB_DIFF, &mem, &err));
    see_memory(seen, mem);
}

static void see_file(struct wire *seen, const char *path) {
    char buffer[1024];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    wire_raw(seen, buffer, fread(buffer, 1, sizeof buffer, file));
    (void)fclose(file);
}

static struct wire see(const struct scene *s) {
    struct wire seen = {0};
    see_model(&seen, s->model);
    see_model(&seen, s->solver);
    see_blob(&seen, s->source);
    see_blob(&seen, s->target);
    see_blob(&seen, s->integers);
    see_file(&seen, s->target_path);
    wire_varint(&seen, s->made != NULL);
    wire_varint(&seen, s->bytes != NULL);
    return seen;
}

/* --- the calls ------------------------------------------------------------------------- */

#define CALL(name, expression)                                                                     \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return expression;                                                                         \
    }

CALL(from_proto, sb_blob_from_proto(s->target, s->blob_bytes.bytes, s->blob_bytes.size,
                                    SB_PROTO_RESHAPE, NULL, err))
CALL(from_proto_to_integers, sb_blob_from_proto(s->integers, s->blob_bytes.bytes,
                                                s->blob_bytes.size, SB_PROTO_RESHAPE, NULL, err))
CALL(read_file, sb_blob_load_file(s->target, s->blob_path, SB_PROTO_RESHAPE, NULL, err))

static sb_status to_proto(struct scene *s, sb_error *err) {
    unsigned char buffer[256];
    return sb_blob_to_proto(s->source, SB_PROTO_WRITE_DIFF, buffer, sizeof buffer, NULL, err);
}

CALL(write_file, sb_blob_save_file(s->source, s->target_path, 0, err))
CALL(reshape_proto, sb_blob_reshape_proto(s->target, "\x08\x09", 2, NULL, err))
CALL(shape_equals_proto, sb_blob_shape_equals_proto(s->target, s->blob_bytes.bytes,
                                                    s->blob_bytes.size, &(int32_t){0}, err))
CALL(proto_size, sb_blob_proto_size(s->source, SB_PROTO_WRITE_DIFF, &(size_t){0}, err))
CALL(model_size, sb_model_size(s->model, &(size_t){0}, err))
CALL(open_bytes, sb_model_open_bytes(s->context, SB_FORMAT_AUTO, s->net.bytes, s->net.size, NULL,
                                     NULL, NULL, &s->made, err))
CALL(open_file, sb_model_open_file(s->context, SB_FORMAT_AUTO, s->net_path, 0, NULL, &s->made, err))
CALL(open_mapped, sb_model_open_file(s->context, SB_FORMAT_AUTO, s->net_path, SB_OPEN_MAPPED, NULL,
                                     &s->made, err))
CALL(create, sb_model_create(s->context, SB_FORMAT_CAFFEMODEL, &s->made, err))
CALL(load_blob, sb_model_load_blob(s->model, 0, 0, s->target, err))
static sb_status layer_message(struct scene *s, sb_error *err) {
    unsigned char buffer[256];
    return sb_model_layer_message(s->model, 0, buffer, sizeof buffer, NULL, err);
}

static sb_status read_values(struct scene *s, sb_error *err) {
    float value;
    return sb_model_read_values(s->model, 0, 0, SB_DATA, 0, 1, SB_DTYPE_F32, &value, sizeof value,
                                err);
}

CALL(load_edited, sb_model_load_blob(s->model, 0, 1, s->target, err))
CALL(set_blob, sb_model_set_blob(s->model, 0, 0, s->source, SB_PROTO_WRITE_DIFF, err))
CALL(set_edited, sb_model_set_blob(s->model, 0, 1, s->target, 0, err))
CALL(add_blobs, sb_model_add_blob(s->model, 1, s->source, 0, err))
CALL(add_history, sb_model_add_blob(s->solver, SB_NO_LAYER, s->source, 0, err))
CALL(announce_blob, sb_model_announce_blob(s->model, 1, s->source, err))
CALL(announce_history, sb_model_announce_blob(s->solver, SB_NO_LAYER, s->source, err))

static sb_status lend_fresh(void *user, int64_t layer, int64_t index, const sb_blob **out,
                            sb_error *err) {
    struct scene *s = user;
    const void *p;
    (void)layer, (void)index;
    assert_null(s->lent);
    sb_status st = sb_blob_create_shaped(s->context, SB_DTYPE_F32, four, 1, &s->lent, err);
    if (st == SB_OK)
        st = sb_blob_cpu(s->lent, SB_DATA, &p, err);
    *out = s->lent;
    return st;
}

/* A model of its own, so that the scene's can be saved. */
static sb_status save_file_from(struct scene *s, sb_error *err) {
    sb_status st = sb_model_create(s->context, SB_FORMAT_BLOB, &s->made, err);
    if (st == SB_OK)
        st = sb_model_announce_blob(s->made, SB_NO_LAYER, s->source, err);
    if (st == SB_OK)
        st = sb_model_save_file_from(s->made, s->target_path, lend_fresh, s, err);
    sb_model_destroy(s->made);
    sb_blob_destroy(s->lent);
    s->made = NULL;
    s->lent = NULL;
    return st;
}

CALL(add_layer, sb_model_add_layer(s->model, "name", 4, "type", 4, NULL, err))
CALL(set_name, sb_model_set_name(s->model, "other", 5, err))

static sb_status set_solver_info(struct scene *s, sb_error *err) {
    const sb_solver_info info = {sizeof(sb_solver_info), {"other", 5}, 3, 4};
    return sb_model_set_solver_info(s->solver, &info, err);
}

CALL(save_file, sb_model_save_file(s->model, s->target_path, err))

static sb_status open_source(struct scene *s, sb_error *err) {
    const sb_source source = test_source_of(&s->net_source, &s->net);
    sb_status st =
        sb_model_open_source(s->context, SB_FORMAT_AUTO, &source, NULL, NULL, &s->made, err);
    return st == SB_OK ? sb_model_set_progress(s->made, NULL, err) : st;
}

static sb_status read_source(struct scene *s, sb_error *err) {
    struct test_source bytes = {.reads = 0};
    const sb_source source = test_source_of(&bytes, &s->blob_bytes);
    return sb_blob_load_source(s->target, &source, SB_PROTO_RESHAPE, NULL, NULL, err);
}

static sb_status open_spans(struct scene *s, sb_error *err) {
    const sb_span halves[] = {{s->net.bytes, 9}, {s->net.bytes + 9, s->net.size - 9}};
    sb_source source = SB_SOURCE_INIT;
    sb_status st = sb_source_of_spans(s->context, halves, 2, &source, err);
    if (st != SB_OK) {
        assert_null(source.user);
        return st;
    }
    st = sb_model_open_source(s->context, SB_FORMAT_AUTO, &source, NULL, NULL, &s->made, err);
    if (st != SB_OK)
        source.close(source.user);
    return st;
}

static sb_status save_sink(struct scene *s, sb_error *err) {
    struct test_sink got = {.writes = 0};
    const sb_sink sink = test_sink_of(&got);
    sb_status st = sb_model_save_sink(s->model, &sink, err);
    wire_free(&got.got);
    return st;
}

static sb_status write_sink(struct scene *s, sb_error *err) {
    struct test_sink got = {.writes = 0};
    const sb_sink sink = test_sink_of(&got);
    sb_status st = sb_blob_save_sink(s->source, &sink, SB_PROTO_WRITE_DIFF, NULL, err);
    wire_free(&got.got);
    return st;
}

static const struct {
    const char *name;
    sb_status (*call)(struct scene *, sb_error *);
    int64_t least; /* allocations that it must make, lest this test tests nothing */
} calls[] = {
    {"from_proto", from_proto, 2},
    {"read_file", read_file, 2},
    {"to_proto", to_proto, 0},
    {"write_file", write_file, 0},
    {"reshape_proto", reshape_proto, 0},
    {"open_bytes", open_bytes, 2},
    {"open_file", open_file, 2},
    {"open mapped", open_mapped, 2},
    {"create", create, 1},
    {"load_blob", load_blob, 1},
    {"load_blob, edited", load_edited, 1},
    {"set_blob", set_blob, 1},
    {"set_blob, edited", set_edited, 1},
    {"add_blob", add_blobs, 1},
    {"add_blob, no layer", add_history, 2},
    {"announce_blob", announce_blob, 1},
    {"announce, no layer", announce_history, 2},
    {"save_file_from", save_file_from, 3},
    {"add_layer", add_layer, 2},
    {"set_name", set_name, 1},
    {"set_solver_info", set_solver_info, 1},
    {"save_file", save_file, 0},
    {"open_source", open_source, 2},
    {"read_source", read_source, 2},
    {"save_sink", save_sink, 0},
    {"write_sink", write_sink, 0},
    {"shape_equals_proto", shape_equals_proto, 0},
    {"proto_size", proto_size, 0},
    {"layer_message", layer_message, 0},
    {"read_values", read_values, 0},
    {"size", model_size, 0},
    {"from_proto to integers", from_proto_to_integers, 2},
    {"open_source, spans", open_spans, 3},
};

TEST(test_the_nth_allocation_fails) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int64_t n = 0;
        for (bool failed = true; failed;) {
            struct scene s;
            scene_open(&s);
            struct wire before = see(&s);
            int64_t blocks = s.counting.live_blocks;
            s.counting.fail_nth = ++n;
            sb_status st = calls[i].call(&s, &err);
            failed = s.counting.fail_nth == 0;
            s.counting.fail_nth = 0;
            if (st != (failed ? SB_ERR_OUT_OF_MEMORY : SB_OK))
                fail_with("%s, allocation %lld: %s", calls[i].name, (long long)n,
                          sb_status_name(st));
            if (failed) {
                assert_int_equal(err.code, SB_ERR_OUT_OF_MEMORY);
                struct wire after = see(&s);
                if (after.size != before.size || memcmp(after.bytes, before.bytes, after.size) != 0)
                    fail_with("%s changed something, allocation %lld", calls[i].name, (long long)n);
                /* Only a list of edits may have grown. */
                assert_true(s.counting.live_blocks <= blocks + 1);
                wire_free(&after);
                assert_ok(calls[i].call(&s, &err));
            }
            wire_free(&before);
            scene_close(&s);
        }
        print_message("  %-20s %lld allocations\n", calls[i].name, (long long)n - 1);
        assert_true(n - 1 >= calls[i].least);
    }
}

/* A blob whose bytes cannot be brought to the host. */
TEST(test_a_device_that_fails_leaves_files_and_models) {
    static const int writers[] = {2, 3, 11, 13}; /* to_proto, write_file, set, add */
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
        sb_context *sim;
        struct scene s;
        void *p;
        options.device = "sim:0";
        assert_ok(sb_context_create(&options, &sim, &err));
        scene_open(&s);
        sb_blob *source = s.source;
        s.source = new_blob(sim, four, 30);
        struct wire before = see(&s);
        int64_t blocks = s.counting.live_blocks;
        assert_ok(sb_blob_mutable_gpu(s.source, SB_DATA, &p, &err));
        assert_ok(sb_sim_fail(sim, SB_SIM_DOWNLOAD, 1, SB_SIM_FAIL_NOW, &err));
        assert_status(SB_ERR_DEVICE_FAILURE, calls[writers[i]].call(&s, &err));
        struct wire after = see(&s);
        assert_int_equal(before.size, after.size);
        assert_true(s.counting.live_blocks <= blocks + 1);
        wire_free(&before);
        wire_free(&after);
        assert_ok(calls[writers[i]].call(&s, &err));
        sb_blob_destroy(s.source);
        s.source = source;
        scene_close(&s);
        sb_context_release(sim);
    }
}

TEST(test_a_cap_is_no_out_of_memory) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    struct wire wire = {0};
    const int64_t dims[] = {100000};
    sb_blob *blob;
    options.max_host_bytes = 100000;
    assert_ok(sb_context_create(&options, &context, &err));
    assert_ok(sb_blob_create(context, SB_DTYPE_F32, &blob, &err));
    wire_blob(&wire, dims, 1, 0);
    assert_status(SB_ERR_CAP_REACHED,
                  sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    assert_int_equal(sb_blob_is_shaped(blob), 0);
    sb_blob_destroy(blob);
    sb_context_release(context);
    wire_free(&wire);
}
