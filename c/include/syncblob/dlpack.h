/**
 * DLPack: exchange of tensors with other programs without a copy, through the structs of DLPack 1.x
 * and of earlier versions (legacy).
 *
 * The structs here have the same layout as the structs of DLPack's dlpack.h, but different names. A
 * program can include both headers in either order. A cast converts a pointer:
 * (DLManagedTensorVersioned *)tensor.
 *
 * An exported tensor uses the storage of the blob's memory until the tensor's deleter runs. Until
 * then the memory is not unique (sb_mem_is_unique). The tensor's bytes stay allocated even if the
 * memory no longer uses these bytes. That can happen after a set, evict or release call, or a
 * mutable call on read-only storage. If the caller has lent the bytes, the deleter of the loan runs
 * after the tensor's deleter. The rules of sb_mem for sharers apply to the holder of the tensor,
 * and to a blob made from the tensor:
 *  - the tensor has the bytes of one side. After a mutable or overwrite call on the other side
 *    these bytes are out of date.
 *  - a write through the tensor is like a write through the pointer of a mutable call: all sharers
 *    see the write. After a call for the other side (even a const call), make a mutable call for
 *    the tensor's side before you write again.
 *  - reads and writes through the tensor need the same exclusive access as calls of a sharer.
 *
 * Exported device bytes are ready for any stream. A stream that is not ordered with the legacy
 * default stream needs one more call. Before you use the bytes on the stream, pass the stream to
 * sb_blob_gpu_on (for reading) or sb_blob_mutable_gpu_on (for writing). Alternatively, finish the
 * work before you call the tensor's deleter. The same rule applies to the producer of an imported
 * tensor. If work on the passed stream fails, only the memory whose call received the stream
 * reports the failure. Other memories with the same bytes do not report the failure.
 *
 * Element types: SB_DTYPE_F32 and so on are the types of the same names in DLPack, with one lane. A
 * tensor of DLPack's bool is refused, since a blob of U8 could write values other than 0 and 1 into
 * the tensor. Pass such a tensor as uint8. Device types: host memory, page-locked host memory of
 * CUDA, CUDA device N for "cuda:N", and extension device N for "sim:N". The host cannot access
 * memory of "sim:N". The table of any other backend contains its device types
 * (sb_backend::dlpack_device).
 *
 * The library allocates memory of "cuda:N" from a memory pool of the driver: cudaIpcGetMemHandle
 * refuses such memory, and other devices cannot access it. To share a tensor between processes or
 * devices, lend the blob memory from cudaMalloc (sb_blob_set_gpu).
 */
#ifndef SYNCBLOB_DLPACK_H
#define SYNCBLOB_DLPACK_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

/** The version of DLPack that exported tensors have. */
#define SB_DL_MAJOR_VERSION 1 /**< raised when the layout changes */
#define SB_DL_MINOR_VERSION 3 /**< raised when constants are added */

/** Device types that the library uses (DLDeviceType). */
enum {
    SB_DL_DEVICE_CPU = 1,       /**< kDLCPU */
    SB_DL_DEVICE_CUDA = 2,      /**< kDLCUDA */
    SB_DL_DEVICE_CUDA_HOST = 3, /**< kDLCUDAHost: page-locked host memory */
    SB_DL_DEVICE_EXTENSION = 12 /**< kDLExtDev: a simulated device */
};

/** Kinds of element types that the library uses (DLDataTypeCode). */
enum {
    SB_DL_CODE_INT = 0,   /**< kDLInt */
    SB_DL_CODE_UINT = 1,  /**< kDLUInt */
    SB_DL_CODE_FLOAT = 2, /**< kDLFloat */
    SB_DL_CODE_BFLOAT = 4 /**< kDLBfloat */
};

