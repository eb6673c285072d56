/**
 * caffe::SyncedMemory on sb_mem, and how a failure ends: by LOG(FATAL), as in Caffe, or by an
 * exception where SYNCBLOB_CAFFE_THROW is defined.
 */
#ifndef SYNCBLOB_CAFFE_MEMORY_HPP
#define SYNCBLOB_CAFFE_MEMORY_HPP

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "caffe/common.hpp"
#include "syncblob/syncblob.h"

/** @def SYNCBLOB_CAFFE_CONTEXT
 *  An expression: the sb_context * in which the calling thread makes memories. Caffe follows the
 *  thread's current device, so a fork with devices gives a function that does. */
#ifndef SYNCBLOB_CAFFE_CONTEXT
#define SYNCBLOB_CAFFE_CONTEXT nullptr
#endif

namespace caffe {

#ifdef SYNCBLOB_CAFFE_THROW
/** What a failing call throws. Nothing has changed but what the call's status in the C headers
 *  says. */
class SyncblobError : public std::runtime_error {
  public:
    SyncblobError(sb_status status, const std::string &message)
        : std::runtime_error(message), status(status) {
    }
    const sb_status status; /**< SB_ERR_* */
};
#endif

namespace syncblob {

/** Ends the process, or throws. */
[[noreturn]] __attribute__((noinline, cold)) inline void Fail(sb_status status,
                                                              const std::string &message) {
#ifdef SYNCBLOB_CAFFE_THROW
    throw SyncblobError(status, message);
#else
    LOG(FATAL) << sb_status_name(status) << ": " << message;
    std::abort(); // glog does not say to the compiler that it never returns
#endif
}

inline void Require(bool holds, sb_status status, const char *message) {
    if (!holds)
        Fail(status, message);
}

/** Check(call, arguments...): one call of the C library, which must succeed. */
template <typename... Parameters, typename... Arguments>
inline void Check(sb_status (*call)(Parameters...), Arguments... arguments) {
    sb_error error;
    const sb_status status = call(arguments..., &error);
    if (status != SB_OK)
        Fail(status, error.message);
}

} // namespace syncblob

/** Page-locked memory comes from a context; this is ordinary memory. */
inline void CaffeMallocHost(void **ptr, size_t size, bool *use_cuda) {
    *use_cuda = false;
    *ptr = std::malloc(size);
    syncblob::Require(*ptr != nullptr || size == 0, SB_ERR_OUT_OF_MEMORY, "no host memory");
}

inline void CaffeFreeHost(void *ptr, bool) {
    std::free(ptr);
}

class SyncedMemory {
  public:
    /** As sb_head. LOST is not Caffe's: the newest bytes went with the device. */
    enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED, LOST };

    SyncedMemory() : SyncedMemory(size_t(0)) {
    }
    explicit SyncedMemory(size_t size) : mem_(nullptr) {
        syncblob::Check(sb_mem_create, SYNCBLOB_CAFFE_CONTEXT, size, &mem_);
    }
    ~SyncedMemory() {
        sb_mem_release(mem_);
    }

    const void *cpu_data() {
        const void *bytes;
        syncblob::Check(sb_mem_cpu_data, mem_, &bytes);
        return bytes;
    }
    const void *gpu_data() {
        const void *bytes;
        syncblob::Check(sb_mem_gpu_data, mem_, &bytes);
        return bytes;
    }
    void *mutable_cpu_data() {
        void *bytes;
        syncblob::Check(sb_mem_mutable_cpu_data, mem_, &bytes);
        return bytes;
    }
    void *mutable_gpu_data() {
        void *bytes;
        syncblob::Check(sb_mem_mutable_gpu_data, mem_, &bytes);
        return bytes;
    }

    /** `data` stays the caller's and has size() bytes, which nobody can check. */
    void set_cpu_data(void *data) {
        syncblob::Check(sb_mem_set_cpu, mem_, data, size(), 0, nullptr, nullptr);
    }
    void set_gpu_data(void *data) {
        syncblob::Check(sb_mem_set_gpu, mem_, data, size(), 0, nullptr, nullptr);
    }
#ifndef CPU_ONLY
    /** Unlike Caffe's, whoever uses the bytes next waits for them. */
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

    struct Shared { // not a pointer: SyncedMemory(0) is a size
        sb_mem *mem;
    };

    /** One more owner of a blob's memory. */
    explicit SyncedMemory(Shared shared) : mem_(sb_mem_retain(shared.mem)) {
    }

    sb_mem *mem_;

    DISABLE_COPY_AND_ASSIGN(SyncedMemory);
};

} // namespace caffe

#endif
