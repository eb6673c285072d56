/* Tests sb_mem with random calls and faults, whose results must agree with the table of
   state_table.c. A call with a fault may fail, but must not change the memory. After a fault in
   queued work, any call that waits may report the failure. */
#include "counting_allocator.h"
#include "loan.h"
#include "simulated.h"
#include "state_table.h"

#include <string.h>

#define MEMORIES  3
#define BYTES_MAX 64
#define STEPS_MAX 192
#define OWNERS    3
#define KERNELS   256

/* Queued work. If the work fails, the head becomes `fallback`. */
struct pending {
    int32_t side; /* -1: no work is queued */
    int32_t fallback;
    unsigned char value[BYTES_MAX];
};

struct subject {
    sb_mem *mem;
    int owners;
    struct memory_state state;
    unsigned char value[BYTES_MAX]; /* the bytes that a reader must see */
    struct pending pending;
    bool queued_writer; /* a stream may still be writing the device side */
};

/* A kernel checks the bytes of a memory, then writes other bytes there. */
struct kernel {
    struct world *world;
    const struct subject *subject;
    sb_stream stream;
    const void *ptr;
    size_t bytes;
    bool looks, writes, ran;
    unsigned char expected[BYTES_MAX], fill[BYTES_MAX];
};

struct world {
    struct tape tape;
    struct simulated sim;
    struct lender lender; /* if lender.blind is set, kernels neither check nor write bytes */
    struct kernel kernels[KERNELS];
    int num_kernels;
    struct subject subjects[MEMORIES];
    bool lost;
    bool may_lose;
    bool unsettled; /* a failure of queued work has not been reported yet */
    unsigned char stamp;
};

struct request {
    enum call call;
    const struct call_kind *kind;
    struct subject *subject;
    sb_stream stream;
    bool writes;  /* the harness writes through a mutable pointer */
    bool by_work; /* a kernel uses the pointer, although the call has no stream */
    struct loan *loan;
    void *ptr;
    size_t bytes;
    uint32_t flags;
    sb_status mistake; /* the expected status of invalid arguments, SB_OK if valid */
    struct plan plan;
    sb_status status;
    bool exact; /* the call cannot be affected by a fault */
    struct strike strike;
};

static void stamp(struct world *w, unsigned char out[BYTES_MAX]) {
    w->stamp++;
    for (unsigned i = 0; i < BYTES_MAX; i++)
        out[i] = (unsigned char)(w->stamp * 29u + i * 7u + 1u);
}

/* --- faults ----------------------------------------------------------------------- */

/* After a failed wait between streams, work may run in the wrong order, or on freed memory. */
static void lose_order(struct world *w) {
    w->lender.blind = w->may_lose = true;
}

/* Must follow each call of the library. */
static struct strike note_strike(struct world *w) {
    struct strike strike = simulated_strike(&w->sim);
    if (strike.device && strike.fault.mode == SB_SIM_FAIL_STICKY)
        w->may_lose = true;
    /* A failed wait for a stream counts as a failure of all work of the stream. */
    if (strike.device &&
        (strike.fault.mode == SB_SIM_FAIL_LATER || strike.fault.op == SB_SIM_ANY ||
         strike.fault.op == SB_SIM_STREAM_SYNCHRONIZE || strike.fault.op == SB_SIM_EVENT_WAIT))
        w->unsettled = true;
    bool lost = simulated_is_lost(&w->sim);
    fuzz_check(!lost || w->may_lose, "the device was lost without a fault");
    w->lost = lost;
    if (strike.device || strike.allocator)
        trace("    a fault struck: operation %d, mode %d, allocator %d", strike.fault.op,
              strike.fault.mode, strike.allocator);
    return strike;
}

/* --- kernels ---------------------------------------------------------------------- */