/** Flags of a versioned tensor. */
enum {
    SB_DL_READ_ONLY = 1,     /**< the bytes must not be written */
    SB_DL_IS_COPIED = 2,     /**< the bytes are a copy that only this tensor uses */
    SB_DL_SUBBYTE_PADDED = 4 /**< elements of less than a byte are padded */
};

/** @def SB_DL_STRUCT Allows a program to access these structs also as the structs of DLPack's
 *  dlpack.h (strict aliasing). */
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
    uint8_t bits;   /**< bits of one lane */
    uint16_t lanes; /**< 1, except for vectors */
}
sb_dl_data_type;

/** DLTensor. */
typedef SB_DL_STRUCT sb_dl_tensor {
    void *data;            /**< NULL if there are no elements */
    sb_dl_device device;   /**< where `data` is */
    int32_t ndim;          /**< axes */
    sb_dl_data_type dtype; /**< element type */
    int64_t *shape;        /**< `ndim` dimensions */
    int64_t *strides;      /**< `ndim` strides in elements; NULL (before 1.2) means row-major */
    uint64_t byte_offset;  /**< bytes from `data` to the first element */
}
sb_dl_tensor;

/** DLManagedTensorVersioned, of DLPack 1.x. */
typedef SB_DL_STRUCT sb_dl_managed_versioned {
    sb_dl_version version;                                  /**< DLPack's version */
    void *manager_ctx;                                      /**< private to the producer */
    void (*deleter)(struct sb_dl_managed_versioned * self); /**< [nullable] releases the tensor */
    uint64_t flags;                                         /**< SB_DL_READ_ONLY and so on */
    sb_dl_tensor dl_tensor;                                 /**< the tensor */
}
sb_dl_managed_versioned;

/** DLManagedTensor, of versions before 1.0. */
typedef SB_DL_STRUCT sb_dl_managed {
    sb_dl_tensor dl_tensor;                       /**< the tensor */
    void *manager_ctx;                            /**< private to the producer */
    void (*deleter)(struct sb_dl_managed * self); /**< [nullable] releases the tensor */
}
sb_dl_managed;

/** Flag of the calls that import. */
enum {
    SB_DLPACK_RESHAPE = 1 << 6 /**< the call first reshapes the blob to the tensor's shape */
};

/* --- export ----------------------------------------------------------------- */
/* Each function allocates one struct in the blob's context, and makes the call of blob.h that its
   comment names, such as sb_blob_cpu. Only that call may copy bytes. The tensor retains the
   context, and its strides are never NULL. Call the tensor's deleter once, on any thread except a
   device driver's. */

/** Exports data or diff on the host or the device for reading: the bytes of sb_blob_cpu or
 *  sb_blob_gpu. The tensor has the flag SB_DL_READ_ONLY.
 *  @param part SB_DATA or SB_DIFF
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param out [owned] release with the tensor's deleter
 *  Errors: INVALID_ARGUMENT (a blob that was never shaped, unknown part or side), OUT_OF_MEMORY,
 *  CAP_REACHED, UNINITIALIZED (a LOST memory), UNSUPPORTED (the device has no number in DLPack),
 *  NO_DEVICE, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_dlpack(const sb_blob *blob, sb_part part, sb_side side,
                                                 sb_dl_managed_versioned **out, sb_error *err);

/** Exports the bytes of sb_blob_mutable_cpu or sb_blob_mutable_gpu, for reading and writing. The
 *  head moves to `side`.
 *  @param part SB_DATA or SB_DIFF
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param out [owned] release with the tensor's deleter
 *  Errors: as sb_blob_to_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_mutable_dlpack(sb_blob *blob, sb_part part, sb_side side,
                                                         sb_dl_managed_versioned **out,
                                                         sb_error *err);

/** As sb_blob_to_mutable_dlpack, but returns the struct of versions before 1.0, which has no
 *  read-only flag.
 *  @param part SB_DATA or SB_DIFF
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param out [owned] release with the tensor's deleter
 *  Errors: as sb_blob_to_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_legacy_dlpack(sb_blob *blob, sb_part part, sb_side side,
                                                        sb_dl_managed **out, sb_error *err);

/* --- import ----------------------------------------------------------------- */
/* On success the library owns the tensor. The library calls the tensor's deleter once, after the
   last user has released the memory and pending copies have ended (see sb_mem_set_cpu). On failure
   the tensor is unchanged, and the caller still owns it. After ABI_MISMATCH (another major version)
   the caller must call the deleter, as DLPack requires.

   If this copy of the library has exported the tensor, the import releases the tensor at once. The
   blob's memory then shares the storage with the exported memory, even if the contexts of the two
   memories differ. Each memory has a separate head. Repeated exports and imports of the same
   storage therefore neither use more memory nor build chains of deleters. If another program has
   wrapped a tensor of the library in a new tensor, the library owns the wrapper. The wrapper's
   deleter releases the inner tensor. If the tensor's host bytes are host-coherent memory (mem.h),
   the import waits until the device's work has ended. */

