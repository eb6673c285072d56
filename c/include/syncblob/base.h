/**
 * What every other header of syncblob needs: export marks, flags of
 * element types and memory sides, and the version.
 *
 * Conventions that hold in every header:
 *  - A function that can fail returns sb_status, writes its result through
 *    `out` and its story into `err`, which may be NULL. On failure nothing
 *    observable changes unless the function says otherwise.
 *  - A function that fills a buffer of the caller's says through `out_size` how many
 *    bytes there are: on success those written, with SB_ERR_BUFFER_TOO_SMALL those
 *    needed. To ask for the size, pass a capacity of 0; the buffer may then be NULL.
 *    (sb_blob_shape_string cuts its text instead, as snprintf does. sb_model_read_values
 *    fills what its caller has counted: so many values of so many bytes.)
 *  - [owned]: the receiver must release it. [borrowed]: it must not, and the
 *    text says how long it lives. [nullable]: NULL is allowed and its meaning
 *    is given. A pointer without [nullable] that is NULL gives
 *    SB_ERR_INVALID_ARGUMENT. The first parameter, which the function is called
 *    on, is [borrowed]. If no time is given, [borrowed] lasts as long as the call.
 *  - "Errors:" is the closed list of a function's codes, without SB_ERR_; "as f"
 *    stands for those of f. A function may also return INVALID_ARGUMENT for a NULL,
 *    and whatever the slots of a caller's own backend return (backend.h).
 *  - Names are bytes with a size, of any value, and NULL where there are none; paths and
 *    names of devices end in NUL. On Windows paths are UTF-8; any other gives SB_ERR_IO.
 *  - A value from a list of constants has a type of its own (sb_dtype, sb_head,
 *    sb_side), which is int32_t. A number that is not in the list is refused, or
 *    "unknown". It is never undefined behaviour, as it may be for an enum.
 *  - Axes are int32_t; dimensions, indices and counts int64_t; bytes size_t.
 *    Predicates return int32_t, 0 or 1.
 *  - Numbers that the host computes (conversions, fillers, sums, arithmetic) are those of
 *    C's default floating-point environment: rounded to nearest, subnormals kept, nothing
 *    trapped. The library takes the environment of the thread that computes, and leaves it
 *    as it is. In another one (fesetround, FTZ, DAZ) these numbers are rounded otherwise, and
 *    may miss a bound by a rounding; nothing else differs. Where exceptions are trapped, a
 *    call may end the process.
 *  - A thread must not be cancelled (pthread_cancel) while it is in a call: what the call
 *    holds would never be released. Disable cancellation around calls
 *    (pthread_setcancelstate). To end a call early, use sb_progress (io.h).
 *  - Flags of calls are bits of one uint32_t, and no two flags of the library are
 *    the same bit: SB_READ_ONLY 0, SB_COPY_RESHAPE 1, SB_PROTO_* 3 and 4, SB_DLPACK_RESHAPE 6,
 * SB_OPEN_MAPPED 7, SB_CONTEXT_* 8 and 9, SB_SOURCE_CLOSES 10, SB_WRITE_* 11 and 12; the next
 * is 13. A call refuses any other bit with SB_ERR_INVALID_ARGUMENT, even if it is a flag of another
 * call. SB_ALLOC_*, SB_BACKEND_*, SB_FEATURE_*, SB_REALLOCATED_* and SB_DL_*
 * are not flags of calls: the library passes them, or structs hold them. Each begins at bit 0.
 */
#ifndef SYNCBLOB_BASE_H
#define SYNCBLOB_BASE_H

#include <stddef.h>
#include <stdint.h>

#if SIZE_MAX < 0xFFFFFFFFFFFFFFFF
#error "syncblob needs a 64-bit host"
#endif

/** @def SB_API
 *  Marks what the library exports. */
/** @def SB_MUST_CHECK
 *  Marks a function that returns a status: compilers warn of a call that ignores it. */
/** @def SB_BEGIN_DECLS
 *  Begins declarations that C++ takes for C's. */
/** @def SB_END_DECLS
 *  Ends them. */
/* On Windows the library's list of exports names the same functions, and a program needs no mark.
   The static library is compiled with SB__STATIC: what it is linked into does not export it. */
#if defined(__GNUC__) && !defined(_WIN32) && !defined(SB__STATIC)
#define SB_API __attribute__((visibility("default")))
#else
#define SB_API
#endif
#if defined(__GNUC__)
#define SB_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SB_MUST_CHECK
#endif

/* What stands in #ifdef SB_EXPERIMENTAL is seen by programs that define it: it may change or go
   with any minor version. */

