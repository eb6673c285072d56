#include "context/context.h"

#include "base/error.h"
#include "base/options.h"
#ifdef SYNCBLOB_CUDA
#include "cuda/table.h"
#endif

#include <ctype.h>
#include <string.h>

/* What sb_context_options ended with in version 0.1. */
#define FIRST_OPTIONS_SIZE (offsetof(sb_context_options, parallel_for_user) + sizeof(void *))
/* A backend's, which may lack DLPack's numbers. */
#define FIRST_BACKEND_SIZE (offsetof(sb_backend, sumsq) + sizeof(void (*)(void)))

#define DEFAULT_PINNED_CAP ((size_t)1 << 30)
#define DEFAULT_CACHE_CAP  ((size_t)256 << 20)

_Static_assert(sizeof(void (*)(void)) == sizeof(void *), "tables hold one pointer a slot");

/* Of a built-in context; no flag of the caller's has its bit. The mark and not the address tells
   it: objects of another copy of the library have a built-in context, too. */
#define BUILT_IN 0x80000000u

static sb_context builtin = {
    .refs = 1,
    .flags = SB_CONTEXT_NO_PINNED | BUILT_IN,
    .max_cache_bytes = DEFAULT_CACHE_CAP,
    .device_name = "cpu",
    .cache = {.lock = SB__MUTEX_INIT},
    .own_lock = SB__MUTEX_INIT,
    .streams = {.lock = SB__MUTEX_INIT},
    .events = {.lock = SB__MUTEX_INIT},
    .quarantine = {.lock = SB__MUTEX_INIT},
};

static void init_builtin(void) {
    builtin.allocator = sb__default_allocator;
    (void)sb__limits_resolve(NULL, NULL, &builtin.limits, NULL);
    sb__fork_watch();
    builtin.fork_generation = sb__counter_read(&sb__fork_generation);
}

sb_context *sb__context(const sb_context *context) {
    static sb__once once = SB__ONCE_INIT;
    if (context)
        return (sb_context *)context;
    sb__run_once(&once, init_builtin);
    return &builtin;
}

static bool is_built_in(const sb_context *context) {
    return context->flags & BUILT_IN;
}

sb_context *sb__context_public(sb_context *context) {
    return is_built_in(context) ? NULL : context;
}

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

static bool all_slots(const void *const *slots, size_t count, size_t *set) {
    *set = 0;
    for (size_t i = 0; i < count; i++)
        *set += slots[i] != NULL;
    return *set == count;
}

/* Flags are known, required groups whole, optional ones whole or absent. */
static sb_status check_table(const sb_backend *b, sb_error *err) {
    const char *first = (const char *)b;
    size_t set;
    if (b->flags & ~(uint32_t)SB_BACKEND_PINNED_NOT_IN_CHILD)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "the backend has unknown flags 0x%x", b->flags);
#define GROUP(from, to)                                                                            \
    (const void *const *)(const void *)(first + offsetof(sb_backend, from)),                       \
        (offsetof(sb_backend, to) - offsetof(sb_backend, from)) / sizeof(void *) + 1
    if (!all_slots(GROUP(open, copy), &set))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the backend lacks a required slot");
    if (!all_slots(GROUP(alloc_pinned, free_pinned), &set) && set)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the backend has half of pinned memory");
    if (!all_slots(GROUP(own_stream, event_destroy), &set) && set)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the backend has some stream slots of all");
    if (!all_slots(GROUP(prepare_arithmetic, sumsq), &set) && set)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the backend has some arithmetic of all");
#undef GROUP
    return SB_OK;
}

/* Before any other member of a caller's table is read. */
static sb_status check_version(const sb_backend *table, sb_error *err) {
    if (table->struct_size >= offsetof(sb_backend, flags) &&
        table->abi_version != SB_BACKEND_ABI_VERSION)
        return sb__fail(err, SB_ERR_ABI_MISMATCH, "the backend table is version %u, not %u",
                        table->abi_version, SB_BACKEND_ABI_VERSION);
    return sb__check_struct(table->struct_size, FIRST_BACKEND_SIZE, "the backend table", err);
}