/** Makes the tensor's memory the host side or the device side of the blob's data or diff. The head
 *  moves to that side. The blob releases the part's old memory. The library never writes a
 *  read-only tensor: before a write, the library copies the bytes to its own storage.
 *  @param part SB_DATA or SB_DIFF
 *  @param tensor [owned, on success]
 *  @param flags 0 or SB_DLPACK_RESHAPE; without the flag, a different shape is SHAPE_MISMATCH
 *  Errors: ABI_MISMATCH (major version not 1), UNSUPPORTED (an unknown flag of the tensor, another
 *  element type, strides that are not row-major; strides of axes of extent 1 and of tensors without
 *  elements are ignored), DTYPE_MISMATCH (not the blob's), SHAPE_MISMATCH, INVALID_ARGUMENT
 *  (negative dimension or ndim, missing data or shape, data that is misaligned for the element
 *  type, unknown part or flag), OVER_LIMIT (more than SB_MAX_AXES), SIZE_OVERFLOW, NO_DEVICE,
 *  WRONG_DEVICE (not memory of the host or of this context's device; the device type "host" is
 *  trusted; CUDA's managed memory is refused, but sb_mem_set_gpu accepts it), OUT_OF_MEMORY,
 *  CAP_REACHED, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_from_dlpack(sb_blob *blob, sb_part part,
                                                   sb_dl_managed_versioned *tensor, uint32_t flags,
                                                   sb_error *err);

/** As sb_blob_from_dlpack, for the struct of versions before 1.0. The tensor's memory is writable.
 *  @param part SB_DATA or SB_DIFF
 *  @param tensor [owned, on success]
 *  @param flags 0 or SB_DLPACK_RESHAPE
 *  Errors: as sb_blob_from_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_from_legacy_dlpack(sb_blob *blob, sb_part part,
                                                          sb_dl_managed *tensor, uint32_t flags,
                                                          sb_error *err);

/** Creates a blob of the tensor's element type and shape, whose data is the tensor's memory.
 *  @param context [borrowed, nullable] the blob retains the context
 *  @param tensor [owned, on success]
 *  @param out [owned] destroy with sb_blob_destroy
 *  Errors: as sb_blob_from_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_create_from_dlpack(sb_context *context,
                                                          sb_dl_managed_versioned *tensor,
                                                          sb_blob **out, sb_error *err);

/** As sb_blob_create_from_dlpack, for the struct of versions before 1.0.
 *  @param context [borrowed, nullable] the blob retains the context
 *  @param tensor [owned, on success]
 *  @param out [owned] destroy with sb_blob_destroy
 *  Errors: as sb_blob_from_legacy_dlpack. */
SB_API SB_MUST_CHECK sb_status sb_blob_create_from_legacy_dlpack(sb_context *context,
                                                                 sb_dl_managed *tensor,
                                                                 sb_blob **out, sb_error *err);

SB_END_DECLS

#endif
