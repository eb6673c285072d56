/**
 * DLPack: blobs into other programs' tensors and tensors into blobs, without a
 * copy, by the structs of DLPack 1.x and of the versions before (legacy).
 *
 * The structs here have the layout of those of dlpack.h under names of their
 * own, so that both headers can be included, in either order. A pointer to one
 * is cast to the other: (DLManagedTensorVersioned *)tensor.
 *
 * A tensor that a blob is exported as is one more user of that memory's storage, until
 * its deleter ends it: until then the memory is not unique (sb_mem_is_unique), and the bytes
 * that the tensor points to stay allocated even where the memory lets go of them (set, evict,
 * release, a mutable call on read-only storage); the deleter of lent bytes waits for the tensor.
 * What sb_mem's rules ask of a sharer is asked of whoever has the tensor, and of a blob that is
 * made of the tensor:
 *  - it is read where the bytes were current; a mutable or overwrite call on the
 *    other side leaves it with old bytes;
 *  - to write through it is to write through the pointer of a mutable call:
 *    seen by all sharers until the next call for the other side (even a const
 *    one), after which a mutable call for this side comes before the next write;
 *  - reads and writes through it need the same exclusion as theirs.
 *
 * On a device the bytes are ready for any stream. Work on a stream that is not
 * ordered with the legacy default one is made known by sb_blob_gpu_on or
 * sb_blob_mutable_gpu_on with that stream, or has ended before the
 * deleter is called; likewise the work of those who give a tensor. The mutable call is for
 * work that writes. If such work fails, the memory that it was made known to or queued
 * through reports that; the others of the same bytes do not.
 *
 * Element types: SB_DTYPE_F32 and so on are their namesakes in DLPack, one lane. A
 * tensor of DLPack's bool is refused: a blob of U8 would let values but 0 and 1 into
 * it. Its owner may give it as one of uint8.
 * Devices: the host; page-locked host memory of CUDA; "cuda:N" is CUDA device N;
 * "sim:N" is extension device N, whose memory the host cannot touch; another
 * backend's is what its table says.
 *
 * The memory of "cuda:N" comes from a memory pool of the driver: cudaIpcGetMemHandle refuses
 * it, and other devices have no access to it. A tensor that is to be shared between processes
 * or devices needs memory of cudaMalloc, which sb_mem_set_gpu lends to the blob.
 */
#ifndef SYNCBLOB_DLPACK_H
#define SYNCBLOB_DLPACK_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

/** The version of DLPack that exported tensors keep to. */
#define SB_DL_MAJOR_VERSION 1 /**< another one has another layout */
#define SB_DL_MINOR_VERSION 3 /**< another one has other numbers */

/** Device types that this header speaks of (DLDeviceType). */
enum {
    SB_DL_DEVICE_CPU = 1,       /**< kDLCPU */
    SB_DL_DEVICE_CUDA = 2,      /**< kDLCUDA */
    SB_DL_DEVICE_CUDA_HOST = 3, /**< kDLCUDAHost: page-locked */
    SB_DL_DEVICE_EXTENSION = 12 /**< kDLExtDev: a simulated device */
};

/** Kinds of element types that this header speaks of (DLDataTypeCode). */
enum {
    SB_DL_CODE_INT = 0,   /**< kDLInt */
    SB_DL_CODE_UINT = 1,  /**< kDLUInt */
    SB_DL_CODE_FLOAT = 2, /**< kDLFloat */
    SB_DL_CODE_BFLOAT = 4 /**< kDLBfloat */
};

/** Flags of a versioned tensor. */
enum {
    SB_DL_READ_ONLY = 1,     /**< must not be written */
    SB_DL_IS_COPIED = 2,     /**< a copy that nobody else has */
    SB_DL_SUBBYTE_PADDED = 4 /**< of element types below a byte */
};

/** @def SB_DL_STRUCT
 *  The compiler takes these structs and dlpack.h's for one another. */
