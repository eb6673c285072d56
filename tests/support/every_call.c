#include "every_call.h"

#include "blobs.h"
#include "pointers.h"

#include <syncblob/dlpack.h>
#include <syncblob/filler.h>
#include <syncblob/sim.h>
#include <syncblob/sim_comm.h>
#include <unistd.h>

struct lent_piece {
    struct world *world;
    sb_context *context;
    void *ptr;
    int64_t shape[2];
    sb_dl_managed_versioned versioned_tensor;
    sb_dl_managed legacy_tensor;
};

static void end_piece(void *user, void *ptr) {
    struct lent_piece *piece = user;
    struct world *w = piece->world;
    assert_ptr_equal(ptr, piece->ptr);
    if (piece->context) {
        ignore(sb_sim_free(piece->context, ptr, NULL)); /* fails in a child or on a lost device */
    } else {
        free(ptr);
    }
    free(piece);
    w->deleted++;
    if (w->callback)
        w->callback(w);
}

/* A forked child has no device memory, so the piece is then host memory. */
static struct lent_piece *piece(struct world *w, size_t bytes, bool on_device) {
    struct lent_piece *p = calloc(1, sizeof *p);
    void *values = malloc(bytes);
    assert_true(p && values);
    *p = (struct lent_piece){.world = w, .ptr = memset(values, w->lent + 1, bytes)};
    w->lent++;
    if (on_device && sb_sim_malloc(w->context, bytes, &p->ptr, NULL) == SB_OK) {
        p->context = w->context;
        ignore(sb_sim_poke(w->context, p->ptr, values, bytes, NULL));
        free(values);
    }
    return p;
}

static bool note(struct world *w, sb_status st) {
    if (w->status == SB_OK)
        w->status = st;
    if (st < -899)
        w->bug = st;
    return st == SB_OK;
}

/* Frees a piece that no call has accepted. */
static void take_back(struct world *w, struct lent_piece *p) {
    w->lent--;
    if (p->context)
        ignore(sb_sim_free(p->context, p->ptr, NULL));
    else
        free(p->ptr);
    free(p);
}

static bool settle(struct world *w, struct lent_piece *p, sb_status st) {
    if (note(w, st))
        return true;
    take_back(w, p);
    return false;
}

static bool lend(struct world *w, sb_mem *mem, sb_side side, uint32_t flags) {
    const size_t bytes = sb_mem_size(mem);
    if (!w->context)
        return false;
    struct lent_piece *p = piece(w, bytes ? bytes : 1, side == SB_SIDE_GPU);
    return settle(w, p,
                  (side == SB_SIDE_CPU ? sb_mem_set_cpu : sb_mem_set_gpu)(mem, p->ptr, bytes, flags,
                                                                          end_piece, p, NULL));
}

static sb_mem *memory(struct world *w, sb_blob *blob, sb_part part) {
    sb_mem *mem = NULL;
    return note(w, sb_blob_mutable_mem(blob, part, &mem, NULL)) ? sb_mem_retain(mem) : NULL;
}

static sb_mem *lent_memory(struct world *w, size_t bytes) {
    sb_mem *mem = NULL;
    if (!w->context || !note(w, sb_mem_create(w->context, bytes, &mem, NULL)))
        return NULL;
    if (lend(w, mem, SB_SIDE_CPU, SB_READ_ONLY))
        return mem;
    sb_mem_release(mem);
    return NULL;
}

static void end_versioned_tensor(sb_dl_managed_versioned *self) {
    end_piece(self->manager_ctx, ((struct lent_piece *)self->manager_ctx)->ptr);
}

static void end_legacy_tensor(sb_dl_managed *self) {
    end_piece(self->manager_ctx, ((struct lent_piece *)self->manager_ctx)->ptr);
}

