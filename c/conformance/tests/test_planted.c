/* Tests that the conformance test finds errors: each backend breaks one promise of the simulated
   device. */
#include "support.h"

#include "conforming.h"
#include "sim_tables.h"

#include <math.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static sb_backend right; /* the correct table: the simulated device */

/* These macros call a slot of `right` with the arguments of the enclosing slot. */
#define RIGHT_EVENT  right.event_wait(device, event, err)
#define RIGHT_QUERY  right.event_query(device, event, out_done, err)
#define RIGHT_SYNC   right.stream_synchronize(device, stream, err)
#define RIGHT_ORDER  right.stream_wait(device, stream, event, err)
#define RIGHT_RECORD right.event_record(device, stream, out, err)
#define RIGHT_ALLOC  right.alloc(device, bytes, stream, out, err)
#define RIGHT_FREE   right.free(device, ptr, bytes, stream)
#define RIGHT_COPY   right.copy(device, dst, src, bytes, stream, err)
#define RIGHT_UPLOAD right.upload(device, dst, src, bytes, stream, err)
#define RIGHT_ASUM   right.asum(device, dtype, count, x, out, stream, err)
#define RIGHT_SUMSQ  right.sumsq(device, dtype, count, x, out, stream, err)

#define SLOT(name, parameters, ...)                                                                \
    static sb_status name parameters {                                                             \
        return (__VA_ARGS__);                                                                      \
    }

static const sb_status done = SB_OK;

/* What the wrong slots remember. All members are 0 before each row of the table. */
static struct {
    void *failed_event;                  /* the last event whose failure was returned */
    void *cleared_event;                 /* the last event that a query reported as complete */
    void *first_event;                   /* the first event that was recorded */
    const char *recorded_by, *failed_by; /* the threads of the last event and failure */
    sb_stream recorded_on;               /* the stream of the last event */
    sb_stream waiting; /* the last stream that waited for an event; loses its uploads */
    bool is_taken;     /* a wait has returned a failure, so later waits return none */
    bool has_copied;   /* a copy was queued, so the next upload is lost */
    bool is_cleared;   /* stream_synchronize has returned a failure */
    const void *failed_device;
    void *unclosed; /* the device that the next call closes */
    int32_t opened, lacks_calls;
} now;

static _Thread_local char thread;

static void *address(void *device, const void *ptr, size_t bytes) {
    return simulated_controls(device)->address(device, ptr, bytes, NULL);
}

static sb_stream new_stream(void *device) {
    sb_stream stream = NULL;
    assert_int_equal(simulated_options().stream_create(NULL, device, &stream, NULL), SB_OK);
    return stream;
}

static bool is_own(void *device, sb_stream stream) {
    return stream == right.own_stream(device);
}

static sb_status replace(sb_status st, sb_status other, sb_error *err) {
    return st == SB_OK ? st : sb_error_fill(err, other, 0, "work failed");
}

/* After the first failure, returns SB_OK instead of failures. */
static sb_status take(sb_status st) {
    const bool was_taken = now.is_taken;
    now.is_taken |= st != SB_OK;
    return was_taken ? done : st;
}

/* Calls `take`, but returns `st` unchanged on the thread whose work failed last. */
static sb_status take_of_last_thread(sb_status st) {
    const sb_status taken = take(st);
    return now.failed_by == &thread ? st : taken;
}

SLOT(early_event_wait, SLOT_EVENT, done)
/* As stream_synchronize, the slot does not wait. As check_stream, the slot accepts any stream. */
SLOT(nothing_on_stream, SLOT_STREAM, done)
SLOT(early_query, SLOT_QUERY, *out_done = 1, done)
SLOT(own_synchronize, SLOT_STREAM, is_own(device, stream) ? RIGHT_SYNC : done)
SLOT(ignored_stream_wait, SLOT_ORDER, done)
SLOT(waiting_stream_wait, SLOT_ORDER, RIGHT_EVENT == SB_OK ? RIGHT_ORDER : SB_ERR_DEVICE_FAILURE)
SLOT(waiting_query, SLOT_QUERY, *out_done = 1, RIGHT_EVENT)
SLOT(failing_query, SLOT_QUERY, RIGHT_QUERY == SB_OK && *out_done ? RIGHT_EVENT : done)
SLOT(failure_of_no_event, SLOT_EVENT, ignore(right.event_wait(device, event, NULL)), done)
SLOT(failure_of_no_stream, SLOT_STREAM, ignore(right.stream_synchronize(device, stream, NULL)),
     done)
