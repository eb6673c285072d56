/**
 * Status codes and the error struct.
 *
 * The codes are in bands, so that a caller can classify an unknown code. Codes -1 to -99 are
 * mistakes of the caller. Codes -100 to -199 are errors in the bytes that were read. Codes -200 to
 * -299 are failures of the environment. Codes below -900 are bugs in syncblob. The numbers never
 * change.
 */
#ifndef SYNCBLOB_STATUS_H
#define SYNCBLOB_STATUS_H

#include <syncblob/base.h>

SB_BEGIN_DECLS

/** A status: SB_OK (0) or one of SB_ERR_*. */
typedef int32_t sb_status;

/** The list of all statuses: X(name, number, text); `name` has no prefix SB_. */
#define SB_STATUS_LIST(X)                                                                          \
    X(OK, 0, "success")                                                                            \
    X(ERR_INVALID_ARGUMENT, -1, "invalid argument")                                                \
    X(ERR_INDEX_OUT_OF_RANGE, -2, "index out of range")                                            \
    X(ERR_DTYPE_MISMATCH, -3, "element types differ")                                              \
    X(ERR_SHAPE_MISMATCH, -4, "shapes differ")                                                     \
    X(ERR_UNINITIALIZED, -5, "memory was never written, or its bytes were lost")                   \
    X(ERR_UNSUPPORTED, -6, "not supported")                                                        \
    X(ERR_WRONG_DEVICE, -7, "belongs to another context or device")                                \
    X(ERR_SHARED, -8, "storage is shared")                                                         \
    X(ERR_SIZE_OVERFLOW, -9, "size does not fit the address space")                                \
    X(ERR_OVER_LIMIT, -10, "argument is over a limit")                                             \
    X(ERR_BUFFER_TOO_SMALL, -11, "the buffer is too small")                                        \
    X(ERR_NOT_FOUND, -12, "nothing has that name")                                                 \
    X(ERR_MALFORMED, -100, "malformed bytes")                                                      \
    X(ERR_LENGTH_MISMATCH, -101, "payload length differs from the shape's count")                  \
    X(ERR_BAD_SHAPE, -102, "bad shape in the bytes")                                               \
    X(ERR_DATA_OVERFLOW, -103, "a number in the bytes does not fit")                               \
    X(ERR_DATA_LIMIT, -104, "the bytes exceed a limit")                                            \
    X(ERR_OUT_OF_MEMORY, -200, "out of memory")                                                    \
    X(ERR_CAP_REACHED, -201, "the context's memory cap is reached")                                \
    X(ERR_NO_DEVICE, -202, "no device")                                                            \
    X(ERR_DEVICE_FAILURE, -203, "the device failed")                                               \
    X(ERR_DEVICE_LOST, -204, "the device is lost")                                                 \
    X(ERR_FORKED, -205, "device used in a forked child")                                           \
    X(ERR_IO, -206, "input or output failed")                                                      \
    X(ERR_ABI_MISMATCH, -207, "struct or table of another version")                                \
    X(ERR_CANCELLED, -208, "cancelled by the caller")                                              \
    X(ERR_COMM_FAILURE, -209, "the communicator failed")                                           \
    X(ERR_INTERNAL, -901, "internal error")

/** The statuses of SB_STATUS_LIST. */
enum {
#define SB_STATUS_ENUM(name, number, text) SB_##name = number,
    SB_STATUS_LIST(SB_STATUS_ENUM)
#undef SB_STATUS_ENUM
        SB_STATUS_END_ = 1 /**< ends the list; never returned */
};

/** Returns the status's name ("SB_ERR_MALFORMED"), or "SB_ERR_UNKNOWN" for a number that is not a
 *  status.
 *  @return [borrowed] static text. */
SB_API const char *sb_status_name(sb_status status);

/** Returns one line that describes the status. @return [borrowed] static text. */
SB_API const char *sb_status_text(sb_status status);

/**
 * A description of a failure. The caller owns the struct and need not initialise it. A call that
 * fails writes the whole struct. A call that succeeds leaves the struct unchanged. The layout is
 * frozen: 256 bytes.
 */
typedef struct sb_error {
    int32_t code;        /**< the status that was returned */
    int32_t device_code; /**< the device driver's error number, or 0. For SB_ERR_IO: errno, or on
                              Windows the result of GetLastError */
    int64_t offset;      /**< byte offset in the bytes or file, -1 when unknown */
    char message[240];   /**< what was requested and why it failed, NUL-terminated. Text from files
                              is escaped to printable ASCII */
} sb_error;

/** Fills `err` and returns `status`. Meant for the caller's callbacks: `return sb_error_fill(...)`.
 *  @param err [nullable]
 *  @param status SB_ERR_*
 *  @param device_code errno for SB_ERR_IO, a driver's error number, or 0
 *  @param message [borrowed, nullable] one sentence, copied; NULL: the text of sb_status_text
 *  Errors: the callback's. */
SB_API SB_MUST_CHECK sb_status sb_error_fill(sb_error *err, sb_status status, int32_t device_code,
                                             const char *message);

SB_END_DECLS

#endif
