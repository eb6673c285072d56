// Tests that with SYNCBLOB_CAFFE_THROW a failure is an exception and changes nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define SYNCBLOB_CAFFE_THROW
#include "caffe/blob.hpp"

#define CHECK_THAT(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                   \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

namespace {

using caffe::Blob;
using caffe::SyncblobContext;
using caffe::SyncedMemory;

template <typename Call> sb_status status_of(Call call) {
    try {
        call();
    } catch (const caffe::SyncblobError &error) {
        CHECK_THAT(error.what()[0] != '\0');
        return error.status;
    }
    return SB_OK;
}

void failures_change_nothing() {
    Blob<float> blob(1, 2, 3, 4), other(1, 2, 3, 5);
    blob.mutable_cpu_data()[23] = 1;
    CHECK_THAT(status_of([&] { blob.CopyFrom(other); }) == SB_ERR_SHAPE_MISMATCH);
    CHECK_THAT(status_of([&] { blob.ShareData(other); }) == SB_ERR_SHAPE_MISMATCH);
    CHECK_THAT(status_of([&] { blob.Reshape(1, -1, 1, 1); }) == SB_ERR_INVALID_ARGUMENT);
    CHECK_THAT(status_of([&] { blob.Reshape(1 << 16, 1 << 15, 1, 1); }) == SB_ERR_SIZE_OVERFLOW);
    CHECK_THAT(status_of([&] { blob.Reshape(std::vector<int>(33, 1)); }) == SB_ERR_OVER_LIMIT);
    caffe::BlobProto proto;
    proto.add_data(1);
    proto.add_data(2);
    CHECK_THAT(status_of([&] { blob.FromProto(proto); }) == SB_ERR_LENGTH_MISMATCH);
    proto.mutable_shape()->add_dim(int64_t(1) << 32 | 2);
    CHECK_THAT(status_of([&] { blob.FromProto(proto); }) == SB_ERR_BAD_SHAPE);
    CHECK_THAT(status_of([&] { blob.FromProto(proto, false); }) == SB_ERR_SHAPE_MISMATCH);
    CHECK_THAT(status_of([&] { blob.data_at(1, 0, 0, 0); }) == SB_ERR_INDEX_OUT_OF_RANGE);
    CHECK_THAT(blob.shape_string() == "1 2 3 4 (24)" && blob.data_at(0, 1, 2, 3) == 1);
    CHECK_THAT(status_of([] { Blob<int>(1, 1, 1, 1).scale_data(2); }) == SB_ERR_UNSUPPORTED);
    CHECK_THAT(status_of([] { Blob<int>().data(); }) == SB_ERR_UNINITIALIZED);
}

// The number of allocations that still succeed; -1: all.
long allocations = -1;

void *allocate(void *, size_t bytes, size_t alignment, uint32_t flags) {
    if (allocations == 0)
        return nullptr;
    if (allocations > 0)
        allocations--;
    void *block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (block != nullptr && (flags & SB_ALLOC_ZEROED) != 0)
        std::memset(block, 0, bytes);
    return block;
}

void give_back(void *, void *block, size_t, size_t, uint32_t) {
    std::free(block);
}

void offsets_beyond_int_are_refused() {
    Blob<float> none(0, 46341, 46341, 1);
    CHECK_THAT(status_of([&] { none.data_at(0, 46341, 46341, 0); }) == SB_ERR_SIZE_OVERFLOW);
    Blob<bool> wide(1, 1, 2, 1000000000);
    CHECK_THAT(status_of([&] { wide.offset(0, 1, 1, 0); }) == SB_ERR_SIZE_OVERFLOW);
    CHECK_THAT(wide.offset(0, 0, 1, 999999999) == 1999999999);
}

// If a Reshape cannot allocate memory, a later access allocates the memory.
void a_reshape_without_memory() {
    Blob<float> small(1, 1, 1, 10), blob(1, 1, 1, 20), other(1, 1, 1, 20);
    blob.mutable_cpu_diff()[19] = 3;
    blob.Reshape(1, 1, 1, 10);
    blob.ShareData(small);
    allocations = 0;
    CHECK_THAT(status_of([&] { blob.Reshape(1, 1, 1, 20); }) == SB_ERR_OUT_OF_MEMORY);
    CHECK_THAT(blob.count() == 20);
    CHECK_THAT(status_of([&] { other.ShareData(blob); }) == SB_ERR_OUT_OF_MEMORY);
    CHECK_THAT(status_of([&] { blob.data(); }) == SB_ERR_OUT_OF_MEMORY);
    allocations = -1;
    CHECK_THAT(other.asum_data() == 0 && other.data() != nullptr);
    CHECK_THAT(blob.cpu_data()[19] == 0 && blob.cpu_diff()[19] == 3);
    other.ShareData(blob);
    blob.mutable_cpu_data()[19] = 4;
    CHECK_THAT(other.cpu_data()[19] == 4);
}

void a_message_remains_without_memory_for_its_values() {
    Blob<float> blob(1, 1, 1, 3);
    blob.mutable_cpu_data()[0] = 1;
    caffe::BlobProto proto;
    Blob<float>(1, 1, 1, 2).ToProto(&proto, true);
    const std::string before = proto.SerializeAsString();
    allocations = 0;
    CHECK_THAT(status_of([&] { blob.ToProto(&proto, true); }) == SB_ERR_OUT_OF_MEMORY);
    allocations = -1;
    CHECK_THAT(proto.SerializeAsString() == before);
    Blob<float> unshaped;
    CHECK_THAT(status_of([&] { blob.CopyFrom(unshaped, false, true); }) == SB_ERR_UNINITIALIZED);
    CHECK_THAT(blob.shape_string() == "1 1 1 3 (3)" && blob.cpu_data()[0] == 1);
}

void a_blob_without_memory() {
    sb_context *const before = SyncblobContext::Get();
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.allocator.alloc = allocate;
    options.allocator.free = give_back;
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    sb_context *context;
    CHECK_THAT(sb_context_create(&options, &context, NULL) == SB_OK);
    SyncblobContext::Set(context);
    a_reshape_without_memory();
    a_message_remains_without_memory_for_its_values();
    SyncblobContext::Set(before);
    sb_context_release(context);
}

void the_shape_is_where_the_blob_is() {
    Blob<float> blob(1, 1, 1, 4), scalar((std::vector<int>()));
    sb_context *const context = SyncblobContext::Get();
    SyncblobContext::Set(nullptr);
    CHECK_THAT(blob.gpu_data() != nullptr && blob.gpu_shape() != nullptr);
    CHECK_THAT(status_of([&] { scalar.gpu_shape(); }) == SB_OK);
    SyncblobContext::Set(context);
}

void bytes_move_to_the_device() {
    Blob<float> blob(1, 1, 1, 4), copy(1, 1, 1, 4);
    blob.mutable_cpu_data()[3] = 2;
    blob.gpu_data();
    CHECK_THAT(blob.data()->head() == SyncedMemory::SYNCED);
    blob.scale_data(3);
    CHECK_THAT(blob.data()->head() == SyncedMemory::HEAD_AT_GPU);
    caffe::Caffe::set_mode(caffe::Caffe::GPU);
    copy.CopyFrom(blob);
    CHECK_THAT(copy.data()->head() == SyncedMemory::HEAD_AT_GPU);
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    CHECK_THAT(copy.data_at(0, 0, 0, 3) == 6 && copy.data()->head() == SyncedMemory::SYNCED);
    CHECK_THAT(blob.gpu_shape() != nullptr);
    CHECK_THAT(blob.mutable_gpu_diff() != nullptr && blob.asum_diff() == 0);
}

// Caffe would read past the end of the shared memory.
void a_share_that_is_too_small_is_left() {
    Blob<float> wide(1, 1, 1, 20), narrow(1, 1, 1, 10);
    wide.mutable_cpu_diff()[19] = 1;
    wide.Reshape(1, 1, 1, 10);
    wide.ShareData(narrow);
    wide.Reshape(1, 1, 1, 20);
    CHECK_THAT(wide.data() != narrow.data() && wide.data()->size() == 20 * sizeof(float));
    CHECK_THAT(wide.diff_at(0, 0, 0, 19) == 1);
}

void each_thread_has_a_context() {
    sb_context *const context = SyncblobContext::Get();
    std::thread([context] {
        CHECK_THAT(SyncblobContext::Get() == nullptr);
        SyncedMemory host(4);
        CHECK_THAT(status_of([&] { host.gpu_data(); }) == SB_ERR_NO_DEVICE);
        SyncblobContext::Set(context);
        SyncedMemory device(4);
        CHECK_THAT(status_of([&] { device.gpu_data(); }) == SB_OK);
        CHECK_THAT(status_of([&] { host.gpu_data(); }) == SB_ERR_NO_DEVICE);
        SyncblobContext::Set(nullptr);
    }).join();
    CHECK_THAT(SyncblobContext::Get() == context);
}

uint64_t pinned_bytes(sb_context *context) {
    sb_stats stats = SB_STATS_INIT;
    CHECK_THAT(sb_context_stats(context, &stats, NULL) == SB_OK);
    return stats.pinned_bytes;
}

void host_memory_is_the_contexts() {
    const uint64_t before = pinned_bytes(SyncblobContext::Get());
    void *first, *second, *none;
    bool is_pinned, is_none_pinned;
    caffe::CaffeMallocHost(&first, 5000, &is_pinned);
    caffe::CaffeMallocHost(&second, 5000, &is_pinned);
    caffe::CaffeMallocHost(&none, 0, &is_none_pinned);
    std::memset(first, 1, 5000);
    CHECK_THAT(is_pinned && first != second && none != nullptr);
    CHECK_THAT(pinned_bytes(SyncblobContext::Get()) >= before + 10000);
    std::thread([=] { // on a thread with another context
        caffe::CaffeFreeHost(first, is_pinned);
        caffe::CaffeFreeHost(second, is_pinned);
    })
        .join();
    caffe::CaffeFreeHost(none, is_none_pinned);
    caffe::CaffeFreeHost(nullptr, false);
    CHECK_THAT(pinned_bytes(SyncblobContext::Get()) == before);
    CHECK_THAT(status_of([=] { caffe::CaffeFreeHost(none, false); }) == SB_ERR_INVALID_ARGUMENT);
    CHECK_THAT(status_of([] {
                   void *ptr;
                   bool pinned;
                   caffe::CaffeMallocHost(&ptr, SIZE_MAX, &pinned);
               }) == SB_ERR_SIZE_OVERFLOW);
}

} // namespace

int main() {
    sb_context *context;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "sim:0";
    CHECK_THAT(sb_context_create(&options, &context, NULL) == SB_OK);
    SyncblobContext::Set(context);
    failures_change_nothing();
    offsets_beyond_int_are_refused();
    a_blob_without_memory();
    the_shape_is_where_the_blob_is();
    bytes_move_to_the_device();
    a_share_that_is_too_small_is_left();
    each_thread_has_a_context();
    host_memory_is_the_contexts();
    SyncblobContext::Set(nullptr);
    sb_context_release(context);
    return 0;
}
