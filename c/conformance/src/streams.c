/* Claims about the order of queued work: streams, events, and memory that is freed after use. */
#include "kit.h"

#include <string.h>

enum { BYTES = 50021 };

/* Three blocks of the device, and host memory for uploads and downloads. */
struct blocks {
    struct sb__kit *kit;
    char *at[3];
    char *bytes; /* the bytes to upload to at[0] */
    char *found;
};

static struct blocks blocks_make(struct sb__kit *kit) {
    struct blocks b = {.kit = kit};
    for (int i = 0; i < 3; i++)
        b.at[i] = sb__kit_alloc(kit, BYTES);
    b.bytes = sb__kit_memory(kit, BYTES);
    b.found = sb__kit_memory(kit, BYTES);
    sb__kit_fill(b.bytes, BYTES, 1);
    if (b.found)
        memset(b.found, 0x77, BYTES);
    sb__kit_wait(kit, kit->stream); /* other streams may then use the memory */
    return b;
}

static void blocks_free_device(struct blocks *b) {
    for (int i = 0; i < 3; i++)
        sb__kit_free(b->kit, b->at[i], BYTES);
    b->at[0] = b->at[1] = b->at[2] = NULL;
}

static void blocks_free(struct blocks *b) {
    sb__kit_memory_free(b->kit, b->found);
    sb__kit_memory_free(b->kit, b->bytes);
    blocks_free_device(b);
}

static void check_found(const struct blocks *b, const char *what) {
    if (sb__kit_goes(b->kit) && memcmp(b->found, b->bytes, BYTES) != 0)
        sb__kit_fail(b->kit, "%s", what);
}

static void *record(struct sb__kit *kit, sb_stream stream) {
    void *event = NULL;
    SB__KIT_CALL(kit, event_record, stream, &event);
    return event;
}

static void event_destroy(struct sb__kit *kit, void *event) {
    if (event)
        kit->table.event_destroy(kit->device, event);
}

static void event_wait(struct sb__kit *kit, void *event) {
    SB__KIT_CALL(kit, event_wait, event);
}

/* A call of event_record or event_wait on another thread. */
struct call {
    struct sb__kit *kit;
    sb_stream stream;
    void *event;
};

static void call_record(void *arg) {
    struct call *call = arg;
    call->event = record(call->kit, call->stream);
}

static void call_wait(void *arg) {
    const struct call *call = arg;
    event_wait(call->kit, call->event);
}

static void *record_on_thread(struct sb__kit *kit, sb_stream stream) {
    struct call call = {kit, stream, NULL};
    sb__kit_on_thread(kit, call_record, &call);
    return call.event;
}

static void wait_on_thread(struct sb__kit *kit, void *event) {
    struct call call = {.kit = kit, .event = event};
    sb__kit_on_thread(kit, call_wait, &call);
}

/* The type of `record` and `record_on_thread`. */
typedef void *recorder(struct sb__kit *kit, sb_stream stream);

/* Makes later work on `to` wait for the work queued so far on `from`. */
static void order(struct sb__kit *kit, recorder *record_event, sb_stream from, sb_stream to) {
    void *event = record_event(kit, from);
    SB__KIT_CALL(kit, stream_wait, to, event);
    event_destroy(kit, event);
}

/* Two blocks that are so large that copies between them take long. */
struct load {
    struct sb__kit *kit;
    char *at[2];
};

enum { LOAD = 4 << 20 };

static struct load load_make(struct sb__kit *kit) {
    struct load load = {kit, {sb__kit_alloc(kit, LOAD), sb__kit_alloc(kit, LOAD)}};
    SB__KIT_CALL(kit, zero, load.at[1], (size_t)LOAD, kit->stream);
    return load;
}

static void load_free(const struct load *load) {
    sb__kit_free(load->kit, load->at[1], LOAD);
    sb__kit_free(load->kit, load->at[0], LOAD);
}

