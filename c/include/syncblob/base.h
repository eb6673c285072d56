/**
 * What every other header of syncblob needs: export marks, flags of
 * element types and memory sides, and the version.
 *
 * Conventions of every header:
 *  - A function that can fail returns sb_status, writes its result through `out` and describes a
 *    failure in `err`, which may be NULL. On failure nothing observable changes unless the function
 *    says otherwise.
 *  - A function that fills the caller's buffer returns a size through `out_size`: the bytes
 *    written, or with SB_ERR_BUFFER_TOO_SMALL the bytes needed. To query the size, pass a capacity
 *    of 0; the buffer may then be NULL. (sb_blob_shape_string truncates its text instead, as
 *    snprintf does. sb_model_read_values fills exactly the values that its caller requests.)
 *  - [owned]: the receiver must release the object. [borrowed]: the receiver must not release it;
 *    the text states its lifetime, which is the call if none is stated. [nullable]: NULL is
 *    allowed, and the text states its meaning. NULL for a pointer without [nullable] gives
 *    SB_ERR_INVALID_ARGUMENT. The first parameter, the object of the call, is [borrowed].
 *  - "Errors:" is the closed list of a function's codes, without SB_ERR_; "as f" stands for the
 *    codes of f. A function may also return INVALID_ARGUMENT for a NULL, and any code that the
 *    slots of the caller's backend return (backend.h).
 *  - Names are bytes of any value with a size, and NULL if the size is 0; paths and names of
 *    devices end in NUL. On Windows paths are UTF-8; any other encoding gives SB_ERR_IO.
 *  - A value from a list of constants has a named type (sb_dtype, sb_head, sb_side), which is
 *    int32_t. A number outside the list is refused, or "unknown". It is never undefined behaviour,
 *    as it may be for an enum.
 *  - Axes are int32_t; dimensions, indices and counts int64_t; bytes size_t.
 *    Predicates return int32_t, 0 or 1.
 *  - The host computes numbers (conversions, fillers, sums, arithmetic) in the thread's
 *    floating-point environment and does not change it. The results are promised for C's default
 *    environment: rounded to nearest, subnormals kept, nothing trapped. In another environment
 *    (fesetround, FTZ, DAZ) these numbers may differ by a rounding and may exceed a bound by a
 *    rounding; nothing else differs. If exceptions are trapped, a call may end the process.
 *  - A thread must not be cancelled (pthread_cancel) during a call: the call would never release
 *    its locks and memory. Disable cancellation around calls (pthread_setcancelstate). To end a
 *    call early, use sb_progress (io.h).
 *  - Flags of calls are bits of one uint32_t. Each flag of the library has a bit that no other flag
 * has: SB_READ_ONLY 0, SB_COPY_RESHAPE 1, SB_PROTO_* 3 and 4, SB_DLPACK_RESHAPE 6, SB_OPEN_MAPPED
 * 7, SB_CONTEXT_* 8 and 9, SB_SOURCE_CLOSES 10, SB_WRITE_* 11 and 12; the next is 13. A call
 * refuses a bit that it does not know with SB_ERR_INVALID_ARGUMENT, even if another call has that
 * flag. SB_ALLOC_*, SB_BACKEND_*, SB_FEATURE_*, SB_REALLOCATED_* and SB_DL_* are not flags of
 * calls: the library passes them, or structs hold them. Each of these sets begins at bit 0.
 */
#ifndef SYNCBLOB_BASE_H
#define SYNCBLOB_BASE_H

#include <stddef.h>
#include <stdint.h>

/** @def SB_API Marks an exported function. */
/** @def SB_MUST_CHECK
 *  Marks a function that returns a status: compilers warn of a call that ignores it. */
/** @def SB_BEGIN_DECLS Begins declarations with C linkage in C++. */
/** @def SB_END_DECLS
 *  Ends them. */
/* On Windows a list of exports names the same functions, and a program needs no mark. The static
   library is compiled with SB__STATIC: a program that links it does not export its functions. */
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

/* Declarations in #ifdef SB_EXPERIMENTAL may change or disappear in any minor version; a program
   that defines SB_EXPERIMENTAL sees them. */

#ifdef __cplusplus
#define SB_BEGIN_DECLS extern "C" {
#define SB_END_DECLS   }
#else
#define SB_BEGIN_DECLS
#define SB_END_DECLS
#endif

#define SB_VERSION_MAJOR 0 /**< raised when programs must change */
#define SB_VERSION_MINOR 1 /**< raised when something is added */
#define SB_VERSION_PATCH 0 /**< raised when a bug is fixed */
/** The version as one number: major * 1000000 + minor * 1000 + patch. */
#define SB_VERSION_NUMBER (SB_VERSION_MAJOR * 1000000 + SB_VERSION_MINOR * 1000 + SB_VERSION_PATCH)

SB_BEGIN_DECLS

/** An element type, SB_DTYPE_*. */
typedef int32_t sb_dtype;

/** Each element type with arithmetic once: X(NAME, number, name, type, kind, with). `type` is the C
 *  type, `kind` is DLPack's code (SB_DL_CODE_*), and `with` is the list's second argument. */
#define SB_DTYPE_FLOAT_LIST(X, with)                                                               \
    X(F32, 1, f32, float, FLOAT, with)                                                             \
    X(F64, 2, f64, double, FLOAT, with)

/** Each integer type: storage only, no arithmetic. */
#define SB_DTYPE_INTEGER_LIST(X, with)                                                             \
    X(I32, 3, i32, int32_t, INT, with)                                                             \
    X(U32, 4, u32, uint32_t, UINT, with)                                                           \
    X(I8, 7, i8, int8_t, INT, with)                                                                \
    X(U8, 8, u8, uint8_t, UINT, with)                                                              \
    X(I64, 9, i64, int64_t, INT, with)

/** IEEE binary16 and bfloat16: storage only; `type` holds their bits. */
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

/** Bytes of one element of `dtype`; 0 for a number that is not a dtype. */
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

/** A stream of a device: the backend's raw handle, cast to this type (on CUDA a CUstream or
 *  cudaStream_t; on the simulated device the result of sb_sim_stream_create). NULL is the device's
 *  legacy default stream. */
typedef struct sb_stream_handle *sb_stream;

/** Returns lent memory to the caller. Runs exactly once, without any lock of the library held,
 *  never on a thread of a device driver, as the last step of the call that releases the memory. It
 *  may therefore call the library on any object, and destroy any object, as the caller may after
 *  that call; this does not extend the lifetime of a pointer that the call returns. An object that
 *  the call itself destroys no longer exists. The deleter must not throw or longjmp. */
typedef void (*sb_deleter)(void *user, void *ptr);

/** The library's version as SB_VERSION_NUMBER, at run time. For programs that need a minimum
 *  version of a shared library. */
SB_API uint32_t sb_version(void);

/** The library's version as text, "0.1.0". @return [borrowed] static text. */
SB_API const char *sb_version_string(void);

/** Optional parts of the library, as bits of sb_features(). */
enum {
    SB_FEATURE_OPENBLAS = 1, /**< host arithmetic on OpenBLAS */
    SB_FEATURE_SIM = 2,      /**< the simulated device "sim:N" */
    SB_FEATURE_CUDA = 4      /**< the CUDA backend "cuda:N" */
};

/** A set of SB_FEATURE_* bits. */
SB_API uint32_t sb_features(void);

SB_END_DECLS

#endif
