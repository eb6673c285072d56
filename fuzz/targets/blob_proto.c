/* Reads the input as a BlobProto and as a BlobShape. If a read succeeds, encoding the blob and
   reading it again must return an equal blob; a read that fails must not change the blob. Also
   checks how much memory a read needs. */
#include "unsteady.h"
#include "watched.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT_BYTES 1024 /* a bound for the size of the handles that a read may create */

struct run {
    const uint8_t *bytes;
    size_t size;
    struct watched *watched;
};

static sb_status read_into(const struct run *run, sb_blob *blob, uint32_t flags,
                           const sb_limits *limits) {
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_blob_from_proto(blob, run->bytes, run->size, flags, limits, &err);
    if (st == SB_ERR_SHAPE_MISMATCH && flags == 0)
        fuzz_check_error(st, &err);
    else
        check_read_status(st, &err, run->size);
    return st;
}

/* --- a fresh target -------------------------------------------------------------- */

/* Checks how much memory the read that filled `blob` needed. */
static void check_memory(const struct run *run, const sb_blob *blob) {
    size_t peak = watched_peak(run->watched), sides = blob_has(blob, SB_DIFF) ? 2 : 1;
    fuzz_check(peak <= sides * blob_bytes(blob) + OBJECT_BYTES,
               "the peak is %zu bytes for %zu parts of %zu bytes", peak, sides, blob_bytes(blob));
}

static void check_untouched(const struct run *run, const sb_blob *blob) {
    fuzz_check(!sb_blob_is_shaped(blob), "a refused message shaped the blob");
    fuzz_check(watched_growth(run->watched) == 0, "a refused message leaks %lld bytes",
               (long long)watched_growth(run->watched));
}

/* Reads the message into a new blob; returns NULL if it is refused. */
static sb_blob *read_fresh(const struct run *run, int32_t dtype, sb_status *out_status) {
    sb_blob *blob = blob_new(run->watched->context, dtype);
    watched_mark(run->watched);
    *out_status = read_into(run, blob, SB_PROTO_RESHAPE, NULL);
    if (*out_status == SB_OK) {
        check_memory(run, blob);
        return blob;
    }
    check_untouched(run, blob);
    fuzz_check(watched_peak(run->watched) == 0, "%zu bytes at peak for a refused message",
               watched_peak(run->watched));
    sb_blob_destroy(blob);
    return NULL;
}

/* --- encode, decode ----------------------------------------------------------------- */

struct encoded {
    void *bytes;
    size_t size;
};

static struct encoded encode(const sb_blob *blob) {
    struct encoded encoded;
    sb_error err = fuzz_fresh_error();
    uint32_t flags = blob_has(blob, SB_DIFF) ? SB_PROTO_WRITE_DIFF : 0;
    size_t measured, written;
    sb_status st = sb_blob_proto_size(blob, flags, &measured, &err);
    fuzz_check(st == SB_OK, "an accepted blob cannot be written: %s", err.message);
    encoded.bytes = malloc(measured ? measured : 1);
    encoded.size = measured;
    st = sb_blob_to_proto(blob, flags, encoded.bytes, measured, &written, &err);
    fuzz_check(st == SB_OK && written == measured, "status %d, wrote %zu of %zu", st, written,
               measured);
    return encoded;
}

static sb_status write_file(const void *blob, const char *path, sb_error *err) {
    return sb_blob_save_file(blob, path, blob_has(blob, SB_DIFF) ? SB_PROTO_WRITE_DIFF : 0, err);
}