static sb_status adopt_backend(sb_backend *out, const sb_backend *table, sb_error *err) {
    sb_status st = sb__adopt_struct(out, sizeof *out, FIRST_BACKEND_SIZE, table, table->struct_size,
                                    "the backend table", err);
    return st == SB_OK ? check_table(out, err) : st;
}

/* Splits "NAME:N" at the colon; -1 if `device` has another form. */
static int32_t parse_ordinal(const char *device, size_t *name_length) {
    const char *colon = strchr(device, ':');
    int64_t ordinal = 0;
    if (!colon || colon == device || !colon[1] || (colon[1] == '0' && colon[2]))
        return -1;
    for (const char *p = device; p < colon; p++)
        if (!isalnum((unsigned char)*p))
            return -1;
    for (const char *p = colon + 1; *p; p++) {
        if (*p < '0' || *p > '9')
            return -1;
        ordinal = ordinal * 10 + (*p - '0');
        if (ordinal > INT32_MAX)
            return -1;
    }
    *name_length = (size_t)(colon - device);
    return (int32_t)ordinal;
}

static const struct {
    const sb_backend *table;
    sb__kept_bytes *kept_bytes;
} builtin_backends[] = {
    {&sb__sim_backend, NULL},
#ifdef SYNCBLOB_CUDA
    {&sb__cuda_backend, sb__cuda_kept_bytes},
#endif
};
enum { BUILTIN_BACKENDS = sizeof builtin_backends / sizeof *builtin_backends };

static const sb_backend *find_backend(const sb_context_options *o, const char *name,
                                      size_t length) {
    if (o->backend)
        return o->backend->name && strlen(o->backend->name) == length &&
                       memcmp(o->backend->name, name, length) == 0
                   ? o->backend
                   : NULL;
    for (int i = 0; i < BUILTIN_BACKENDS; i++) {
        const sb_backend *backend = builtin_backends[i].table;
        if (strlen(backend->name) == length && memcmp(backend->name, name, length) == 0)
            return backend;
    }
    return NULL;
}

static sb__kept_bytes *find_kept_bytes(const sb_backend *table) {
    for (int i = 0; i < BUILTIN_BACKENDS; i++)
        if (table == builtin_backends[i].table)
            return builtin_backends[i].kept_bytes;
    return NULL;
}

static sb_status fail_unknown(const sb_context_options *o, const char *device, size_t length,
                              sb_error *err) {
    char shown[64];
#ifndef SYNCBLOB_CUDA
    if (!o->backend && length == 4 && memcmp(device, "cuda", 4) == 0)
        return sb__fail(err, SB_ERR_NO_DEVICE,
                        "this build has no CUDA backend; build it with SYNCBLOB_CUDA=ON");
#else
    (void)o;
#endif
    return sb__fail(err, SB_ERR_UNSUPPORTED, "no backend is named \"%.*s\"", (int)length,
                    sb__escape(device, strlen(device), shown, sizeof shown));
}

static sb_status open_device(sb_context *context, const sb_context_options *o, const char *device,
                             sb_error *err) {
    sb_error slot_err = {.code = SB_OK};
    size_t length = 0;
    char shown[64];
    int32_t ordinal = parse_ordinal(device, &length);
    if (ordinal < 0 || strlen(device) >= sizeof context->device_name)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "device \"%s\" is neither \"cpu\" nor NAME:N",
                        sb__escape(device, strlen(device), shown, sizeof shown));
    sb_status st = o->backend ? check_version(o->backend, err) : (sb_status)SB_OK;
    if (st != SB_OK)
        return st;
    const sb_backend *table = find_backend(o, device, length);
    if (!table)
        return fail_unknown(o, device, length, err);
    st = adopt_backend(&context->backend, table, err);
    if (st != SB_OK)
        return st;
    memcpy(context->device_name, device, strlen(device) + 1);
    st = context->backend.open(context->backend.user, ordinal, &context->device, &slot_err);
    if (st != SB_OK)
        return sb__device_failed(context, st, &slot_err, err);
    context->has_device = true;
    context->kept_bytes = find_kept_bytes(table);
    context->ordinal = ordinal;
    if (context->backend.own_stream)
        context->stream = context->backend.own_stream(context->device);
    return SB_OK;
}

