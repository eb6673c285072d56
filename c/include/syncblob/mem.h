/**
 * sb_mem: Caffe's SyncedMemory. A memory is one buffer that is on the host, on the device, or on
 * both. A memory records which copy is newest, and copies bytes only when a call needs them.
 *
 * Threads: several threads may make const calls at the same time. During a set, mutable, overwrite,
 * clear or evict call, no other call may use the memory, even through another sharer.
 *
 * Pointers: the bytes behind a pointer stay allocated until a set or evict call, or the last
 * release. A mutable or overwrite call on read-only storage also ends this guarantee. The bytes
 * stay current for reading until a mutable or overwrite call on the other side. The holder of a
 * mutable pointer may write until the next call for the other side, even a const call. Before later
 * writes the holder must fetch the pointer again. A read of a message or file into a blob keeps the
 * blob's memory if the values fit. The read then counts as a mutable call for the host.
 *
 * Overlap: two sb_mem may borrow the same or overlapping bytes, for example from two imported
 * tensors. An sb_mem tracks only writes by calls on that sb_mem, but a transfer of one sb_mem also
 * changes the bytes of the other. The functions sb_blob_copy_from and sb_blob_update accept a
 * source and a target with the same bytes. If the two overlap only in part on the side where the
 * call works, the call returns INVALID_ARGUMENT. Both sides of one sb_mem may be the same bytes of
 * CUDA's managed memory: a transfer then copies nothing. Other buffers that a call reads or writes,
 * such as messages, must not overlap the memory.
 *
 * Failures of queued work: the first call that waits on the host for failed work returns the
 * failure. This call may be a call on the memory, sb_context_synchronize or
 * sb_context_forget_stream. Calls on the memory that need the bytes also return the failure, until
 * the library has set the memory's head. After a failed transfer the library sets the head to the
 * side from which the bytes were copied. Writes that the device has made after the transfer are
 * lost. After failed arithmetic the memory is LOST. Failed work on a caller's stream makes a memory
 * LOST if the caller last fetched the memory's pointer for writing with that stream. The memory is
 * not LOST if a later call has made the bytes current on the host. A memory is also LOST if
 * arithmetic has computed its bytes from lost bytes, or a transfer has copied lost bytes to it. A
 * call that only queues work behind failed work may succeed. The wait for the later work then
 * fails. No call returns a host pointer to bytes that failed work should have written, even if
 * other threads have waited for that work before. The library cannot track the caller's work on the
 * library's own stream, or on a stream that two contexts use. Nor can the library track work on a
 * stream that the caller did not pass, or on a default stream if the pointer was fetched without a
 * stream. The library also cannot track which bytes the caller's work computes from lost bytes. If
 * several memories borrow the same bytes (Overlap), only the memory whose call queued the work
 * reports the failure. Make a call on that memory before you read another memory. If a wait fails
 * although the work succeeds, the library does not treat the work as failed. In two cases the
 * library then treats the device as lost. First, a wait for arithmetic that was queued without a
 * stream returns DEVICE_FAILURE, which may be a failure of the arithmetic. Second, the wait for a
 * copy or a clear that overwrites the newest bytes returns DEVICE_FAILURE, or fails twice in a row.
 *
 * Default streams of CUDA: a caller that fetches a device pointer without passing a stream may use
 * it on per-thread default streams. Copies and arithmetic then wait for the legacy default stream,
 * and thereby for kernels on per-thread default streams. While any thread in the process captures a
 * blocking stream, CUDA forbids the use of the legacy stream. During the capture, copies and
 * arithmetic do not wait for per-thread default streams. Synchronise those streams first, or wait
 * for the end of the capture. Memory that is retired during the capture is freed after the capture
 * (quarantine, context.h).
 *
 * Host-coherent memory (SB_BACKEND_HOST_COHERENT in backend.h): if the host can access a device's
 * memory directly, the two sides of an sb_mem are one storage. The statistics (sb_stats) count this
 * storage as device memory. The head moves as on other devices, but no bytes are copied. A transfer
 * to the host only waits for the device's work, and a transfer to the device does nothing. A call
 * after which the host may write also waits for work that reads the bytes on the device. Writes of
 * the device change the bytes behind all host pointers to the storage, including older pointers. If
 * the device fails while it writes, the host's bytes are lost, too. If the caller has lent a side,
 * or the device is full, the sides have separate storage, and transfers copy bytes.
 *
 * In the lists of errors UNINITIALIZED means a LOST memory, unless the text adds another case. In a
 * forked child FORKED can also mean that the host bytes are host-coherent memory, or are
 * page-locked for a CUDA device. FORKED can also mean that another thread was changing the memory
 * at the fork.
 */
