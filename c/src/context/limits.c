#include "context/context.h"

#include "base/error.h"
#include "base/options.h"

static const sb_limits defaults = {sizeof(sb_limits), SIZE_MAX, 100000, 1000000, 65536, 32};

/* The size of sb_limits in version 0.1. */
#define FIRST_SIZE (offsetof(sb_limits, max_axes) + sizeof(int64_t))

static sb_status check(const sb_limits *limits, sb_error *err) {
    if (limits->max_layers < 0 || limits->max_blobs < 0 || limits->max_axes < 0)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "max_layers, max_blobs or max_axes < 0");
    if (limits->max_axes > 32)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "max_axes is %lld, more than 32",
                        (long long)limits->max_axes);
    return SB_OK;
}

static void overlay(sb_limits *base, const sb_limits *limits) {
    if (limits->max_memory)
        base->max_memory = limits->max_memory;
    if (limits->max_layers)
        base->max_layers = limits->max_layers;
    if (limits->max_blobs)
        base->max_blobs = limits->max_blobs;
    if (limits->max_name_bytes)
        base->max_name_bytes = limits->max_name_bytes;
    if (limits->max_axes)
        base->max_axes = limits->max_axes;
}

sb_status sb__limits_resolve(const sb_context *context, const sb_limits *limits, sb_limits *out,
                             sb_error *err) {
    sb_limits resolved = context ? context->limits : defaults;
    if (limits) {
        sb_limits given = SB_LIMITS_INIT;
        sb_status st = sb__adopt_struct(&given, sizeof given, FIRST_SIZE, limits,
                                        limits->struct_size, "sb_limits", err);
        if (st == SB_OK)
            st = check(&given, err);
        if (st != SB_OK)
            return st;
        overlay(&resolved, &given);
    }
    *out = resolved;
    return SB_OK;
}