static void take_options(sb_context *context, const sb_context_options *o) {
    context->flags = o->flags;
    context->parallel.run = o->parallel_for;
    context->parallel.user = o->parallel_for_user;
    context->max_cache_bytes = o->max_cache_bytes ? o->max_cache_bytes : DEFAULT_CACHE_CAP;
    context->host.cap = o->max_host_bytes;
    context->device_memory.cap = o->max_device_bytes;
    context->pinned.cap = o->max_pinned_bytes ? o->max_pinned_bytes : DEFAULT_PINNED_CAP;
}

/* The context is the first object of its own allocator, and counted as such. */
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

static void end(sb_context *context) {
    sb__cache_shrink(context, 0);
    sb__own_kept_end(context);
    if (context->has_device && sb__context_is_ours(context))
        context->backend.close(context->device);
    sb__streams_free(context);
    sb__mutex_destroy(&context->own_lock);
    sb__mutex_destroy(&context->streams.lock);
    sb__mutex_destroy(&context->events.lock);
    sb__mutex_destroy(&context->quarantine.lock);
    sb__mutex_destroy(&context->cache.lock);
    sb_allocator allocator = context->allocator;
    allocator.free(allocator.user, context, sizeof *context, 64, SB_ALLOC_OBJECT | SB_ALLOC_ZEROED);
}

sb_status sb_context_create(const sb_context_options *options, sb_context **out, sb_error *err) {
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
    sb__fork_watch();
    context->fork_generation = sb__counter_read(&sb__fork_generation);
    context->limits = limits;
    sb__mutex_init(&context->own_lock);
    sb__mutex_init(&context->streams.lock);
    sb__mutex_init(&context->events.lock);
    sb__mutex_init(&context->quarantine.lock);
    sb__mutex_init(&context->cache.lock);
    memcpy(context->device_name, "cpu", sizeof "cpu");
    if (strcmp(device, "cpu") != 0)
        st = open_device(context, &o, device, err);
    if (st != SB_OK) {
        end(context);
        return st;
    }
    *out = context;
    return SB_OK;
}

sb_context *sb_context_retain(sb_context *context) {
    if (context && !is_built_in(context))
        atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

int64_t sb__context_let_go(sb_context *context) {
    int64_t left = atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) - 1;
    if (left == 0)
        end(context);
    return left;
}

/* Quarantine may be the owner that is left. */
void sb_context_release(sb_context *context) {
    if (!context || is_built_in(context))
        return;
    bool waits = !sb__quarantine_is_empty(context);
    int64_t left = sb__context_let_go(context);
    if (left == 0 || (left == 1 && waits))
        sb__quarantine_end(context);
}

/* A deleter may release the context. */
void sb_context_trim(sb_context *context) {
    context = sb__context(sb_context_retain(context));
    sb__quarantine_ask_all(); /* first: what it gives back may go to the cache */
    sb__cache_shrink(context, 0);
    sb__device_trim(context);
    sb_context_release(context);
}

const char *sb_context_device(const sb_context *context) {
    return sb__context(context)->device_name;
}

int32_t sb_context_has_device(const sb_context *context) {
    return sb__context(context)->has_device;
}

sb_status sb_context_stream(const sb_context *context, sb_stream *out, sb_error *err) {
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb__device_check(context, err); /* the built-in context has none */
    if (st != SB_OK)
        return st;
    if (!context->backend.own_stream)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "%s has no streams", context->device_name);
    *out = context->backend.own_stream(context->device); /* it learns that a caller has it */
    return SB_OK;
}

/* Quarantine runs deleters, which may release the context. */
static sb_status synchronize(sb_context *context, sb_error *err) {
    sb_status st = sb__streams_wait(context, SB__ALL_STREAMS, err);
    sb_status found = sb__events_check(context, NULL, st == SB_OK ? err : NULL);
    if (st == SB_OK)
        st = found;
    const uint64_t before = sb__counter_read(&context->quarantine.bytes);
    sb__quarantine_ask(context);
    /* A device may free in the order of its stream: others get it after another wait. */
    if (st == SB_OK && sb__counter_read(&context->quarantine.bytes) < before)
        st = sb__streams_wait(context, SB__ALL_STREAMS, err);
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