static void check_round_trip(const struct run *run, const sb_blob *blob) {
    struct encoded first = encode(blob);
    if (input_lot(run->bytes, run->size) % 16 == 0)
        check_saved_file(write_file, blob, first.bytes, first.size);
    const struct run again = {first.bytes, first.size, run->watched};
    sb_blob *copy = blob_new(run->watched->context, sb_blob_dtype(blob));
    sb_status st = read_into(&again, copy, SB_PROTO_RESHAPE, NULL);
    fuzz_check(st == SB_OK, "the written message is refused: %s", sb_status_name(st));
    check_same_blob(blob, copy, "written and read");
    struct encoded second = encode(copy);
    fuzz_check(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0,
               "%zu bytes became %zu different bytes when written again", first.size, second.size);
    free(first.bytes);
    free(second.bytes);
    sb_blob_destroy(copy);
}

/* --- a target with contents ------------------------------------------------------------ */

static void fill(sb_blob *blob, unsigned char byte) {
    void *data = NULL, *diff = NULL;
    sb_error err;
    sb_status st = sb_blob_mutable_cpu(blob, SB_DATA, &data, &err);
    if (st == SB_OK)
        st = sb_blob_mutable_cpu(blob, SB_DIFF, &diff, &err);
    fuzz_check(st == SB_OK, "no storage: %s", err.message);
    if (blob_bytes(blob) == 0)
        return;
    memset(data, byte, blob_bytes(blob));
    memset(diff, byte + 1, blob_bytes(blob));
}

static sb_blob *filled_blob(const struct run *run, int32_t dtype, const int64_t *shape,
                            int32_t axes) {
    sb_blob *blob = blob_new(run->watched->context, dtype);
    sb_error err;
    sb_status st = sb_blob_reshape(blob, shape, axes, NULL, &err);
    fuzz_check(st == SB_OK, "no shape: %s", err.message);
    fill(blob, 0x5A);
    return blob;
}

/* Checks that data or diff has the message's values or, if it has none (NULL), the old values. */
static void check_taken_side(const struct snapshot_side *old, const void *now, const void *expected,
                             size_t size, const char *side) {
    if (size == 0)
        return;
    if (!expected && size > old->size)
        return; /* new storage, unspecified bytes */
    fuzz_check(memcmp(now, expected ? expected : old->bytes, size) == 0,
               "%s of a blob with contents differs", side);
    if (size > old->size)
        return;
    fuzz_check(now == old->ptr, "%s moved although its storage was large enough", side);
    fuzz_check(memcmp((const char *)now + size, old->bytes + size, old->size - size) == 0,
               "%s was written beyond the count", side);
}

static void check_taken(const struct snapshot *old, const sb_blob *blob, const sb_blob *fresh) {
    size_t size = blob_bytes(fresh);
    check_taken_side(&old->part[SB_DATA], blob_at(blob, SB_DATA), blob_at(fresh, SB_DATA), size,
                     "data");
    check_taken_side(&old->part[SB_DIFF], blob_at(blob, SB_DIFF),
                     blob_has(fresh, SB_DIFF) ? blob_at(fresh, SB_DIFF) : NULL, size, "diff");
}

/* A blob with contents, and its state before a call. */
struct trial {
    sb_blob *blob;
    struct snapshot old;
};

static struct trial trial_begin(const struct run *run, int32_t dtype, const int64_t *shape,
                                int32_t axes) {
    struct trial trial = {.blob = filled_blob(run, dtype, shape, axes)};
    trial.old = snapshot_take(trial.blob);
    watched_mark(run->watched);
    return trial;
}

static struct trial trial_small(const struct run *run, int32_t dtype) {
    static const int64_t small[] = {2, 3};
    return trial_begin(run, dtype, small, 2);
}

/* Checks that the blob is unchanged after a failure, or equal to `fresh` (NULL: not compared) after
   a success; ends the trial. */
static void trial_end(struct trial *trial, sb_status st, const sb_blob *fresh, const char *label) {
    if (st != SB_OK)
        snapshot_check(&trial->old, trial->blob, label);
    else if (fresh)
        check_taken(&trial->old, trial->blob, fresh);
    snapshot_free(&trial->old);
    sb_blob_destroy(trial->blob);
}

