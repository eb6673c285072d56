#include "sim_tables.h"

#include "context/context.h"
#include "sim/table.h"

const sb_backend *coherent_table(void) {
    static sb_backend table;
    table = sb__sim_backend;
    table.flags |= SB_BACKEND_HOST_COHERENT;
    table.user = &table;
    return &table;
}

sb_stream captured_stream;
int64_t captured_waits;

static sb_status refuse(sb_error *err) {
    return sb_error_fill(err, SB_ERR_UNSUPPORTED, 0, "the stream is being captured");
}

static int is_captured(sb_stream stream) {
    return captured_stream && stream == captured_stream;
}

static sb_status record(void *device, sb_stream stream, void **out, sb_error *err) {
    return is_captured(stream) ? refuse(err)
                               : sb__sim_backend.event_record(device, stream, out, err);
}

static sb_status synchronize(void *device, sb_stream stream, sb_error *err) {
    captured_waits++;
    return is_captured(stream) ? refuse(err)
                               : sb__sim_backend.stream_synchronize(device, stream, err);
}

static sb_status wait(void *device, void *event, sb_error *err) {
    captured_waits++;
    return sb__sim_backend.event_wait(device, event, err);
}

sb_backend captured_table(void) {
    sb_backend table = sb__sim_backend;
    table.event_record = record;
    table.stream_synchronize = synchronize;
    table.event_wait = wait;
    return table;
}