/* Queues the copies. Returns an event that is recorded after the copies. */
static void *load_queue(const struct load *load) {
    struct sb__kit *kit = load->kit;
    for (int i = 0; i < 64; i++)
        SB__KIT_CALL(kit, copy, load->at[i % 2], load->at[1 - i % 2], (size_t)LOAD, kit->stream);
    return record(kit, kit->stream);
}

/* --- one stream -------------------------------------------------------------------- */

static void one_stream_is_ordered(struct sb__kit *kit) {
    struct blocks b = blocks_make(kit);
    SB__KIT_CALL(kit, zero, b.at[0], (size_t)BYTES, kit->stream);
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    SB__KIT_CALL(kit, copy, b.at[1], b.at[0], (size_t)BYTES, kit->stream);
    SB__KIT_CALL(kit, zero, b.at[0], (size_t)BYTES, kit->stream);
    SB__KIT_CALL(kit, copy, b.at[2], b.at[1], (size_t)BYTES, kit->stream);
    SB__KIT_CALL(kit, copy, b.at[1], b.at[0], (size_t)BYTES, kit->stream);
    sb__kit_download(kit, b.found, b.at[2], BYTES);
    sb__kit_wait(kit, kit->stream);
    check_found(&b, "six operations on one stream did not run in order");
    if (sb__kit_goes(kit))
        memset(b.bytes, 0, BYTES);
    sb__kit_compare(kit, b.at[1], b.bytes, BYTES, "a copy of bytes that a queued zero has cleared");
    blocks_free(&b);
}

/* Fills new blocks on a stream that is not ordered with other streams. If a block was freed too
   early, a new block may reuse the memory of the freed block. */
static void reuse_memory(struct sb__kit *kit, void *device, sb_stream stream) {
    struct sb__kit other = *kit;
    if (!sb__kit_goes(kit))
        return;
    other.device = device;
    other.stream = stream;
    struct blocks b = blocks_make(&other);
    for (int i = 0; i < 3; i++)
        sb__kit_upload(&other, b.at[i], b.found, BYTES);
    sb__kit_wait(&other, stream);
    blocks_free(&b);
    sb__kit_join(kit, &other);
}

/* Frees a block on `stream` while a copy from the block is queued on `stream`. Then reuses memory
   on `unordered`, unless `unordered` is NULL, and on the stream of a second device. */
static void free_on(struct sb__kit *kit, sb_stream stream, sb_stream unordered, void *second,
                    sb_stream foreign) {
    struct sb__kit on = *kit;
    if (!sb__kit_goes(kit))
        return;
    on.stream = stream;
    struct blocks b = blocks_make(&on);
    struct load load = load_make(&on);
    sb__kit_upload(&on, b.at[0], b.bytes, BYTES);
    sb__kit_wait(&on, stream);
    event_destroy(&on, load_queue(&load));
    SB__KIT_CALL(&on, copy, b.at[1], b.at[0], (size_t)BYTES, stream);
    sb__kit_free(&on, b.at[0], BYTES);
    b.at[0] = NULL;
    if (unordered)
        reuse_memory(&on, kit->device, unordered);
    reuse_memory(&on, second, foreign);
    sb__kit_download(&on, b.found, b.at[1], BYTES);
    sb__kit_wait(&on, stream);
    check_found(&b, "free released memory before a queued copy had read it");
    load_free(&load);
    blocks_free(&b);
    sb__kit_join(kit, &on);
}

/* Skips the claim if the device has no streams, because such a device never frees memory while work
   is queued. */
static void free_waits(struct sb__kit *kit) {
    sb_stream caller = NULL, foreign;
    void *second;
    if (!sb__kit_has_streams(kit))
        return;
    if (kit->options.stream_create)
        caller = sb__kit_stream_create(kit);
    sb__kit_open(kit, &second, &foreign);
    free_on(kit, kit->stream, caller, second, foreign);
    if (caller)
        free_on(kit, caller, kit->stream, second, foreign);
    sb__kit_close(kit, second);
    sb__kit_stream_destroy(kit, caller);
}