#ifndef SYNCBLOB_MEM_H
#define SYNCBLOB_MEM_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** A memory: Caffe's SyncedMemory. */
typedef struct sb_mem sb_mem;

/** Where the newest bytes are, SB_HEAD_*. */
typedef int32_t sb_head;

/** Where the newest bytes are. */
enum {
    SB_HEAD_UNINITIALIZED = 0, /**< nothing was written yet */
    SB_HEAD_AT_CPU = 1,        /**< on the host */
    SB_HEAD_AT_GPU = 2,        /**< on the device */
    SB_HEAD_SYNCED = 3,        /**< on both, or on one side while a copy to the other is queued */
    SB_HEAD_LOST = 4           /**< lost with the device, or because queued work failed: only set,
                                    overwrite and release calls succeed */
};

/** A side of a memory, SB_SIDE_*. */
typedef int32_t sb_side;

/** The two sides of a memory. */
enum {
    SB_SIDE_CPU = 0, /**< the host */
    SB_SIDE_GPU = 1  /**< the context's device */
};

/** The kind of storage of a side, SB_STORAGE_*. */
typedef int32_t sb_storage;

/** The kind of storage of a side, independent of the head. */
enum {
    SB_STORAGE_NONE = 0,              /**< no storage */
    SB_STORAGE_OWNED = 1,             /**< storage of the library */
    SB_STORAGE_PINNED = 2,            /**< page-locked storage of the library */
    SB_STORAGE_BORROWED = 3,          /**< storage of the caller; transfers may write it */
    SB_STORAGE_BORROWED_READ_ONLY = 4 /**< storage of the caller; the library never writes it */
};

/** Flag of the set calls. With the flag, a call that writes the memory first copies the bytes to
 *  storage of the library. */
enum {
    SB_READ_ONLY = 1 << 0 /**< the library never writes the storage */
};

/** Creates a memory of `bytes` bytes (0 is allowed) in `context`. The first call that needs a side
 *  allocates that side's buffer.
 *  @param context [borrowed, nullable] the memory retains the context
 *  @param out [owned] release with sb_mem_release
 *  Errors: SIZE_OVERFLOW (more than PTRDIFF_MAX), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_mem_create(sb_context *context, size_t bytes, sb_mem **out,
                                             sb_error *err);

/** Adds an owner. @param mem [nullable] @return [owned] `mem` */
SB_API sb_mem *sb_mem_retain(sb_mem *mem);

/** Removes an owner. Removing the last owner waits for pending transfers, frees the library's
 *  storage and runs the deleters of borrowed storage. Storage that the device may still be using is
 *  put in quarantine (context.h).
 *  @param mem [owned, nullable] */
SB_API void sb_mem_release(sb_mem *mem);

/** Returns 1 if the memory has exactly one owner, and no tensor (dlpack.h) or memory made from a
 *  tensor shares its writable storage. */
SB_API int32_t sb_mem_is_unique(const sb_mem *mem);

/** Returns the size of the buffer in bytes. */
SB_API size_t sb_mem_size(const sb_mem *mem);

/** Returns the head, SB_HEAD_*. The call never waits. */
SB_API sb_head sb_mem_head(const sb_mem *mem);

/** Returns SB_STORAGE_* of a side; SB_STORAGE_NONE for an unknown `side`. If both sides are one
 *  storage (host-coherent memory), returns SB_STORAGE_OWNED for each side. */
SB_API sb_storage sb_mem_storage(const sb_mem *mem, sb_side side);

/** Returns the context of the memory.
 *  @return [borrowed] lives as long as `mem`; NULL for the built-in context */
