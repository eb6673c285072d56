/* Flags are bits of one space: every call takes its own, and refuses those of every other call and
   bits that are nobody's, alone or beside its own, before anything has changed. */
#include "blobs.h"
#include "callbacks.h"
#include "files.h"
#include "tensors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All that the calls need to succeed. */
struct world {
    struct rig rig;
    sb_mem *mem;
    sb_blob *blob, *source;
    sb_model *model, *opened;
    sb_context *context;
    struct lent host, device;
    struct tensor tensor;
    sb_dl_managed_versioned *versioned;
    sb_dl_managed *legacy;
    unsigned char message[256];
    char path[64];
    void *bytes;
    size_t message_size, size;
};

typedef sb_status flags_call(struct world *w, uint32_t flags, sb_error *err);

#define CALL(name, ...)                                                                            \
    static sb_status call_##name(struct world *w, uint32_t flags, sb_error *err) {                 \
        return name(__VA_ARGS__, err);                                                             \
    }

CALL(sb_mem_set_cpu, w->mem, w->host.ptr, 24, flags, lent_deleter, &w->host)
CALL(sb_mem_set_gpu, w->mem, w->device.ptr, 24, flags, lent_deleter, &w->device)
CALL(sb_blob_set_cpu, w->blob, SB_DATA, w->host.ptr, 24, flags, lent_deleter, &w->host)
CALL(sb_blob_set_gpu, w->blob, SB_DATA, w->device.ptr, 24, flags, lent_deleter, &w->device)
CALL(sb_blob_copy_from, w->blob, SB_DATA, w->source, flags)
CALL(sb_blob_from_proto, w->blob, w->message, w->message_size, flags, NULL)
CALL(sb_blob_proto_size, w->source, flags, &w->size)
CALL(sb_blob_to_proto, w->source, flags, w->message, sizeof w->message, &w->size)
CALL(sb_blob_load_file, w->blob, w->path, flags, NULL)
CALL(sb_blob_save_file, w->source, w->path, flags)
CALL(sb_blob_from_dlpack, w->blob, SB_DATA, &w->tensor.versioned, flags)
CALL(sb_blob_from_legacy_dlpack, w->blob, SB_DATA, &w->tensor.legacy, flags)
CALL(sb_model_open_file, NULL, SB_FORMAT_BLOB, w->path, flags, NULL, &w->opened)
CALL(sb_model_set_blob, w->model, SB_NO_LAYER, 0, w->source, flags)
CALL(sb_model_add_blob, w->model, SB_NO_LAYER, w->source, flags)

static sb_status call_sb_context_create(struct world *w, uint32_t flags, sb_error *err) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.flags = flags;
    return sb_context_create(&options, &w->context, err);
}

static sb_status call_sb_blob_load_source(struct world *w, uint32_t flags, sb_error *err) {
    const struct wire bytes = {w->message, w->message_size, w->message_size};
    struct test_source reads = {.reads = 0};
    const sb_source source = test_source_of(&reads, &bytes);
    return sb_blob_load_source(w->blob, &source, flags, NULL, NULL, err);
}

static sb_status call_sb_blob_save_sink(struct world *w, uint32_t flags, sb_error *err) {
    struct test_sink got = {.writes = 0};
    const sb_sink sink = test_sink_of(&got);
    sb_status st = sb_blob_save_sink(w->source, &sink, flags, NULL, err);
    assert_int_equal(got.writes != 0, st == SB_OK);
    wire_free(&got.got);
    return st;
}

static sb_status call_sb_write_begin(struct world *w, uint32_t flags, sb_error *err) {
    sb_write *write = NULL;
    void *ptr = NULL;
    sb_status st = sb_write_begin(w->mem, SB_SIDE_CPU, flags, &ptr, &write, err);
    assert_int_equal(write != NULL, st == SB_OK);
    sb_write_destroy(write);
    return st;
}

