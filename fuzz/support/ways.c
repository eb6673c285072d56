#include "ways.h"

#include <string.h>

/* --- sources and sinks --------------------------------------------------------------- */

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    struct way *way = user;
    const size_t size = way->run->size;
    fuzz_check(bytes > 0 && offset <= size && bytes <= size - offset,
               "an empty or too long read: %zu bytes at %llu of %zu", bytes,
               (unsigned long long)offset, size);
    if (way->left > 0)
        way->left--;
    if (way->trouble == TROUBLE_FAILS && way->left == 0) {
        way->left = -1;
        return sb_error_fill(err, SB_ERR_IO, 0, "the input ends here");
    }
    memcpy(buffer, way->run->bytes + offset, bytes);
    if (way->trouble == TROUBLE_CHANGES && way->left == 0)
        ((uint8_t *)buffer)[way->where % bytes] ^= (uint8_t)(1 + way->where / 7 % 255);
    return SB_OK;
}

static void close_source(void *user) {
    ((struct way *)user)->closed++;
}

static sb_status write_bytes(void *user, const void *bytes, size_t size, sb_error *err) {
    struct drain *drain = user;
    fuzz_check(size > 0 && drain->left >= 0, "%zu bytes are written after a failure", size);
    if (drain->left > 0 && --drain->left == 0) {
        drain->left = -1;
        return sb_error_fill(err, SB_ERR_IO, 0, "the sink is full");
    }
    if (drain->bytes)
        fuzz_check(size <= drain->size - drain->written &&
                       memcmp(drain->bytes + drain->written, bytes, size) == 0,
                   "%zu bytes at %zu differ from the input", size, drain->written);
    drain->written += size;
    return SB_OK;
}

sb_sink drain_sink(struct drain *drain) {
    sb_sink sink = SB_SINK_INIT;
    sink.user = drain;
    sink.write = write_bytes;
    return sink;
}

/* --- one read -------------------------------------------------------------------------- */

static bool is_struck(const struct way *way) {
    return way->trouble != TROUBLE_NONE && way->left <= 0;
}

void way_begin(const struct run *run, const struct way *way) {
    watched_mark(run->watched);
    run->watched->counting.fail_nth = way->fail_nth;
}

void way_check(const struct way *way, sb_status status) {
    if (status != SB_ERR_IO)
        check_bytes_status(status);
    else
        fuzz_check(is_struck(way), "a steady source fails: %.239s", call_error.message);
}

void way_end(const struct run *run, struct way *way, sb_status status) {
    int64_t *fail_nth = &run->watched->counting.fail_nth;
    const bool refused = way->fail_nth && *fail_nth == 0;
    *fail_nth = 0;
    way_check(way, status);
    if (!way->source)
        check_read_status(status, run->size);
    fuzz_check((status == SB_ERR_OUT_OF_MEMORY) == refused, "%s, allocation %lld refused: %d",
               sb_status_name(status), (long long)way->fail_nth, refused);
    if (status != SB_OK)
        check_equal(watched_growth(run->watched), 0);
    if (way->limits)
        fuzz_check(watched_peak(run->watched) <= way->limits->max_memory, "%zu bytes at peak",
                   watched_peak(run->watched));
}

/* --- all ways of a kind --------------------------------------------------------------------- */

static sb_status read_file(const struct run *run, uint32_t flags, read_way *read,
                           const void *expected) {
    struct scratch_file file = scratch_file_make(run->bytes, run->size);
    struct way way = {.path = file.path, .flags = flags};
    const sb_status st = read(run, &way, expected);
    fuzz_check(scratch_file_end(&file), "a read left a file");
    return st;
}

/* Sets `out_struck` if a read failed or returned changed bytes. */
static sb_status read_source(const struct run *run, enum trouble trouble, int nth, read_way *read,
                             const void *expected, bool *out_struck) {
    struct way way = {.run = run, .trouble = trouble, .left = nth};
    sb_source source = SB_SOURCE_INIT;
    source.user = &way;
    source.size = run->size;
    source.read_at = read_at;
    source.close = close_source;
    way.source = &source;
    way.where = run->lot * (uint32_t)(2 * nth + 1);
    const sb_status st = read(run, &way, expected);
    *out_struck = is_struck(&way);
    return st;
}

void check_way(const struct run *run, enum way_kind kind, read_way *read, const void *expected,
               sb_status status, const sb_limits *limits, int step) {
    struct way way = {.limits = kind == LIMITS_WAY ? limits : NULL};
    sb_status st = status;
    bool struck = true;
    if (kind == FILE_WAY || kind == MAPPED_WAY)
        st = read_file(run, kind == MAPPED_WAY ? SB_OPEN_MAPPED : 0, read, expected);
    if (kind == LIMITS_WAY)
        st = read(run, &way, expected);
    if (kind == REFUSALS_WAY)
        do {
            way.fail_nth++;
            st = read(run, &way, expected);
        } while (st == SB_ERR_OUT_OF_MEMORY && status != st);
    if (kind == SOURCE_WAY)
        st = read_source(run, TROUBLE_NONE, 0, read, expected, &struck);
    fuzz_check(st == status || (kind == LIMITS_WAY && st == SB_ERR_DATA_LIMIT),
               "%s, not %s, when read in the way %d", sb_status_name(st), sb_status_name(status),
               kind);
    for (enum trouble trouble = TROUBLE_FAILS; kind == SOURCE_WAY && trouble < TROUBLES;
         trouble++) {
        struck = true;
        for (int n = 1; struck && n < 64; n += step)
            (void)read_source(run, trouble, n, read, expected, &struck);
    }
}
