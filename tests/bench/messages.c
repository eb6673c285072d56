/* Times reading a blob from a BlobProto message and writing it to one. All contestants use the same
   message and payload. Their last results are freed after the clock has stopped. */
#include "cases.h"
#include "harness.h"
#include "loops.h"
#include "peers/caffe.h"
#include "syncblob.pb-c.h"

#include <syncblob/syncblob.h>

#include <stdlib.h>
#include <string.h>

#define GOAL_BYTES (64 * MIB)

struct state {
    size_t bytes; /* of the payload */
    void *message;
    size_t size;
    const float *payload;
    sb_context *context;
    sb_blob *blob;
    void *memory;
    void *caffe_blob;
    Sb__BlobProto *unpacked;
};

static void *message_of(int32_t dtype, const void *payload, size_t bytes, size_t *out_size) {
    int64_t count = (int64_t)(bytes / sb_dtype_size(dtype));
    sb_blob *blob;
    void *message;
    must(sb_blob_create_shaped(NULL, dtype, &count, 1, &blob, NULL));
    must(sb_blob_set_cpu(blob, SB_DATA, (void *)(uintptr_t)payload, bytes, SB_READ_ONLY, NULL, NULL,
                         NULL));
    must(sb_blob_proto_size(blob, 0, out_size, NULL));
    message = malloc(*out_size);
    must(sb_blob_to_proto(blob, 0, message, *out_size, NULL, NULL));
    sb_blob_destroy(blob);
    return message;
}

/* --- into fresh memory ------------------------------------------------------------------- */

static void destroy_blob(void *arg) {
    struct state *s = arg;
    sb_blob_destroy(s->blob);
    s->blob = NULL;
}

static void load(void *arg) {
    struct state *s = arg;
    must(sb_blob_from_proto(s->blob, s->message, s->size, SB_PROTO_RESHAPE, NULL, NULL));
}

static void load_fresh(void *arg) {
    struct state *s = arg;
    destroy_blob(s);
    must(sb_blob_create(s->context, SB_DTYPE_F32, &s->blob, NULL));
    load(s);
}

static void free_memory(void *arg) {
    struct state *s = arg;
    fresh_memory_free(s->memory, s->bytes);
    s->memory = NULL;
}

static void memcpy_warm(void *arg) {
    struct state *s = arg;
    memcpy(s->memory, s->payload, s->bytes);
    keep(s->memory);
}

static void memcpy_fresh(void *arg) {
    struct state *s = arg;
    free_memory(s);
    s->memory = fresh_memory(s->bytes);
    memcpy_warm(s);
}

static void free_unpacked(void *arg) {
    struct state *s = arg;
    if (s->unpacked)
        sb__blob_proto__free_unpacked(s->unpacked, NULL);
    s->unpacked = NULL;
}

static void unpack(void *arg) {
    struct state *s = arg;
    free_unpacked(s);
    s->unpacked = sb__blob_proto__unpack(NULL, s->size, s->message);
    must(s->unpacked ? 0 : -1);
}

static void google_parse(void *arg) {
    struct state *s = arg;
    bench.caffe->parse(s->message, s->size);
}

static void caffe_destroy(void *arg) {
    struct state *s = arg;
    bench.caffe->destroy(s->caffe_blob);
    s->caffe_blob = NULL;
}

static void caffe_load(void *arg) {
    struct state *s = arg;
    s->caffe_blob = bench.caffe->load(s->caffe_blob, s->message, s->size);
}

static void caffe_load_fresh(void *arg) {
    caffe_destroy(arg);
    caffe_load(arg);
}

static void contest_fresh(struct state *s) {
    struct contest c = {.what = "bytes to fresh blob", .bytes = s->bytes, .threads = 1};
    contest_add(&c, "syncblob", load_fresh, destroy_blob, s);
    contest_add(&c, "memcpy", memcpy_fresh, free_memory, s);
    contest_add(&c, "protobuf-c alone", unpack, free_unpacked, s);
    if (bench.caffe) {
        contest_add(&c, "Caffe", caffe_load_fresh, caffe_destroy, s);
        contest_add(&c, "protobuf alone", google_parse, NULL, s);
    }
    contest_run(&c);
    if (s->bytes == MIB || s->bytes == GOAL_BYTES)
        goal_ratio(&c, "memcpy", s->bytes == GOAL_BYTES ? 1.15 : 1.1);
    contest_free(&c);
}

/* --- reading into a blob that has storage, and writing ------------------------------------- */