/* Fills the device, queues work, frees the blocks, and allocates on `stream`. Allocates at most 256
   MiB, since the device may use host memory. */
static void reallocate(const struct load *load, sb_stream stream) {
    enum { BLOCK = 16 << 20, BLOCKS = 16 };
    struct sb__kit *kit = load->kit;
    void *blocks[BLOCKS] = {NULL}, *again = NULL;
    sb_status st = SB_OK;
    for (int i = 0; i < BLOCKS && st == SB_OK && sb__kit_goes(kit); i++) {
        sb_error err = {.code = SB_OK};
        st = kit->table.alloc(kit->device, BLOCK, kit->stream, &blocks[i], &err);
        sb__kit_expect(kit, "alloc", st == SB_ERR_OUT_OF_MEMORY ? st : SB_OK, st, &err);
    }
    if (blocks[BLOCKS - 1])
        sb__kit_skip(kit, "the device has 256 MiB of free memory, which the claim does not fill");
    else if (!blocks[0])
        sb__kit_skip(kit, "the device has less than 16 MiB of free memory");
    event_destroy(kit, load_queue(load));
    for (int i = 0; i < BLOCKS; i++)
        sb__kit_free(kit, blocks[i], BLOCK);
    SB__KIT_CALL(kit, alloc, (size_t)BLOCK, stream, &again);
    sb__kit_wait(kit, stream); /* own_stream may then free the memory */
    sb__kit_free(kit, again, BLOCK);
}

static void alloc_waits(struct sb__kit *kit) {
    if (!sb__kit_has_streams(kit))
        return;
    struct load load = load_make(kit);
    reallocate(&load, kit->stream);
    if (kit->options.stream_create) {
        sb_stream stream = sb__kit_stream_create(kit);
        reallocate(&load, stream);
        sb__kit_stream_destroy(kit, stream);
    }
    load_free(&load);
}

static void own_stream_is_one(struct sb__kit *kit) {
    if (!sb__kit_has_streams(kit))
        return;
    if (!kit->stream)
        sb__kit_fail(kit, "own_stream returned NULL, the default stream");
    for (int i = 0; i < 3 && sb__kit_goes(kit); i++) {
        sb__kit_wait(kit, kit->stream);
        if (kit->table.own_stream(kit->device) != kit->stream)
            sb__kit_fail(kit, "own_stream returned two different streams");
    }
    SB__KIT_CALL(kit, check_stream, kit->other);
    SB__KIT_CALL(kit, check_stream, kit->stream);
}

static void synchronize_waits(struct sb__kit *kit) {
    if (!sb__kit_has_streams(kit))
        return;
    struct blocks b = blocks_make(kit);
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    sb__kit_download(kit, b.found, b.at[0], BYTES);
    sb__kit_wait(kit, kit->stream);
    check_found(&b, "stream_synchronize returned before a download was complete");
    sb__kit_wait(kit, kit->stream); /* returns although no work is queued */
    sb__kit_wait(kit, kit->other);
    blocks_free(&b);
}

/* Closes a second device while copies are queued. */
static void close_waits(struct sb__kit *kit) {
    struct sb__kit second = *kit;
    if (!sb__kit_has_streams(kit))
        return;
    sb__kit_open(&second, &second.device, &second.stream);
    struct blocks b = blocks_make(&second);
    struct load load = load_make(&second);
    sb__kit_upload(&second, b.at[0], b.bytes, BYTES);
    event_destroy(&second, load_queue(&load));
    sb__kit_download(&second, b.found, b.at[0], BYTES);
    load_free(&load);
    blocks_free_device(&b);
    sb__kit_close(kit, second.device);
    check_found(&b, "close returned before a queued download was complete");
    blocks_free(&b);
    sb__kit_join(kit, &second);
}

/* --- the default stream ------------------------------------------------------------- */

