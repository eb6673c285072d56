#include "mirror.h"

#include "blobs.h"
#include "halves.h"
#include "ranks.h"

const char *const mirror_cause = "the mirror is broken";

void mirror_forget(struct mirror *mirror) {
    const int64_t closed = mirror->closed, closed_failed = mirror->closed_failed;
    *mirror = (struct mirror){.takes_device = mirror->takes_device,
                              .tests_are_done = mirror->tests_are_done,
                              .fill = mirror->fill,
                              .closed = closed,
                              .closed_failed = closed_failed};
}

static sb_status mirror_open(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                             sb_error *err) {
    *out = user;
    *out_rank = 0;
    *out_size = 2;
    return SB_OK;
}

static void mirror_close(void *comm, int32_t failed) {
    struct mirror *mirror = comm;
    mirror->closed++;
    mirror->closed_failed += failed;
}

static size_t bytes_of(const sb_comm_buffer *buffer) {
    return (size_t)buffer->count * sb_dtype_size(buffer->dtype);
}

static void fill(const sb_comm_buffer *buffer, int value) {
    void *bytes = malloc(bytes_of(buffer));
    assert_non_null(bytes);
    memset(bytes, value, bytes_of(buffer));
    bytes_put(buffer->context, buffer->ptr, bytes, bytes_of(buffer));
    free(bytes);
}

static void spoil(struct mirror *mirror, const sb_comm_buffer *buffer) {
    if (!buffer || (mirror->failure != SB_ERR_IO && mirror->failure != SB_ERR_COMM_FAILURE))
        return;
    mirror->spoiled++;
    fill(buffer, 0xEE);
}

static sb_status count(struct mirror *mirror, int64_t *calls, int64_t fail_nth,
                       const sb_comm_buffer *buffer, sb_error *err) {
    if (++*calls != fail_nth)
        return SB_OK;
    spoil(mirror, buffer);
    return sb_error_fill(err, mirror->failure, 7, mirror_cause);
}

static void combine(const struct mirror_sent *sent) {
    const sb_comm_buffer *buffer = &sent->buffer;
    if (sent->op != SB_COMM_SUM)
        return;
    void *bytes = malloc(bytes_of(buffer));
    assert_non_null(bytes);
    bytes_get(buffer->context, buffer->ptr, bytes, bytes_of(buffer));
    for (int64_t i = 0; i < buffer->count; i++)
        put_value(buffer->dtype, bytes, i, 2 * get_value(buffer->dtype, bytes, i));
    bytes_put(buffer->context, buffer->ptr, bytes, bytes_of(buffer));
    free(bytes);
}

static struct mirror_sent *record(struct mirror *mirror, sb_comm_op op,
                                  const sb_comm_buffer *buffer) {
    assert_true(mirror->num_sent < MIRROR_MOST);
    struct mirror_sent *sent = &mirror->sent[mirror->num_sent++];
    *sent = (struct mirror_sent){.buffer = *buffer, .op = op};
    return sent;
}

static sb_status mirror_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                   sb_error *err) {
    struct mirror *mirror = comm;
    const sb_status st = count(mirror, &mirror->begins, mirror->fail_begin, buffer, err);
    if (st == SB_OK)
        combine(record(mirror, op, buffer));
    return st;
}

static sb_status mirror_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    struct mirror *mirror = comm;
    const sb_status st =
        count(mirror, &mirror->begins, mirror->fail_begin, root ? buffer : NULL, err);
    if (st != SB_OK)
        return st;
    (void)record(mirror, SB_COMM_SUM, buffer);
    if (root)
        fill(buffer, mirror->fill);
    return SB_OK;
}

static int32_t mirror_takes(void *comm, sb_context *context) {
    return ((struct mirror *)comm)->takes_device;
}

static sb_status mirror_start(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                              sb_error *err) {
    struct mirror *mirror = comm;
    const sb_status st = count(mirror, &mirror->begins, mirror->fail_begin, buffer, err);
    if (st != SB_OK)
        return st;
    struct mirror_sent *sent = record(mirror, op, buffer);
    sent->in_flight = true;
    mirror->second += mirror->flying > 0;
    if (++mirror->flying > mirror->most_flying)
        mirror->most_flying = mirror->flying;
    *out = sent;
    return SB_OK;
}

