/* Finds the backend for a device name, checks its table and opens the device. */
#include "context/context.h"

#include "base/error.h"
#include "base/options.h"
#include "sim/table.h"
#ifdef SYNCBLOB_CUDA
#include "cuda/table.h"
#endif

#include <ctype.h>
#include <string.h>

/* The size of sb_backend in its first version, whose last slot was `sumsq`. The members from
   `dlpack_device` on were added later. */
#define FIRST_BACKEND_SIZE (offsetof(sb_backend, sumsq) + sizeof(void (*)(void)))

/* The length of the longest name that, followed by ":0", fits in sb_context.device_name. */
#define MAX_NAME (sizeof(((sb_context *)NULL)->device_name) - sizeof ":0")

_Static_assert(sizeof(void (*)(void)) == sizeof(void *), "every slot is one pointer");

/* A table has either all slots (function pointers) of a group or none. A table must have the slots
   of the first group. */
static const struct group {
    size_t at; /* offset of the first slot */
    const char *names[8];
} groups[] = {
    {offsetof(sb_backend, open),
     {"open", "close", "alloc", "free", "zero", "upload", "download", "copy"}},
    {offsetof(sb_backend, alloc_pinned), {"alloc_pinned", "free_pinned"}},
    {offsetof(sb_backend, own_stream),
     {"own_stream", "check_stream", "stream_synchronize", "event_record", "stream_wait",
      "event_wait", "event_destroy"}},
    {offsetof(sb_backend, prepare_arithmetic),
     {"prepare_arithmetic", "axpy", "scale", "asum", "sumsq"}},
};

static sb_status check_group(const sb_backend *b, const struct group *group, sb_error *err) {
    const char *first = (const char *)b + group->at;
    const void *const *slots = (const void *const *)(const void *)first;
    const char *present = group == groups ? "" : NULL, *absent = NULL;
    for (size_t i = 0; i < 8 && group->names[i]; i++) {
        const char **name = slots[i] ? &present : &absent;
        if (!*name)
            *name = group->names[i];
    }
    if (!present || !absent)
        return SB_OK;
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the backend lacks the slot %s%s%s", absent,
                    *present ? ", but has " : "", present);
}

static sb_status check_table(const sb_backend *b, sb_error *err) {
    const uint32_t known =
        SB_BACKEND_PINNED_NOT_IN_CHILD | SB_BACKEND_NO_DEFAULT_STREAM | SB_BACKEND_HOST_COHERENT;
    sb_status st = SB_OK;
    if (b->flags & ~known)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "the backend has unknown flags 0x%x", b->flags);
    for (size_t i = 0; st == SB_OK && i < sizeof groups / sizeof *groups; i++)
        st = check_group(b, &groups[i], err);
    return st;
}

/* Checks the table's version and size, before the library reads any other member. */
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

/* Returns whether `name` is a built-in kind of device, even if this build lacks the kind. */
static bool is_built_in(const char *name) {
    static const char *const names[] = {"cpu", "sim", "cuda"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static sb_status check_name(const char *name, sb_error *err) {
    size_t length = 0;
    while (name && isalnum((unsigned char)name[length]))
        length++;
    if (length == 0 || name[length] || length > MAX_NAME)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "the backend's name is not 1 to %d letters and digits", (int)MAX_NAME);
    if (is_built_in(name))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "\"%s\" is the name of a built-in device",
                        name);
    return SB_OK;
}

sb_status sb__backend_check(const sb_backend *table, sb_error *err) {
    sb_backend copy = {0};
    sb_status st = check_version(table, err);
    if (st == SB_OK)
        st = adopt_backend(&copy, table, err);
    return st == SB_OK ? check_name(copy.name, err) : st;
}

/* Splits "NAME:N" at the colon and returns N, or -1 if `device` does not have this form. */
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

bool sb__backend_is_named(const sb_backend *backend, const char *name, size_t length) {
    return backend->name && strlen(backend->name) == length &&
           memcmp(backend->name, name, length) == 0;
}

static const sb_backend *find_backend(const sb_context_options *o, const char *name,
                                      size_t length) {
    if (o->backend)
        return sb__backend_is_named(o->backend, name, length) ? o->backend : NULL;
    for (int i = 0; i < BUILTIN_BACKENDS; i++)
        if (sb__backend_is_named(builtin_backends[i].table, name, length))
            return builtin_backends[i].table;
    return sb__registered_backend(name, length);
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
#endif
    return sb__fail(err, SB_ERR_UNSUPPORTED, "no backend is named \"%.*s\"%s", (int)length,
                    sb__escape(device, strlen(device), shown, sizeof shown),
                    o->backend ? "" : "; load its library first (sb_backend_load)");
}

/* Queries the opened device's streams and limits, which are not part of the table. */
static sb_status inspect_device(sb_context *context, sb_error *err) {
    const uint32_t known =
        SB_DEVICE_LACKS_F64 | SB_DEVICE_LACKS_CHECK_POINTER | SB_DEVICE_LACKS_HOST_COHERENT;
    sb_backend *backend = &context->backend;
    if (backend->own_stream)
        context->stream = backend->own_stream(context->device);
    if (backend->own_stream && !context->stream)
        return sb__fail(err, SB_ERR_DEVICE_FAILURE, "own_stream of %s returned NULL",
                        context->device_name);
    if (context->stream && backend->read_stream && !sb__has_default_stream(context))
        context->read_stream = backend->read_stream(context->device);
    if (backend->lacks)
        context->lacks = backend->lacks(context->device);
    if (context->lacks & ~known)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "%s reports unknown limits: flags 0x%x",
                        context->device_name, context->lacks);
    if (context->lacks & SB_DEVICE_LACKS_CHECK_POINTER)
        backend->check_pointer = NULL;
    if (context->lacks & SB_DEVICE_LACKS_HOST_COHERENT)
        backend->flags &= ~(uint32_t)SB_BACKEND_HOST_COHERENT;
    return SB_OK;
}

sb_status sb__device_open(sb_context *context, const sb_context_options *o, const char *device,
                          sb_error *err) {
    sb_error slot_err = {.code = SB_OK};
    size_t length = 0;
    char shown[64];
    int32_t ordinal = parse_ordinal(device, &length);
    if (ordinal < 0 || strlen(device) >= sizeof context->device_name)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "device \"%s\" is neither \"cpu\" nor NAME:N (N from 0)",
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
    st = inspect_device(context, err);
    if (st != SB_OK) {
        context->backend.close(context->device);
        return st;
    }
    context->has_device = true;
    context->kept_bytes = find_kept_bytes(table);
    context->ordinal = ordinal;
    return SB_OK;
}