static void run_kernel(void *user) {
    struct kernel *kernel = user;
    const struct world *w = kernel->world;
    kernel->ran = true;
    if (w->lender.blind)
        return;
    unsigned char *seen = sb_sim_address(w->sim.context, kernel->ptr, kernel->bytes);
    fuzz_check(seen, "a kernel on stream %p found its memory freed", (void *)kernel->stream);
    for (size_t i = 0; kernel->looks && i < kernel->bytes; i++)
        fuzz_check(seen[i] == kernel->expected[i],
                   "a kernel on stream %p found %02x at byte %zu of %zu, not %02x",
                   (void *)kernel->stream, seen[i], i, kernel->bytes, kernel->expected[i]);
    if (kernel->writes)
        memcpy(seen, kernel->fill, kernel->bytes);
}

/* If `expected` is NULL, the kernel checks no bytes. If `fill` is NULL, the kernel writes none. */
static void launch(struct world *w, sb_stream stream, const struct subject *s, const void *ptr,
                   const unsigned char *expected, const unsigned char *fill) {
    fuzz_check(w->num_kernels < KERNELS, "KERNELS is too small");
    struct kernel *kernel = &w->kernels[w->num_kernels];
    *kernel = (struct kernel){.world = w,
                              .subject = s,
                              .stream = stream,
                              .ptr = ptr,
                              .bytes = s->state.bytes,
                              .looks = expected != NULL,
                              .writes = fill != NULL};
    if (expected)
        memcpy(kernel->expected, expected, kernel->bytes);
    if (fill)
        memcpy(kernel->fill, fill, kernel->bytes);
    sb_status st =
        status_of(sb_sim_launch(w->sim.context, stream, run_kernel, kernel, &call_error));
    if (st == SB_ERR_DEVICE_LOST && w->lender.blind)
        return; /* the device was lost, and this call is the first to report the loss */
    check_equal(st, SB_OK);
    w->num_kernels++;
}

/* Until a kernel on the legacy stream has run, the harness must not use the kernel's memory. */
static bool is_kernel_queued(const struct world *w, const struct subject *s) {
    for (const struct kernel *k = w->kernels; k < w->kernels + w->num_kernels; k++)
        if (k->subject == s && !k->stream && !k->ran)
            return true;
    return false;
}

/* --- bytes ------------------------------------------------------------------------ */

static void compare(const struct world *w, const struct subject *s, const void *seen,
                    const char *where) {
    const unsigned char *bytes = seen;
    if (w->lender.blind)
        return;
    for (size_t i = 0; i < s->state.bytes; i++)
        fuzz_check(bytes[i] == s->value[i], "memory %d, %s: byte %zu of %zu is %02x, not %02x",
                   (int)(s - w->subjects), where, i, s->state.bytes, bytes[i], s->value[i]);
}

static void compare_device(const struct world *w, const struct subject *s, const void *ptr) {
    unsigned char seen[BYTES_MAX];
    check_ok(sb_sim_peek(w->sim.context, seen, ptr, s->state.bytes, &call_error));
    compare(w, s, seen, "on the device");
}

static bool fills(const struct request *r) {
    return r->kind->purpose == OVERWRITE || (r->kind->purpose == WRITE && r->writes);
}

static void use_host(struct world *w, const struct request *r, void *ptr) {
    struct subject *s = r->subject;
    if (r->kind->purpose != OVERWRITE)
        compare(w, s, ptr, "on the host");
    if (fills(r)) {
        stamp(w, s->value);
        memcpy(ptr, s->value, s->state.bytes);
    }
}

/* Without a stream, uses the bytes at once or in a kernel on the legacy stream. */
static void use_device(struct world *w, const struct request *r, void *ptr) {
    struct subject *s = r->subject;
    size_t bytes = s->state.bytes;
    bool looks = r->kind->purpose != OVERWRITE;
    bool at_once = !r->kind->queued && !is_kernel_queued(w, s);
    unsigned char fill[BYTES_MAX];
    if (w->lost)
        return;
    if (fills(r))
        stamp(w, fill);
    if (at_once && looks)
        compare_device(w, s, ptr);
    if (at_once && fills(r) && !r->by_work)
        ignore(sb_sim_poke(w->sim.context, ptr, fill, bytes, NULL));
    else if (r->kind->queued || fills(r) || r->by_work)
        launch(w, r->kind->queued ? r->stream : NULL, s, ptr,
               looks && !w->unsettled ? s->value : NULL, fills(r) ? fill : NULL);
    if (fills(r))
        memcpy(s->value, fill, bytes);
}

