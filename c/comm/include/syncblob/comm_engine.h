/**
 * The table of an engine of communicators: what somebody implements to bring another
 * transport. Users of communicators do not need this header.
 *
 * The library checks every argument before a slot is called: pointers are not NULL, counts are
 * above 0, ranks and ops exist. One thread at a time is in the slots of one communicator. No
 * lock of the library is held, so that a slot may call the library, but for the communicator
 * that it belongs to. Every slot that can fail returns SB_OK or one of
 *  - OUT_OF_MEMORY, UNSUPPORTED: nothing was sent, and the same call may be made again;
 *  - COMM_FAILURE, or any other code, which callers see as COMM_FAILURE: from then on
 *    only `abandon` and `close` are called.
 * and writes `err` (never NULL here) on failure with sb_error_fill.
 */
#ifndef SYNCBLOB_COMM_ENGINE_H
#define SYNCBLOB_COMM_ENGINE_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** Raised when a slot changes its meaning. */
#define SB_COMM_ENGINE_ABI_VERSION 1

/** Flag of an engine. */
enum {
    SB_COMM_ENGINE_HALF = 1 /**< it reduces SB_DTYPE_F16 and SB_DTYPE_BF16, too, in all memory that
                                 it takes */
};

/** Elements to reduce or to send. */
typedef struct sb_comm_buffer {
    void *ptr;        /**< `count` elements */
    int64_t count;    /**< above 0 */
    sb_dtype dtype;   /**< SB_DTYPE_F32 or SB_DTYPE_F64, SB_DTYPE_F16 or SB_DTYPE_BF16 with
                           SB_COMM_ENGINE_HALF; of `broadcast` SB_DTYPE_U8 */
    int32_t reserved; /**< 0 */
    /** [borrowed, nullable] NULL: host memory, page-locked or not. Else memory of this
     *  context's device, with which no work of the library's is under way, unless `takes` gave
     *  2. */
    sb_context *context;
} sb_comm_buffer;

/** The table. Of a smaller struct_size the missing tail is NULL and 0; one that ends within a slot
 *  is refused. */
typedef struct sb_comm_engine {
    size_t struct_size;   /**< sizeof(sb_comm_engine) of the implementer */
    uint32_t abi_version; /**< SB_COMM_ENGINE_ABI_VERSION */
    uint32_t flags;       /**< 0 or SB_COMM_ENGINE_HALF */
    const char *name;     /**< "mpi"; letters and digits */

    /* --- life: required ------------------------------------------------------ */

    /** Opens the caller's end; `*out` is the first argument of all other slots. `user` is
     *  what sb_comm_create was given. On failure nothing stays open. What is no
     *  rank of its size is COMM_FAILURE, and closed. */
    sb_status (*open)(void *user, void **out, int32_t *out_rank, int32_t *out_size, sb_error *err);
    /** Ends it. Every request is over or abandoned. Does not wait for other ranks, which may be
     *  gone: must not fail. `failed`: the ranks no longer agree on what is next, since a slot has
     *  failed at this rank, or a reducer ended within its step. */
    void (*close)(void *comm, int32_t failed);

    /* --- collectives: required, and return when they are done ------------------ */

    /** Combines every rank's elements, in place. `op` is SB_COMM_SUM, SB_COMM_MIN or
     *  SB_COMM_MAX. */
    sb_status (*all_reduce)(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, sb_error *err);
    /** Sends the root's elements to all. */
    sb_status (*broadcast)(void *comm, int32_t root, const sb_comm_buffer *buffer, sb_error *err);

    /* --- optional ---------------------------------------------------------------- */

    /** Waits for all ranks; missing: the library reduces one element. */
    sb_status (*barrier)(void *comm, sb_error *err);
    /** 1 if the context's device memory may be given in a buffer; 2 if, beside that, the device
     *  comes to it after what is queued on the context's stream and on the default ones, so that
     *  the host need not wait for these; missing: host memory alone. Host memory is always taken.
     *  */
    int32_t (*takes)(void *comm, sb_context *context);

    /* --- requests: all or none; missing: `all_reduce` is called where one would start ----- */

    /** Begins what `all_reduce` does. The elements are the engine's until the request is over;
     *  the struct is not. On failure it touches them no more. */
    sb_status (*start)(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                       sb_error *err);
    /** Whether the request is done, without waiting; it is over then, and asked no more. Called
     *  often, but of the oldest request alone: it is how an engine without threads of its own gets
     *  on with all of them. */
    sb_status (*test)(void *comm, void *request, int32_t *out_done, sb_error *err);
    /** Waits for the request, which is over then. */
    sb_status (*wait)(void *comm, void *request, sb_error *err);
    /** Gives up a request after a failure, its own or another's; it is asked no more. 1: the engine
     *  touches its elements no more. 0: that cannot be told; the library keeps the memory for ever
     *  then. */
    int32_t (*abandon)(void *comm, void *request);
} sb_comm_engine;

/** Makes a communicator of an engine. Whether ranks wait for each other here is the engine's.
 *  @param context [borrowed, nullable] retained; for a reducer's buckets
 *  @param engine [borrowed] outlives the communicator
 *  @param user passed to `open`
 *  @param out [owned] sb_comm_destroy
 *  Errors: INVALID_ARGUMENT (a table that lacks slots, a name of other characters), UNSUPPORTED
 *  (flags, unknown tail that is not zero), ABI_MISMATCH (a table of another version, or one that
 *  ends within a slot), OUT_OF_MEMORY, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_create(sb_context *context, const sb_comm_engine *engine,
                                              void *user, sb_comm **out, sb_error *err);

SB_END_DECLS

#endif