static struct lent_piece *tensor(struct world *w) {
    struct lent_piece *p = piece(w, 6 * sizeof(float), false);
    p->shape[0] = 2;
    p->shape[1] = 3;
    const sb_dl_tensor t = {.data = p->ptr,
                            .device = {SB_DL_DEVICE_CPU, 0},
                            .ndim = 2,
                            .dtype = {SB_DL_CODE_FLOAT, 32, 1},
                            .shape = p->shape};
    p->versioned_tensor = (sb_dl_managed_versioned){.version = {SB_DL_MAJOR_VERSION, 0},
                                                    .manager_ctx = p,
                                                    .deleter = end_versioned_tensor,
                                                    .dl_tensor = t};
    p->legacy_tensor =
        (sb_dl_managed){.dl_tensor = t, .manager_ctx = p, .deleter = end_legacy_tensor};
    return p;
}

static void visit(struct world *w, enum world_visit where) {
    if (w->visit)
        w->visit(w, where);
}

static int32_t report(void *user, uint64_t done, uint64_t total) {
    visit(user, WORLD_LOADS);
    return 0;
}

static sb_progress progress_of(struct world *w) {
    sb_progress progress = SB_PROGRESS_INIT;
    progress.user = w;
    progress.report = report;
    return progress;
}

static void run_tasks(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    for (int64_t i = 0; i < tasks; i++) {
        visit(user, WORLD_COMPUTES);
        task(arg, i);
    }
}

/* A BlobProto: shape 2 x 3, six zeros. */
static const unsigned char message[] = {0x3a, 4, 0x0a, 2, 2, 3, 0x2a, 24, 0, 0, 0, 0, 0, 0, 0, 0,
                                        0,    0, 0,    0, 0, 0, 0,    0,  0, 0, 0, 0, 0, 0, 0, 0};

static sb_status read_message(void *user, uint64_t offset, void *buffer, size_t bytes,
                              sb_error *err) {
    visit(user, WORLD_LOADS);
    memcpy(buffer, message + offset, bytes);
    return SB_OK;
}

static void close_source(void *user) {
    struct world *w = user;
    if (w->callback)
        w->callback(w);
}

static sb_source source_of(struct world *w) {
    sb_source source = SB_SOURCE_INIT;
    source.user = w;
    source.size = sizeof message;
    source.read_at = read_message;
    source.close = close_source;
    return source;
}

static sb_status take(void *user, const void *bytes, size_t size, sb_error *err) {
    visit(user, WORLD_WRITES);
    return SB_OK;
}

static sb_sink sink_of(struct world *w) {
    sb_sink sink = SB_SINK_INIT;
    sink.user = w;
    sink.write = take;
    return sink;
}

static struct lent_piece *message_piece(struct world *w) {
    struct lent_piece *p = piece(w, sizeof message, false);
    memcpy(p->ptr, message, sizeof message);
    return p;
}

static sb_status lend_blob(void *user, int64_t layer, int64_t index, const sb_blob **out,
                           sb_error *err) {
    struct world *w = user;
    *out = index % 2 ? w->blob : w->other;
    return SB_OK;
}

static void end_reducer(struct world *w) {
    sb_reducer *reducer = w->reducer;
    w->reducer = NULL;
    sb_reducer_destroy(reducer);
}

static void forget(struct world *w, sb_context *context) {
    sb_stream stream = w->stream;
    w->stream = NULL;
    if (!context || !stream)
        return;
    ignore(sb_context_forget_stream(context, stream, NULL));
    ignore(sb_sim_stream_destroy(context, stream, NULL));
}

enum { ENDS = 1, IS_CONST = 2 };

#define MOST_CALLS 256

struct every_call every_call[MOST_CALLS];
int every_call_count;

static void add(const char *name, void (*run)(struct world *), int flags) {
    if (every_call_count == MOST_CALLS)
        abort();
    every_call[every_call_count++] = (struct every_call){name, run, flags & ENDS, flags & IS_CONST};
}

struct results {
    const void *read;
    void *written;
    const int64_t *shape;
    int64_t number;
    uint32_t bits;
    int32_t yes;
    size_t size;
    double sum;
    float value;
    sb_text text;
    sb_stream stream;
    sb_mem *mem;
    sb_stats stats;
    sb_layer_info layer_info;
    sb_blob_info blob_info;
    sb_solver_info solver_info;
    char bytes[8192];
    sb_error err;
};

static const struct results no_results = {.value = 1,
                                          .stats = SB_STATS_INIT,
                                          .layer_info = SB_LAYER_INFO_INIT,
                                          .blob_info = SB_BLOB_INFO_INIT,
                                          .solver_info = SB_SOLVER_INFO_INIT};