static void default_stream_is_ordered(struct sb__kit *kit) {
    if (!sb__kit_has_default(kit))
        return;
    struct blocks b = blocks_make(kit);
    SB__KIT_CALL(kit, zero, b.at[1], (size_t)BYTES, NULL);
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    SB__KIT_CALL(kit, copy, b.at[1], b.at[0], (size_t)BYTES, NULL);
    SB__KIT_CALL(kit, copy, b.at[2], b.at[1], (size_t)BYTES, kit->stream);
    SB__KIT_CALL(kit, download, b.found, b.at[2], (size_t)BYTES, NULL);
    sb__kit_wait(kit, kit->other);
    check_found(&b, "own_stream is not ordered with the default stream in both directions");
    blocks_free(&b);
}

static void after_default_orders(struct sb__kit *kit) {
    if (!kit->table.after_default)
        sb__kit_skip(kit, "after_default is NULL");
    struct blocks b = blocks_make(kit);
    SB__KIT_CALL(kit, upload, b.at[0], b.bytes, (size_t)BYTES, NULL);
    if (sb__kit_goes(kit)) {
        sb_error err = {.code = SB_OK};
        const sb_status st = kit->table.after_default(kit->device, &err);
        sb__kit_expect(kit, "after_default", SB_OK, st, &err);
    }
    sb__kit_download(kit, b.found, b.at[0], BYTES);
    sb__kit_wait(kit, kit->stream);
    check_found(&b, "own_stream ran before work on the default stream");
    blocks_free(&b);
}

/* --- events ---------------------------------------------------------------------------- */

/* Queues a download behind long work, and waits with event_wait or wait_on_thread. */
static void complete(struct sb__kit *kit, void (*wait)(struct sb__kit *kit, void *event),
                     const char *what) {
    struct blocks b = blocks_make(kit);
    struct load load = load_make(kit);
    void *first = record(kit, kit->stream); /* an event without earlier work */
    event_wait(kit, first);
    event_destroy(kit, load_queue(&load));
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    sb__kit_download(kit, b.found, b.at[0], BYTES);
    void *event = record(kit, kit->stream);
    wait(kit, event);
    check_found(&b, what);
    wait(kit, event); /* the event is already complete */
    event_wait(kit, first);
    event_destroy(kit, event);
    event_destroy(kit, first);
    load_free(&load);
    blocks_free(&b);
}

static void events_complete(struct sb__kit *kit) {
    if (!sb__kit_has_streams(kit))
        return;
    complete(kit, event_wait, "event_wait returned before the event's work was complete");
    complete(kit, wait_on_thread,
             "event_wait on a thread that did not record the event returned before the event's "
             "work was complete");
}

static void events_may_be_destroyed(struct sb__kit *kit) {
    if (!sb__kit_has_streams(kit))
        return;
    struct blocks b = blocks_make(kit);
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    for (int i = 0; i < 100; i++)
        event_destroy(kit, record(kit, kit->stream));
    sb__kit_download(kit, b.found, b.at[0], BYTES);
    void *last = record(kit, kit->stream);
    order(kit, record, kit->stream, kit->other); /* destroys an event while a stream waits for it */
    SB__KIT_CALL(kit, zero, b.at[0], (size_t)BYTES, kit->other);
    event_wait(kit, last);
    check_found(&b, "work that waits for a destroyed event has wrong results");
    event_destroy(kit, last);
    sb__kit_wait(kit, kit->other);
    blocks_free(&b);
}