static void land(struct mirror *mirror, struct mirror_sent *sent) {
    assert_true(sent->in_flight);
    sent->in_flight = false;
    mirror->flying--;
}

static sb_status mirror_test(void *comm, void *request, int32_t *out_done, sb_error *err) {
    struct mirror *mirror = comm;
    *out_done = 0;
    const sb_status st = count(mirror, &mirror->tests, mirror->fail_test, NULL, err);
    if (st != SB_OK || !mirror->tests_are_done)
        return st;
    land(mirror, request);
    combine(request);
    *out_done = 1;
    return SB_OK;
}

static sb_status mirror_wait(void *comm, void *request, sb_error *err) {
    struct mirror *mirror = comm;
    const sb_status st = count(mirror, &mirror->ends, mirror->fail_end, NULL, err);
    if (st == SB_OK) {
        land(mirror, request);
        combine(request);
    }
    return st;
}

static int32_t mirror_abandon(void *comm, void *request) {
    struct mirror *mirror = comm;
    land(mirror, request);
    if (!mirror->keeps)
        spoil(mirror, &((struct mirror_sent *)request)->buffer);
    mirror->abandoned++;
    return !mirror->keeps;
}

#define SLOTS_AT_ONCE                                                                              \
    .struct_size = sizeof(sb_comm_engine), .abi_version = SB_COMM_ENGINE_ABI_VERSION,              \
    .name = "mirror", .open = mirror_open, .close = mirror_close, .all_reduce = mirror_all_reduce, \
    .broadcast = mirror_broadcast, .takes = mirror_takes

const sb_comm_engine mirror_engine_at_once = {SLOTS_AT_ONCE};
const sb_comm_engine mirror_engine = {SLOTS_AT_ONCE, .start = mirror_start, .test = mirror_test,
                                      .wait = mirror_wait, .abandon = mirror_abandon};

static void open_on(struct mirrored *m, const sb_comm_engine *engine, int32_t takes_device) {
    memset(m, 0, sizeof *m);
    m->mirror.takes_device = takes_device;
    rig_open_on(&m->rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE | SB_CONTEXT_NO_PINNED);
    m->comm = test_comm(m->rig.context, engine, &m->mirror);
}

void mirrored_open(struct mirrored *m) {
    open_on(m, &mirror_engine, false);
}

void mirrored_close(struct mirrored *m) {
    test_end_after(m->rig.owned_before);
    assert_int_equal(m->mirror.closed, 1);
    assert_int_equal(m->mirror.closed_failed, m->is_broken);
    assert_int_equal(m->mirror.flying, 0);
    rig_close(&m->rig);
}

void mirrored_reopen(struct mirrored *m, const sb_comm_engine *engine, int32_t takes_device) {
    mirrored_close(m);
    open_on(m, engine, takes_device);
}

void mirrored_put(struct mirrored *m, int64_t i, double start, int32_t head) {
    static double values[MIRROR_VALUES];
    const int64_t count = sb_blob_count(m->blobs[i]);
    assert_true(count <= MIRROR_VALUES);
    fill_values(sb_blob_dtype(m->blobs[i]), count, start, 1, values);
    mem_place(data_of(m->blobs[i]), head, values, sb_mem_size(data_of(m->blobs[i])));
}

void mirrored_add(struct mirrored *m, sb_dtype dtype, int64_t count, double start, int32_t head) {
    m->blobs[m->num_blobs++] = test_vector(m->rig.context, dtype, count);
    mirrored_put(m, m->num_blobs - 1, start, head);
}

bool mirrored_holds(struct mirrored *m, int64_t i, double start, double step) {
    static double values[MIRROR_VALUES];
    const int64_t count = sb_blob_count(m->blobs[i]);
    fill_values(sb_blob_dtype(m->blobs[i]), count, start, step, values);
    return mem_holds(data_of(m->blobs[i]), values, sb_mem_size(data_of(m->blobs[i])));
}

void mirrored_register(struct mirrored *m, sb_comm_op op, size_t bucket_bytes) {
    m->reducer =
        test_reducer(m->comm, m->blobs, m->num_blobs, reducer_options(SB_DATA, op, bucket_bytes));
    mirror_forget(&m->mirror);
}