/* The core regards OUT_OF_MEMORY as a failure of the wait, not of the work. */
SLOT(failure_of_the_wait, SLOT_EVENT, replace(RIGHT_EVENT, SB_ERR_OUT_OF_MEMORY, err))
SLOT(memory_for_a_sum, SLOT_SUM, replace(RIGHT_ASUM, SB_ERR_OUT_OF_MEMORY, err))
SLOT(status_of_no_slot, SLOT_MOVE, replace(RIGHT_COPY, SB_ERR_IO, err))
SLOT(asum_of_failures, SLOT_SUM, err = NULL, ignore(RIGHT_ASUM), done)
SLOT(sumsq_of_failures, SLOT_SUM, err = NULL, ignore(RIGHT_SUMSQ), done)
SLOT(wait_unless_cleared, SLOT_EVENT, event == now.cleared_event ? done : RIGHT_EVENT)
SLOT(noting_record, SLOT_RECORD, now.recorded_by = &thread, now.recorded_on = stream, RIGHT_RECORD)
SLOT(wait_of_own_thread, SLOT_EVENT, now.recorded_by == &thread ? RIGHT_EVENT : done)
SLOT(order_of_own_thread, SLOT_ORDER, now.recorded_by == &thread ? RIGHT_ORDER : done)
SLOT(failure_of_own_event, SLOT_EVENT,
     is_own(device, now.recorded_on) ? RIGHT_EVENT : (ignore(RIGHT_EVENT), done))
SLOT(failure_of_existing_stream, SLOT_EVENT,
     right.check_stream(device, now.recorded_on, NULL) == SB_OK ? RIGHT_EVENT
                                                                : (ignore(RIGHT_EVENT), done))
SLOT(failure_of_own_stream, SLOT_STREAM,
     is_own(device, stream) ? RIGHT_SYNC : (ignore(RIGHT_SYNC), done))
SLOT(failure_of_first_event, SLOT_EVENT,
     event == now.first_event ? RIGHT_EVENT : failure_of_no_event(device, event, NULL))
SLOT(synchronize_of_first, SLOT_STREAM, take(RIGHT_SYNC))
SLOT(event_wait_of_first, SLOT_EVENT, take(RIGHT_EVENT))
SLOT(synchronize_of_last_thread, SLOT_STREAM, take_of_last_thread(RIGHT_SYNC))
SLOT(event_wait_of_last_thread, SLOT_EVENT, take_of_last_thread(RIGHT_EVENT))
SLOT(losing_copy, SLOT_MOVE, now.has_copied = true, RIGHT_COPY)
SLOT(wait_unless_synchronized, SLOT_EVENT, now.is_cleared ? done : RIGHT_EVENT)
SLOT(losing_stream_wait, SLOT_ORDER, now.waiting = stream, RIGHT_ORDER)
SLOT(lost_upload, SLOT_MOVE, stream == now.waiting ? done : RIGHT_UPLOAD)
SLOT(unfilled_error, SLOT_POINTER, right.check_pointer(device, ptr, bytes, NULL))
SLOT(any_pointer, SLOT_POINTER, done)

static sb_status failure_once SLOT_EVENT {
    const sb_status st = event == now.failed_event ? done : RIGHT_EVENT;
    now.failed_event = st == SB_OK ? now.failed_event : event;
    return st;
}

static sb_status clearing_query SLOT_QUERY {
    const sb_status st = RIGHT_QUERY;
    now.cleared_event = st == SB_OK && *out_done ? event : now.cleared_event;
    return st;
}

