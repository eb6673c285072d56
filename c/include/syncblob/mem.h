/**
 * sb_mem: Caffe's SyncedMemory. One buffer that lives in host memory, on the
 * context's device, or both; it knows which copy is newest and moves bytes
 * only when someone needs them.
 *
 * Threads: const calls are safe beside each other. Set, mutable, overwrite,
 * clear and evict need exclusion over all sharers of the memory.
 *
 * Pointers: one stays allocated until set, evict, a mutable or overwrite call
 * on read-only storage, or the last release. It stays current for reading
 * until a mutable or overwrite call on the other side. A mutable pointer may
 * be written until the next call for the other side (even a const one): then
 * fetch it again. A message or file that is read into a blob with room for it
 * is a mutable call for the host.
 *
 * Overlap: two memories may borrow the same bytes, as imported tensors do, or bytes that
 * overlap. Each knows its own writes alone: a transfer of one writes the bytes of the other. A
 * copy (sb_blob_copy_from) or subtraction (sb_blob_update) takes bytes that are the same, which a
 * copy leaves where they are, and refuses others that overlap with INVALID_ARGUMENT. The
 * two sides of one memory may be the same bytes, of managed memory: a transfer then copies nothing.
 * Buffers that a call reads or writes beside a memory, such as messages, lie elsewhere.
 *
 * Failures of queued work: the first call that waits on the host for failed work
 * returns the failure, be it a call on the memory, sb_context_synchronize or
 * sb_context_forget_stream; so does every call on the memory that needs the bytes
 * until the head tells what is left. After a transfer that is the side that
 * the bytes came from; what was written on the device since is gone. After
 * arithmetic, or the caller's work on a stream that a pointer was taken for, the
 * memory is LOST, and so is one whose bytes arithmetic or a transfer has made of
 * those meanwhile. A call that only queues work behind failed work may succeed; the wait
 * for that work fails. No call returns SB_OK together with a pointer of the host to bytes
 * that failed work should have written, whatever any thread has waited for in between.
 * The library does not know what the caller's work makes of such bytes on
 * another stream, nor of work on a default stream through a plain pointer. Of memories that
 * borrow the same bytes (Overlap), the one that queued the work reports its failure, and is
 * asked before another is read.
 * A wait that fails once although the work has succeeded is not a failure of the work.
 *
 * Default streams of CUDA: after a plain pointer to the device's side was let out, copies and
 * arithmetic also wait for kernels on per-thread default streams, through the legacy one. While
 * anybody in the process captures a blocking stream, CUDA lets nobody use the legacy one. Then
 * they do not wait for per-thread default streams: synchronise those first, or
 * wait for the end of the capture. Memory that is given up meanwhile is not freed
 * before (quarantine, context.h).
 *
 * In the lists of errors UNINITIALIZED is a LOST memory, unless more is said. In
 * a forked child FORKED also stands for host bytes that a CUDA device has
 * page-locked, and for a memory that another thread was changing at the fork.
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
    SB_HEAD_SYNCED = 3,        /**< on both, or on one and on its way to the other */
    SB_HEAD_LOST = 4           /**< gone with the device, or with queued work that failed: only set,
                                    overwrite and release work */
};

/** A side of a memory, SB_SIDE_*. */
typedef int32_t sb_side;

/** The two sides of a memory. */
enum {
    SB_SIDE_CPU = 0, /**< the host */
    SB_SIDE_GPU = 1  /**< the context's device */
};

/** What a side is stored in, SB_STORAGE_*. */
typedef int32_t sb_storage;

/** What a side is stored in, independent of the head. */
enum {
    SB_STORAGE_NONE = 0,              /**< nothing is allocated there */
    SB_STORAGE_OWNED = 1,             /**< the library's */
    SB_STORAGE_PINNED = 2,            /**< the library's, page-locked */
    SB_STORAGE_BORROWED = 3,          /**< the caller's; transfers write it */
    SB_STORAGE_BORROWED_READ_ONLY = 4 /**< the caller's; never written */
};

/** Flag of the set calls: the library never writes the storage; a call that
 *  would first moves to storage of its own. */
enum {
    SB_READ_ONLY = 1 << 0 /**< never written */
};

