// With SYNCBLOB_CAFFE_THROW a failure is an exception that changes nothing, and
// SYNCBLOB_CAFFE_CONTEXT says where memories are made: here on the simulated device.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "syncblob/context.h"

static sb_context *context;

#define SYNCBLOB_CAFFE_THROW
#define SYNCBLOB_CAFFE_CONTEXT context
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

void bytes_move_to_the_device() {
    Blob<float> blob(1, 1, 1, 4), copy(1, 1, 1, 4);
    blob.mutable_cpu_data()[3] = 2;
    blob.gpu_data();
    CHECK_THAT(blob.data()->head() == SyncedMemory::SYNCED);
    blob.scale_data(3); // on the device
    CHECK_THAT(blob.data()->head() == SyncedMemory::HEAD_AT_GPU);
    caffe::Caffe::set_mode(caffe::Caffe::GPU);
    copy.CopyFrom(blob);
    CHECK_THAT(copy.data()->head() == SyncedMemory::HEAD_AT_GPU);
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    CHECK_THAT(copy.data_at(0, 0, 0, 3) == 6 && copy.data()->head() == SyncedMemory::SYNCED);
    CHECK_THAT(blob.gpu_shape() != nullptr);
    CHECK_THAT(blob.mutable_gpu_diff() != nullptr && blob.asum_diff() == 0);
}

// Caffe would read beyond the smaller memory.
void a_share_that_is_too_small_is_left() {
    Blob<float> wide(1, 1, 1, 20), narrow(1, 1, 1, 10);
    wide.mutable_cpu_diff()[19] = 1;
    wide.Reshape(1, 1, 1, 10);
    wide.ShareData(narrow);
    wide.Reshape(1, 1, 1, 20);
    CHECK_THAT(wide.data() != narrow.data() && wide.data()->size() == 20 * sizeof(float));
    CHECK_THAT(wide.diff_at(0, 0, 0, 19) == 1);
}

} // namespace

int main() {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "sim:0";
    CHECK_THAT(sb_context_create(&options, &context, NULL) == SB_OK);
    failures_change_nothing();
    bytes_move_to_the_device();
    a_share_that_is_too_small_is_left();
    sb_context_release(context);
    return 0;
}
