/**
 * The table of functions that an engine implements. Only the author of an engine, for another
 * transport, needs this header.
 *
 * The library checks every argument before it calls a slot: pointers are not NULL, counts are above
 * 0, ranks and ops are valid. The slots of one communicator run on one thread at a time. The
 * library holds no lock while a slot runs, so a slot may call the library. A slot must not call a
 * function of the library with the communicator that the slot serves. A slot that fails fills `err`
 * (never NULL) with sb_error_fill. If `takes`, `abandon` or `test` reports a number that the slot's
 * comment does not list, the library treats the number as 1. Every slot that can fail returns SB_OK
 * or one of
 *  - OUT_OF_MEMORY, UNSUPPORTED: nothing was sent, and the call may be retried
 *  - DEVICE_LOST: nothing was sent, since the engine needs the rank's device, which is lost
 *  - COMM_FAILURE (callers also receive COMM_FAILURE for any other code): from then on the library
 *    calls only `abandon` and `close`.
 */
#ifndef SYNCBLOB_COMM_ENGINE_H
#define SYNCBLOB_COMM_ENGINE_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** The version of the table, which increases when the meaning of a slot changes. */
#define SB_COMM_ENGINE_ABI_VERSION 1

/** Flag of an engine. */
enum {
    SB_COMM_ENGINE_HALF = 1 /**< the engine also reduces SB_DTYPE_F16 and SB_DTYPE_BF16, in all
                                 memory that it accepts */
};

/** Elements to reduce or to send. */
typedef struct sb_comm_buffer {
    void *ptr;        /**< `count` elements */
    int64_t count;    /**< above 0 */
    sb_dtype dtype;   /**< SB_DTYPE_F32 or SB_DTYPE_F64. With SB_COMM_ENGINE_HALF also SB_DTYPE_F16
                           or SB_DTYPE_BF16. In `broadcast` always SB_DTYPE_U8 */
    int32_t reserved; /**< 0 */
    /** [borrowed, nullable] NULL: `ptr` is host memory, page-locked or not. Otherwise `ptr` is
     *  memory of this context's device, and the library has waited for its own work on that memory,
     *  unless `takes` returned 2. */
    sb_context *context;
} sb_comm_buffer;

/** The table of an engine. Members beyond the implementer's struct_size count as NULL or 0. The
 *  library refuses a struct_size that ends in the middle of a member. */
typedef struct sb_comm_engine {
    size_t struct_size;   /**< sizeof(sb_comm_engine) of the implementer */
    uint32_t abi_version; /**< SB_COMM_ENGINE_ABI_VERSION */
    uint32_t flags;       /**< 0 or SB_COMM_ENGINE_HALF */
    const char *name;     /**< letters and digits, for example "mpi" */

    /* --- life: required ------------------------------------------------------ */

    /** Opens the rank's handle. `*out` is the first argument of all other slots. `user` is the
     *  argument of sb_comm_create. A failed call leaves nothing open. If `*out_rank` is not below
     *  `*out_size`, sb_comm_create closes the handle and returns COMM_FAILURE. */
    sb_status (*open)(void *user, void **out, int32_t *out_rank, int32_t *out_size, sb_error *err);
    /** Closes the handle, after every request has ended or was abandoned. The slot must not fail,
     *  and must not wait for other ranks, which may have ended. `failed` is nonzero if the ranks no
     *  longer agree on the next operation. The cause is a slot that has failed at this rank, or a
     *  reducer that was destroyed during a step. */
    void (*close)(void *comm, int32_t failed);

    /* --- collectives: required; return when complete ------------------ */

    /** Combines every rank's elements, in place. `op` is SB_COMM_SUM, SB_COMM_MIN or
     *  SB_COMM_MAX. */
    sb_status (*all_reduce)(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, sb_error *err);
    /** Sends the root's elements to all ranks. */
    sb_status (*broadcast)(void *comm, int32_t root, const sb_comm_buffer *buffer, sb_error *err);

    /* --- optional ---------------------------------------------------------------- */

    /** Returns when all ranks have called the slot. If the slot is missing, the library reduces one
     *  element instead. */
    sb_status (*barrier)(void *comm, sb_error *err);
    /** Returns 0 if the engine accepts only host memory, which every engine accepts. Returns 1 if
     *  the engine also accepts memory of the context's device. Returns 2 if the engine also orders
     *  its access after work queued on the context's stream and on the default streams. The host
     *  then need not wait for that work. A missing slot counts as 0. */
    int32_t (*takes)(void *comm, sb_context *context);

    /* --- requests: set all four slots or none; if none, the library calls all_reduce - */

    /** Begins an all_reduce. The engine may access the elements until the request ends, but the
     *  struct `*buffer` only until the slot returns. After a failure the engine must not use the
     *  elements. */
    sb_status (*start)(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                       sb_error *err);
    /** Sets `*out_done` to 1 if the request has completed, else to 0, without waiting. A completed
     *  request has ended and is not tested again. The library calls this slot often, and only for
     *  the oldest request: an engine without threads must advance all requests in this slot. */
    sb_status (*test)(void *comm, void *request, int32_t *out_done, sb_error *err);
    /** Waits until the request has completed, which ends the request. */
    sb_status (*wait)(void *comm, void *request, sb_error *err);
    /** Ends a request after a failure of this or another request. Returns 1 if the engine no longer
     *  accesses the request's elements. Returns 0 if the engine may still access the elements. The
     *  library then never frees the memory. */
    int32_t (*abandon)(void *comm, void *request);
} sb_comm_engine;

/** Creates a rank's handle of a communicator. The engine decides whether this call waits for the
 *  other ranks.
 *  @param context [borrowed, nullable] the communicator retains the context, in which reducers
 *      allocate buckets
 *  @param engine [borrowed] must outlive the communicator
 *  @param user passed to `open`
 *  @param out [owned] destroy with sb_comm_destroy
 *  Errors: INVALID_ARGUMENT (a table without a required slot, or with only some of the slots of
 *  requests; a name with characters other than letters and digits), UNSUPPORTED (unknown flags, an
 *  unknown tail that is not zero, or from `open`), ABI_MISMATCH (a table of another version, or
 *  that ends within a slot), OUT_OF_MEMORY, DEVICE_LOST (from `open`), COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_create(sb_context *context, const sb_comm_engine *engine,
                                              void *user, sb_comm **out, sb_error *err);

SB_END_DECLS

#endif