static void use_pointer(struct world *w, const struct request *r, void *ptr) {
    fuzz_check(ptr && (uintptr_t)ptr % 64 == 0, "%s gave %p", r->kind->name, ptr);
    if (r->subject->state.bytes > 0)
        (r->plan.side == SB_SIDE_CPU ? use_host : use_device)(w, r, ptr);
}

/* --- expected work of calls---------------------------------------------------------- */

/* Returns whether the call checks its stream. A prefetch to the host may ignore the stream if the
   host has the bytes, or if a copy to the host is queued. */
static bool asks_stream(const struct request *r) {
    return r->kind->queued && (r->call != PREFETCH_CPU || r->subject->state.head == SB_HEAD_AT_GPU);
}

static bool needs_device(const struct request *r) {
    const struct plan *plan = &r->plan;
    return call_is_about_device(r->call) ||
           (plan->status != SB_ERR_UNINITIALIZED &&
            (asks_stream(r) || ((plan->copies || plan->waits) && r->subject->state.bytes) ||
             (r->call == CLEAR && plan->side == SB_SIDE_GPU)));
}

static bool is_over_cap(const struct world *w, const struct subject *s, const struct plan *plan) {
    size_t cap = w->sim.options.max_device;
    return cap && plan->allocates && plan->on_device &&
           simulated_stats(&w->sim).device_bytes + s->state.bytes > cap && s->state.bytes;
}

static sb_status refusal(const struct world *w, const struct request *r) {
    if (r->mistake && r->mistake != SB_ERR_WRONG_DEVICE)
        return r->mistake;
    if (needs_device(r) && w->sim.options.host_only)
        return SB_ERR_NO_DEVICE;
    if (needs_device(r) && w->lost)
        return SB_ERR_DEVICE_LOST;
    if (r->mistake || (asks_stream(r) && r->stream == UNKNOWN_STREAM))
        return SB_ERR_WRONG_DEVICE;
    if (r->plan.status)
        return r->plan.status;
    return is_over_cap(w, r->subject, &r->plan) ? SB_ERR_CAP_REACHED : SB_OK;
}

static void make_plan(const struct world *w, struct request *r) {
    const struct subject *s = r->subject;
    if (!s->mem) {
        r->plan.status = SB_ERR_INVALID_ARGUMENT;
        return;
    }
    r->plan = table_plan(&s->state, r->call);
    if (r->plan.side == SB_SIDE_CPU && (w->lost || is_over_cap(w, s, &r->plan)))
        r->plan.on_device = false; /* the host has separate storage */
    r->plan.status = refusal(w, r);
}

/* New host storage is page-locked if the device and the cap allow page-locked memory. */
static int32_t kind_of_storage(const struct world *w, const struct subject *s,
                               const struct plan *plan) {
    const struct simulated_options *o = &w->sim.options;
    bool pinned = !plan->on_device && s->state.bytes && !o->host_only && !o->no_pinned && !w->lost;
    if (pinned && o->max_pinned)
        pinned = simulated_stats(&w->sim).pinned_bytes + s->state.bytes <= o->max_pinned;
    return pinned ? SB_STORAGE_PINNED : SB_STORAGE_OWNED;
}

/* --- the call ----------------------------------------------------------------------- */

static sb_status call(const struct request *r, void **out) {
    const struct call_arguments arguments = {r->stream, r->ptr,       r->bytes,
                                             r->flags,  loan_deleter, r->loan};
    return status_of(mem_call(r->subject->mem, r->call, &arguments, out, &call_error));
}

