/* Reads the input as a BlobProto, and reads every accepted blob again after encoding. */
#include "ways.h"
#include "wire_builder.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT_BYTES 1024 /* the largest total size of the handles that a read creates */

static sb_status read_into(const struct run *run, sb_blob *blob, uint32_t flags) {
    sb_status st =
        status_of(sb_blob_from_proto(blob, run->bytes, run->size, flags, NULL, &call_error));
    if (st != SB_ERR_SHAPE_MISMATCH || flags != 0)
        check_read_status(st, run->size);
    return st;
}

/* --- a new blob ------------------------------------------------------------------ */

static void check_memory(const struct run *run, const sb_blob *blob) {
    size_t peak = watched_peak(run->watched), sides = blob_has(blob, SB_DIFF) ? 2 : 1;
    fuzz_check(peak <= sides * blob_bytes(blob) + OBJECT_BYTES,
               "the peak is %zu bytes for %zu parts of %zu bytes", peak, sides, blob_bytes(blob));
}

static void check_untouched(const struct run *run, const sb_blob *blob) {
    fuzz_check(!sb_blob_is_shaped(blob), "a refused message shaped the blob");
    check_equal(watched_growth(run->watched), 0);
}

static sb_blob *read_fresh(const struct run *run, int32_t dtype, sb_status *out_status) {
    sb_blob *blob = blob_new(run->watched->context, dtype);
    watched_mark(run->watched);
    *out_status = read_into(run, blob, SB_PROTO_RESHAPE);
    if (*out_status == SB_OK) {
        check_memory(run, blob);
        return blob;
    }
    check_untouched(run, blob);
    if (dtype == SB_DTYPE_F32 || dtype == SB_DTYPE_F64) /* integers are converted in new storage */
        check_equal(watched_peak(run->watched), 0);
    sb_blob_destroy(blob);
    return NULL;
}

/* --- encode, decode ----------------------------------------------------------------- */

static struct wire encode(const sb_blob *blob) {
    struct wire encoded = {0};
    uint32_t flags = blob_has(blob, SB_DIFF) ? SB_PROTO_WRITE_DIFF : 0;
    size_t written;
    check_ok(sb_blob_proto_size(blob, flags, &encoded.size, &call_error));
    encoded.bytes = malloc(encoded.size ? encoded.size : 1);
    check_ok(sb_blob_to_proto(blob, flags, encoded.bytes, encoded.size, &written, &call_error));
    check_equal(written, encoded.size);
    return encoded;
}

static sb_status write_file(const void *blob, const char *path, sb_error *err) {
    return sb_blob_save_file(blob, path, blob_has(blob, SB_DIFF) ? SB_PROTO_WRITE_DIFF : 0, err);
}

static void check_round_trip(const struct run *run, const sb_blob *blob) {
    struct wire first = encode(blob);
    if (run->lot % 16 == 0)
        check_saved_file(write_file, blob, first.bytes, first.size);
    const struct run again = {first.bytes, first.size, run->lot, run->watched};
    sb_blob *copy = blob_new(run->watched->context, sb_blob_dtype(blob));
    sb_status st = read_into(&again, copy, SB_PROTO_RESHAPE);
    check_equal(st, SB_OK);
    check_same_blob(blob, copy);
    struct wire second = encode(copy);
    fuzz_check(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0,
               "%zu bytes became %zu different bytes when written again", first.size, second.size);
    free(first.bytes);
    free(second.bytes);
    sb_blob_destroy(copy);
}

/* --- a blob with contents -------------------------------------------------------------- */

#define FILL 0x5A /* the value of each byte of data (of diff: FILL + 1) */

struct trial {
    sb_blob *blob;
    const int64_t *shape;
    int32_t axes;
    size_t size;
    void *at[2];
};

static struct trial trial_begin(const struct run *run, int32_t dtype, const int64_t *shape,
                                int32_t axes) {
    struct trial trial = {blob_new(run->watched->context, dtype), shape, axes, 0, {NULL, NULL}};
    check_ok(sb_blob_reshape(trial.blob, shape, axes, NULL, &call_error));
    trial.size = blob_bytes(trial.blob);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        check_ok(sb_blob_mutable_cpu(trial.blob, part, &trial.at[part], &call_error));
        if (trial.size > 0)
            memset(trial.at[part], FILL + part, trial.size);
    }
    watched_mark(run->watched);
    return trial;
}

