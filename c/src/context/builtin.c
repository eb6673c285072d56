/* The built-in context, which callers pass as NULL. The built-in context has no device and is never
   destroyed. */
#include "context/context.h"

static sb_context builtin = {
    .refs = 1,
    .flags = SB_CONTEXT_NO_PINNED | SB__CONTEXT_BUILT_IN,
    .max_cache_bytes = SB__DEFAULT_CACHE_CAP,
    .device_name = "cpu",
    .cache = {.lock = SB__MUTEX_INIT},
    .own_lock = SB__MUTEX_INIT,
    .waits = {.lock = SB__MUTEX_INIT},
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

sb_context *sb__context_public(sb_context *context) {
    return sb__context_is_built_in(context) ? NULL : context;
}
