/**
 * The base of all other headers of syncblob: export marks, element types, parts of a blob,
 * deleters, and the version.
 *
 * Conventions of every header:
 *  - A function that can fail returns sb_status, writes its result through `out` and describes a
 *    failure in `err`, which may be NULL. On failure nothing observable changes unless the
 *    function's comment states otherwise.
 *  - A function that fills the caller's buffer returns a size through `out_size`: the bytes
 *    written, or with SB_ERR_BUFFER_TOO_SMALL the bytes needed. To query the size, pass a capacity
 *    of 0; the buffer may then be NULL. Two functions differ: sb_blob_shape_string truncates its
 *    text, as snprintf does; sb_model_read_values writes exactly the values that the caller
 *    requests.
 *  - [owned]: the receiver must release the object. [borrowed]: the receiver must not release the
 *    object; the text states how long the pointer is valid; without such a statement, the pointer
 *    is valid until the call returns. [nullable]: NULL is allowed, and the text states its meaning.
 *    NULL for a pointer without [nullable] results in SB_ERR_INVALID_ARGUMENT. The first parameter,
 *    the object of the call, is [borrowed].
 *  - "Errors:" is the closed list of a function's codes, without the prefix SB_ERR_; "as" before
 *    the name of a function stands for all codes of that function. Every function may also return
 *    INVALID_ARGUMENT for NULL, and any code that a slot of the caller's backend returns
 *    (backend.h).
 *  - The name of a layer or net, which may contain any bytes, is passed as a pointer and a size.
 *    The pointer may be NULL if the size is 0. Paths and names of devices end in NUL. On Windows
 *    paths are UTF-8; any other encoding results in SB_ERR_IO.
 *  - A value from a list of constants has a named type (sb_dtype, sb_head, sb_side), which is
 *    int32_t. The behaviour is defined for every number: a function refuses a number outside the
 *    list, and a function that returns names of constants returns "unknown" for such a number.
 *  - A struct with `struct_size` may grow in later versions: the caller sets `struct_size` to its
 *    own sizeof. The bytes beyond the library's sizeof are the "unknown tail", which must be zero.
 *  - Axes are int32_t; dimensions, indices and counts are int64_t; sizes in bytes are size_t.
 *    Predicates return 0 or 1 as int32_t.
 *  - Computations on the host (conversions, fillers, sums, arithmetic) use the thread's
 *    floating-point environment and do not change it. The documented results are those of C's
 *    default environment: rounding to nearest, subnormal numbers, no traps. In another environment
 *    (fesetround, FTZ, DAZ) a result may differ by one rounding, even if the documentation states a
 *    stricter bound. If floating-point exceptions are trapped, a call may end the process.
 *  - A thread must not be cancelled (pthread_cancel) during a call: the call would never release
 *    its locks and memory. Disable cancellation around calls (pthread_setcancelstate). To end a
 *    call early, use sb_progress (io.h).
 *  - A flag of one call never has the same bit as a flag of another call: SB_READ_ONLY 0,
 *    SB_COPY_RESHAPE 1, SB_PROTO_* 3 and 4, SB_DLPACK_RESHAPE 6, SB_OPEN_MAPPED 7, SB_CONTEXT_* 8
 *    and 9, SB_SOURCE_CLOSES 10, SB_WRITE_* 11 and 12; the next free bit is 13. A call returns
 *    SB_ERR_INVALID_ARGUMENT for a bit that it does not know, even if that bit is a flag of another
 *    call. SB_ALLOC_*, SB_BACKEND_*, SB_FEATURE_*, SB_REALLOCATED_* and SB_DL_* are not flags of
 *    calls: the library returns them or passes them to callbacks, or structs contain them. Each of
 *    these sets begins at bit 0.
 */
#ifndef SYNCBLOB_BASE_H
#define SYNCBLOB_BASE_H

#include <stddef.h>
#include <stdint.h>

/** @def SB_API Marks an exported function. */
/** @def SB_MUST_CHECK Marks a function that returns a status: compilers warn of a call whose status
 *  is ignored. */
/** @def SB_BEGIN_DECLS Begins declarations with C linkage in C++. */
/** @def SB_END_DECLS Ends the declarations of SB_BEGIN_DECLS. */
/* On Windows a list of exports replaces SB_API. The static library is compiled with SB__STATIC:
   otherwise a program that links it would export the library's functions. */
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

/* Declarations in #ifdef SB_EXPERIMENTAL may change or disappear in any minor version; they are
   visible if the program defines SB_EXPERIMENTAL. */

#ifdef __cplusplus
#define SB_BEGIN_DECLS extern "C" {
#define SB_END_DECLS   }
#else
#define SB_BEGIN_DECLS
#define SB_END_DECLS
#endif

