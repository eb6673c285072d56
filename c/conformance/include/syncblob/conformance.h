/**
 * The conformance test of backends, for authors of a backend (backend.h). The test is in a separate
 * library, libsyncblob-conformance. The program `syncblob-conformance ./libmybackend.so` runs the
 * test on a backend in a shared library. A test in C calls sb_conformance_run.
 *
 * The test consists of claims about a backend. For each claim the test opens the device, calls
 * slots or creates blobs, compares the results with plain loops, and closes the device. The last
 * claims run random operations on blobs. Some of these claims also plant failures in slots. A
 * failed claim does not end the test, but a crash or hang of the backend ends or blocks the
 * process.
 */
#ifndef SYNCBLOB_CONFORMANCE_H
#define SYNCBLOB_CONFORMANCE_H

#include <syncblob/backend.h>

SB_BEGIN_DECLS

/** The outcome of a claim, SB_CONFORMANCE_PASSED to SB_CONFORMANCE_SKIPPED. */
typedef int32_t sb_conformance_outcome;

/** The outcome of a claim. */
enum {
    SB_CONFORMANCE_PASSED = 0, /**< the backend does what the claim states */
    SB_CONFORMANCE_FAILED = 1, /**< the backend violates the claim */
    SB_CONFORMANCE_SKIPPED = 2 /**< not tested, for example because a slot is NULL */
};

/** The options of the test. 0 or NULL in a member means the default. */
typedef struct sb_conformance_options {
    size_t struct_size; /**< sizeof(sb_conformance_options) of the caller */
    int32_t ordinal;    /**< the number of the device */
    uint32_t seconds;   /**< how long each claim with random operations takes. 0: a fixed number of
                             rounds, about a second on a fast device */
    uint64_t seed;      /**< seed of random operations. To begin with a round that failed, pass the
                             seed in its report */
    int64_t max_count;  /**< the largest number of elements; 0: 2^20 + 1. At 2^31 + 5 or more, a
                             claim tests counts above 2^31, which needs 8 GiB of device memory */
    const char *only;   /**< [nullable] tests only the claims whose sentences contain this text, and
                             the first claim, on which all other claims depend */

    /** [nullable] Creates a stream that is neither NULL nor own_stream and is not ordered with
     *  other streams. `device` is the result of the table's `open`. Without this function, claims
     *  about the order of streams are skipped. */
    sb_status (*stream_create)(void *user, void *device, sb_stream *out, sb_error *err);
    /** Destroys a stream of stream_create. Set both functions or neither. */
    void (*stream_destroy)(void *user, void *device, sb_stream stream);
    /** [nullable] Makes the next `copy` on the same thread fail. If `later` is 0, the call fails
     *  and does nothing. If `later` is 1, the call succeeds, but the queued copy fails. The test
     *  calls the function on several threads, one at a time. Without this function, claims about
     *  reported failures are skipped. */
    void (*fail_copy)(void *user, void *device, int32_t later);
    void *user; /**< passed to the functions of this struct */

    int32_t devices;  /**< the number of devices of the backend. 0: unknown, and claims about valid
                           and invalid ordinals are skipped */
    int32_t reserved; /**< 0 */

    /** [nullable] Receives each claim before its test, on the thread of sb_conformance_run. If the
     *  backend crashes or hangs, the claim that was received last was being tested. */
    void (*begin)(void *user, const char *claim);
} sb_conformance_options;

/** The defaults as an initialiser. */
#define SB_CONFORMANCE_OPTIONS_INIT                                                                \
    { sizeof(sb_conformance_options), 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL }

/** The result of one claim. */
typedef struct sb_conformance_result {
    size_t struct_size;             /**< sizeof(sb_conformance_result) of the library */
    const char *claim;              /**< the claim, a sentence; static text */
    const char *detail;             /**< [borrowed] the reason of the outcome, or "" */
    sb_conformance_outcome outcome; /**< SB_CONFORMANCE_* */
    int32_t reserved;               /**< 0 */
} sb_conformance_result;

/** Receives the result of a claim, on the thread of sb_conformance_run. */
typedef void (*sb_conformance_report)(void *user, const sb_conformance_result *result);

/** Tests a backend: reports each claim to `report` and counts the failed claims.
 *  @param table [borrowed] the backend
 *  @param options [borrowed, nullable] NULL: the defaults
 *  @param report [nullable] receives each result
 *  @param user passed to `report`
 *  @param out_failed the number of failed claims
 *  Errors: INVALID_ARGUMENT (only one of stream_create and stream_destroy; a negative number; no
 *  claim contains `only`), UNSUPPORTED (an unknown tail that is not zero), ABI_MISMATCH (a
 *  struct_size of no known version of the options). */
SB_API SB_MUST_CHECK sb_status sb_conformance_run(const sb_backend *table,
                                                  const sb_conformance_options *options,
                                                  sb_conformance_report report, void *user,
                                                  int32_t *out_failed, sb_error *err);

/** Returns the text of claim `index`, from 0, or NULL after the last claim.
 *  @return [borrowed, nullable] static text */
SB_API const char *sb_conformance_claim(int32_t index);

SB_END_DECLS

#endif