static void queries_do_not_lie(struct sb__kit *kit) {
    int32_t done = -1;
    if (!kit->table.event_query)
        sb__kit_skip(kit, "event_query is NULL");
    if (!sb__kit_has_streams(kit))
        return;
    struct blocks b = blocks_make(kit);
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    for (int i = 0; i < 20; i++)
        SB__KIT_CALL(kit, copy, b.at[1 + i % 2], i ? b.at[2 - i % 2] : b.at[0], (size_t)BYTES,
                     kit->stream);
    sb__kit_download(kit, b.found, b.at[2], BYTES);
    void *event = record(kit, kit->stream);
    SB__KIT_CALL(kit, event_query, event, &done);
    if (sb__kit_goes(kit) && done != 0 && done != 1)
        sb__kit_fail(kit, "event_query wrote %d, neither 0 nor 1", (int)done);
    if (done == 1)
        check_found(&b, "event_query wrote 1 before the event's work was complete");
    event_wait(kit, event);
    SB__KIT_CALL(kit, event_query, event, &done);
    if (sb__kit_goes(kit) && done != 1)
        sb__kit_fail(kit, "event_query wrote %d after event_wait had returned SB_OK", (int)done);
    event_destroy(kit, event);
    blocks_free(&b);
}

/* Checks that `call` does not wait for queued work. The call must take less than an eighth of the
   work's time, or return before the event is complete. Retries twice, since the system may
   interrupt a call. Runs the copies once before measuring, since the first run takes longer. */
static void check_no_wait(struct sb__kit *kit, const char *slot,
                          void (*call)(struct sb__kit *kit, void *event, int32_t *out_done)) {
    int32_t done = 1;
    double work = 0, taken = 0;
    if (!sb__kit_has_streams(kit))
        return;
    struct load load = load_make(kit);
    event_destroy(kit, load_queue(&load));
    sb__kit_wait(kit, kit->stream);
    for (int tries = 0; tries < 3 && done && 8 * taken >= work; tries++) {
        const double start = sb__kit_seconds();
        void *event = load_queue(&load);
        event_wait(kit, event);
        work = sb__kit_seconds() - start;
        event_destroy(kit, event);
        event = load_queue(&load);
        taken = -sb__kit_seconds();
        call(kit, event, &done);
        taken += sb__kit_seconds();
        event_wait(kit, event);
        event_destroy(kit, event);
    }
    if (done && 8 * taken >= work)
        sb__kit_fail(kit, "%s waited: the call took %g ms, the queued work %g ms", slot,
                     1e3 * taken, 1e3 * work);
    load_free(&load);
}

static void query(struct sb__kit *kit, void *event, int32_t *out_done) {
    SB__KIT_CALL(kit, event_query, event, out_done);
}

static void queries_do_not_wait(struct sb__kit *kit) {
    if (!kit->table.event_query)
        sb__kit_skip(kit, "event_query is NULL");
    check_no_wait(kit, "event_query", query);
}

static void wait_on_stream(struct sb__kit *kit, void *event, int32_t *out_done) {
    (void)out_done;
    SB__KIT_CALL(kit, stream_wait, kit->other, event);
}

static void stream_waits_do_not_wait(struct sb__kit *kit) {
    check_no_wait(kit, "stream_wait", wait_on_stream);
}

/* Makes the default stream wait for an event that is recorded after work on own_stream. */
static void events_order_own_and_default(struct sb__kit *kit) {
    if (!sb__kit_has_default(kit))
        return;
    struct blocks b = blocks_make(kit);
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    order(kit, record, kit->stream, kit->other);
    SB__KIT_CALL(kit, download, b.found, b.at[0], (size_t)BYTES, NULL);
    void *last = record(kit, NULL);
    event_wait(kit, last);
    check_found(&b, "a download on the default stream did not wait for own_stream");
    event_destroy(kit, last);
    blocks_free(&b);
}

/* --- a caller's stream ------------------------------------------------------------------ */

/* Copies bytes alternately on own_stream and on `other`. Only events of `record_event` order the
   copies. Returns the last event, which is recorded on `other`. */