static sb_status first_record SLOT_RECORD {
    const sb_status st = RIGHT_RECORD;
    if (st == SB_OK && !now.first_event)
        now.first_event = *out;
    return st;
}

/* Returns the device's fault, which the next copy meets if the countdown is not 0. */
static sb_sim_fault *copy_fault(void *device) {
    int32_t count;
    return simulated_controls(device)->faults(device, &count);
}

static sb_status wait_of_first_copy SLOT_EVENT {
    const sb_status st = RIGHT_EVENT;
    (void)take(st);
    return st;
}

static sb_status copy_that_fails_once SLOT_MOVE {
    if (!now.is_taken || !copy_fault(device)->countdown)
        return RIGHT_COPY;
    copy_fault(device)->countdown = 0;
    return SB_OK;
}

static sb_status noting_copy SLOT_MOVE {
    if (copy_fault(device)->countdown)
        now.failed_by = &thread;
    return RIGHT_COPY;
}

static sb_status upload_unless_copied SLOT_MOVE {
    const sb_status st = now.has_copied ? done : RIGHT_UPLOAD;
    now.has_copied = false;
    return st;
}

static sb_status clearing_synchronize SLOT_STREAM {
    const sb_status st = RIGHT_SYNC;
    now.is_cleared = st != SB_OK;
    return st;
}

static sb_status error_of_other_code SLOT_POINTER {
    const sb_status st = right.check_pointer(device, ptr, bytes, err);
    err->code = SB_ERR_UNSUPPORTED;
    return st;
}

static sb_status failure_forever SLOT_STREAM {
    const sb_status st = RIGHT_SYNC;
    now.failed_device = st == SB_OK ? now.failed_device : device;
    return device == now.failed_device ? sb_error_fill(err, SB_ERR_DEVICE_FAILURE, 0, "work failed")
                                       : st;
}

static sb_stream no_stream(void *device) {
    return NULL;
}

static sb_stream unordered_stream(void *device) {
    static void *last;
    static sb_stream stream;
    if (device != last)
        stream = new_stream(device);
    last = device;
    return stream;
}

static sb_stream replaced(void *device, sb_stream stream) {
    return right.check_stream(device, stream, NULL) == SB_OK ? stream : right.own_stream(device);
}

SLOT(replacing_copy, SLOT_MOVE, stream = replaced(device, stream), RIGHT_COPY)
SLOT(replacing_download, SLOT_MOVE,
     right.download(device, dst, src, bytes, replaced(device, stream), err))
SLOT(replacing_record, SLOT_RECORD, stream = replaced(device, stream), RIGHT_RECORD)
SLOT(replacing_wait, SLOT_ORDER, stream = replaced(device, stream), RIGHT_ORDER)

static sb_stream own_again(void *device) {
    return right.own_stream(device);
}

static void early_free SLOT_FREE {
    stream = new_stream(device); /* a new stream does not wait for other streams */
    RIGHT_FREE;
    ignore(right.stream_synchronize(device, stream, NULL));
}

static void free_on_own SLOT_FREE {
    stream = right.own_stream(device);
    RIGHT_FREE;
}

/* A pool of one block, which ignores the streams of `free` and `alloc`. */
static struct {
    void *device, *ptr;
    size_t bytes;
} pool;

static void pool_free SLOT_FREE {
    if (pool.device) {
        RIGHT_FREE;
        return;
    }
    pool.device = device;
    pool.ptr = ptr;
    pool.bytes = bytes;
}

static void pool_close(void *device) {
    if (pool.device == device) {
        right.free(device, pool.ptr, pool.bytes, right.own_stream(device));
        pool.device = NULL;
    }
    right.close(device);
}

static sb_status pool_alloc SLOT_ALLOC {
    if (pool.device != device || pool.bytes != bytes)
        return RIGHT_ALLOC;
    *out = pool.ptr;
    pool.device = NULL;
    return SB_OK;
}

/* Simulates two devices with the same memory. */
static sb_status shared_pool_alloc SLOT_ALLOC {
    if (pool.device && pool.device != device)
        memset(address(pool.device, pool.ptr, pool.bytes), 0, pool.bytes);
    return RIGHT_ALLOC;
}

