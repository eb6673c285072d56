/**
 * caffe::SyncedMemory, implemented by sb_mem. A failure calls LOG(FATAL), as in Caffe, or throws
 * an exception if SYNCBLOB_CAFFE_THROW is defined.
 */
#ifndef SYNCBLOB_CAFFE_MEMORY_HPP
#define SYNCBLOB_CAFFE_MEMORY_HPP

#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "caffe/common.hpp"
#include "syncblob/syncblob.h"

/** @def SYNCBLOB_CAFFE_CONTEXT
 *  An expression for the sb_context * in which the calling thread makes memories. */
#ifndef SYNCBLOB_CAFFE_CONTEXT
#define SYNCBLOB_CAFFE_CONTEXT ::caffe::SyncblobContext::Get()
#endif

/** Makes an object unique in the process, even if a shared library hides other symbols. */
#define SYNCBLOB_CAFFE_SHARED __attribute__((visibility("default")))

namespace caffe {

/** The context in which the calling thread makes memories. Set selects the context, as
 *  Caffe::SetDevice selects the device. The default is NULL, the built-in host-only context. */
class SYNCBLOB_CAFFE_SHARED SyncblobContext {
  public:
    /** The caller keeps ownership of `context`, and must not release it while it is set. */
    static void Set(sb_context *context) {
        OfThread() = context;
    }
    static sb_context *Get() {
        return OfThread();
    }

  private:
    static sb_context *&OfThread() {
        static thread_local sb_context *context = nullptr;
        return context;
    }
};

#ifdef SYNCBLOB_CAFFE_THROW
/** The exception of a failed call. The C headers document the state after each status. */
class SYNCBLOB_CAFFE_SHARED SyncblobError : public std::runtime_error {
  public:
    SyncblobError(sb_status failure, const std::string &message)
        : std::runtime_error(message), status(failure) {
    }
    const sb_status status; /**< SB_ERR_* */
};
#endif

namespace syncblob {

/** Ends the process or throws an exception. */
[[noreturn]] __attribute__((noinline, cold)) inline void Fail(sb_status status,
                                                              const char *message) {
#ifdef SYNCBLOB_CAFFE_THROW
    throw SyncblobError(status, message);
#else
    LOG(FATAL) << sb_status_name(status) << ": " << message;
    std::abort(); // glog does not declare LOG(FATAL) as noreturn
#endif
}

inline void Require(bool holds, sb_status status, const char *message) {
    if (!holds)
        Fail(status, message);
}

/** Calls a function of the C library with the arguments and an error. On failure calls Fail. */
template <typename... Parameters, typename... Arguments>
__attribute__((always_inline)) inline void Check(sb_status (*call)(Parameters...),
                                                 Arguments... arguments) {
    sb_error error;
    const sb_status status = call(arguments..., &error);
    if (status != SB_OK)
        Fail(status, error.message);
}

/** The memories that CaffeMallocHost returned, by address. */
struct SYNCBLOB_CAFFE_SHARED HostMemories {
    std::mutex lock;
    std::unordered_map<void *, sb_mem *> memories;

    static HostMemories &All() {
        static HostMemories *all = new HostMemories; // never destroyed: memory may be freed at exit
        return *all;
    }
};

} // namespace syncblob

/** Allocates host memory, page-locked if the device of the thread's context supports that. The
 *  context counts and limits the memory like the memory of a blob. */
inline void CaffeMallocHost(void **ptr, size_t size, bool *use_cuda) {
    sb_mem *made;
    void *bytes;
    syncblob::Check(sb_mem_create, SYNCBLOB_CAFFE_CONTEXT, size > 0 ? size : size_t(1), &made);
    std::unique_ptr<sb_mem, void (*)(sb_mem *)> memory(made, sb_mem_release);
    syncblob::Check(sb_mem_overwrite_cpu, made, &bytes);
    syncblob::HostMemories &all = syncblob::HostMemories::All();
    {
        std::lock_guard<std::mutex> hold(all.lock);
        all.memories[bytes] = made;
    }
    memory.release();
    *ptr = bytes;
    *use_cuda = sb_mem_storage(made, SB_SIDE_CPU) == SB_STORAGE_PINNED;
}

inline void CaffeFreeHost(void *ptr, bool) {
    syncblob::HostMemories &all = syncblob::HostMemories::All();
    sb_mem *memory = nullptr;
    {
        std::lock_guard<std::mutex> hold(all.lock);
        const auto found = all.memories.find(ptr);
        syncblob::Require(found != all.memories.end() || ptr == nullptr, SB_ERR_INVALID_ARGUMENT,
                          "the pointer is not from CaffeMallocHost");
        if (found != all.memories.end()) {
            memory = found->second;
            all.memories.erase(found);
        }
    }
    sb_mem_release(memory);
}

class SyncedMemory {
  public:
    /** The values of sb_head. LOST, unknown to Caffe, means that the newest bytes were lost. */
    enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED, LOST };

    SyncedMemory() : SyncedMemory(size_t(0)) {
    }
    explicit SyncedMemory(size_t size) : SyncedMemory(size, SYNCBLOB_CAFFE_CONTEXT) {
    }
    ~SyncedMemory() {
        sb_mem_release(mem_);
    }

    const void *cpu_data() {
        const void *bytes;
        syncblob::Check(sb_mem_cpu, mem_, &bytes);
        return bytes;
    }
    const void *gpu_data() {
        const void *bytes;
        syncblob::Check(sb_mem_gpu, mem_, &bytes);
        return bytes;
    }
    void *mutable_cpu_data() {
        void *bytes;
        syncblob::Check(sb_mem_mutable_cpu, mem_, &bytes);
        return bytes;
    }
    void *mutable_gpu_data() {
        void *bytes;
        syncblob::Check(sb_mem_mutable_gpu, mem_, &bytes);
        return bytes;
    }

    /** The caller keeps ownership of `data`. The library cannot check that `data` has size()
     *  bytes. */
    void set_cpu_data(void *data) {
        syncblob::Check(sb_mem_set_cpu, mem_, data, size(), 0, nullptr, nullptr);
    }
    void set_gpu_data(void *data) {
        syncblob::Check(sb_mem_set_gpu, mem_, data, size(), 0, nullptr, nullptr);
    }
#ifndef CPU_ONLY
    /** Unlike in Caffe, the next use of the bytes waits for the copy. */
    void async_gpu_push(const cudaStream_t &stream) {
        syncblob::Check(sb_mem_async_gpu_push, mem_, reinterpret_cast<sb_stream>(stream));
    }
#endif

    SyncedHead head() {
        return static_cast<SyncedHead>(sb_mem_head(mem_));
    }
    size_t size() {
        return sb_mem_size(mem_);
    }

  private:
    template <typename Dtype> friend class Blob;

    struct Shared { // a struct, because a pointer would make SyncedMemory(0) ambiguous
        sb_mem *mem;
    };

    SyncedMemory(size_t size, sb_context *context) : mem_(nullptr) {
        syncblob::Check(sb_mem_create, context, size, &mem_);
    }

    /** Adds an owner of a blob's memory. */
    explicit SyncedMemory(Shared shared) : mem_(sb_mem_retain(shared.mem)) {
    }

    sb_mem *mem_;

    DISABLE_COPY_AND_ASSIGN(SyncedMemory);
};

} // namespace caffe

#endif
