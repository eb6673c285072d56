#include "context/context.h"

#include "base/error.h"
#include "base/options.h"

#include <string.h>

/* The size of sb_context_options in version 0.1. */
#define FIRST_OPTIONS_SIZE (offsetof(sb_context_options, parallel_for_user) + sizeof(void *))

#define DEFAULT_PINNED_CAP ((size_t)1 << 30)

void sb_context_options_init(sb_context_options *options, size_t struct_size) {
    const sb_context_options defaults = SB_CONTEXT_OPTIONS_INIT;
    if (options)
        sb__give_struct(options, struct_size, &defaults, sizeof defaults);
}

static sb_status check_options(const sb_context_options *o, sb_error *err) {
    if (o->flags & ~(uint32_t)(SB_CONTEXT_NO_PINNED | SB_CONTEXT_NO_HOST_CACHE) || o->reserved)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "unknown flags 0x%x (reserved 0x%x)",
                        o->flags, o->reserved);
    if (!o->allocator.alloc != !o->allocator.free)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "an allocator needs both alloc and free, or neither");
    return SB_OK;
}

static void take_options(sb_context *context, const sb_context_options *o) {
    context->flags = o->flags;
    context->parallel.run = o->parallel_for;
    context->parallel.user = o->parallel_for_user;
    context->max_cache_bytes = o->max_cache_bytes ? o->max_cache_bytes : SB__DEFAULT_CACHE_CAP;
    context->host.cap = o->max_host_bytes;
    context->device_memory.cap = o->max_device_bytes;
    context->pinned.cap = o->max_pinned_bytes ? o->max_pinned_bytes : DEFAULT_PINNED_CAP;
}

static sb_status alloc_context(const sb_context_options *o, sb_context **out, sb_error *err) {
    sb_context seed = {.allocator = o->allocator.alloc ? o->allocator : sb__default_allocator};
    void *memory;
    take_options(&seed, o);
    sb_status st = sb__object_alloc(&seed, sizeof seed, &memory, err);
    if (st != SB_OK)
        return st;
    sb_context *context = memory;
    memcpy(context, &seed, sizeof seed);
    atomic_store_explicit(&context->refs, 1, memory_order_relaxed);
    *out = context;
    return SB_OK;
}

static void watch_once(void) {
    sb__fork_watch();
    sb__on_fork(sb__quarantine_forked);
}

sb_status sb_context_create(const sb_context_options *options, sb_context **out, sb_error *err) {
    static sb__once watch = SB__ONCE_INIT;
    sb_context_options o = SB_CONTEXT_OPTIONS_INIT;
    sb_limits limits;
    sb_context *context;
    sb_status st = SB_OK;
    if (!out)
        return sb__fail_null(err, "out");
    if (options)
        st = sb__adopt_struct(&o, sizeof o, FIRST_OPTIONS_SIZE, options, options->struct_size,
                              "sb_context_options", err);
    if (st == SB_OK)
        st = check_options(&o, err);
    if (st == SB_OK)
        st = sb__limits_resolve(NULL, o.limits, &limits, err);
    if (st == SB_OK)
        st = alloc_context(&o, &context, err);
    if (st != SB_OK)
        return st;

    const char *device = o.device ? o.device : "cpu";
    sb__run_once(&watch, watch_once);
    context->fork_generation = sb__counter_read(&sb__fork_generation);
    context->limits = limits;
    sb__mutex_init(&context->own_lock);
    sb__mutex_init(&context->waits.lock);
    sb__mutex_init(&context->streams.lock);
    sb__mutex_init(&context->events.lock);
    sb__mutex_init(&context->quarantine.lock);
    sb__mutex_init(&context->cache.lock);
    memcpy(context->device_name, "cpu", sizeof "cpu");
    if (strcmp(device, "cpu") != 0)
        st = sb__device_open(context, &o, device, err);
    if (st != SB_OK) {
        (void)sb__context_drop_owner(context);
        return st;
    }
    *out = context;
    return SB_OK;
}

/* Checks quarantined storage if no owner remains except, perhaps, quarantine's list of contexts. */
void sb_context_release(sb_context *context) {
    if (!context || sb__context_is_built_in(context))
        return;
    bool waits = !sb__quarantine_is_empty(context);
    int64_t left = sb__context_drop_owner(context);
    if (left == 0 || (left == 1 && waits))
        sb__quarantine_end(context);
}

/* Retains the context, since a deleter may release it. */
void sb_context_trim(sb_context *context) {
    context = sb__context(sb_context_retain(context));
    sb__quarantine_ask_all(); /* comes first, because released storage may enter the cache */
    sb__cache_shrink(context, 0);
    sb__device_trim(context);
    sb_context_release(context);
}

const char *sb_context_device(const sb_context *context) {
    return sb__context(context)->device_name;
}

sb_status sb_context_stream(const sb_context *context, sb_stream *out, sb_error *err) {
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb__device_check(context, err); /* fails for the built-in context */
    if (st != SB_OK)
        return st;
    if (!context->backend.own_stream)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "%s has no streams", context->device_name);
    atomic_store_explicit(&((sb_context *)context)->has_lent_stream, true, memory_order_relaxed);
    /* The second call of own_stream informs the backend that a caller has the stream. */
    *out = context->backend.own_stream(context->device);
    return SB_OK;
}

sb_status sb_context_prepare_arithmetic(sb_context *context, sb_error *err) {
    return sb__device_prepare_arithmetic(sb__context(context), SB_DTYPE_F32, err);
}

/* Waits for all streams, then releases quarantined storage. A deleter may release the context, so
   the caller must have retained the context. */
static sb_status synchronize(sb_context *context, sb_error *err) {
    /* Omits the stream for reads: each call that reads waits for its own work on that stream. */
    const uint64_t users = SB__ALL_STREAMS & ~sb__slot_bit(SB__READ_SLOT);
    sb_status st = sb__streams_wait(context, users, err);
    sb_status found = sb__events_check(context, NULL, st == SB_OK ? err : NULL);
    if (st == SB_OK)
        st = found;
    const uint64_t before = sb__counter_read(&context->quarantine.bytes);
    sb__quarantine_ask(context);
    /* A device may free memory in stream order. The freed memory becomes available only after
       another wait. */
    if (st == SB_OK && sb__counter_read(&context->quarantine.bytes) < before)
        st = sb__streams_wait(context, users, err);
    return st;
}

sb_status sb_context_synchronize(sb_context *context, sb_error *err) {
    context = sb__context(context);
    if (!context->has_device)
        return SB_OK;
    (void)sb_context_retain(context);
    sb_status st = synchronize(context, err);
    sb_context_release(context);
    return st;
}