static sb_status call_sb_source_of_descriptor(struct world *w, uint32_t flags, sb_error *err) {
    sb_source source = SB_SOURCE_INIT;
    int descriptor = open(w->path, O_RDONLY);
    sb_status st = sb_source_of_descriptor(descriptor, flags, &source, err);
    if (source.close)
        source.close(source.user);
    else
        (void)close(descriptor);
    assert_int_equal(source.read_at != NULL, st == SB_OK);
    return st;
}

#define ROW(name, flags)                                                                           \
    { #name, call_##name, flags }

static const struct row {
    const char *name;
    flags_call *call;
    uint32_t known;
} rows[] = {
    ROW(sb_mem_set_cpu, SB_READ_ONLY),
    ROW(sb_mem_set_gpu, SB_READ_ONLY),
    ROW(sb_write_begin, SB_WRITE_OVERWRITE | SB_WRITE_QUEUED),
    ROW(sb_blob_set_cpu, SB_READ_ONLY),
    ROW(sb_blob_set_gpu, SB_READ_ONLY),
    ROW(sb_blob_copy_from, SB_COPY_RESHAPE),
    ROW(sb_blob_from_proto, SB_PROTO_RESHAPE),
    ROW(sb_blob_proto_size, SB_PROTO_WRITE_DIFF),
    ROW(sb_blob_to_proto, SB_PROTO_WRITE_DIFF),
    ROW(sb_blob_load_file, SB_PROTO_RESHAPE),
    ROW(sb_blob_save_file, SB_PROTO_WRITE_DIFF),
    ROW(sb_blob_load_source, SB_PROTO_RESHAPE),
    ROW(sb_blob_save_sink, SB_PROTO_WRITE_DIFF),
    ROW(sb_source_of_descriptor, SB_SOURCE_CLOSES),
    ROW(sb_blob_from_dlpack, SB_DLPACK_RESHAPE),
    ROW(sb_blob_from_legacy_dlpack, SB_DLPACK_RESHAPE),
    ROW(sb_model_open_file, SB_OPEN_MAPPED),
    ROW(sb_model_set_blob, SB_PROTO_WRITE_DIFF),
    ROW(sb_model_add_blob, SB_PROTO_WRITE_DIFF),
    ROW(sb_context_create, SB_CONTEXT_NO_PINNED | SB_CONTEXT_NO_HOST_CACHE),
};

/* `blob` and `source` hold data and diff on the host, each other values. */
static sb_blob *made(struct world *w, double first) {
    static const int64_t shape[] = {2, 3};
    float values[6];
    sb_blob *blob = blob_of(w->rig.context, SB_DTYPE_F32, 2, shape);
    fill_values(SB_DTYPE_F32, 6, first, 1, values);
    mem_place(data_of(blob), SB_HEAD_AT_CPU, values, sizeof values);
    fill_values(SB_DTYPE_F32, 6, first + 10, 1, values);
    mem_place(diff_of(blob), SB_HEAD_AT_CPU, values, sizeof values);
    return blob;
}

static void world_open(struct world *w) {
    memset(w, 0, sizeof *w);
    strcpy(w->path, "/tmp/syncblob-flags-XXXXXX");
    close(mkstemp(w->path));
    rig_open(&w->rig);
    w->blob = made(w, 100);
    w->source = made(w, 200);
    assert_ok(sb_mem_create(w->rig.context, 24, &w->mem, &err));
    assert_ok(
        sb_blob_to_proto(w->source, 0, w->message, sizeof w->message, &w->message_size, &err));
    assert_ok(sb_blob_save_file(w->source, w->path, 0, &err));
    assert_ok(sb_model_create(w->rig.context, SB_FORMAT_BLOB_VECTOR, &w->model, &err));
    assert_ok(sb_model_add_blob(w->model, SB_NO_LAYER, w->source, 0, &err));
    w->host = lend_host(24, 7);
    w->device = lend_device(w->rig.context, 24, 7);
    tensor_make(&w->tensor);
}

static void world_close(struct world *w) {
    if (w->versioned)
        w->versioned->deleter(w->versioned);
    if (w->legacy)
        w->legacy->deleter(w->legacy);
    sb_model_destroy(w->opened);
    sb_model_destroy(w->model);
    sb_context_release(w->context);
    sb_mem_release(w->mem);
    sb_blob_destroy(w->blob);
    sb_blob_destroy(w->source);
    lent_free(&w->host);
    lent_free(&w->device);
    tensor_free(&w->tensor);
    rig_close(&w->rig);
    unlink(w->path);
}

static bool blob_holds(sb_blob *blob, double first) {
    float data[6], diff[6];
    fill_values(SB_DTYPE_F32, 6, first, 1, data);
    fill_values(SB_DTYPE_F32, 6, first + 10, 1, diff);
    return mem_holds(data_of(blob), data, sizeof data) &&
           mem_holds(diff_of(blob), diff, sizeof diff) &&
           sb_mem_head(data_of(blob)) == SB_HEAD_AT_CPU;
}

static void assert_nothing_changed(const struct world *w, const unsigned char *message) {
    size_t size;
    assert_true(blob_holds(w->blob, 100) && blob_holds(w->source, 200));
    assert_int_equal(sb_mem_head(w->mem), SB_HEAD_UNINITIALIZED);
    assert_int_equal(w->host.deleted + w->device.deleted + w->tensor.deleted, 0);
    assert_true(!w->versioned && !w->legacy && !w->bytes && !w->opened && !w->context);
    assert_int_equal(w->size, 0);
    assert_memory_equal(w->message, message, sizeof w->message);
    assert_int_equal(num_blobs(w->model, SB_NO_LAYER), 1);
    assert_ok(sb_model_size(w->model, &size, &err));
    assert_int_equal(size, w->message_size + 2); /* field number and length of one message */
    struct wire file = wire_of_file(w->path);
    assert_int_equal(file.size, w->message_size);
}

static void refuses(const struct row *row, struct world *w, uint32_t flags) {
    support_poison_error(&err);
    sb_status status = row->call(w, flags, &err);
    if (status != SB_ERR_INVALID_ARGUMENT)
        fail_with("%s with the flags %#x gave %s", row->name, flags, sb_status_name(status));
}

TEST(every_call_refuses_flags_that_are_not_its_own) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w;
        unsigned char message[sizeof w.message];
        world_open(&w);
        memcpy(message, w.message, sizeof message);
        for (int bit = 0; bit < 32; bit++) {
            const uint32_t flag = UINT32_C(1) << bit;
            if (rows[i].known & flag)
                continue;
            refuses(&rows[i], &w, flag);
            refuses(&rows[i], &w, flag | rows[i].known);
        }
        assert_nothing_changed(&w, message);
        world_close(&w);
    }
}