static void late_close(void *device) {
    if (now.unclosed)
        right.close(now.unclosed);
    now.unclosed = device;
}

static sb_status unaligned_alloc SLOT_ALLOC {
    bytes += 32;
    const sb_status st = RIGHT_ALLOC;
    if (st == SB_OK)
        *out = (char *)*out + 32;
    return st;
}

static void unaligned_free SLOT_FREE {
    right.free(device, (char *)ptr - 32, bytes + 32, stream);
}

SLOT(short_zero, SLOT_ZERO, bytes > 1 ? right.zero(device, dst, bytes - 1, stream, err) : done)
SLOT(zero_at_once, SLOT_ZERO, (void)memset(address(device, dst, bytes), 0, bytes), done)

static sb_status (*open_lazy)(void *user, int32_t ordinal, void **out, sb_error *err);

static sb_status open_below(int32_t count, int32_t ordinal, void **out, sb_error *err) {
    return ordinal < count ? open_lazy(NULL, ordinal, out, err)
                           : sb_error_fill(err, SB_ERR_NO_DEVICE, 0, "there is no such device");
}

SLOT(any_ordinal, SLOT_OPEN, open_below(INT32_MAX, ordinal, out, err))
SLOT(one_ordinal, SLOT_OPEN, open_below(1, ordinal, out, err))
/* A correct slot of a backend with two devices. */
SLOT(two_ordinals, SLOT_OPEN, open_below(2, ordinal, out, err))

static uint32_t lacks_by_call(void *device) {
    return now.lacks_calls++ % 2 ? SB_DEVICE_LACKS_CHECK_POINTER : 0;
}

SLOT(counting_open, SLOT_OPEN, now.opened++, right.open(user, ordinal, out, err))

static uint32_t lacks_by_open(void *device) {
    return now.opened % 2 ? SB_DEVICE_LACKS_CHECK_POINTER : 0;
}

static sb_status long_copy SLOT_MOVE {
    bytes += address(device, dst, bytes + 1) && address(device, src, bytes + 1);
    return RIGHT_COPY;
}

static sb_status half_done_copy SLOT_MOVE {
    const sb_status st = RIGHT_COPY;
    if (st != SB_OK)
        ignore(right.copy(device, dst, src, bytes / 2, stream, NULL));
    return st;
}

static sb_status rounded_download SLOT_MOVE {
    const void *whole_words = (const void *)((uintptr_t)src / 4 * 4);
    return right.download(device, dst, whole_words, bytes, stream, err);
}

/* The queued clear may run after the host has written to the block. */
static sb_status clearing_alloc SLOT_ALLOC {
    const sb_status st = RIGHT_ALLOC;
    return st == SB_OK ? right.zero(device, *out, bytes, stream, err) : st;
}

/* Simulates a device whose cache keeps old bytes after the host has changed memory. */
static sb_status stale_copy SLOT_MOVE {
    static char cache[1 << 16];
    static const void *cached;
    if (src != cached && bytes <= sizeof cache)
        memcpy(cache, src, bytes);
    cached = src;
    return right.upload(device, dst, cache, bytes, stream, err);
}

struct exact {
    void *device;
    int64_t count;
    double alpha;
    const void *x;
    void *y;
};

static void run_exact(void *user) {
    struct exact *work = user;
    const size_t bytes = (size_t)work->count * sizeof(float);
    const float *x = address(work->device, work->x, bytes);
    float *y = address(work->device, work->y, bytes);
    for (int64_t i = 0; i < work->count; i++)
        y[i] = (float)((double)y[i] + work->alpha * (double)x[i]);
    free(work);
}

/* Queues a function, which frees its argument. */
static sb_status launch(void *device, sb_stream stream, void (*run)(void *), void *work) {
    const sb_sim_device *sim = simulated_controls(device);
    sim->lock(device);
    const sb_status st = sim->launch(device, stream, run, work, NULL);
    sim->unlock(device);
    return st;
}

