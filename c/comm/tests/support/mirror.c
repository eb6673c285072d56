#include "mirror.h"

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

static sb_status count(struct mirror *mirror, int64_t *calls, int64_t fail_nth, sb_error *err) {
    return ++*calls == fail_nth ? sb_error_fill(err, mirror->failure, 7, mirror_cause) : SB_OK;
}

static size_t bytes_of(const sb_comm_buffer *buffer) {
    return (size_t)buffer->count * sb_dtype_size(buffer->dtype);
}

static void combine(const struct mirror_sent *sent) {
    const sb_comm_buffer *buffer = &sent->buffer;
    if (sent->op != SB_COMM_SUM)
        return;
    void *bytes = malloc(bytes_of(buffer));
    assert_non_null(bytes);
    bytes_get(buffer->context, buffer->ptr, bytes, bytes_of(buffer));
    for (int64_t i = 0; i < buffer->count; i++)
        if (buffer->dtype == SB_DTYPE_F32)
            ((float *)bytes)[i] *= 2;
        else
            ((double *)bytes)[i] *= 2;
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
    const sb_status st = count(mirror, &mirror->begins, mirror->fail_begin, err);
    if (st == SB_OK)
        combine(record(mirror, op, buffer));
    return st;
}

static sb_status mirror_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    struct mirror *mirror = comm;
    const sb_status st = count(mirror, &mirror->begins, mirror->fail_begin, err);
    if (st != SB_OK)
        return st;
    (void)record(mirror, SB_COMM_SUM, buffer);
    if (root == 0 || bytes_of(buffer) > 1 << 20)
        return SB_OK;
    void *bytes = malloc(bytes_of(buffer));
    assert_non_null(bytes);
    memset(bytes, mirror->fill, bytes_of(buffer));
    bytes_put(buffer->context, buffer->ptr, bytes, bytes_of(buffer));
    free(bytes);
    return SB_OK;
}

static int32_t mirror_takes(void *comm, sb_context *context) {
    return ((struct mirror *)comm)->takes_device;
}

static sb_status mirror_start(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                              sb_error *err) {
    struct mirror *mirror = comm;
    const sb_status st = count(mirror, &mirror->begins, mirror->fail_begin, err);
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
    const sb_status st = count(mirror, &mirror->tests, mirror->fail_test, err);
    if (st != SB_OK || !mirror->tests_are_done)
        return st;
    land(mirror, request);
    combine(request);
    *out_done = 1;
    return SB_OK;
}

static sb_status mirror_wait(void *comm, void *request, sb_error *err) {
    struct mirror *mirror = comm;
    const sb_status st = count(mirror, &mirror->ends, mirror->fail_end, err);
    if (st != SB_OK)
        return st;
    land(mirror, request);
    combine(request);
    return SB_OK;
}

static int32_t mirror_abandon(void *comm, void *request) {
    struct mirror *mirror = comm;
    land(mirror, request);
    mirror->abandoned++;
    return 1;
}

const sb_comm_engine mirror_engine = {
    .struct_size = sizeof mirror_engine,
    .abi_version = SB_COMM_ENGINE_ABI_VERSION,
    .name = "mirror",
    .open = mirror_open,
    .close = mirror_close,
    .all_reduce = mirror_all_reduce,
    .broadcast = mirror_broadcast,
    .takes = mirror_takes,
    .start = mirror_start,
    .test = mirror_test,
    .wait = mirror_wait,
    .abandon = mirror_abandon,
};

const sb_comm_engine mirror_engine_at_once = {
    .struct_size = sizeof mirror_engine_at_once,
    .abi_version = SB_COMM_ENGINE_ABI_VERSION,
    .name = "mirror",
    .open = mirror_open,
    .close = mirror_close,
    .all_reduce = mirror_all_reduce,
    .broadcast = mirror_broadcast,
    .takes = mirror_takes,
};