static void check_work(const struct world *w, const struct request *r, const struct tally *before) {
    const struct plan *plan = &r->plan;
    const struct tally now = simulated_tally(&w->sim);
    bool worked = r->status == SB_OK && r->subject->state.bytes > 0;
    bool host = plan->side == SB_SIDE_CPU, device = !host;
    const bool expected[WORKS] = {[UPLOADS] = plan->copies && device,
                                  [DOWNLOADS] = plan->copies && host,
                                  [DEVICE_COPIES] = plan->moves && device,
                                  [HOST_COPIES] = plan->moves && host,
                                  [DEVICE_CLEARS] = plan->zeroes && device,
                                  [HOST_BUFFERS] = plan->allocates && !plan->on_device,
                                  [DEVICE_BUFFERS] = plan->allocates && plan->on_device};
    /* a failed call may have allocated a buffer */
    for (int i = 0; i < (r->status == SB_OK ? WORKS : HOST_BUFFERS); i++)
        fuzz_check(now.of[i] - before->of[i] == (worked && expected[i]),
                   "%s with head %d: %lld %s, not %d", r->kind->name, r->subject->state.head,
                   (long long)(now.of[i] - before->of[i]), work_names[i], worked && expected[i]);
}

static void check_result(const struct world *w, const struct request *r) {
    const sb_status st = r->status, expected = r->plan.status;
    const struct strike *strike = &r->strike;
    bool of_memory =
        strike->allocator ||
        (strike->device && (strike->fault.op == SB_SIM_ALLOC || strike->fault.op == SB_SIM_ANY));
    bool allowed = st == expected;
    if (!r->exact)
        allowed |= (st == SB_ERR_DEVICE_FAILURE && (w->unsettled || strike->device)) ||
                   (st == SB_ERR_DEVICE_LOST && w->lost) ||
                   (st == SB_ERR_OUT_OF_MEMORY && of_memory);
    fuzz_check(allowed, "%s with head %d: %s, not %s (%s)", r->kind->name, r->subject->state.head,
               sb_status_name(st), sb_status_name(expected), st == SB_OK ? "" : call_error.message);
    bool falls_back = /* if no device memory can be allocated, the call allocates host memory */
        r->plan.side == SB_SIDE_CPU && table_plan(&r->subject->state, r->call).on_device;
    fuzz_check(st != SB_OK || !strike->allocator || falls_back,
               "%s succeeded although its host allocation was made to fail", r->kind->name);
}

/* --- the reference model after a call --------------------------------------------------- */

static bool is_wait_for(const struct request *r, int32_t side) {
    if (r->kind->purpose == READ || r->kind->purpose == MOVE)
        return r->plan.copies || r->plan.waits || (side == r->plan.side && !r->kind->queued);
    return true;
}

static void note_pending(const struct request *r) {
    struct subject *s = r->subject;
    const struct plan *plan = &r->plan;
    bool device = plan->side == SB_SIDE_GPU;
    if (s->pending.side >= 0 && is_wait_for(r, s->pending.side))
        s->pending.side = -1;
    if (r->kind->queued && s->state.bytes &&
        (plan->copies || plan->waits || (plan->zeroes && device))) {
        s->pending.side = plan->side;
        s->pending.fallback = plan->zeroes ? SB_HEAD_UNINITIALIZED
                              : device     ? SB_HEAD_AT_CPU
                                           : SB_HEAD_AT_GPU;
        memcpy(s->pending.value, s->value, BYTES_MAX);
    }
    bool writes = r->kind->purpose == WRITE || r->kind->purpose == OVERWRITE;
    bool asks_nothing = r->call == MUTABLE_CPU && s->state.head == SB_HEAD_AT_CPU;
    if (r->kind->queued && device && (writes || plan->zeroes))
        s->queued_writer = true;
    else if ((writes && !asks_nothing) || plan->adopts)
        s->queued_writer = false;
}

