#include "context/context.h"

#include "base/error.h"

static const sb_limits defaults = {sizeof(sb_limits), SIZE_MAX, 100000, 1000000, 65536, 32};

static sb_status check(const sb_limits *limits, sb_error *err) {
    if (limits->struct_size != sizeof(sb_limits))
        return sb__fail(err, SB_ERR_ABI_MISMATCH, "sb_limits has %zu bytes here, %zu were given",
                        sizeof(sb_limits), limits->struct_size);
    if (limits->max_layers < 0 || limits->max_blobs < 0 || limits->max_axes < 0)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "a limit is negative");
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
        sb_status st = check(limits, err);
        if (st != SB_OK)
            return st;
        overlay(&resolved, limits);
    }
    *out = resolved;
    return SB_OK;
}