/** A memory of `bytes` bytes (0 is fine) in `context`. No buffer is allocated
 *  until the first use of a side.
 *  @param context [borrowed, nullable] retained
 *  @param out [owned] release with sb_mem_release
 *  Errors: SIZE_OVERFLOW (more than PTRDIFF_MAX), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_mem_create(sb_context *context, size_t bytes, sb_mem **out,
                                             sb_error *err);

/** One more owner. @param mem [nullable] @return [owned] `mem` */
SB_API sb_mem *sb_mem_retain(sb_mem *mem);

/** One owner less; the last one waits for pending transfers, frees what is
 *  owned and runs the deleters of what is borrowed, or leaves both to quarantine
 *  (context.h). @param mem [owned, nullable] */
SB_API void sb_mem_release(sb_mem *mem);

/** 1 if there is exactly one owner, and neither a tensor (dlpack.h) nor a memory that was made of
 *  one uses storage that this memory may write. */
SB_API int32_t sb_mem_is_unique(const sb_mem *mem);

/** Bytes of the buffer. */
SB_API size_t sb_mem_size(const sb_mem *mem);

/** SB_HEAD_*; never waits. */
SB_API sb_head sb_mem_head(const sb_mem *mem);

/** SB_STORAGE_* of a side; SB_STORAGE_NONE for any other `side`. */
SB_API sb_storage sb_mem_storage(const sb_mem *mem, sb_side side);

/** The context that the memory was made in.
 *  @return [borrowed] lives as long as `mem`; NULL for the built-in context */
SB_API sb_context *sb_mem_context(const sb_mem *mem);

/** The bytes on the host, for reading. The first touch is zero-filled; bytes
 *  that are newer on the device are copied once (SyncedMemory::cpu_data).
 *  @param out [borrowed] see "Pointers" above; for size 0 not NULL, not readable
 *  Errors: OUT_OF_MEMORY, CAP_REACHED, UNINITIALIZED, DEVICE_FAILURE, DEVICE_LOST, FORKED,
 *  UNSUPPORTED (a stream that uses the device's side is being captured). */
SB_API SB_MUST_CHECK sb_status sb_mem_cpu(const sb_mem *mem, const void **out, sb_error *err);

/** The bytes on the host, for writing: the head moves to the host
 *  (SyncedMemory::mutable_cpu_data).
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_cpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_mutable_cpu(sb_mem *mem, void **out, sb_error *err);

/** The bytes on the device, for reading, ready for any stream
 *  (SyncedMemory::gpu_data).
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_cpu, NO_DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_mem_gpu(const sb_mem *mem, const void **out, sb_error *err);

/** The same without waiting on the host: work queued on `stream` from now on
 *  sees the bytes, and `stream` is recorded as a user, so that every later
 *  transfer, free, evict or set is ordered after the work queued there. It must
 *  live until sb_context_forget_stream, another context's own one included.
 *  @param stream [borrowed] NULL: the legacy default stream. On "cuda:N" that is ordered with
 *      the per-thread default streams, which are refused; any other handle has to be that
 *      of a stream that exists, since CUDA does not check it
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_gpu, WRONG_DEVICE (a stream of another device), UNSUPPORTED
 *  (a capturing stream, a per-thread default one). */
SB_API SB_MUST_CHECK sb_status sb_mem_gpu_on(const sb_mem *mem, sb_stream stream, const void **out,
                                             sb_error *err);

/** The bytes on the device, for writing: the head moves to the device
 *  (SyncedMemory::mutable_gpu_data).
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_gpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_mutable_gpu(sb_mem *mem, void **out, sb_error *err);

/** The same for work on `stream`.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_gpu_on. */
SB_API SB_MUST_CHECK sb_status sb_mem_mutable_gpu_on(sb_mem *mem, sb_stream stream, void **out,
                                                     sb_error *err);

/** Host memory for a caller that writes every byte: no copy, no zeros; the
 *  contents are unspecified and the head moves to the host. Works for a LOST memory.
 *  @param out [borrowed] see "Pointers" above
 *  Errors: OUT_OF_MEMORY, CAP_REACHED, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_mem_overwrite_cpu(sb_mem *mem, void **out, sb_error *err);

/** Device memory for a caller that writes every byte; otherwise the same.
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_overwrite_cpu, NO_DEVICE, UNSUPPORTED (a stream that uses this side is
 *  being captured). */