static struct trial trial_small(const struct run *run, int32_t dtype) {
    static const int64_t small[] = {2, 3};
    return trial_begin(run, dtype, small, 2);
}

static void check_part(const struct trial *trial, sb_part part, const void *expected, size_t size) {
    const unsigned char *now = blob_at(trial->blob, part), byte = (unsigned char)(FILL + part);
    if (size > 0 && expected)
        fuzz_check(memcmp(now, expected, size) == 0, "part %d differs", part);
    if (size == 0 || size > trial->size)
        return;
    fuzz_check(now == trial->at[part], "part %d moved although its storage was large enough", part);
    const size_t first = expected ? size : 0, rest = trial->size - first;
    fuzz_check(rest == 0 ||
                   (now[first] == byte && memcmp(now + first, now + first + 1, rest - 1) == 0),
               "part %d was written", part);
}

static void check_unchanged(const struct trial *trial) {
    fuzz_check(sb_blob_shape_equals_dims(trial->blob, trial->shape, trial->axes), "another shape");
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        const sb_mem *mem = NULL;
        check_ok(sb_blob_mem(trial->blob, part, &mem, &call_error));
        check_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
        check_equal(sb_mem_size(mem), trial->size);
        check_part(trial, part, NULL, trial->size);
    }
}

static void trial_end(const struct trial *trial, sb_status st, const sb_blob *fresh) {
    if (st != SB_OK)
        check_unchanged(trial);
    for (sb_part part = SB_DATA; part <= SB_DIFF && st == SB_OK && fresh; part++)
        check_part(trial, part, blob_has(fresh, part) ? blob_at(fresh, part) : NULL,
                   blob_bytes(fresh));
    sb_blob_destroy(trial->blob);
}

/* `fresh` is a new blob with the message's contents, or NULL if the message is invalid. */
static void check_existing(const struct run *run, struct trial trial, uint32_t flags,
                           const sb_blob *fresh, sb_status refusal) {
    bool mismatch_allowed = flags == 0 && !(fresh && sb_blob_shape_equals(trial.blob, fresh));
    sb_status st = read_into(run, trial.blob, flags);
    if (st == SB_OK)
        fuzz_check(fresh != NULL, "only a blob with contents accepts the message");
    else
        fuzz_check(st == refusal || (mismatch_allowed && st == SB_ERR_SHAPE_MISMATCH),
                   "%s, %s for a fresh blob", sb_status_name(st), sb_status_name(refusal));
    if (st == SB_OK && (flags & SB_PROTO_RESHAPE))
        fuzz_check(sb_blob_shape_equals(trial.blob, fresh), "a fresh blob has another shape");
    trial_end(&trial, st, fresh);
}

static void check_existing_blobs(const struct run *run, int32_t dtype, const sb_blob *fresh,
                                 sb_status refusal) {
    check_existing(run, trial_small(run, dtype), SB_PROTO_RESHAPE, fresh, refusal);
    check_existing(run, trial_small(run, dtype), 0, fresh, refusal);
    if (!fresh || sb_blob_count(fresh) == 0)
        return;
    const int64_t one_less[] = {sb_blob_count(fresh) - 1}, *shape = sb_blob_shape(fresh);
    check_existing(run, trial_begin(run, dtype, one_less, 1), SB_PROTO_RESHAPE, fresh, SB_OK);
    check_existing(run, trial_begin(run, dtype, shape, sb_blob_num_axes(fresh)), 0, fresh, SB_OK);
}

/* --- other ways to read --------------------------------------------------------------------- */

/* `expected` is a blob with the message's contents, or NULL if the message is invalid. */
static sb_status load(const struct run *run, struct way *way, const void *expected) {
    struct trial trial = trial_small(run, SB_DTYPE_F32);
    way_begin(run, way);
    sb_status st = status_of(
        way->path ? sb_blob_load_file(trial.blob, way->path, SB_PROTO_RESHAPE, NULL, &call_error)
        : way->source ? sb_blob_load_source(trial.blob, way->source, SB_PROTO_RESHAPE, NULL, NULL,
                                            &call_error)
                      : sb_blob_from_proto(trial.blob, run->bytes, run->size, SB_PROTO_RESHAPE,
                                           way->limits, &call_error));
    way_end(run, way, st);
    check_equal(way->closed, 0); /* the library does not close a borrowed source */
    if (way->limits && st == SB_OK)
        fuzz_check(sb_blob_num_axes(trial.blob) <= way->limits->max_axes, "%d axes",
                   sb_blob_num_axes(trial.blob));
    trial_end(&trial, st, way->trouble == TROUBLE_NONE ? expected : NULL);
    return st;
}