#if defined(__GNUC__)
#define SB_DL_STRUCT struct __attribute__((may_alias))
#else
#define SB_DL_STRUCT struct
#endif

/** DLPackVersion. */
typedef SB_DL_STRUCT sb_dl_version {
    uint32_t major; /**< SB_DL_MAJOR_VERSION */
    uint32_t minor; /**< SB_DL_MINOR_VERSION */
}
sb_dl_version;

/** DLDevice. */
typedef SB_DL_STRUCT sb_dl_device {
    int32_t device_type; /**< SB_DL_DEVICE_* and others */
    int32_t device_id;   /**< 0 for host memory */
}
sb_dl_device;

/** DLDataType. */
typedef SB_DL_STRUCT sb_dl_data_type {
    uint8_t code;   /**< SB_DL_CODE_* and others */
    uint8_t bits;   /**< of one lane */
    uint16_t lanes; /**< 1 but for vectors */
}
sb_dl_data_type;

/** DLTensor. */
typedef SB_DL_STRUCT sb_dl_tensor {
    void *data;            /**< NULL for no elements */
    sb_dl_device device;   /**< where `data` is */
    int32_t ndim;          /**< axes */
    sb_dl_data_type dtype; /**< element type */
    int64_t *shape;        /**< `ndim` dimensions */
    int64_t *strides;      /**< `ndim`, in elements; NULL (before 1.2): row-major */
    uint64_t byte_offset;  /**< from `data` to the first element */
}
sb_dl_tensor;

/** DLManagedTensorVersioned, of DLPack 1.x. */
typedef SB_DL_STRUCT sb_dl_managed_versioned {
    sb_dl_version version;                                  /**< of these structs */
    void *manager_ctx;                                      /**< the producer's */
    void (*deleter)(struct sb_dl_managed_versioned * self); /**< [nullable] ends the tensor; once */
    uint64_t flags;                                         /**< SB_DL_READ_ONLY and so on */
    sb_dl_tensor dl_tensor;                                 /**< the tensor */
}
sb_dl_managed_versioned;

/** DLManagedTensor, of the versions before 1.0. */
typedef SB_DL_STRUCT sb_dl_managed {
    sb_dl_tensor dl_tensor;                       /**< the tensor */
    void *manager_ctx;                            /**< the producer's */
    void (*deleter)(struct sb_dl_managed * self); /**< [nullable] ends the tensor; once */
}
sb_dl_managed;

/** Flag of the calls that import. */
enum {
    SB_DLPACK_RESHAPE = 1 << 6 /**< take the tensor's shape first */
};

/* --- export ----------------------------------------------------------------- */
/* Each allocates one struct in the blob's context and copies nothing but what
   its access copies. The tensor keeps the context alive; its deleter is to be called
   once, on any thread but one of a device driver. Strides are given. */