static void contest_load(struct state *s) {
    struct contest c = {.what = "bytes to blob with storage", .bytes = s->bytes, .threads = 1};
    contest_add(&c, "syncblob", load, NULL, s);
    contest_add(&c, "memcpy", memcpy_warm, NULL, s);
    contest_add(&c, "protobuf-c alone", unpack, free_unpacked, s);
    if (bench.caffe)
        contest_add(&c, "Caffe", caffe_load, NULL, s);
    contest_run(&c);
    if (s->bytes == GOAL_BYTES)
        goal_ratio(&c, "memcpy", 1.15);
    if (s->bytes == KIB)
        goal_ratio(&c, "protobuf-c alone", 1.3);
    contest_free(&c);
}

static void save(void *arg) {
    struct state *s = arg;
    must(sb_blob_to_proto(s->blob, 0, s->memory, s->size, NULL, NULL));
}

static void caffe_save(void *arg) {
    struct state *s = arg;
    bench.caffe->save(s->caffe_blob, s->memory, s->size);
}

static void contest_save(struct state *s) {
    struct contest c = {.what = "blob to buffer", .bytes = s->bytes, .threads = 1};
    contest_add(&c, "syncblob", save, NULL, s);
    contest_add(&c, "memcpy", memcpy_warm, NULL, s);
    if (bench.caffe)
        contest_add(&c, "Caffe", caffe_save, NULL, s);
    contest_run(&c);
    if (s->bytes == GOAL_BYTES)
        goal_ratio(&c, "memcpy", 1.15);
    if (s->bytes == KIB)
        goal_ratio(&c, "Caffe", 0.5);
    contest_free(&c);
}

static void contests_of_size(size_t bytes) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    float *payload = random_floats(bytes / sizeof(float), 1);
    struct state s = {.bytes = bytes, .payload = payload};
    must(sb_context_create(&options, &s.context, NULL));
    s.message = message_of(SB_DTYPE_F32, payload, bytes, &s.size);
    contest_fresh(&s);

    s.memory = fresh_memory(s.size);
    load_fresh(&s);
    if (bench.caffe)
        caffe_load(&s);
    contest_load(&s);
    contest_save(&s);
    if (bench.caffe)
        caffe_destroy(&s);
    destroy_blob(&s);
    fresh_memory_free(s.memory, s.size);
    free(s.message);
    sb_context_release(s.context);
    fresh_memory_free(payload, bytes);
}

/* --- conversions of floats to doubles, and of doubles to floats -------------------------- */

struct conversion {
    struct state blob;
    size_t count;
    const void *from;
    void *to;
};

static void widen(void *arg) {
    struct conversion *s = arg;
    loop_widen(s->from, s->to, s->count);
    keep(s->to);
}

static void narrow(void *arg) {
    struct conversion *s = arg;
    loop_narrow(s->from, s->to, s->count);
    keep(s->to);
}

/* The plain loop writes into the blob's memory, so that both contestants use the same pages. */
static void contest_conversion(const char *what, int32_t from, const void *payload, size_t count,
                               void (*loop)(void *)) {
    size_t bytes = count * sizeof(float);
    struct contest c = {.what = what, .bytes = bytes, .threads = 1};
    struct conversion s = {.count = count, .from = payload};
    s.blob.message = message_of(from, payload, count * sb_dtype_size(from), &s.blob.size);
    must(sb_blob_create(NULL, from == SB_DTYPE_F32 ? SB_DTYPE_F64 : SB_DTYPE_F32, &s.blob.blob,
                        NULL));
    load(&s.blob);
    must(sb_blob_mutable_cpu(s.blob.blob, SB_DATA, &s.to, NULL));
    contest_add(&c, "syncblob", load, NULL, &s.blob);
    contest_add(&c, "plain loop", loop, NULL, &s);
    contest_run(&c);
    if (bytes == MIB || bytes == GOAL_BYTES)
        goal_ratio(&c, "plain loop", 1.3);
    contest_free(&c);
    sb_blob_destroy(s.blob.blob);
    free(s.blob.message);
}

static void conversions_of_size(size_t bytes) {
    size_t count = bytes / sizeof(float);
    float *floats = random_floats(count, 2);
    contest_conversion("float message to double blob", SB_DTYPE_F32, floats, count, widen);
    if (bytes < 1024 * MIB) { /* a message of doubles would exceed protobuf's limit */
        double *doubles = fresh_memory(count * sizeof *doubles);
        loop_widen(floats, doubles, count);
        contest_conversion("double message to float blob", SB_DTYPE_F64, doubles, count, narrow);
        fresh_memory_free(doubles, count * sizeof *doubles);
    }
    fresh_memory_free(floats, bytes);
}

void bench_messages(void) {
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    for (int i = 0; i < count; i++) {
        contests_of_size(sizes[i]);
        conversions_of_size(sizes[i]);
    }
}