/* So what is refused above is refused for its flags. */
TEST(every_call_takes_its_own) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int all = 0; all < 2; all++) {
            struct world w;
            world_open(&w);
            assert_ok(rows[i].call(&w, all ? rows[i].known : 0, &err));
            world_close(&w);
        }
    }
}

TEST(no_two_flags_are_the_same_bit) {
    static const uint32_t flags[] = {
        SB_READ_ONLY,      SB_COPY_RESHAPE,    SB_PROTO_RESHAPE,     SB_PROTO_WRITE_DIFF,
        SB_DLPACK_RESHAPE, SB_OPEN_MAPPED,     SB_CONTEXT_NO_PINNED, SB_CONTEXT_NO_HOST_CACHE,
        SB_SOURCE_CLOSES,  SB_WRITE_OVERWRITE, SB_WRITE_QUEUED,
    };
    uint32_t seen = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        assert_true(flags[i] && !(flags[i] & (flags[i] - 1)) && !(seen & flags[i]));
        seen |= flags[i];
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        seen &= ~rows[i].known;
    assert_int_equal(seen, 0); /* each is taken by some call above */
}

/* --- parts ------------------------------------------------------------------------------------ */

typedef sb_status part_call(struct world *w, sb_part part, sb_error *err);

#define PART(name, ...)                                                                            \
    static sb_status part_##name(struct world *w, sb_part part, sb_error *err) {                   \
        const void *in;                                                                            \
        void *out;                                                                                 \
        double sum;                                                                                \
        (void)in, (void)out, (void)sum;                                                            \
        return name(__VA_ARGS__, err);                                                             \
    }