static sb_status axpy_in_double SLOT_AXPY {
    if (dtype == SB_DTYPE_F64)
        return right.axpy(device, dtype, count, alpha, x, y, stream, err);
    struct exact *work = malloc(sizeof *work);
    assert_non_null(work);
    *work = (struct exact){device, count, alpha, x, y};
    return launch(device, stream, run_exact, work);
}

static sb_status short_axpy SLOT_AXPY {
    return right.axpy(device, dtype, count < 9000 ? count : 9000, alpha, x, y, stream, err);
}

static sb_status asum_in_float SLOT_SUM {
    float sum = 0;
    const sb_status st = RIGHT_ASUM;
    if (st != SB_OK || dtype == SB_DTYPE_F64)
        return st;
    const float *values = address(device, x, (size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        sum += fabsf(values[i]);
    *out = (double)sum;
    return SB_OK;
}

static sb_status sumsq_in_float SLOT_SUM {
    const sb_status st = RIGHT_SUMSQ;
    if (st == SB_OK && dtype == SB_DTYPE_F32)
        *out = (double)(float)*out;
    return st;
}

SLOT(rounded_asum, SLOT_SUM, x = (const void *)((uintptr_t)x / 64 * 64), RIGHT_ASUM)

struct planted {
    const char *claim;
    sb_backend slots;
};

static const struct planted planted[] = {
    {"event_wait waits for the work", {.event_wait = early_event_wait}},
    {"event_wait waits for the work",
     {.event_record = noting_record, .event_wait = wait_of_own_thread}},
    {"stream_synchronize waits for all work", {.stream_synchronize = nothing_on_stream}},
    {"event_query does not wait", {.event_query = waiting_query}},
    {"event_query writes 1 only if", {.event_query = early_query}},
    {"stream_wait does not wait", {.stream_wait = waiting_stream_wait}},
    {"stream_wait orders streams", {.stream_wait = ignored_stream_wait}},
    {"stream_wait orders streams",
     {.event_record = noting_record, .stream_wait = order_of_own_thread}},
    {"stream_wait orders streams", {.stream_synchronize = own_synchronize}},
    {"returns the failure on every wait", {.event_wait = failure_once}},
    {"returns the failure on every wait", {.event_wait = failure_of_the_wait}},
    {"returns the failure on every wait",
     {.copy = copy_that_fails_once, .event_wait = wait_of_first_copy}},
    {"asum returns the failure", {.asum = memory_for_a_sum}},
    {"A copy that fails at once has done nothing", {.copy = status_of_no_slot}},
    {"An event on a caller's stream",
     {.event_record = noting_record, .event_wait = failure_of_own_event}},
    {"An event on read_stream",
     {.flags = SB_BACKEND_NO_DEFAULT_STREAM,
      .read_stream = new_stream,
      .event_record = noting_record,
      .event_wait = failure_of_own_event}},
    {"An event that outlives its stream",
     {.event_record = noting_record, .event_wait = failure_of_existing_stream}},
    {"of a caller's stream returns", {.stream_synchronize = failure_of_own_stream}},
    {"stream_synchronize of read_stream",
     {.flags = SB_BACKEND_NO_DEFAULT_STREAM,
      .read_stream = new_stream,
      .stream_synchronize = failure_of_own_stream}},
    {"event that another thread records",
     {.event_record = first_record, .event_wait = failure_of_first_event}},
    {"stream_synchronize does not clear",
     {.stream_synchronize = clearing_synchronize, .event_wait = wait_unless_synchronized}},
    {"waits for a failed event", {.stream_wait = losing_stream_wait, .upload = lost_upload}},
    {"Work queued after failed work", {.copy = losing_copy, .upload = upload_unless_copied}},
    {"stream_synchronize returns a thread's failure even after another thread's stream_synchronize",
     {.stream_synchronize = synchronize_of_first}},
    {"stream_synchronize returns a thread's failure even after another thread's event_wait",
     {.stream_synchronize = synchronize_of_first, .event_wait = event_wait_of_first}},
    {"event_wait returns a thread's failure even after another thread's stream_synchronize",
     {.stream_synchronize = synchronize_of_first, .event_wait = event_wait_of_first}},
    {"event_wait returns a thread's failure even after another thread's event_wait",
     {.event_wait = event_wait_of_first}},
    {"stream_synchronize returns a thread's failure when",
     {.copy = noting_copy, .stream_synchronize = synchronize_of_last_thread}},
    {"event_wait returns a thread's failure when",
     {.copy = noting_copy, .event_wait = event_wait_of_last_thread}},
    {"event_query of failed work", {.event_wait = failure_of_no_event}},
    {"event_query of failed work",
     {.event_query = clearing_query, .event_wait = wait_unless_cleared}},
    {"event_query of failed work", {.event_query = failing_query}},
    {"asum returns the failure", {.asum = asum_of_failures}},
    {"sumsq returns the failure", {.sumsq = sumsq_of_failures}},
    {"stream_synchronize returns the failure", {.stream_synchronize = failure_of_no_stream}},
    {"stream_synchronize returns the failure", {.stream_synchronize = failure_forever}},
    {"own_stream returns the same stream", {.own_stream = new_stream}},
    {"own_stream returns the same stream", {.own_stream = no_stream}},
    {"read_stream is a second", {.flags = SB_BACKEND_NO_DEFAULT_STREAM, .read_stream = own_again}},
    {"read_stream is a second", {.read_stream = new_stream}},
    {"own_stream is ordered with the default stream", {.own_stream = unordered_stream}},
    {"close waits for queued work", {.close = late_close}},
    {"free releases memory only after the", {.free = early_free}},
    {"free releases memory only after the", {.free = free_on_own}},
    {"free releases memory only after the",
     {.alloc = pool_alloc, .free = pool_free, .close = pool_close}},
    {"free releases memory only after the",
     {.alloc = shared_pool_alloc, .free = pool_free, .close = pool_close}},
    {"aligned to 64 bytes and do not overlap", {.alloc = unaligned_alloc, .free = unaligned_free}},
    {"zero clears its range", {.zero = short_zero}},
    {"one stream runs in order", {.zero = zero_at_once}},
    {"check_stream refuses", {.check_stream = nothing_on_stream}},
    {"check_stream refuses",
     {.check_stream = nothing_on_stream,
      .copy = replacing_copy,
      .download = replacing_download,
      .event_record = replacing_record,
      .stream_wait = replacing_wait}},
    {"open returns NO_DEVICE", {.open = any_ordinal}},
    {"open succeeds for each", {.open = one_ordinal}},
    {"lacks returns the same flags", {.lacks = lacks_by_call}},
    {"lacks returns the same flags", {.open = counting_open, .lacks = lacks_by_open}},
    {"copy moves its range", {.copy = long_copy}},
    {"A copy that fails at once has done nothing", {.copy = half_done_copy}},
    {"accept pointers into a block", {.download = rounded_download}},
    {"check_pointer accepts the device's memory", {.check_pointer = any_pointer}},
    {"check_pointer refuses memory of another", {.check_pointer = any_pointer}},
    {"check_pointer accepts the device's memory", {.check_pointer = unfilled_error}},
    {"axpy adds a multiple", {.axpy = short_axpy}},
    {"check_pointer accepts the device's memory", {.check_pointer = error_of_other_code}},
    {"round alpha to the element type", {.axpy = axpy_in_double}},
    {"added in double", {.asum = asum_in_float}},
    {"have the range of doubles", {.asum = asum_in_float}},
    {"have the range of doubles", {.sumsq = sumsq_in_float}},
    {"close to the exact sums", {.asum = rounded_asum}},
};

static void replace_slots(sb_backend *table, const sb_backend *slots) {
    table->flags |= slots->flags;
    for (size_t at = offsetof(sb_backend, open); at < sizeof *table; at += sizeof(void *)) {
        static const char none[sizeof(void *)];
        const char *slot = (const char *)slots + at;
        if (memcmp(slot, none, sizeof none) != 0)
            memcpy((char *)table + at, slot, sizeof none);
    }
}

static bool is_found(const sb_backend *table, const char *claim) {
    sb_conformance_options options = simulated_options();
    int32_t failed = -1;
    options.only = claim;
    options.devices = 2;
    options.max_count = 10000;
    assert_ok(sb_conformance_run(table, &options, NULL, NULL, &failed, &err));
    return failed > 0;
}

static void assert_found(const char *claim, const sb_backend *slots, size_t row) {
    sb_backend table = right;
    replace_slots(&table, slots);
    if (!is_found(&table, claim))
        fail_with("row %zu: the planted error is not found: %s", row, claim);
}

TEST(every_planted_error_is_found) {
    right = simulated_backend(SB_SIM_LAZY);
    open_lazy = right.open;
    right.open = two_ordinals;
    for (size_t i = 0; i < COUNT_OF(planted); i++) {
        memset(&now, 0, sizeof now);
        if (is_found(&right, planted[i].claim))
            fail_with("row %zu: the correct table fails: %s", i, planted[i].claim);
        assert_found(planted[i].claim, &planted[i].slots, i);
        if (now.unclosed)
            right.close(now.unclosed);
    }
}

TEST(errors_of_host_coherent_memory_are_found) {
    static const sb_backend errors[] = {{.alloc = clearing_alloc}, {.copy = stale_copy}};
    right = simulated_backend(SB_SIM_LAZY);
    right.flags |= SB_BACKEND_HOST_COHERENT;
    right.user = coherent_table()->user;
    assert_false(is_found(&right, "host-coherent memory"));
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        assert_found("host-coherent memory", &errors[i], i);
}

/* A device with 64 MiB of memory. */
static struct {
    size_t free;
    enum { ALWAYS, ON_OWN_STREAM, NEVER } waits;
} arena = {(size_t)64 << 20, ALWAYS};

static sb_status arena_alloc SLOT_ALLOC {
    const sb_stream own = right.own_stream(device);
    sb_status st = SB_OK;
    if (bytes > arena.free &&
        (arena.waits == ALWAYS || (arena.waits == ON_OWN_STREAM && stream == own)))
        st = right.stream_synchronize(device, own, err);
    if (st == SB_OK)
        st = bytes > arena.free ? sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "the arena is full")
                                : RIGHT_ALLOC;
    arena.free -= st == SB_OK ? bytes : 0;
    return st;
}

static void give_back(void *user) {
    const size_t *bytes = user;
    arena.free += *bytes;
    free(user);
}

static void arena_free SLOT_FREE {
    size_t *freed = malloc(sizeof *freed);
    assert_non_null(freed);
    *freed = bytes;
    RIGHT_FREE;
    ignore(launch(device, stream, give_back, freed));
}

TEST(an_alloc_that_does_not_wait_for_queued_frees_is_found) {
    static const char claim[] = "alloc waits for queued frees";
    right = simulated_backend(SB_SIM_LAZY);
    sb_backend table = right;
    table.alloc = arena_alloc;
    table.free = arena_free;
    for (arena.waits = ALWAYS; arena.waits <= NEVER; arena.waits++)
        assert_int_equal(is_found(&table, claim), arena.waits != ALWAYS);
}

TEST(queued_work_of_a_table_without_streams_is_found) {
    sb_backend table = simulated_backend(SB_SIM_LAZY);
    table.own_stream = NULL;
    table.check_stream = NULL;
    table.stream_synchronize = NULL;
    table.event_record = NULL;
    table.stream_wait = NULL;
    table.event_wait = NULL;
    table.event_destroy = NULL;
    table.event_query = NULL;
    assert_true(is_found(&table, "download returns the bytes"));
}

TEST(random_operations_find_errors) {
    static const sb_backend errors[] = {
        {.free = early_free}, {.stream_wait = ignored_stream_wait}, {.zero = short_zero}};
    right = simulated_backend(SB_SIM_LAZY);
    assert_false(is_found(&right, "Random operations on blobs"));
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        assert_found("Random operations on blobs", &errors[i], i);
}