static const int64_t few[] = {2, 3}, ones[] = {1, 1};

#define CALL(name, flags, ...)            CALL_AT(name, flags, __COUNTER__, __VA_ARGS__)
#define CALL_AT(name, flags, number, ...) CALL_OF(name, flags, number, __VA_ARGS__)
#define CALL_OF(name, flags, number, ...)                                                          \
    static void call_##number(struct world *w) {                                                   \
        struct results r = no_results;                                                             \
        __VA_ARGS__;                                                                               \
        if (w->status != SB_OK && memcmp(&r, &no_results, offsetof(struct results, bytes)) != 0)   \
            w->has_output = true;                                                                  \
    }                                                                                              \
    __attribute__((constructor)) static void add_##number(void) {                                  \
        add(#name, call_##number, flags);                                                          \
    }

#define MEM(name, flags, ...)                                                                      \
    MEM_OF(name, flags, SB_DATA, __VA_ARGS__) MEM_OF(name, flags, SB_DIFF, __VA_ARGS__)
#define MEM_OF(name, flags, part, ...)                                                             \
    CALL(name, flags, sb_mem *mem = memory(w, w->blob, part); if (!mem) return; __VA_ARGS__;       \
         sb_mem_release(mem))

#define BOTH(name, flags, ...)                                                                     \
    BOTH_OF(name, flags, SB_DATA, __VA_ARGS__) BOTH_OF(name, flags, SB_DIFF, __VA_ARGS__)
#define BOTH_OF(name, flags, which, ...) CALL(name, flags, const sb_part part = which; __VA_ARGS__)

MEM(sb_write_begin, 0, sb_write *write;
    if (note(w, sb_write_begin(mem, SB_SIDE_CPU, 0, &r.written, &write, &r.err)))
        sb_write_destroy(write))
MEM(
    sb_write_end, 0, sb_write *write;
    if (note(w, sb_write_begin(mem, SB_SIDE_GPU, SB_WRITE_OVERWRITE, &r.written, &write, &r.err))) {
        note(w, sb_write_end(write, SB_WRITE_DONE, &r.err));
        sb_write_destroy(write);
    })
MEM(sb_mem_set_cpu, 0, lend(w, mem, SB_SIDE_CPU, SB_READ_ONLY))
MEM(sb_mem_set_gpu, 0, lend(w, mem, SB_SIDE_GPU, SB_READ_ONLY))
CALL(sb_mem_create, 0, sb_mem *mem = lent_memory(w, 24); sb_mem_release(mem))
CALL(sb_mem_retain, 0, sb_mem *mem = memory(w, w->other, SB_DIFF);
     sb_mem_release(sb_mem_retain(mem)); sb_mem_release(mem))
CALL(sb_mem_release, 0, sb_mem *mem = lent_memory(w, 24); sb_mem_release(mem))
CALL(sb_blob_data_at_legacy, IS_CONST,
     note(w, sb_blob_data_at_legacy(w->blob, 0, 0, 1, 1, &r.value, &r.err)))
CALL(sb_blob_diff_at_legacy, IS_CONST,
     note(w, sb_blob_diff_at_legacy(w->blob, 0, 0, 1, 1, &r.value, &r.err)))
BOTH(sb_blob_set_mem, 0,
     sb_mem *mem = lent_memory(w, sizeof(float) * (size_t)sb_blob_count(w->blob));
     note(w, sb_blob_set_mem(w->blob, part, mem, &r.err)); sb_mem_release(mem))
BOTH(sb_blob_drop, 0, sb_blob_drop(w->blob, part))
BOTH(sb_blob_set_cpu, 0, struct lent_piece *p = piece(w, 64, 0);
     settle(w, p, sb_blob_set_cpu(w->blob, part, p->ptr, 64, SB_READ_ONLY, end_piece, p, &r.err)))
BOTH(sb_blob_reclaim_cpu, 0, void *p;
     if (note(w, sb_blob_reclaim_cpu(w->blob, part, end_piece, &p, &r.err))) take_back(w, p))
