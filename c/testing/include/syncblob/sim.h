/**
 * The simulated device "sim:N", steered: a device made of host memory, for testing
 * code that moves bytes between host and device where there is no GPU. These functions are
 * in a separate library, libsyncblob-testing.
 *
 * The device's memory cannot be touched by the host (a read or write of a device
 * pointer faults), its streams run when the schedule says so, a copy's target
 * holds rubbish from the call until the copy has run, and every call can be
 * made to fail. Open it by the device name "sim:N" in sb_context_options;
 * each context has a device of its own. NO_DEVICE stands for a host-only context,
 * UNSUPPORTED for another device, FORKED for the child of a fork.
 */
#ifndef SYNCBLOB_SIM_H
#define SYNCBLOB_SIM_H

#include <syncblob/sim_device.h>

SB_BEGIN_DECLS

/** Chooses the schedule for work queued from now on.
 *  @param schedule SB_SIM_EAGER, SB_SIM_LAZY, SB_SIM_RANDOM
 *  @param seed of SB_SIM_RANDOM
 *  Errors: INVALID_ARGUMENT (no schedule), NO_DEVICE, UNSUPPORTED, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_sim_set_schedule(sb_context *context, sb_sim_schedule schedule,
                                                   uint64_t seed, sb_error *err);

/** Makes the `nth` call of `op` from now on (1 is the next) fail in `mode`, once; nth 0 takes it
 *  back. What was armed before is not any more.
 *  @param op SB_SIM_ANY to SB_SIM_SUMSQ
 *  @param mode SB_SIM_FAIL_*
 *  Errors: INVALID_ARGUMENT (no operation, nth below 0, no mode), NO_DEVICE, UNSUPPORTED,
 *  FORKED. */
SB_API SB_MUST_CHECK sb_status sb_sim_fail(sb_context *context, sb_sim_op op, int64_t nth,
                                           sb_sim_failure mode, sb_error *err);

/** Arms one more fault beside those that are armed, up to 16: for code that has to stand two
 *  failures at once. Each counts on its own; where two are due with one call, the one that was
 *  armed first decides.
 *  @param op SB_SIM_ANY to SB_SIM_SUMSQ
 *  @param nth 1 is the next call
 *  @param mode SB_SIM_FAIL_*
 *  Errors: as sb_sim_fail, OVER_LIMIT (16 are armed). */
SB_API SB_MUST_CHECK sb_status sb_sim_fail_also(sb_context *context, sb_sim_op op, int64_t nth,
                                                sb_sim_failure mode, sb_error *err);

/** How often each slot was called, by SB_SIM_*, since the context was made.
 *  @param out [borrowed] `count` numbers
 *  @param count SB_SIM_OP_COUNT of the caller, not negative; what the library does not know is 0
 *  Errors: INVALID_ARGUMENT (a negative count), NO_DEVICE, UNSUPPORTED, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_sim_calls(const sb_context *context, int64_t *out, int32_t count,
                                            sb_error *err);

/** A stream that is not ordered with the default one.
 *  @param out [owned] sb_sim_stream_destroy
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_LOST, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_stream_create(sb_context *context, sb_stream *out,
                                                    sb_error *err);

/** Runs what is queued and destroys the stream; forget it in the context first.
 *  @param stream [owned]
 *  Errors: INVALID_ARGUMENT (the library's own stream), NO_DEVICE, UNSUPPORTED, FORKED,
 *  WRONG_DEVICE (another device's stream). */
SB_API SB_MUST_CHECK sb_status sb_sim_stream_destroy(sb_context *context, sb_stream stream,
                                                     sb_error *err);

/** Queues kernel(user) on a stream: the stand-in for a user's own kernel. It
 *  may run at once, later, or on another thread, reaches device memory through
 *  sb_sim_address alone and calls nothing else of the library.
 *  @param stream [borrowed]
 *  @param kernel [borrowed]
 *  @param user passed to `kernel`
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, WRONG_DEVICE (another device's stream), DEVICE_LOST,
 *  OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_launch(sb_context *context, sb_stream stream,
                                             void (*kernel)(void *user), void *user, sb_error *err);

/** Inside a kernel: host memory behind a device pointer; NULL if [ptr, ptr + bytes)
 *  is no memory of the device, the context has no simulated one or was opened before a fork.
 *  @param ptr [borrowed] of the device
 *  @return [borrowed] as long as the memory is allocated */
SB_API void *sb_sim_address(const sb_context *context, const void *ptr, size_t bytes);

/** Device memory of the caller's own, to lend to sb_mem_set_gpu.
 *  @param out [owned] sb_sim_free
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_LOST, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_malloc(sb_context *context, size_t bytes, void **out,
                                             sb_error *err);

/** Frees memory of sb_sim_malloc.
 *  @param ptr [owned, nullable]
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_FAILURE (no such memory). */
SB_API SB_MUST_CHECK sb_status sb_sim_free(sb_context *context, void *ptr, sb_error *err);

/** Copies device memory to the host at once, around streams and counters: for
 *  a test that looks.
 *  @param dst [borrowed] `bytes` bytes of the host
 *  @param src [borrowed] `bytes` bytes of the device
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_FAILURE (not the device's memory). */
SB_API SB_MUST_CHECK sb_status sb_sim_peek(const sb_context *context, void *dst, const void *src,
                                           size_t bytes, sb_error *err);

/** Copies host bytes to the device at once, around streams and counters.
 *  @param dst [borrowed] `bytes` bytes of the device
 *  @param src [borrowed] `bytes` bytes of the host
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_FAILURE (not the device's memory). */
SB_API SB_MUST_CHECK sb_status sb_sim_poke(sb_context *context, void *dst, const void *src,
                                           size_t bytes, sb_error *err);

SB_END_DECLS

#endif