PART(sb_blob_mem, w->blob, part, (const sb_mem **)&in)
PART(sb_blob_mutable_mem, w->blob, part, (sb_mem **)&out)
PART(sb_blob_set_mem, w->blob, part, w->mem)
PART(sb_blob_cpu, w->blob, part, &in)
PART(sb_blob_mutable_cpu, w->blob, part, &out)
PART(sb_blob_overwrite_cpu, w->blob, part, &out)
PART(sb_blob_gpu, w->blob, part, &in)
PART(sb_blob_gpu_on, w->blob, part, NULL, &in)
PART(sb_blob_mutable_gpu, w->blob, part, &out)
PART(sb_blob_mutable_gpu_on, w->blob, part, NULL, &out)
PART(sb_blob_overwrite_gpu, w->blob, part, &out)
PART(sb_blob_overwrite_gpu_on, w->blob, part, NULL, &out)
PART(sb_blob_at, w->blob, part, NULL, 0, &sum)
PART(sb_blob_share, w->blob, part, w->source)
PART(sb_blob_set_cpu, w->blob, part, w->host.ptr, 24, 0, lent_deleter, &w->host)
PART(sb_blob_set_gpu, w->blob, part, w->device.ptr, 24, 0, lent_deleter, &w->device)
PART(sb_blob_reclaim_cpu, w->blob, part, lent_deleter, &out)
PART(sb_blob_clear, w->blob, part)
PART(sb_blob_asum, w->blob, part, &sum)
PART(sb_blob_sumsq, w->blob, part, &sum)
PART(sb_blob_scale, w->blob, part, 2)
PART(sb_blob_scale_on, w->blob, part, 2, NULL)
PART(sb_blob_copy_from, w->blob, part, w->source, 0)
PART(sb_blob_to_dlpack, w->blob, part, SB_SIDE_CPU, &w->versioned)
PART(sb_blob_to_mutable_dlpack, w->blob, part, SB_SIDE_CPU, &w->versioned)
PART(sb_blob_to_legacy_dlpack, w->blob, part, SB_SIDE_CPU, &w->legacy)
PART(sb_blob_from_dlpack, w->blob, part, &w->tensor.versioned, 0)
PART(sb_blob_from_legacy_dlpack, w->blob, part, &w->tensor.legacy, 0)

TEST_ON(world, a_part_is_data_or_diff) {
    static part_call *const calls[] = {
        part_sb_blob_mem,
        part_sb_blob_mutable_mem,
        part_sb_blob_set_mem,
        part_sb_blob_cpu,
        part_sb_blob_mutable_cpu,
        part_sb_blob_overwrite_cpu,
        part_sb_blob_gpu,
        part_sb_blob_gpu_on,
        part_sb_blob_mutable_gpu,
        part_sb_blob_mutable_gpu_on,
        part_sb_blob_overwrite_gpu,
        part_sb_blob_overwrite_gpu_on,
        part_sb_blob_at,
        part_sb_blob_share,
        part_sb_blob_set_cpu,
        part_sb_blob_set_gpu,
        part_sb_blob_reclaim_cpu,
        part_sb_blob_clear,
        part_sb_blob_asum,
        part_sb_blob_sumsq,
        part_sb_blob_scale,
        part_sb_blob_scale_on,
        part_sb_blob_copy_from,
        part_sb_blob_to_dlpack,
        part_sb_blob_to_mutable_dlpack,
        part_sb_blob_to_legacy_dlpack,
        part_sb_blob_from_dlpack,
        part_sb_blob_from_legacy_dlpack,
    };
    static const sb_part parts[] = {-1, 2, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t k = 0; k < 4; k++) {
            assert_status(SB_ERR_INVALID_ARGUMENT, calls[i](f, parts[k], &err));
            assert_non_null(strstr(err.message, "neither SB_DATA nor SB_DIFF"));
        }
    for (size_t k = 0; k < 4; k++) {
        sb_blob_drop(f->blob, parts[k]);
        assert_int_equal(sb_blob_capacity(f->blob, parts[k]), 0);
    }
}