static void check_spans(const struct run *run, const sb_blob *fresh, sb_status expected) {
    const size_t a = run->lot % (run->size + 1), b = (run->size - a) / 2;
    const uint8_t *bytes = run->size > 0 ? run->bytes : (const uint8_t *)"";
    const sb_span spans[] = {{bytes, a}, {bytes + a, b}, {bytes + a + b, run->size - a - b}};
    sb_source source = SB_SOURCE_INIT;
    struct way way = {.source = &source};
    check_ok(sb_source_of_spans(NULL, spans, 3, &source, &call_error));
    check_equal(load(run, &way, fresh), expected);
    source.close(source.user);
}

static void check_other_ways(const struct run *run, const sb_blob *fresh, sb_status st) {
    sb_limits limits = SB_LIMITS_INIT;
    limits.max_memory = 1000;
    limits.max_axes = 3;
    check_way(run, LIMITS_WAY, load, fresh, st, &limits, 1);
    if (st == SB_OK)
        check_way(run, REFUSALS_WAY, load, fresh, st, NULL, 1);
    if (run->lot % 4 == 0)
        check_way(run, FILE_WAY, load, fresh, st, NULL, 1);
    if (run->lot % 4 == 1) {
        check_way(run, SOURCE_WAY, load, fresh, st, NULL, 1);
        check_spans(run, fresh, st);
    }
}

static void check_sink(const sb_blob *blob) {
    struct drain whole = {NULL, 0, 0, 0}, fails = {NULL, 0, 0, 1};
    const sb_sink to_whole = drain_sink(&whole), to_fails = drain_sink(&fails);
    size_t size = 0;
    check_ok(sb_blob_proto_size(blob, SB_PROTO_WRITE_DIFF, &size, &call_error));
    check_ok(sb_blob_save_sink(blob, &to_whole, SB_PROTO_WRITE_DIFF, NULL, &call_error));
    check_equal(whole.written, size);
    check_status(size > 0 ? SB_ERR_IO : SB_OK,
                 sb_blob_save_sink(blob, &to_fails, SB_PROTO_WRITE_DIFF, NULL, &call_error));
}

/* --- everything ------------------------------------------------------------------------- */

static sb_status check_dtype(const struct run *run, int32_t dtype) {
    sb_status st;
    sb_blob *fresh = read_fresh(run, dtype, &st);
    if (fresh) {
        check_round_trip(run, fresh);
    }
    check_existing_blobs(run, dtype, fresh, st);
    if (dtype == SB_DTYPE_F32)
        check_other_ways(run, fresh, st);
    if (fresh && run->lot % 4 == 2)
        check_sink(fresh);
    sb_blob_destroy(fresh);
    return st;
}

/* The status is `single`, the status for floats, or DATA_OVERFLOW if a value exceeds the integer
   type. */
static void check_integers(const struct run *run, int32_t dtype, sb_status single) {
    sb_status st;
    sb_blob *blob = read_fresh(run, dtype, &st);
    fuzz_check(st == single || (single == SB_OK && st == SB_ERR_DATA_OVERFLOW),
               "%s into integers, %s into floats", sb_status_name(st), sb_status_name(single));
    check_existing_blobs(run, dtype, blob, st);
    sb_blob_destroy(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int32_t integers[] = {SB_DTYPE_I32, SB_DTYPE_U32, SB_DTYPE_I8};
    struct watched watched;
    const struct run run = {data, size, input_lot(data, size), &watched};
    watched_begin(&watched);
    sb_status single = check_dtype(&run, SB_DTYPE_F32);
    sb_status wide = check_dtype(&run, SB_DTYPE_F64);
    fuzz_check((single == SB_OK) == (wide == SB_OK), "%s into floats, %s into doubles",
               sb_status_name(single), sb_status_name(wide));
    check_integers(&run, integers[run.lot % 3], single);
    watched_end(&watched);
    return 0;
}