static void succeed(struct world *w, const struct request *r, int32_t storage, void *out) {
    struct subject *s = r->subject;
    struct side fresh = {storage, NULL};
    const struct plan *plan = &r->plan;
    struct plan done = *plan;
    done.on_device &= sb_mem_storage(s->mem, SB_SIDE_GPU) != SB_STORAGE_NONE;
    if (plan->adopts)
        fresh =
            (struct side){r->flags ? SB_STORAGE_BORROWED_READ_ONLY : SB_STORAGE_BORROWED, r->loan};
    else if (plan->allocates && !r->exact &&
             plan->side == SB_SIDE_CPU) /* pinning may have failed */
        fresh.kind = sb_mem_storage(s->mem, SB_SIDE_CPU) == SB_STORAGE_PINNED ? SB_STORAGE_PINNED
                                                                              : SB_STORAGE_OWNED;
    note_pending(r);
    struct loan *ended = table_commit(&s->state, &done, fresh);
    if (ended)
        ended->due = true;
    if (plan->zeroes)
        memset(s->value, 0, BYTES_MAX);
    if (plan->adopts)
        memcpy(s->value, r->loan->before, s->state.bytes);
    if (r->kind->gives_pointer)
        use_pointer(w, r, out);
}

/* If work on a stream fails, the bytes that the stream wrote are lost, even in copies in flight. */
static bool is_failed_writer(const struct subject *s, int32_t head, sb_status status) {
    bool at_device = s->state.head == SB_HEAD_AT_GPU || s->pending.side == SB_SIDE_CPU;
    return s->queued_writer && at_device && head == SB_HEAD_LOST && status == SB_ERR_DEVICE_FAILURE;
}

/* A failed call may change the head only if queued work failed, or if CLEAR had begun to write. */
static void accept_head(const struct request *r) {
    struct subject *s = r->subject;
    int32_t head = sb_mem_head(s->mem), before = s->state.head;
    if (head == before)
        return;
    fuzz_check(!r->exact, "%s failed and moved the head from %d to %d", r->kind->name, before,
               head);
    if (s->pending.side >= 0 && head == s->pending.fallback) {
        memcpy(s->value, s->pending.value, BYTES_MAX);
        s->pending.side = -1;
    } else if (is_failed_writer(s, head, r->status)) {
        s->pending.side = -1;
        s->queued_writer = false;
    } else {
        bool keeps_host = before == SB_HEAD_SYNCED && !table_is_one(&s->state);
        int32_t spoiled = keeps_host ? SB_HEAD_AT_CPU : SB_HEAD_LOST;
        fuzz_check(r->call == CLEAR && r->status == SB_ERR_DEVICE_LOST &&
                       r->plan.side == SB_SIDE_GPU && !r->plan.allocates && head == spoiled,
                   "%s failed (%s) and moved the head from %d to %d", r->kind->name,
                   sb_status_name(r->status), before, head);
    }
    s->state.head = head;
}

/* A failed call may have allocated storage on a side that had none. */
static void accept_spare(const struct request *r, int32_t side) {
    struct subject *s = r->subject;
    int32_t kind = sb_mem_storage(s->mem, side);
    if (s->state.side[side].kind == SB_STORAGE_NONE &&
        (kind == SB_STORAGE_OWNED || kind == SB_STORAGE_PINNED)) {
        s->state.side[side].kind = kind;
        s->state.is_apart |=
            side == SB_SIDE_CPU && sb_mem_storage(s->mem, SB_SIDE_GPU) != SB_STORAGE_OWNED;
    }
}

static void run_call(struct world *w, struct request *r) {
    struct subject *s = r->subject;
    make_plan(w, r);
    int32_t storage = kind_of_storage(w, s, &r->plan);
    struct tally before = simulated_tally(&w->sim);
    void *out = NULL;
    r->exact = !w->unsettled && !(w->lost && s->pending.side >= 0);
    if (r->loan)
        r->loan->given = true;
    r->status = call(r, &out);
    if (r->loan)
        r->loan->given = r->status == SB_OK;
    if (r->call == CLEAR && r->status == SB_ERR_DEVICE_LOST)
        w->may_lose |= !r->exact || w->sim.fault.nth; /* CLEAR may have begun to write */
    r->strike = note_strike(w);
    r->exact &= !r->strike.device && !r->strike.allocator;
    trace("%s of memory %d, stream %p: %s, head %d%s", r->kind->name, (int)(s - w->subjects),
          (void *)r->stream, sb_status_name(r->status), sb_mem_head(s->mem),
          w->unsettled ? ", unsettled" : "");
    fuzz_check(r->status == SB_OK || !out, "%s failed and set a pointer", r->kind->name);
    check_result(w, r);
    if (r->exact)
        check_work(w, r, &before);
    if (!s->mem)
        return;
    if (r->status == SB_OK) {
        succeed(w, r, storage, out);
    } else {
        accept_head(r);
        accept_spare(r, SB_SIDE_CPU);
        accept_spare(r, SB_SIDE_GPU);
    }
}