#ifdef __cplusplus
#define SB_BEGIN_DECLS extern "C" {
#define SB_END_DECLS   }
#else
#define SB_BEGIN_DECLS
#define SB_END_DECLS
#endif

#define SB_VERSION_MAJOR 0 /**< raised when programs must change */
#define SB_VERSION_MINOR 1 /**< raised when something is added */
#define SB_VERSION_PATCH 0 /**< raised when something is put right */
/** The version as one number: major * 1000000 + minor * 1000 + patch. */
#define SB_VERSION_NUMBER (SB_VERSION_MAJOR * 1000000 + SB_VERSION_MINOR * 1000 + SB_VERSION_PATCH)

SB_BEGIN_DECLS

/** An element type, SB_DTYPE_*. */
typedef int32_t sb_dtype;

/** Each element type with arithmetic once: X(NAME, number, name, type, kind, with), where `type` is
 *  C's, `kind` is DLPack's (SB_DL_CODE_*) and `with` is what the list was given. */
#define SB_DTYPE_FLOAT_LIST(X, with)                                                               \
    X(F32, 1, f32, float, FLOAT, with)                                                             \
    X(F64, 2, f64, double, FLOAT, with)

/** Each integer type, which can be stored. */
#define SB_DTYPE_INTEGER_LIST(X, with)                                                             \
    X(I32, 3, i32, int32_t, INT, with)                                                             \
    X(U32, 4, u32, uint32_t, UINT, with)                                                           \
    X(I8, 7, i8, int8_t, INT, with)                                                                \
    X(U8, 8, u8, uint8_t, UINT, with)                                                              \
    X(I64, 9, i64, int64_t, INT, with)

/** IEEE's binary16 and bfloat16, which can be stored; `type` has their bits. */
#define SB_DTYPE_HALF_LIST(X, with)                                                                \
    X(F16, 5, f16, uint16_t, FLOAT, with)                                                          \
    X(BF16, 6, bf16, uint16_t, BFLOAT, with)

/** Each element type once. */
#define SB_DTYPE_LIST(X, with)                                                                     \
    SB_DTYPE_FLOAT_LIST(X, with) SB_DTYPE_INTEGER_LIST(X, with) SB_DTYPE_HALF_LIST(X, with)

/** Element types: those of SB_DTYPE_LIST. The numbers never change. */
enum {
#define SB_DTYPE_ENUM(NAME, number, name, type, kind, with) SB_DTYPE_##NAME = number,
    SB_DTYPE_LIST(SB_DTYPE_ENUM, )
#undef SB_DTYPE_ENUM
};

/** Bytes of one element of `dtype`; 0 for a number that is no dtype. */
SB_API size_t sb_dtype_size(sb_dtype dtype);

/** The dtype's short name ("f32"); "unknown" for any other number.
 *  @return [borrowed] static text. */
SB_API const char *sb_dtype_name(sb_dtype dtype);

/** A part of a blob, SB_DATA or SB_DIFF. */
typedef int32_t sb_part;

/** Parts of a blob. */
enum {
    SB_DATA = 0, /**< the values */
    SB_DIFF = 1  /**< their gradient */
};

/** A stream of a device: the backend's raw handle, cast to this type, which has no other use
 *  (on CUDA a CUstream or cudaStream_t; on the simulated device what sb_sim_stream_create
 *  gives). NULL is the device's legacy default stream. */
typedef struct sb_stream_handle *sb_stream;

/** Gives back memory that a caller lent. Runs exactly once, without any lock
 *  of the library held, never on a thread of a device driver, and as the last step of
 *  the call that gives the memory up. So it may call the library on any object, and end any, as the
 *  caller may after that call; a pointer that the call returns lasts no longer for that. An object
 *  that the call itself ends is gone already. It must not throw or longjmp. */
typedef void (*sb_deleter)(void *user, void *ptr);

/** The library's version as SB_VERSION_NUMBER, at run time. For programs that need at least some
 *  version of a shared library that others install. */
SB_API uint32_t sb_version(void);

/** The library's version as text, "0.1.0". @return [borrowed] static text. */
SB_API const char *sb_version_string(void);

/** What was compiled in, as bits of sb_features(). */
enum {
    SB_FEATURE_OPENBLAS = 1, /**< host arithmetic on OpenBLAS */
    SB_FEATURE_SIM = 2,      /**< the simulated device "sim:N" */
    SB_FEATURE_CUDA = 4      /**< the CUDA backend "cuda:N" */
};

/** A set of SB_FEATURE_* bits. */
SB_API uint32_t sb_features(void);

SB_END_DECLS

#endif