BOTH(sb_blob_set_gpu, 0, struct lent_piece *p = piece(w, 64, 1);
     settle(w, p, sb_blob_set_gpu(w->blob, part, p->ptr, 64, SB_READ_ONLY, end_piece, p, &r.err)))
BOTH(sb_blob_copy_from, 0, note(w, sb_blob_copy_from(w->blob, part, w->other, 0, &r.err)))
BOTH(sb_blob_copy_from, 0,
     note(w, sb_blob_copy_from(w->blob, part, w->other, SB_COPY_RESHAPE, &r.err)))
CALL(sb_blob_copy_from, 0, note(w, sb_blob_copy_from(w->other, SB_DATA, w->blob, 0, &r.err)))
CALL(sb_blob_copy_from, 0, sb_blob *b = NULL; const int64_t d[] = {7, 9};
     if (note(w, sb_blob_create_shaped(w->context, SB_DTYPE_F32, d, 2, &b, &r.err)))
         note(w, sb_blob_copy_from(w->blob, SB_DATA, b, SB_COPY_RESHAPE, &r.err));
     sb_blob_destroy(b))
CALL(sb_blob_copy_from, 0, sb_blob *b = blob_of(NULL, SB_DTYPE_F32, 2, few);
     note(w, sb_blob_copy_from(b, SB_DATA, w->blob, 0, &r.err)); sb_blob_destroy(b))
CALL(sb_blob_copy_from, 0, sb_blob *b = blob_of(NULL, SB_DTYPE_F32, 2, few);
     if (note(w, sb_blob_clear(b, SB_DATA, &r.err)))
         note(w, sb_blob_copy_from(w->blob, SB_DATA, b, 0, &r.err));
     sb_blob_destroy(b))
CALL(sb_blob_reshape, 0, note(w, sb_blob_reshape(w->blob, (int64_t[]){1, 1}, 2, &r.bits, &r.err)))
CALL(sb_blob_reshape, 0, note(w, sb_blob_reshape(w->blob, (int64_t[]){5, 7}, 2, &r.bits, &r.err)))
CALL(sb_blob_reshape, 0, note(w, sb_blob_reshape(w->blob, (int64_t[]){0, 3}, 2, &r.bits, &r.err)))
CALL(sb_blob_reshape, 0, note(w, sb_blob_reshape(w->other, (int64_t[]){8, 9}, 2, NULL, &r.err)))
CALL(sb_blob_reshape, 0,
     note(w, sb_blob_reshape(w->blob, sb_blob_shape(w->blob), sb_blob_num_axes(w->blob), NULL,
                             &r.err)))
CALL(sb_blob_reshape_proto, 0, static const unsigned char s[] = {0x0a, 2, 5, 6};
     note(w, sb_blob_reshape_proto(w->blob, s, sizeof s, &r.bits, &r.err)))
CALL(sb_blob_fill, 0, sb_filler f = SB_FILLER_INIT; note(w, sb_blob_fill(w->blob, &f, 1, &r.err)))
CALL(sb_blob_destroy, ENDS, sb_blob *b = w->blob; w->blob = NULL; end_reducer(w);
     sb_blob_destroy(b))
CALL(sb_blob_destroy, ENDS, sb_blob *b = w->other; w->other = NULL; end_reducer(w);
     sb_blob_destroy(b))