/* --- after every step -------------------------------------------------------------------- */

static void inspect_host(const struct world *w, const struct subject *s) {
    const void *ptr;
    if (!table_is_current(s->state.head, SB_SIDE_CPU) || s->pending.side == SB_SIDE_CPU)
        return;
    check_ok(sb_mem_cpu(s->mem, &ptr, &call_error));
    compare(w, s, ptr, "on the host, later");
}

static void inspect_device(const struct world *w, const struct subject *s) {
    const void *ptr;
    if (!table_is_current(s->state.head, SB_SIDE_GPU) || s->pending.side == SB_SIDE_GPU ||
        s->queued_writer || w->lost || !s->state.bytes || is_kernel_queued(w, s))
        return;
    check_ok(sb_mem_gpu(s->mem, &ptr, &call_error));
    compare_device(w, s, ptr);
}

static void inspect(const struct world *w, const struct subject *s) {
    if (!s->mem)
        return;
    check_equal(sb_mem_size(s->mem), s->state.bytes);
    check_equal(sb_mem_head(s->mem), s->state.head);
    check_equal(sb_mem_is_unique(s->mem), s->owners == 1);
    for (int32_t side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
        check_equal(sb_mem_storage(s->mem, side), s->state.side[side].kind);
    inspect_host(w, s);
    inspect_device(w, s);
}

static void inspect_all(const struct world *w) {
    int64_t before = simulated_calls(&w->sim);
    for (int i = 0; i < MEMORIES; i++)
        inspect(w, &w->subjects[i]);
    lender_check(&w->lender, w->unsettled);
    fuzz_check(simulated_calls(&w->sim) == before, "a read of current bytes used the device");
}

/* --- steps ------------------------------------------------------------------------------ */

static void create(struct world *w, struct subject *s, size_t bytes) {
    sb_mem *mem = NULL;
    if (s->mem)
        return;
    sb_status st = status_of(sb_mem_create(w->sim.context, bytes, &mem, &call_error));
    struct strike strike = note_strike(w);
    check_equal(st, strike.allocator ? SB_ERR_OUT_OF_MEMORY : SB_OK);
    *s = (struct subject){.mem = mem, .owners = mem != NULL, .pending = {.side = -1}};
    s->state.bytes = bytes;
    s->state.is_coherent = w->sim.options.coherent && bytes;
}

static void release(struct world *w, struct subject *s) {
    sb_mem_release(s->mem);
    (void)note_strike(w);
    if (s->owners == 0 || --s->owners > 0)
        return;
    for (int32_t side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
        if (s->state.side[side].loan)
            s->state.side[side].loan->due = true;
    *s = (struct subject){.pending = {.side = -1}};
}

static void retain(struct subject *s) {
    if (s->owners == OWNERS)
        return;
    fuzz_check(sb_mem_retain(s->mem) == s->mem, "retain returned another memory");
    s->owners += s->mem != NULL;
}

static void draw_loan(struct world *w, struct request *r, uint32_t variant) {
    enum { GOOD = 10, SIZE, FLAG, MISSING, RANGE, HOST };
    struct subject *s = r->subject;
    bool on_device = r->call == SET_GPU && !w->sim.options.host_only;
    unsigned char bytes[BYTES_MAX];
    stamp(w, bytes);
    r->bytes = s->state.bytes + (variant == SIZE);
    r->flags = variant == FLAG ? (uint32_t)SB_COPY_RESHAPE : variant % 3 == 2;
    if (variant == SIZE || variant == FLAG || variant == MISSING)
        r->mistake = SB_ERR_INVALID_ARGUMENT;
    else if (variant > MISSING && on_device && s->state.bytes)
        r->mistake = SB_ERR_WRONG_DEVICE;
    struct loan *loan = lender_make(&w->lender, on_device ? w->sim.context : NULL, bytes,
                                    s->state.bytes, r->flags == SB_READ_ONLY);
    r->ptr = loan && !(variant == HOST && r->mistake) ? loan->ptr : w;
    if (variant == MISSING)
        r->ptr = NULL;
    if (variant == RANGE && r->mistake)
        r->ptr = (char *)r->ptr + 1;
    r->loan = r->mistake ? NULL : loan;
}

static sb_stream draw_stream(const struct world *w, uint32_t choice) {
    if (w->sim.options.host_only)
        return NULL;
    return choice == 7 ? UNKNOWN_STREAM : w->sim.streams[choice < STREAMS ? choice : choice / 2];
}

static void step_call(struct world *w, enum call which, uint8_t how) {
    struct request r = {.call = which,
                        .kind = &call_kinds[which],
                        .subject = &w->subjects[(how & 3) % MEMORIES],
                        .stream = draw_stream(w, how >> 2 & 7),
                        .writes = how >> 5 & 1,
                        .by_work = how >> 6 & 1};
    if (which == PREFETCH_CPU && r.subject->pending.side == SB_SIDE_CPU)
        r.stream = w->sim.streams[1];
    if (which == SET_CPU || which == SET_GPU)
        draw_loan(w, &r, tape_below(&w->tape, 16));
    run_call(w, &r);
}

static void step_arm(struct world *w, uint8_t how) {
    int32_t op = (int32_t)(how % (SB_SIM_EVENT_WAIT + 2)) - 1;
    int32_t mode = (how / 16) % 3;
    /* The harness must know which operation will fail. */
    if (op == SB_SIM_ANY && mode == SB_SIM_FAIL_LATER)
        mode = SB_SIM_FAIL_NOW;
    if (op == SB_SIM_STREAM_WAIT && mode == SB_SIM_FAIL_LATER)
        lose_order(w);
    simulated_arm(&w->sim, op, 1 + how / 64, mode);
}

static sb_status step_context(struct world *w, bool forgets, sb_stream stream) {
    bool exact = !w->unsettled;
    sb_status expected = w->lost ? SB_ERR_DEVICE_LOST : SB_OK;
    if (forgets && w->sim.options.host_only)
        expected = SB_ERR_NO_DEVICE;
    sb_status st = status_of(forgets ? sb_context_forget_stream(w->sim.context, stream, &call_error)
                                     : sb_context_synchronize(w->sim.context, &call_error));
    exact &= !note_strike(w).device;
    trace("%s: %s", forgets ? "forget a stream" : "synchronize the context", sb_status_name(st));
    bool is_failure = st == SB_ERR_DEVICE_FAILURE || st == SB_ERR_DEVICE_LOST;
    fuzz_check(st == expected || (!exact && (st == SB_OK || is_failure)),
               "the context's call returned %s, not %s", sb_status_name(st),
               sb_status_name(expected));
    fuzz_check(st != SB_ERR_DEVICE_LOST || w->lost, "the device is not lost");
    return st;
}

/* Uses the library's stream: sb_context_forget_stream waits only for streams that were used. */
static void use_own_stream(struct world *w) {
    sb_mem *mem;
    if (sb_mem_create(w->sim.context, 0, &mem, NULL) != SB_OK)
        return;
    ignore(sb_mem_prefetch_gpu(mem, w->sim.streams[1], NULL));
    sb_mem_release(mem);
}

/* Only a read reports the failure of the stream that wrote the memory. The first read may report a
   failed wait between streams instead. */
static void settle_writer(struct world *w, struct subject *s) {
    struct request r = {.call = GPU_DATA, .kind = &call_kinds[GPU_DATA], .subject = s};
    for (int tries = 0; tries < 2; tries++)
        if (s->mem && s->queued_writer && table_is_current(s->state.head, SB_SIDE_GPU))
            run_call(w, &r);
}

static void step_calm(struct world *w) {
    bool settled = true;
    simulated_disarm(&w->sim);
    simulated_drain(&w->sim);
    if (!w->unsettled || w->lost)
        return;
    use_own_stream(w);
    for (int i = 0; i < 2 * MEMORIES; i++) {
        struct request r = {.call = SYNCHRONIZE,
                            .kind = &call_kinds[SYNCHRONIZE],
                            .subject = &w->subjects[i % MEMORIES]};
        run_call(w, &r);
    }
    for (int tries = 0; tries < 2; tries++) {
        for (int i = 0; i < MEMORIES; i++)
            settle_writer(w, &w->subjects[i]);
        for (int i = -1; i < STREAMS; i++) { /* -1: the whole context */
            sb_status st = step_context(w, i >= 0, i >= 0 ? w->sim.streams[i] : NULL);
            settled &= st == SB_OK || tries == 0;
        }
    }
    if (settled)
        w->unsettled = false;
}

static void step(struct world *w) {
    enum {
        CREATE = CALLS,
        RELEASE,
        RETAIN,
        SCHEDULE,
        ARM,
        ARM_ALLOCATOR,
        CALM,
        WAIT,
        FORGET,
        TRIM,
        STEPS
    };
    static const uint8_t again[] = {CPU_DATA, GPU_DATA_ON, MUTABLE_GPU_ON};
    uint32_t which = tape_below(&w->tape, 32);
    uint8_t how = tape_byte(&w->tape);
    struct subject *s = &w->subjects[(how & 3) % MEMORIES];
    if (which >= CALLS)
        trace("step %u, %d", which, how);
    if (which >= STEPS)
        which = again[which - STEPS];
    if (which < CALLS)
        step_call(w, (enum call)which, how);
    else if (which == CREATE)
        create(w, s, tape_below(&w->tape, BYTES_MAX + 1));
    else if (which == RELEASE)
        release(w, s);
    else if (which == RETAIN)
        retain(s);
    else if (which == SCHEDULE && !w->sim.options.host_only)
        ignore(sb_sim_set_schedule(w->sim.context, how % 3, how, NULL));
    else if (which == ARM)
        step_arm(w, how);
    else if (which == ARM_ALLOCATOR)
        w->sim.counting.fail_nth = how % 4;
    else if (which == CALM)
        step_calm(w);
    else if (which == WAIT || which == FORGET)
        (void)step_context(w, which == FORGET, draw_stream(w, how >> 2 & 7));
    else if (which == TRIM)
        sb_context_trim(w->sim.context);
}

static void open_world(struct world *w) {
    uint8_t how = tape_byte(&w->tape);
    struct simulated_options options = {.host_only = how % 16 == 15,
                                        .coherent = how % 16 >= 12 && how % 16 < 15,
                                        .no_pinned = how >> 4 & 1,
                                        .max_pinned = how & 32 ? 2 * BYTES_MAX - 28 : 0,
                                        .max_device = how & 64 ? 2 * BYTES_MAX + 22 : 0};
    simulated_open(&w->sim, options);
    for (int i = 0; i < MEMORIES; i++)
        w->subjects[i].pending.side = -1;
    if (!options.host_only)
        ignore(sb_sim_set_schedule(w->sim.context, how % 3, how, NULL));
    create(w, &w->subjects[0], tape_below(&w->tape, BYTES_MAX + 1));
}

static void close_world(struct world *w) {
    simulated_disarm(&w->sim);
    for (int i = 0; i < MEMORIES; i++)
        while (w->subjects[i].mem)
            release(w, &w->subjects[i]);
    simulated_drain(&w->sim);
    (void)step_context(w, false, NULL);
    lender_check(&w->lender, false);
    lender_close(&w->lender);
    simulated_close(&w->sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world w = {.tape = {data, size}};
    open_world(&w);
    for (int i = 0; i < STEPS_MAX && w.tape.left > 0; i++) {
        step(&w);
        inspect_all(&w);
    }
    close_world(&w);
    return 0;
}