SB_API SB_MUST_CHECK sb_status sb_mem_overwrite_gpu(sb_mem *mem, void **out, sb_error *err);

/** The same for work on `stream`.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  @param out [borrowed] see "Pointers" above
 *  Errors: as sb_mem_overwrite_gpu, WRONG_DEVICE (the stream). */
SB_API SB_MUST_CHECK sb_status sb_mem_overwrite_gpu_on(sb_mem *mem, sb_stream stream, void **out,
                                                       sb_error *err);

/** Makes the caller's host memory this memory's host side, in place: every
 *  sharer sees it, other than with sb_blob_set_cpu. What was owned is freed; the head
 *  moves to the host (SyncedMemory::set_cpu_data). Works for a LOST memory.
 *  @param ptr [borrowed] until replaced, evicted or the last release; aligned for the
 *      elements, which is not checked: a memory does not know their type
 *  @param bytes exactly sb_mem_size(mem)
 *  @param flags 0 or SB_READ_ONLY
 *  @param deleter [nullable] runs once when the storage is given up, after
 *      pending copies; not at all when this call fails
 *  @param user passed to `deleter`
 *  Errors: INVALID_ARGUMENT (bytes differ, unknown flag, a part of the other side's bytes),
 *  OUT_OF_MEMORY, CAP_REACHED (both where the context has a device), DEVICE_FAILURE, DEVICE_LOST,
 *  FORKED (the last three of a pending copy). */
SB_API SB_MUST_CHECK sb_status sb_mem_set_cpu(sb_mem *mem, void *ptr, size_t bytes, uint32_t flags,
                                              sb_deleter deleter, void *user, sb_error *err);

/** Makes the caller's device memory this memory's device side; otherwise the same
 *  (SyncedMemory::set_gpu_data). On "cuda:N": of the device's primary context, of a pool or
 *  mapped by virtual addresses. Managed memory is taken too; whether the host may touch it
 *  meanwhile is between you and CUDA.
 *  @param ptr [borrowed] as in sb_mem_set_cpu
 *  @param bytes exactly sb_mem_size(mem)
 *  @param flags 0 or SB_READ_ONLY
 *  @param deleter [nullable] as in sb_mem_set_cpu
 *  @param user passed to `deleter`
 *  Errors: as sb_mem_set_cpu, NO_DEVICE, WRONG_DEVICE (not memory of this context's device,
 *  or of another context of the driver's there). */
SB_API SB_MUST_CHECK sb_status sb_mem_set_gpu(sb_mem *mem, void *ptr, size_t bytes, uint32_t flags,
                                              sb_deleter deleter, void *user, sb_error *err);

/** Queues the copy to the device on `stream`; the head is SYNCED at once, and
 *  whoever needs the device's bytes, or writes or frees the host's, waits
 *  (SyncedMemory::async_gpu_push, made safe). SYNCED: nothing to do.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_gpu_on, UNINITIALIZED (never written, too), INVALID_ARGUMENT (the head
 *  is at the other side). */
SB_API SB_MUST_CHECK sb_status sb_mem_async_gpu_push(const sb_mem *mem, sb_stream stream,
                                                     sb_error *err);

/** Queues the copy to the host on `stream`; the mirror image of
 *  sb_mem_async_gpu_push. @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_async_gpu_push. */
SB_API SB_MUST_CHECK sb_status sb_mem_async_cpu_pull(const sb_mem *mem, sb_stream stream,
                                                     sb_error *err);

/** Starts what sb_mem_cpu would do, queued on `stream`; never an error
 *  for a head but LOST. Host-only contexts: only the zero fill is left.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_cpu, WRONG_DEVICE (the stream). */
SB_API SB_MUST_CHECK sb_status sb_mem_prefetch_cpu(const sb_mem *mem, sb_stream stream,
                                                   sb_error *err);

/** Starts what sb_mem_gpu_on would do.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_gpu_on. */
SB_API SB_MUST_CHECK sb_status sb_mem_prefetch_gpu(const sb_mem *mem, sb_stream stream,
                                                   sb_error *err);