#define SB_VERSION_MAJOR 0 /**< increases when programs must change */
#define SB_VERSION_MINOR 1 /**< increases when something is added */
#define SB_VERSION_PATCH 0 /**< increases when a bug is fixed */
/** The version as one number: major * 1000000 + minor * 1000 + patch. */
#define SB_VERSION_NUMBER (SB_VERSION_MAJOR * 1000000 + SB_VERSION_MINOR * 1000 + SB_VERSION_PATCH)

SB_BEGIN_DECLS

/** An element type, SB_DTYPE_*. */
typedef int32_t sb_dtype;

/** The list of the element types with arithmetic: X(NAME, number, name, type, kind, with). `type`
 *  is the C type, `kind` is DLPack's code (SB_DL_CODE_*), `with` is the list's second argument. */
#define SB_DTYPE_FLOAT_LIST(X, with)                                                               \
    X(F32, 1, f32, float, FLOAT, with)                                                             \
    X(F64, 2, f64, double, FLOAT, with)

/** The list of the integer types: storage only, no arithmetic. */
#define SB_DTYPE_INTEGER_LIST(X, with)                                                             \
    X(I32, 3, i32, int32_t, INT, with)                                                             \
    X(U32, 4, u32, uint32_t, UINT, with)                                                           \
    X(I8, 7, i8, int8_t, INT, with)                                                                \
    X(U8, 8, u8, uint8_t, UINT, with)                                                              \
    X(I64, 9, i64, int64_t, INT, with)

/** The list of the 16-bit floats, IEEE binary16 and bfloat16: storage only; `type` is an integer
 *  type for their bits. */
#define SB_DTYPE_HALF_LIST(X, with)                                                                \
    X(F16, 5, f16, uint16_t, FLOAT, with)                                                          \
    X(BF16, 6, bf16, uint16_t, BFLOAT, with)

/** The list of all element types. */
#define SB_DTYPE_LIST(X, with)                                                                     \
    SB_DTYPE_FLOAT_LIST(X, with) SB_DTYPE_INTEGER_LIST(X, with) SB_DTYPE_HALF_LIST(X, with)

/** The element types of SB_DTYPE_LIST. The numbers never change. */
enum {
#define SB_DTYPE_ENUM(NAME, number, name, type, kind, with) SB_DTYPE_##NAME = number,
    SB_DTYPE_LIST(SB_DTYPE_ENUM, )
#undef SB_DTYPE_ENUM
};

/** Returns the size of one element of `dtype` in bytes; 0 for a number that is not a dtype. */
SB_API size_t sb_dtype_size(sb_dtype dtype);

/** Returns the dtype's short name ("f32"), or "unknown" for a number that is not a dtype.
 *  @return [borrowed] static text. */
SB_API const char *sb_dtype_name(sb_dtype dtype);

/** A part of a blob, SB_DATA or SB_DIFF. */
typedef int32_t sb_part;

/** Parts of a blob. */
enum {
    SB_DATA = 0, /**< the values */
    SB_DIFF = 1  /**< the gradient of the values */
};

/** A stream of a device: the backend's raw handle, cast to this type (on CUDA a CUstream or
 *  cudaStream_t; on the simulated device the result of sb_sim_stream_create). NULL is the legacy
 *  default stream, or sb_context_stream's stream if the device has no default stream (OpenCL). */
typedef struct sb_stream_handle *sb_stream;

/** A callback that runs when the library no longer uses memory that the caller has lent. A deleter
 *  runs exactly once, as the last step of the call that releases the memory, while the library
 *  holds no lock, and never on a thread of a device driver. A deleter may therefore do whatever the
 *  caller may do after that call: call the library on any object and destroy any object. If the
 *  call destroys an object, the object no longer exists when the deleter runs. If the call returns
 *  a pointer to memory that the deleter frees, the pointer is invalid. A deleter must not throw or
 *  longjmp. */
typedef void (*sb_deleter)(void *user, void *ptr);

/** Returns the version of the library at run time, in the form of SB_VERSION_NUMBER: for programs
 *  that need a minimum version of a shared library. */
SB_API uint32_t sb_version(void);

/** Returns the library's version as text, "0.1.0". @return [borrowed] static text. */
SB_API const char *sb_version_string(void);

/** Optional parts of the library, as bits of sb_features(). */
enum {
    SB_FEATURE_OPENBLAS = 1, /**< host arithmetic with OpenBLAS */
    SB_FEATURE_SIM = 2,      /**< the simulated device "sim:N" */
    SB_FEATURE_CUDA = 4      /**< the CUDA backend "cuda:N" */
};

/** Returns the SB_FEATURE_* bits of the parts that this library has. */
SB_API uint32_t sb_features(void);

SB_END_DECLS

#endif