static void *take_turns(struct sb__kit *kit, const struct blocks *blocks, sb_stream other,
                        recorder *record_event) {
    const struct blocks b = *blocks;
    sb__kit_upload(kit, b.at[0], b.bytes, BYTES);
    order(kit, record_event, kit->stream, other);
    SB__KIT_CALL(kit, copy, b.at[1], b.at[0], (size_t)BYTES, other);
    order(kit, record_event, other, kit->stream);
    SB__KIT_CALL(kit, copy, b.at[2], b.at[1], (size_t)BYTES, kit->stream);
    order(kit, record_event, kit->stream, other);
    SB__KIT_CALL(kit, download, b.found, b.at[2], (size_t)BYTES, other);
    return record(kit, other);
}

/* Overwrites the results of earlier work, so that later work must produce them again. */
static void clear(const struct blocks *b) {
    for (int i = 0; i < 3; i++)
        SB__KIT_CALL(b->kit, zero, b->at[i], (size_t)BYTES, b->kit->stream);
    sb__kit_wait(b->kit, b->kit->stream);
    if (b->found)
        memset(b->found, 0x77, BYTES);
}

static void events_order_streams(struct sb__kit *kit) {
    sb_stream other = sb__kit_stream_create(kit);
    if (!sb__kit_goes(kit))
        return;
    struct blocks b = blocks_make(kit);
    struct load load = load_make(kit);
    SB__KIT_CALL(kit, check_stream, other);
    event_destroy(kit, take_turns(kit, &b, other, record));
    sb__kit_wait(kit, other);
    check_found(&b, "stream_synchronize did not wait for work that the stream waits for");
    clear(&b);
    /* The load takes long, so that the events are recorded before the load ends. */
    event_destroy(kit, load_queue(&load));
    void *last = take_turns(kit, &b, other, record_on_thread);
    event_wait(kit, last);
    check_found(&b, "stream_wait did not order two streams by another thread's events");
    sb__kit_stream_destroy(kit, other);
    event_wait(kit, last); /* an event may outlive its stream */
    event_destroy(kit, last);
    load_free(&load);
    blocks_free(&b);
}

static void reads_have_a_stream(struct sb__kit *kit) {
    if (!kit->table.read_stream)
        sb__kit_skip(kit, "read_stream is NULL");
    if (!(kit->table.flags & SB_BACKEND_NO_DEFAULT_STREAM))
        sb__kit_fail(kit, "the table has read_stream without SB_BACKEND_NO_DEFAULT_STREAM, so the "
                          "core never calls the slot");
    if (!sb__kit_has_streams(kit))
        return;
    sb_stream reads = kit->table.read_stream(kit->device);
    if (!reads || reads == kit->stream)
        sb__kit_fail(kit, "read_stream returned %s", reads ? "own_stream" : "NULL");
    struct blocks b = blocks_make(kit);
    void *last = sb__kit_goes(kit) ? take_turns(kit, &b, reads, record) : NULL;
    event_wait(kit, last);
    check_found(&b, "one of read_stream and own_stream did not wait for the other");
    event_destroy(kit, last);
    blocks_free(&b);
}

/* Uses a stream of a second open device. On this stream the second device has already queued work
   that ends with a download to `b.found`. */
static void use_foreign_stream(struct sb__kit *kit, struct sb__kit *second) {
    static const char text[] = "work on a stream that check_stream accepted has wrong results";
    struct blocks b = blocks_make(kit);
    struct load load = load_make(second);
    event_destroy(second, load_queue(&load));
    sb__kit_download(second, b.found, load.at[0], BYTES);
    void *last = take_turns(kit, &b, second->stream, record);
    event_wait(kit, last);
    check_found(&b, text);
    sb__kit_wait(second, second->stream);
    check_found(&b, text); /* the second device's download is earlier work of the stream */
    event_destroy(kit, last);
    load_free(&load);
    blocks_free(&b);
}

static void foreign_streams_are_refused(struct sb__kit *kit) {
    struct sb__kit second = *kit;
    sb_error err = {.code = SB_OK};
    if (!sb__kit_has_streams(kit))
        return;
    sb__kit_open(&second, &second.device, &second.stream);
    if (sb__kit_goes(&second)) {
        const sb_status st = kit->table.check_stream(kit->device, second.stream, &err);
        sb__kit_expect(kit, "check_stream", st == SB_OK ? st : SB_ERR_WRONG_DEVICE, st, &err);
    }
    if (sb__kit_goes(&second) && err.code == SB_OK)
        use_foreign_stream(kit, &second);
    sb__kit_close(kit, second.device);
    sb__kit_join(kit, &second);
}