#define CREATES(name, kind, ...)                                                                   \
    CALL(name, 0, sb_##kind *made;                                                                 \
         if (note(w, name(w->context, __VA_ARGS__, &made, &r.err))) sb_##kind##_destroy(made))
CREATES(sb_blob_create, blob, SB_DTYPE_F32)
CREATES(sb_blob_create_shaped, blob, SB_DTYPE_F32, few, 2)
CREATES(sb_blob_create_legacy, blob, SB_DTYPE_F32, 1, 1, 2, 3)
CREATES(sb_model_create, model, SB_FORMAT_CAFFEMODEL)
CREATES(sb_model_open_source, model, SB_FORMAT_BLOB, (sb_source[]){source_of(w)}, NULL, NULL)
CREATES(sb_model_open_file, model, SB_FORMAT_AUTO, w->path, 0, NULL)

CALL(sb_blob_from_proto, 0,
     note(w, sb_blob_from_proto(w->blob, message, sizeof message, 0, NULL, &r.err)))
CALL(sb_blob_from_proto, 0,
     note(w, sb_blob_from_proto(w->blob, message, sizeof message, SB_PROTO_RESHAPE, NULL, &r.err)))
CALL(sb_blob_load_source, 0, const sb_source s = source_of(w); const sb_progress p = progress_of(w);
     note(w, sb_blob_load_source(w->blob, &s, SB_PROTO_RESHAPE, NULL, &p, &r.err)))
CALL(sb_blob_load_file, 0,
     note(w, sb_blob_load_file(w->blob, w->path, SB_PROTO_RESHAPE, NULL, &r.err)))
CALL(sb_blob_to_proto, IS_CONST, char to[1024];
     note(w, sb_blob_to_proto(w->blob, 0, to, sizeof to, &r.size, &r.err)))
CALL(sb_blob_to_proto, IS_CONST, char to[1024];
     note(w, sb_blob_to_proto(w->blob, SB_PROTO_WRITE_DIFF, to, sizeof to, &r.size, &r.err)))
CALL(sb_blob_save_sink, IS_CONST, const sb_sink s = sink_of(w);
     note(w, sb_blob_save_sink(w->blob, &s, SB_PROTO_WRITE_DIFF, NULL, &r.err)))

#define EXPORT(name, flags, type)                                                                  \
    EXPORT_OF(name, flags, type, SB_SIDE_CPU) EXPORT_OF(name, flags, type, SB_SIDE_GPU)
#define EXPORT_OF(name, flags, type, side)                                                         \
    BOTH(name, flags, type *t; if (note(w, name(w->blob, part, side, &t, &r.err))) t->deleter(t))
EXPORT(sb_blob_to_dlpack, IS_CONST, sb_dl_managed_versioned)
EXPORT(sb_blob_to_mutable_dlpack, 0, sb_dl_managed_versioned)
EXPORT(sb_blob_to_legacy_dlpack, 0, sb_dl_managed)

#define IMPORT(kind, member)                                                                       \
    CALL(sb_blob_from_##kind, 0, struct lent_piece *p = tensor(w);                                 \
         settle(w, p, sb_blob_from_##kind(w->blob, SB_DATA, &p->member, 0, &r.err)))               \
    CALL(sb_blob_from_##kind, 0, struct lent_piece *p = tensor(w); settle(                         \
             w, p, sb_blob_from_##kind(w->blob, SB_DIFF, &p->member, SB_DLPACK_RESHAPE, &r.err)))  \
    CALL(sb_blob_create_from_##kind, 0, struct lent_piece *p = tensor(w); sb_blob *b = NULL;       \
         settle(w, p, sb_blob_create_from_##kind(w->context, &p->member, &b, &r.err));             \
         sb_blob_destroy(b))
IMPORT(dlpack, versioned_tensor)
IMPORT(legacy_dlpack, legacy_tensor)
#define PASS(kind, side)                                                                           \
    CALL(sb_blob_from_dlpack, 0, sb_dl_managed_versioned *t;                                       \
         if (note(w, sb_blob_to_##kind(w->other, SB_DATA, side, &t, &r.err)) &&                    \
             !note(w, sb_blob_from_dlpack(w->blob, SB_DATA, t, SB_DLPACK_RESHAPE, &r.err)))        \
             t->deleter(t))
PASS(dlpack, SB_SIDE_CPU)
PASS(mutable_dlpack, SB_SIDE_GPU)
CALL(sb_model_add_blob, 0,
     note(w, sb_model_add_blob(w->model, 0, w->blob, SB_PROTO_WRITE_DIFF, &r.err)))
CALL(sb_model_add_blob, 0, int i = 0;
     while (i < 9 && note(w, sb_model_add_blob(w->model, 0, w->other, 0, &r.err))) i++)
CALL(sb_model_save_file_from, 0, note(w, sb_model_announce_blob(w->model, 0, w->blob, &r.err));
     note(w, sb_model_announce_blob(w->model, 0, w->other, &r.err));
     note(w, sb_model_save_file_from(w->model, w->path, lend_blob, w, &r.err)))
CALL(sb_model_save_sink, IS_CONST, const sb_sink s = sink_of(w);
     note(w, sb_model_save_sink(w->model, &s, &r.err)))
CALL(sb_model_set_progress, 0, const sb_progress p = progress_of(w);
     note(w, sb_model_set_progress(w->model, &p, &r.err)))
CALL(sb_model_destroy, ENDS, sb_model *m = w->model; w->model = NULL; sb_model_destroy(m))
CALL(sb_model_open_bytes, 0, struct lent_piece *p = message_piece(w); sb_model *m = NULL;
     settle(w, p,
            sb_model_open_bytes(w->context, SB_FORMAT_BLOB, p->ptr, sizeof message, NULL, end_piece,
                                p, &m, &r.err));
     sb_model_destroy(m))
CALL(sb_context_retain, 0, sb_context_release(sb_context_retain(w->context)))
CALL(sb_context_release, ENDS, sb_context *x = w->context; w->context = NULL; forget(w, x);
     sb_context_release(x))
CALL(sb_context_trim, 0, sb_context_trim(w->context))
CALL(sb_context_extension, IS_CONST,
     note(w, sb_context_extension(w->context, SB_SIM_DEVICE, &r.read, &r.written, &r.err)))
BOTH(sb_comm_all_reduce_blobs, 0, sb_blob *b[] = {w->blob, w->other};
     note(w, sb_comm_all_reduce_blobs(w->comm, b, 2, part, SB_COMM_MEAN, &r.err)))
BOTH(sb_comm_broadcast_blobs, 0, sb_blob *b[] = {w->blob, w->other};
     note(w, sb_comm_broadcast_blobs(w->comm, b, 2, part, 0, &r.err)))
CALL(sb_reducer_wait, 0, note(w, sb_reducer_ready(w->reducer, w->blob, &r.err));
     note(w, sb_reducer_ready(w->reducer, w->other, &r.err));
     note(w, sb_reducer_wait(w->reducer, &r.err)))
CALL(sb_reducer_destroy, ENDS, note(w, sb_reducer_ready(w->reducer, w->other, &r.err));
     end_reducer(w))
CALL(sb_comm_destroy, ENDS, sb_comm *x; end_reducer(w); x = w->comm; w->comm = NULL;
     sb_comm_destroy(x))
/* make_calls.py generates these calls from the headers. */
#include "simple_calls.inc"

const char *const not_in_every_call[] = {
    /* functions that take no object, or only read their arguments */
    "sb_error_fill", "sb_dtype_name", "sb_dtype_size", "sb_features", "sb_status_name",
    "sb_status_text", "sb_version", "sb_version_string", "sb_context_options_init",
    "sb_filler_init", "sb_filler_parse", "sb_filler_type_name",
    /* functions that only create an object */
    "sb_context_create", "sb_comm_create", "sb_reducer_create", "sb_sim_comm_create",
    "sb_source_of_descriptor", "sb_source_of_spans",
    /* functions that register a backend for the rest of the process */
    "sb_backend_load", "sb_backend_register",
    /* the calls above destroy each write that they begin */
    "sb_write_destroy",
    /* functions that only read a member of the communicator */
    "sb_comm_rank", "sb_comm_size",
    /* functions that need a GPU; the calls above use the simulated communicator */
    "sb_nccl_comm_create", "sb_nccl_comm_create_all", "sb_nccl_comm_create_over",
    "sb_nccl_id_create",
    /* a function that concerns only simulated ranks */
    "sb_sim_comm_fail", NULL};

static void borrow(struct world *w, sb_mem *mem, enum world_storage storage) {
    const bool on_host = storage <= WORLD_HOST_WRITABLE;
    lend(w, mem, on_host ? SB_SIDE_CPU : SB_SIDE_GPU,
         storage == WORLD_HOST_WRITABLE ? 0 : SB_READ_ONLY);
    if (storage == WORLD_HOST_OUTDATED)
        (void)mem_pointer(mem, MUTABLE_GPU);
    if (storage == WORLD_DEVICE_OUTDATED)
        (void)mem_pointer(mem, MUTABLE_CPU);
    sb_mem_release(mem);
}

static sb_blob *make_blob(struct world *w, enum world_storage storage, bool has_room,
                          int64_t columns) {
    const int64_t shape[] = {2, columns}, room[] = {has_room ? 4 : 2, columns};
    sb_blob *blob = blob_of(w->context, SB_DTYPE_F32, 2, room);
    borrow(w, memory(w, blob, SB_DATA), storage);
    borrow(w, memory(w, blob, SB_DIFF), storage);
    assert_ok(sb_blob_reshape(blob, shape, 2, NULL, &err));
    return blob;
}

static void make_model(struct world *w) {
    sb_blob *weights = blob_of(w->context, SB_DTYPE_F32, 2, few);
    assert_ok(sb_model_create(w->context, SB_FORMAT_CAFFEMODEL, &w->model, &err));
    assert_ok(sb_model_add_layer(w->model, "a", 1, "t", 1, NULL, &err));
    assert_ok(sb_model_add_blob(w->model, 0, weights, 0, &err));
    sb_blob_destroy(weights);
}

void world_open(struct world *w, enum world_storage storage, bool has_room, int64_t columns,
                uint32_t flags) {
    *w = (struct world){.rig = {.counting = COUNTING_ALLOCATOR_INIT}};
    assert_ok(
        sb_context_create(&CONTEXT_OPTIONS(.device = "sim:0", .flags = flags,
                                           .parallel_for = run_tasks, .parallel_for_user = w,
                                           .allocator = counting_allocator_table(&w->rig.counting)),
                          &w->context, &err));
    w->rig.context = w->context;
    (void)snprintf(w->path, sizeof w->path, "%severy_call.%ld",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : "", (long)getpid());
    w->blob = make_blob(w, storage, has_room, columns);
    w->other = make_blob(w, storage, has_room, columns);
    make_model(w);
    assert_ok(sb_sim_stream_create(w->context, &w->stream, &err));
    assert_ok(sb_sim_comm_create(w->context, 1, NULL, &w->comm, &err));
    sb_blob *blobs[] = {w->blob, w->other};
    assert_ok(sb_reducer_create(w->comm, blobs, 2, NULL, &w->reducer, &err));
}

static void use_memory(sb_blob *blob, sb_part part) {
    sb_mem *mem = sb_mem_retain(mem_of(blob, part));
    const size_t bytes = sb_mem_size(mem);
    assert_true(bytes >= (size_t)sb_blob_count(blob) * sizeof(float));
    void *copy = malloc(bytes + 1);
    memcpy(copy, mem_pointer(mem, CPU_DATA), bytes);
    (void)mem_pointer(mem, GPU_DATA);
    memcpy(mem_pointer(mem, MUTABLE_CPU), copy, bytes);
    free(copy);
    (void)mem_pointer(mem, MUTABLE_GPU);
    sb_mem_release(mem);
}

void world_use(struct world *w) {
    sb_blob *blobs[] = {w->blob, w->other};
    char bytes[1 << 14];
    double sum;
    for (int i = 0; i < 2; i++) {
        if (!blobs[i])
            continue;
        use_memory(blobs[i], SB_DATA);
        use_memory(blobs[i], SB_DIFF);
        assert_int_equal(sb_blob_update(blobs[i], NULL), SB_OK);
        assert_int_equal(sb_blob_asum(blobs[i], SB_DATA, &sum, NULL), SB_OK);
    }
    if (w->model)
        note(w, sb_model_save(w->model, bytes, sizeof bytes, NULL, NULL));
    assert_int_equal(w->bug, SB_OK);
}

void world_close(struct world *w) {
    w->callback = NULL;
    w->visit = NULL;
    end_reducer(w);
    sb_comm_destroy(w->comm);
    sb_model_destroy(w->model);
    sb_blob_destroy(w->blob);
    sb_blob_destroy(w->other);
    forget(w, w->context);
    sb_context_release(w->context);
    (void)unlink(w->path);
    counting_allocator_assert_clean(&w->rig.counting);
    assert_int_equal(w->deleted, w->lent);
    assert_int_equal(w->bug, SB_OK);
}