SB_API sb_context *sb_mem_context(const sb_mem *mem);

/** Returns the bytes on the host, for reading (SyncedMemory::cpu_data). At the first use the bytes
 *  are zeros. If the device has newer bytes, the call copies them once.
 *  @param out [borrowed] see "Pointers" above; not NULL; must not be read if the size is 0
 *  Errors: OUT_OF_MEMORY, CAP_REACHED, UNINITIALIZED, DEVICE_FAILURE, DEVICE_LOST, FORKED,
 *  UNSUPPORTED (a stream that uses the device's side is being captured). */
SB_API SB_MUST_CHECK sb_status sb_mem_cpu(const sb_mem *mem, const void **out, sb_error *err);

/** Returns the bytes on the host, for writing: the head moves to the host
 *  (SyncedMemory::mutable_cpu_data).
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_cpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_mutable_cpu(sb_mem *mem, void **out, sb_error *err);

/** Returns the bytes on the device, for reading by work on any stream (SyncedMemory::gpu_data).
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_cpu, NO_DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_mem_gpu(const sb_mem *mem, const void **out, sb_error *err);

/** As sb_mem_gpu, but does not wait on the host: the bytes are ready for later work on `stream`.
 *  After many calls of this function without a wait, a call may wait for the oldest work. The
 *  memory records `stream` as a user: every later transfer, free, evict or set is ordered after the
 *  work queued on the stream. The stream must exist until sb_context_forget_stream, even if it is
 *  the library's stream of another context (sb_context_stream).
 *  @param stream [borrowed] NULL: the legacy default stream. On "cuda:N" the call refuses
 *      per-thread default streams: pass NULL, since the legacy stream is ordered with per-thread
 *      streams. Any other handle must be an existing stream, since CUDA does not check it
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_gpu, WRONG_DEVICE (a stream of another device), UNSUPPORTED
 *  (a capturing stream, a per-thread default stream). */
SB_API SB_MUST_CHECK sb_status sb_mem_gpu_on(const sb_mem *mem, sb_stream stream, const void **out,
                                             sb_error *err);

/** Returns the bytes on the device, for writing: the head moves to the device
 *  (SyncedMemory::mutable_gpu_data).
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_gpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_mutable_gpu(sb_mem *mem, void **out, sb_error *err);

/** As sb_mem_mutable_gpu, for work on `stream`.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_gpu_on. */
SB_API SB_MUST_CHECK sb_status sb_mem_mutable_gpu_on(sb_mem *mem, sb_stream stream, void **out,
                                                     sb_error *err);

/** Returns host memory for a caller that writes every byte. The call copies nothing and moves the
 *  head to the host. The contents are unspecified. A LOST memory is allowed.
 *  @param out [borrowed] see "Pointers" above
 *  Errors: OUT_OF_MEMORY, CAP_REACHED, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_mem_overwrite_cpu(sb_mem *mem, void **out, sb_error *err);

/** Returns device memory for a caller that writes every byte, and moves the head to the device.
 *  Otherwise the call works as sb_mem_overwrite_cpu does.
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_overwrite_cpu, NO_DEVICE, UNSUPPORTED (a stream that uses this side is
 *  being captured). */
SB_API SB_MUST_CHECK sb_status sb_mem_overwrite_gpu(sb_mem *mem, void **out, sb_error *err);

/** As sb_mem_overwrite_gpu, for work on `stream`.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_overwrite_gpu, WRONG_DEVICE (the stream). */
SB_API SB_MUST_CHECK sb_status sb_mem_overwrite_gpu_on(sb_mem *mem, sb_stream stream, void **out,
                                                       sb_error *err);