/** Waits for a pending transfer. If it failed, the head goes back to the side
 *  it came from and the failure is returned; likewise if what it copied to the host had
 *  failed, and the memory is LOST. SB_OK says that the transfer has succeeded.
 *  Errors: DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_mem_synchronize(const sb_mem *mem, sb_error *err);

/** Gives the host side up (freed, or its deleter run).
 *  Errors: INVALID_ARGUMENT (it holds the only current bytes; a write is open), UNINITIALIZED,
 *  DEVICE_FAILURE, DEVICE_LOST, FORKED (the last three of a pending copy). */
SB_API SB_MUST_CHECK sb_status sb_mem_evict_cpu(sb_mem *mem, sb_error *err);

/** Gives the device side up. Errors: as sb_mem_evict_cpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_evict_gpu(sb_mem *mem, sb_error *err);

/** Sets all bytes to zero where the head is (SYNCED: the device); an
 *  UNINITIALIZED memory stays so, since it reads as zeros. DEVICE_LOST of a device that
 *  failed while it wrote leaves the bytes as that of sb_blob_update does.
 *  Errors: as sb_mem_cpu. */
SB_API SB_MUST_CHECK sb_status sb_mem_clear(sb_mem *mem, sb_error *err);

/* --- a write in steps -------------------------------------------------------- */

/** Writes that take their time, and may fail on the way: for somebody who has the bytes written by
 *  others, such as a transport that receives into a memory, or a reader that fills it in place.
 *  Between begin and end nothing that a caller can see has changed, and nobody else touches the
 *  memory; sb_mem_mutable_cpu and its like are both at once. */
typedef struct sb_write sb_write;

/** Flags of sb_write_begin. */
enum {
    SB_WRITE_OVERWRITE = 1 << 11, /**< every byte will be written: what was there need not move */
    SB_WRITE_QUEUED = 1 << 12 /**< of the device's side, else ignored: the caller's work comes after
                                 what is queued on the context's stream (sb_context_stream) and on
                                 the default ones, so that the host need not wait for these */
};

/** How a write ends, SB_WRITE_*. */
typedef int32_t sb_write_outcome;

/** How a write ends. One that is destroyed without it has written nothing. */
enum {
    SB_WRITE_DONE = 0,     /**< all bytes are written, and the head moves to the side */
    SB_WRITE_SPOILED = 1,  /**< some may be written. Those that were overwritten in place are
                                unspecified: if both sides were current, the other one is the head,
                                else the head stays. Where the write had storage of its own (the
                                side was lent SB_READ_ONLY), nothing has changed */
    SB_WRITE_ABANDONED = 2 /**< the same, and somebody may go on writing them, nobody can tell how
                                long: the memory, or what would have taken its storage's place, is
                                kept for ever, and counts as live */
};

/** Begins a write on one side: storage that may be written, with the current bytes in it. All that
 *  can fail fails here. Nothing else uses the bytes then: work on the device is waited for. The
 *  caller's work on them is over before the write is ended.
 *  @param side SB_SIDE_CPU or SB_SIDE_GPU
 *  @param flags SB_WRITE_*
 *  @param out_ptr [borrowed] the bytes to write, until sb_write_end or, without one,
 *      sb_write_destroy; if the write is done, as of sb_mem_mutable_cpu
 *  @param out [owned] sb_write_destroy; an owner of the memory
 *  Errors: INVALID_ARGUMENT (no side, unknown flag), as sb_mem_mutable_cpu, NO_DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_write_begin(sb_mem *mem, sb_side side, uint32_t flags,
                                              void **out_ptr, sb_write **out, sb_error *err);

/** Ends it, once. Deleters run later, in sb_write_destroy, so that several writes can be ended
 *  before any of them.
 *  @param write [borrowed]
 *  @param outcome SB_WRITE_*
 *  Errors: INVALID_ARGUMENT (no outcome, it has ended already), FORKED (it was begun before a
 *  fork). */
SB_API SB_MUST_CHECK sb_status sb_write_end(sb_write *write, sb_write_outcome outcome,
                                            sb_error *err);

/** Gives the handle back. A write that was not ended has changed nothing; storage that it has
 *  replaced goes, and its deleter runs. @param write [owned, nullable] */
SB_API void sb_write_destroy(sb_write *write);

SB_END_DECLS

#endif