/** Data or diff on the host or the device, for reading: what sb_blob_cpu or
 *  sb_blob_gpu gives. The tensor has the flag SB_DL_READ_ONLY.
 *  @param part SB_DATA or SB_DIFF
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param out [owned] its deleter
 *  Errors: INVALID_ARGUMENT (a blob that was never shaped, no part, unknown side), OUT_OF_MEMORY,
 *  CAP_REACHED,
 *  UNINITIALIZED (LOST), UNSUPPORTED (the device has no number in DLPack), NO_DEVICE,
 *  DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_dlpack(const sb_blob *blob, sb_part part, sb_side side,
                                                 sb_dl_managed_versioned **out, sb_error *err);

/** The same for reading and writing: what sb_blob_mutable_cpu or
 *  sb_blob_mutable_gpu gives; the head moves to `side`.
 *  @param part SB_DATA or SB_DIFF
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param out [owned] its deleter
 *  Errors: as sb_blob_to_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_mutable_dlpack(sb_blob *blob, sb_part part, sb_side side,
                                                         sb_dl_managed_versioned **out,
                                                         sb_error *err);

/** The same as a struct of the versions before 1.0, which has no flag for
 *  reading only.
 *  @param part SB_DATA or SB_DIFF
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param out [owned] its deleter
 *  Errors: as sb_blob_to_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_legacy_dlpack(sb_blob *blob, sb_part part, sb_side side,
                                                        sb_dl_managed **out, sb_error *err);

/* --- import ----------------------------------------------------------------- */
/* On success the tensor is the library's, and its deleter runs once, when the last
   user has let go of the memory, after pending copies (see sb_mem_set_cpu). On
   failure it is as it was and still the caller's, one of another major version too:
   DLPack wants its deleter called then.

   A tensor that this copy of the library has exported ends at once: the blob's memory becomes
   a user of the storage itself, next to the memory that was exported, whichever contexts the two
   are of. So storage that is passed from blob to blob takes no more memory, and is released
   no deeper, than after the first time. Each of the memories has a head of its own. A tensor that
   another program has wrapped around one of the library's is that program's: it is kept, and its
   deleter ends it, which ends the inner one in turn. */

/** Makes the tensor's memory the blob's data or diff, in place: the host side or
 *  the device side, where the head moves. Memory that it shared before is let go of.
 *  A tensor for reading only is never written: a call that would first moves to
 *  storage of the library's own.
 *  @param part SB_DATA or SB_DIFF
 *  @param tensor [owned, on success]
 *  @param flags 0 or SB_DLPACK_RESHAPE; without the latter a shape that
 *      differs is SHAPE_MISMATCH
 *  Errors: ABI_MISMATCH (major version not 1), UNSUPPORTED (a flag of the tensor's that is not
 *  above, another element type, strides that are not row-major; strides of axes of extent 1
 *  and of tensors without elements are not looked at), DTYPE_MISMATCH (not the blob's),
 *  SHAPE_MISMATCH, INVALID_ARGUMENT (negative dimension or ndim, no data or shape where there
 *  must be, misaligned for the element type, no part, unknown flag), OVER_LIMIT (more than
 * SB_MAX_AXES), SIZE_OVERFLOW, NO_DEVICE, WRONG_DEVICE (not memory of the host or of this context's
 * device; a tensor that says that it is on the host is believed; CUDA's managed memory is refused,
 * which sb_mem_set_gpu takes), OUT_OF_MEMORY, CAP_REACHED, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_from_dlpack(sb_blob *blob, sb_part part,
                                                   sb_dl_managed_versioned *tensor, uint32_t flags,
                                                   sb_error *err);

/** The same for a struct of the versions before 1.0, which may be written.
 *  @param part SB_DATA or SB_DIFF
 *  @param tensor [owned, on success]
 *  @param flags 0 or SB_DLPACK_RESHAPE
 *  Errors: as sb_blob_from_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_from_legacy_dlpack(sb_blob *blob, sb_part part,
                                                          sb_dl_managed *tensor, uint32_t flags,
                                                          sb_error *err);

/** A blob of the tensor's element type and shape, whose data is the tensor's memory.
 *  @param context [borrowed, nullable] retained
 *  @param tensor [owned, on success]
 *  @param out [owned] sb_blob_destroy
 *  Errors: as sb_blob_from_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_create_from_dlpack(sb_context *context,
                                                          sb_dl_managed_versioned *tensor,
                                                          sb_blob **out, sb_error *err);

/** The same for a struct of the versions before 1.0.
 *  @param context [borrowed, nullable] retained
 *  @param tensor [owned, on success]
 *  @param out [owned] sb_blob_destroy
 *  Errors: as sb_blob_from_legacy_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_create_from_legacy_dlpack(sb_context *context,
                                                                 sb_dl_managed *tensor,
                                                                 sb_blob **out, sb_error *err);

SB_END_DECLS

#endif