/** Makes the caller's host memory the host side of `mem` (SyncedMemory::set_cpu_data), for all
 *  sharers (sb_blob_set_cpu changes one blob). The call frees the library's storage on that side,
 *  and moves the head to the host. A LOST memory is allowed.
 *  @param ptr [borrowed] until the storage is replaced or evicted, or the memory is released. The
 *      pointer must be aligned for the elements. The call cannot check the alignment, since a
 *      memory has no element type
 *  @param bytes exactly sb_mem_size(mem)
 *  @param flags 0 or SB_READ_ONLY
 *  @param deleter [nullable] runs once when the storage is retired, after pending copies. Never
 *      runs if this call fails
 *  @param user passed to `deleter`
 *  Errors: INVALID_ARGUMENT (a different size, an unknown flag, a partial overlap with the other
 *  side's bytes), OUT_OF_MEMORY, CAP_REACHED (both only if the context has a device),
 *  DEVICE_FAILURE, DEVICE_LOST, FORKED (the last three: a pending copy failed). */
SB_API SB_MUST_CHECK sb_status sb_mem_set_cpu(sb_mem *mem, void *ptr, size_t bytes, uint32_t flags,
                                              sb_deleter deleter, void *user, sb_error *err);

/** Makes the caller's device memory the device side of `mem`, as sb_mem_set_cpu does for the host
 *  side (SyncedMemory::set_gpu_data). On "cuda:N" the memory must be allocated in the device's
 *  primary context or from a pool, or mapped with cuMemMap. Managed memory is also accepted. CUDA's
 *  rules decide whether the host may access the memory while the memory is lent.
 *  @param ptr [borrowed] as in sb_mem_set_cpu
 *  @param bytes exactly sb_mem_size(mem)
 *  @param flags 0 or SB_READ_ONLY
 *  @param deleter [nullable] as in sb_mem_set_cpu
 *  @param user passed to `deleter`
 *  Errors: as sb_mem_set_cpu, NO_DEVICE, WRONG_DEVICE (not memory of this context's device, or
 *  memory of another driver context on the device). */
SB_API SB_MUST_CHECK sb_status sb_mem_set_gpu(sb_mem *mem, void *ptr, size_t bytes, uint32_t flags,
                                              sb_deleter deleter, void *user, sb_error *err);

/** Queues a copy to the device on `stream`. The head is SYNCED at once. A later call waits for the
 *  copy if the call needs the device's bytes, or writes or frees the host's bytes (unlike
 *  SyncedMemory::async_gpu_push). If the head is SYNCED already, the call does nothing.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_gpu_on, UNINITIALIZED (also a memory that was never written), INVALID_ARGUMENT
 *  (the head is on the other side). */
SB_API SB_MUST_CHECK sb_status sb_mem_async_gpu_push(const sb_mem *mem, sb_stream stream,
                                                     sb_error *err);

/** Queues a copy to the host on `stream`, as sb_mem_async_gpu_push queues a copy to the device.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_async_gpu_push. */
SB_API SB_MUST_CHECK sb_status sb_mem_async_cpu_pull(const sb_mem *mem, sb_stream stream,
                                                     sb_error *err);

/** Queues on `stream` the work that a later sb_mem_cpu would otherwise queue and wait for. The head
 *  may have any value except LOST. In a host-only context, a memory that was never written is
 *  filled with zeros.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_cpu, WRONG_DEVICE (the stream). */
SB_API SB_MUST_CHECK sb_status sb_mem_prefetch_cpu(const sb_mem *mem, sb_stream stream,
                                                   sb_error *err);

/** Queues on `stream` the work that a later sb_mem_gpu_on would otherwise queue.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_gpu_on. */
SB_API SB_MUST_CHECK sb_status sb_mem_prefetch_gpu(const sb_mem *mem, sb_stream stream,
                                                   sb_error *err);

/** Waits for a pending transfer. If the transfer failed, the head returns to the source's side and
 *  the call returns the failure. If the work that wrote the source failed, the memory is LOST and
 *  the call returns the failure of that work. SB_OK means that no pending transfer has failed.
 *  Errors: DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_mem_synchronize(const sb_mem *mem, sb_error *err);

/** Retires the host side: frees the storage, or runs its deleter. If both sides are one storage
 *  (host-coherent memory), only moves the head.
 *  Errors: INVALID_ARGUMENT (the side has the only current bytes, or an sb_write has not ended),
 *  UNINITIALIZED, DEVICE_FAILURE, DEVICE_LOST, FORKED (the last three: a pending copy failed). */