/* `fresh` is a new blob after the same read, or NULL if that read failed with `refusal`. */
static void check_existing(const struct run *run, struct trial trial, uint32_t flags,
                           const sb_blob *fresh, sb_status refusal) {
    bool mismatch_allowed = flags == 0 && !(fresh && sb_blob_shape_equals(trial.blob, fresh));
    sb_status st = read_into(run, trial.blob, flags, NULL);
    if (st == SB_OK)
        fuzz_check(fresh != NULL, "accepted by a blob with contents, refused by a fresh blob");
    else
        fuzz_check(st == refusal || (mismatch_allowed && st == SB_ERR_SHAPE_MISMATCH),
                   "%s, %s for a fresh blob", sb_status_name(st), sb_status_name(refusal));
    if (st == SB_OK && (flags & SB_PROTO_RESHAPE))
        fuzz_check(sb_blob_shape_equals(trial.blob, fresh), "not the shape of a fresh blob");
    trial_end(&trial, st, fresh, "refused");
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

/* --- other questions ------------------------------------------------------------------- */

static void check_shape_equals(const struct run *run, const sb_blob *fresh) {
    sb_error err = fuzz_fresh_error();
    int32_t equal = 7;
    sb_status st = sb_blob_shape_equals_proto(fresh, run->bytes, run->size, &equal, &err);
    check_read_status(st, &err, run->size);
    fuzz_check(st == SB_OK && equal == 1, "status %d, equal %d for the blob's own message", st,
               equal);
}

/* Checks that a comparison of shapes succeeds for each message that can be read. The fuzz target
   `reshape` checks the result. */
static void check_shape_question(const struct run *run, sb_status without) {
    struct trial trial = trial_small(run, SB_DTYPE_F32);
    sb_error err = fuzz_fresh_error();
    int32_t equal = 77;
    sb_status st = sb_blob_shape_equals_proto(trial.blob, run->bytes, run->size, &equal, &err);
    check_read_status(st, &err, run->size);
    fuzz_check(st == SB_OK || without != SB_OK, "an accepted message has no shape: %s",
               sb_status_name(st));
    fuzz_check(st == SB_OK ? equal == 0 || equal == 1 : equal == 77, "status %d, equal %d", st,
               equal);
    fuzz_check(watched_peak(run->watched) == 0, "a comparison allocates memory");
    trial_end(&trial, st, NULL, "a question");
}

static void check_reshape(const struct run *run) {
    struct trial trial = trial_small(run, SB_DTYPE_F64);
    sb_error err = fuzz_fresh_error();
    uint32_t reallocated = 77;
    sb_status st = sb_blob_reshape_proto(trial.blob, run->bytes, run->size, &reallocated, &err);
    check_read_status(st, &err, run->size);
    fuzz_check(watched_peak(run->watched) == 0, "reading a shape needs %zu bytes",
               watched_peak(run->watched));
    uint32_t expected = st != SB_OK ? 77 : sb_blob_count(trial.blob) > 6 ? 3 : 0;
    fuzz_check(reallocated == expected, "%lld elements instead of 6: reallocated %u",
               (long long)sb_blob_count(trial.blob), reallocated);
    trial_end(&trial, st, NULL, "a refused shape");
}

/* Checks that a read with low limits respects them, and returns the same status or DATA_LIMIT. */
static void check_limits(const struct run *run, sb_status without) {
    sb_limits limits = SB_LIMITS_INIT;
    limits.max_memory = 1000;
    limits.max_axes = 3;
    sb_blob *blob = blob_new(run->watched->context, SB_DTYPE_F32);
    watched_mark(run->watched);
    sb_status st = read_into(run, blob, SB_PROTO_RESHAPE, &limits);
    fuzz_check(st == without || st == SB_ERR_DATA_LIMIT, "%s, without limits %s",
               sb_status_name(st), sb_status_name(without));
    fuzz_check(watched_peak(run->watched) <= limits.max_memory, "%zu bytes at peak",
               watched_peak(run->watched));
    if (st == SB_OK)
        fuzz_check(blob_bytes(blob) <= limits.max_memory && sb_blob_num_axes(blob) <= 3,
                   "%zu bytes, %d axes", blob_bytes(blob), sb_blob_num_axes(blob));
    else
        check_untouched(run, blob);
    sb_blob_destroy(blob);
}

/* Repeats a read until it succeeds. At the n-th attempt the n-th allocation fails. */
static void check_refusals(const struct run *run) {
    sb_status st = SB_ERR_OUT_OF_MEMORY;
    for (int64_t nth = 1; st != SB_OK; nth++) {
        sb_blob *blob = blob_new(run->watched->context, SB_DTYPE_F32);
        watched_mark(run->watched);
        run->watched->counting.fail_nth = nth;
        st = read_into(run, blob, SB_PROTO_RESHAPE, NULL);
        bool refused = run->watched->counting.fail_nth == 0;
        run->watched->counting.fail_nth = 0;
        fuzz_check((st == SB_ERR_OUT_OF_MEMORY) == refused, "%s with allocation %lld refused: %d",
                   sb_status_name(st), (long long)nth, refused);
        if (st != SB_OK)
            check_untouched(run, blob);
        sb_blob_destroy(blob);
    }
}

/* Checks that a load of the same bytes from a file, in small pieces, has the same result. */
static void check_file(const struct run *run, const sb_blob *fresh, sb_status expected) {
    struct scratch_file file = scratch_file_make(run->bytes, run->size);
    struct trial trial = trial_small(run, SB_DTYPE_F32);
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_blob_load_file(trial.blob, file.path, SB_PROTO_RESHAPE, NULL, &err);
    check_read_status(st, &err, run->size);
    check_status(st, expected, "a file");
    trial_end(&trial, st, fresh, "a refused file");
    scratch_file_end(&file);
}

/* Reads from `source`, which may fail at a read or change between two reads. */
static sb_status read_unsteady(const struct run *run, struct unsteady *source,
                               const sb_blob *fresh) {
    const sb_source from = unsteady_source(source);
    struct trial trial = trial_small(run, SB_DTYPE_F32);
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_blob_load_source(trial.blob, &from, SB_PROTO_RESHAPE, NULL, NULL, &err);
    unsteady_check(source, st, &err);
    trial_end(&trial, st, source->trouble == TROUBLE_NONE ? fresh : NULL, "a refused source");
    fuzz_check(source->closed == 0, "a borrowed source was closed");
    return st;
}

static void check_source(const struct run *run, const sb_blob *fresh, sb_status expected) {
    const uint32_t lot = input_lot(run->bytes, run->size);
    struct unsteady source = {.bytes = run->bytes, .size = run->size};
    sb_status st = read_unsteady(run, &source, fresh);
    check_status(st, expected, "a source");
    for (enum trouble trouble = TROUBLE_FAILS; trouble < TROUBLES; trouble++) {
        bool struck = true;
        for (int n = 1; struck && n < 64; n++) {
            source = (struct unsteady){.bytes = run->bytes,
                                       .size = run->size,
                                       .trouble = trouble,
                                       .left = n,
                                       .where = lot * (uint32_t)(2 * n + 1)};
            (void)read_unsteady(run, &source, fresh);
            struck = unsteady_struck(&source);
        }
    }
}

/* Reads the same bytes as three spans. */
static void check_spans(const struct run *run, const sb_blob *fresh, sb_status expected) {
    const size_t a = input_lot(run->bytes, run->size) % (run->size + 1), b = (run->size - a) / 2;
    const uint8_t *bytes = run->size > 0 ? run->bytes : (const uint8_t *)"";
    const sb_span spans[] = {{bytes, a}, {bytes + a, b}, {bytes + a + b, run->size - a - b}};
    sb_source source = SB_SOURCE_INIT;
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_source_of_spans(NULL, spans, 3, &source, &err);
    fuzz_check(st == SB_OK, "no source of pieces: %s", sb_status_name(st));
    struct trial trial = trial_small(run, SB_DTYPE_F32);
    st = sb_blob_load_source(trial.blob, &source, SB_PROTO_RESHAPE, NULL, NULL, &err);
    source.close(source.user);
    check_status(st, expected, "pieces");
    trial_end(&trial, st, fresh, "refused pieces");
}

/* Writes the blob to a sink that accepts all bytes, and to a sink that fails. */
static void check_sink(const sb_blob *blob) {
    struct drain whole = {NULL, 0, 0, 0}, fails = {NULL, 0, 0, 1};
    const sb_sink to_whole = drain_sink(&whole), to_fails = drain_sink(&fails);
    sb_error err = fuzz_fresh_error();
    size_t size = 0;
    sb_status st = sb_blob_proto_size(blob, SB_PROTO_WRITE_DIFF, &size, &err);
    if (st == SB_OK)
        st = sb_blob_save_sink(blob, &to_whole, SB_PROTO_WRITE_DIFF, NULL, &err);
    fuzz_check(st == SB_OK && whole.written == size, "%s, %zu bytes of %zu", sb_status_name(st),
               whole.written, size);
    st = sb_blob_save_sink(blob, &to_fails, SB_PROTO_WRITE_DIFF, NULL, &err);
    fuzz_check(st == (size > 0 ? SB_ERR_IO : SB_OK), "%s from a full sink", sb_status_name(st));
}

/* --- everything ------------------------------------------------------------------------- */

static sb_status check_dtype(const struct run *run, int32_t dtype) {
    sb_status st;
    sb_blob *fresh = read_fresh(run, dtype, &st);
    if (fresh) {
        check_round_trip(run, fresh);
        check_shape_equals(run, fresh);
    }
    check_existing_blobs(run, dtype, fresh, st);
    if (dtype == SB_DTYPE_F32 && input_lot(run->bytes, run->size) % 4 == 0)
        check_file(run, fresh, st);
    if (dtype == SB_DTYPE_F32 && input_lot(run->bytes, run->size) % 4 == 1) {
        check_source(run, fresh, st);
        check_spans(run, fresh, st);
    }
    if (fresh && input_lot(run->bytes, run->size) % 4 == 2)
        check_sink(fresh);
    sb_blob_destroy(fresh);
    return st;
}

/* Reads into integers. The status must be `single`, that of a read into floats, or DATA_OVERFLOW if
   the integer type cannot represent a value. A failed read must free its storage. */
static void check_integers(const struct run *run, int32_t dtype, sb_status single) {
    sb_blob *blob = blob_new(run->watched->context, dtype);
    watched_mark(run->watched);
    sb_status st = read_into(run, blob, SB_PROTO_RESHAPE, NULL);
    fuzz_check(st == single || (single == SB_OK && st == SB_ERR_DATA_OVERFLOW),
               "%s into integers, %s into floats", sb_status_name(st), sb_status_name(single));
    if (st == SB_OK)
        check_memory(run, blob);
    else
        check_untouched(run, blob);
    check_existing_blobs(run, dtype, st == SB_OK ? blob : NULL, st);
    sb_blob_destroy(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct watched watched;
    const struct run run = {data, size, &watched};
    watched_begin(&watched);
    sb_status single = check_dtype(&run, SB_DTYPE_F32);
    sb_status wide = check_dtype(&run, SB_DTYPE_F64);
    fuzz_check((single == SB_OK) == (wide == SB_OK), "%s into floats, %s into doubles",
               sb_status_name(single), sb_status_name(wide));
    check_integers(&run, input_lot(data, size) % 8 < 4 ? SB_DTYPE_I32 : SB_DTYPE_U32, single);
    check_limits(&run, single);
    if (single == SB_OK)
        check_refusals(&run);
    check_shape_question(&run, single);
    check_reshape(&run);
    watched_end(&watched);
    return 0;
}
