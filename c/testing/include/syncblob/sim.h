/**
 * Control of the simulated device "sim:N", a device in host memory. With this device, a program can
 * test code that moves bytes between host and device without a GPU. These functions are in a
 * separate library, libsyncblob-testing.
 *
 * The host cannot access the device's memory (a read or write of a device pointer faults). A
 * schedule decides when queued work runs. Until a queued copy has run, its target holds garbage.
 * Every call can be made to fail. To open the device, set `device` of sb_context_options to
 * "sim:N"; each context has a separate device. The functions below fail with NO_DEVICE if the
 * context is host-only, UNSUPPORTED if it has another device, and FORKED in a forked child.
 */
#ifndef SYNCBLOB_SIM_H
#define SYNCBLOB_SIM_H

#include <syncblob/sim_device.h>

SB_BEGIN_DECLS

/** Sets the schedule of work queued from now on.
 *  @param schedule SB_SIM_EAGER, SB_SIM_LAZY, SB_SIM_RANDOM
 *  @param seed the seed of SB_SIM_RANDOM
 *  Errors: INVALID_ARGUMENT (unknown schedule), NO_DEVICE, UNSUPPORTED, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_sim_set_schedule(sb_context *context, sb_sim_schedule schedule,
                                                   uint64_t seed, sb_error *err);

/** Plants a fault: the `nth` call of `op` from now on (1: the next call) fails in `mode`, once.
 *  The call first removes all earlier faults; if `nth` is 0, the call only removes faults.
 *  @param op SB_SIM_ANY to SB_SIM_SUMSQ
 *  @param mode SB_SIM_FAIL_*
 *  Errors: INVALID_ARGUMENT (unknown operation, nth below 0, unknown mode), NO_DEVICE, UNSUPPORTED,
 *  FORKED. */
SB_API SB_MUST_CHECK sb_status sb_sim_fail(sb_context *context, sb_sim_op op, int64_t nth,
                                           sb_sim_failure mode, sb_error *err);

/** Plants a fault and keeps earlier faults, for tests of several failures; at most 16 faults are
 *  planted at a time. Each fault counts calls separately. If two faults are due at one call, the
 *  fault that was planted first takes effect.
 *  @param op SB_SIM_ANY to SB_SIM_SUMSQ
 *  @param mode SB_SIM_FAIL_*
 *  Errors: as sb_sim_fail, OVER_LIMIT (16 faults are planted). */
SB_API SB_MUST_CHECK sb_status sb_sim_fail_also(sb_context *context, sb_sim_op op, int64_t nth,
                                                sb_sim_failure mode, sb_error *err);

/** Reads the number of calls of each slot, indexed by SB_SIM_*, since the context was created.
 *  @param out [borrowed] receives `count` numbers; 0 for operations that this version of the
 *      library does not have
 *  @param count the length of `out`, not negative: SB_SIM_OP_COUNT of the caller's headers
 *  Errors: INVALID_ARGUMENT (a negative count), NO_DEVICE, UNSUPPORTED, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_sim_calls(const sb_context *context, int64_t *out, int32_t count,
                                            sb_error *err);

/** Creates a stream that is not ordered with the default stream.
 *  @param out [owned] destroy the stream with sb_sim_stream_destroy
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_LOST, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_stream_create(sb_context *context, sb_stream *out,
                                                    sb_error *err);

/** Runs queued work and destroys the stream; call sb_context_forget_stream first.
 *  @param stream [owned]
 *  Errors: INVALID_ARGUMENT (the library's own stream), NO_DEVICE, UNSUPPORTED, FORKED,
 *  WRONG_DEVICE (another device's stream). */
SB_API SB_MUST_CHECK sb_status sb_sim_stream_destroy(sb_context *context, sb_stream stream,
                                                     sb_error *err);

/** Queues kernel(user) on a stream, as a program queues a kernel on a GPU. The kernel may run at
 *  once, later, or on another thread; a kernel accesses device memory through sb_sim_address and
 *  must not call other functions of the library.
 *  @param stream [borrowed]
 *  @param kernel [borrowed]
 *  @param user passed to `kernel`
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, WRONG_DEVICE (another device's stream), DEVICE_LOST,
 *  OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_launch(sb_context *context, sb_stream stream,
                                             void (*kernel)(void *user), void *user, sb_error *err);

/** Returns the host memory behind a device pointer, for kernels; NULL if [ptr, ptr + bytes) is not
 *  memory of the device, or if the context has no simulated device or was created before a fork.
 *  @param ptr [borrowed] a device pointer
 *  @return [borrowed] valid as long as the memory is allocated */
SB_API void *sb_sim_address(const sb_context *context, const void *ptr, size_t bytes);

/** Allocates device memory, which the caller can pass to sb_mem_set_gpu.
 *  @param out [owned] free the memory with sb_sim_free
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_LOST, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_malloc(sb_context *context, size_t bytes, void **out,
                                             sb_error *err);

/** Frees memory of sb_sim_malloc.
 *  @param ptr [owned, nullable]
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_FAILURE (not memory of sb_sim_malloc). */
SB_API SB_MUST_CHECK sb_status sb_sim_free(sb_context *context, void *ptr, sb_error *err);

/** Copies device memory to the host at once, without a stream and without counting a call, for
 *  assertions in tests.
 *  @param dst [borrowed] `bytes` bytes of host memory
 *  @param src [borrowed] `bytes` bytes of device memory
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_FAILURE (not the device's memory). */
SB_API SB_MUST_CHECK sb_status sb_sim_peek(const sb_context *context, void *dst, const void *src,
                                           size_t bytes, sb_error *err);

/** Copies host memory to the device at once, without a stream and without counting a call.
 *  @param dst [borrowed] `bytes` bytes of device memory
 *  @param src [borrowed] `bytes` bytes of host memory
 *  Errors: NO_DEVICE, UNSUPPORTED, FORKED, DEVICE_FAILURE (not the device's memory). */
SB_API SB_MUST_CHECK sb_status sb_sim_poke(sb_context *context, void *dst, const void *src,
                                           size_t bytes, sb_error *err);

SB_END_DECLS

#endif