SB_API SB_MUST_CHECK sb_status sb_mem_evict_cpu(sb_mem *mem, sb_error *err);

/** Retires the device side. If both sides are one storage, waits for the device's work, which may
 *  fail, and then only moves the head.
 *  Errors: as sb_mem_evict_cpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_evict_gpu(sb_mem *mem, sb_error *err);

/** Sets all bytes to zero on the side of the head (SYNCED: the device). An UNINITIALIZED memory
 *  stays unchanged, since its bytes read as zeros. If the device is lost during the call,
 *  sb_blob_update documents the state of the bytes.
 *  Errors: as sb_mem_cpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_clear(sb_mem *mem, sb_error *err);

/* --- a write in steps -------------------------------------------------------- */

/** A write in two steps, begin and end. Between the steps, another party (a transport, a reader)
 *  writes the bytes in place. The bytes may fail to arrive. Between begin and end no observable
 *  state of the memory changes, and no other call may use the memory. The function
 *  sb_mem_mutable_cpu does both steps at once. */
typedef struct sb_write sb_write;

/** Flags of sb_write_begin. */
enum {
    SB_WRITE_OVERWRITE = 1 << 11, /**< the caller writes every byte, so the call need not copy the
                                       old bytes */
    SB_WRITE_QUEUED = 1 << 12 /**< affects only a write on the device's side. The call does not wait
                                   for work that is queued on the context's stream
                                   (sb_context_stream) or on the default streams. The caller orders
                                   its own work after that work */
};

/** How a write ends, SB_WRITE_DONE to SB_WRITE_ABANDONED. */
typedef int32_t sb_write_outcome;

/** How a write ends. Destroying a write before its end means that no byte was written. */
enum {
    SB_WRITE_DONE = 0,     /**< all bytes are written, and the head moves to the side of the
                                write */
    SB_WRITE_SPOILED = 1,  /**< some bytes may have been written. A write in place leaves the side's
                                bytes unspecified. If both sides were current, the head moves to the
                                other side, else the head stays. If the write had separate storage
                                (the side was lent SB_READ_ONLY), nothing has changed. If the sides
                                are one storage, the bytes are unspecified, and the head stays */
    SB_WRITE_ABANDONED = 2 /**< as SB_WRITE_SPOILED, but another party may still write for an
                                unknown time. The library never frees the storage, and sb_stats
                                still counts it */
};

/** Begins a write on one side: returns writable storage with the current bytes (unspecified bytes
 *  with SB_WRITE_OVERWRITE). The call waits for device work that uses the bytes. Failures of
 *  allocation or of the device occur only in this call. The caller's work on the bytes must end
 *  before sb_write_end.
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param flags 0, SB_WRITE_OVERWRITE, SB_WRITE_QUEUED or both
 *  @param out_ptr [borrowed] the bytes to write, until sb_write_end or sb_write_destroy. After
 *      SB_WRITE_DONE, the pointer stays valid as long as a pointer from sb_mem_mutable_cpu
 *  @param out [owned] destroy with sb_write_destroy. The handle is an owner of the memory
 *  Errors: INVALID_ARGUMENT (unknown side, unknown flag), as sb_mem_mutable_cpu, NO_DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_write_begin(sb_mem *mem, sb_side side, uint32_t flags,
                                              void **out_ptr, sb_write **out, sb_error *err);

/** Ends a write. Deleters run later, in sb_write_destroy, so that several writes can end before any
 *  deleter runs.
 *  @param write [borrowed]
 *  @param outcome SB_WRITE_DONE, SB_WRITE_SPOILED or SB_WRITE_ABANDONED
 *  Errors: INVALID_ARGUMENT (unknown outcome, a write that has ended), FORKED (the write began
 *  before a fork). */
SB_API SB_MUST_CHECK sb_status sb_write_end(sb_write *write, sb_write_outcome outcome,
                                            sb_error *err);

/** Destroys the handle. If the write has not ended, the memory is unchanged. If the write has ended
 *  and has replaced storage, the call frees the replaced storage or runs its deleter.
 *  @param write [owned, nullable] */
SB_API void sb_write_destroy(sb_write *write);

SB_END_DECLS

#endif