static void memory_is_for_other_streams(struct sb__kit *kit) {
    sb_stream other = sb__kit_stream_create(kit);
    if (!sb__kit_goes(kit))
        return;
    struct blocks b = blocks_make(kit); /* waits for own_stream */
    SB__KIT_CALL(kit, upload, b.at[0], b.bytes, (size_t)BYTES, other);
    SB__KIT_CALL(kit, copy, b.at[1], b.at[0], (size_t)BYTES, other);
    SB__KIT_CALL(kit, download, b.found, b.at[1], (size_t)BYTES, other);
    sb__kit_wait(kit, other);
    check_found(&b, "work on a caller's stream has wrong results");
    sb__kit_stream_destroy(kit, other);
    blocks_free(&b);
}

/* --- threads ----------------------------------------------------------------------------- */

struct worker {
    struct sb__kit kit; /* a copy: each thread has a separate outcome */
    uint64_t seed;
};

static void work(void *arg) {
    enum { SIZE = 3001, ROUNDS = 50 };
    struct worker *worker = arg;
    struct sb__kit *kit = &worker->kit;
    unsigned char bytes[SIZE];
    for (uint64_t i = 0; i < ROUNDS && sb__kit_goes(kit); i++) {
        sb__kit_fill(bytes, SIZE, worker->seed + i);
        char *from = sb__kit_alloc(kit, SIZE);
        char *to = sb__kit_alloc(kit, SIZE);
        sb__kit_upload(kit, from, bytes, SIZE);
        SB__KIT_CALL(kit, copy, to, from, (size_t)SIZE, kit->stream);
        sb__kit_compare(kit, to, bytes, SIZE, "work of two threads at once");
        sb__kit_free(kit, to, SIZE);
        sb__kit_free(kit, from, SIZE);
    }
}

static void threads_share_a_device(struct sb__kit *kit) {
    struct worker first = {*kit, 1}, second = {*kit, 1000};
    sb__kit_on_two_threads(kit, work, &first, &second);
    sb__kit_join(kit, &first.kit);
    sb__kit_join(kit, &second.kit);
}

const struct sb__claim sb__kit_stream_claims[] = {
    {"Work on one stream runs in order", one_stream_is_ordered},
    {"free releases memory only after the work queued before it", free_waits},
    {"alloc waits for queued frees before it returns OUT_OF_MEMORY", alloc_waits},
    {"own_stream returns the same stream on every call, and never NULL", own_stream_is_one},
    {"stream_synchronize waits for all work of the stream", synchronize_waits},
    {"close waits for queued work", close_waits},
    {"own_stream is ordered with the default stream", default_stream_is_ordered},
    {"after_default orders own_stream after default streams", after_default_orders},
    {"event_wait waits for the work that was queued before the event", events_complete},
    {"An event may be destroyed before it completes", events_may_be_destroyed},
    {"event_query writes 1 only if the work has ended", queries_do_not_lie},
    {"event_query does not wait", queries_do_not_wait},
    {"stream_wait does not wait on the host", stream_waits_do_not_wait},
    {"Events order own_stream and the default stream", events_order_own_and_default},
    {"stream_wait orders streams that are not ordered otherwise", events_order_streams},
    {"read_stream is a second stream, and events order it with own_stream", reads_have_a_stream},
    {"check_stream refuses a stream of another open device, unless the device can use it",
     foreign_streams_are_refused},
    {"Any stream may use memory once the stream of its alloc was synchronised",
     memory_is_for_other_streams},
    {"Two threads may use a device at once", threads_share_a_device},
    {NULL, NULL},
};
