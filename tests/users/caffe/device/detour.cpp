// Runs Caffe's tests for the CPU on a device: the linker redirects calls of bindings/caffe to this
// file (--wrap). To save time, only some accesses move bytes to the device and back. Each call
// leaves the head at the host, because Caffe's tests may write through an old pointer.
#include <atomic>

#include "syncblob/syncblob.h"

sb_context *device_context();

static std::atomic<unsigned> accesses;

extern "C" {

sb_status __real_sb_mem_create(sb_context *, size_t, sb_mem **, sb_error *);
sb_status __real_sb_blob_create(sb_context *, sb_dtype, sb_blob **, sb_error *);
sb_status __real_sb_blob_create_shaped(sb_context *, sb_dtype, const int64_t *, int32_t, sb_blob **,
                                       sb_error *);

sb_status __wrap_sb_mem_create(sb_context *, size_t bytes, sb_mem **out, sb_error *err) {
    accesses = 0;
    return __real_sb_mem_create(device_context(), bytes, out, err);
}

sb_status __wrap_sb_blob_create(sb_context *, sb_dtype dtype, sb_blob **out, sb_error *err) {
    accesses = 0;
    return __real_sb_blob_create(device_context(), dtype, out, err);
}

sb_status __wrap_sb_blob_create_shaped(sb_context *, sb_dtype dtype, const int64_t *shape,
                                       int32_t axes, sb_blob **out, sb_error *err) {
    accesses = 0;
    return __real_sb_blob_create_shaped(device_context(), dtype, shape, axes, out, err);
}

sb_status __real_sb_mem_mutable_cpu(sb_mem *, void **, sb_error *);

sb_status __wrap_sb_mem_mutable_cpu(sb_mem *mem, void **out, sb_error *err) {
    void *on_device;
    const unsigned before = accesses++;
    const bool moves = before < 16 || before % 1009 == 0;
    const sb_status status = moves ? sb_mem_mutable_gpu(mem, &on_device, err) : SB_OK;
    return status == SB_OK ? __real_sb_mem_mutable_cpu(mem, out, err) : status;
}

sb_status __wrap_sb_mem_cpu(const sb_mem *mem, const void **out, sb_error *err) {
    return __wrap_sb_mem_mutable_cpu(const_cast<sb_mem *>(mem), const_cast<void **>(out), err);
}

sb_status __real_sb_blob_update(sb_blob *, sb_error *);
sb_status __real_sb_blob_scale(sb_blob *, sb_part, double, sb_error *);
sb_status __real_sb_blob_asum(const sb_blob *, sb_part, double *, sb_error *);
sb_status __real_sb_blob_sumsq(const sb_blob *, sb_part, double *, sb_error *);
}

namespace {

template <typename Call>
sb_status on_device(const sb_blob *constant, sb_part part, sb_error *err, Call call) {
    sb_blob *blob = const_cast<sb_blob *>(constant);
    void *bytes;
    sb_status status = sb_blob_mutable_gpu(blob, part, &bytes, err);
    if (status == SB_OK)
        status = call();
    return status == SB_OK ? sb_blob_mutable_cpu(blob, part, &bytes, err) : status;
}

} // namespace

extern "C" {

sb_status __wrap_sb_blob_update(sb_blob *blob, sb_error *err) {
    return on_device(blob, SB_DATA, err, [=] {
        return on_device(blob, SB_DIFF, err, [=] { return __real_sb_blob_update(blob, err); });
    });
}

sb_status __wrap_sb_blob_scale(sb_blob *blob, sb_part part, double factor, sb_error *err) {
    return on_device(blob, part, err,
                     [=] { return __real_sb_blob_scale(blob, part, factor, err); });
}

sb_status __wrap_sb_blob_asum(const sb_blob *blob, sb_part part, double *out, sb_error *err) {
    return on_device(blob, part, err, [=] { return __real_sb_blob_asum(blob, part, out, err); });
}

sb_status __wrap_sb_blob_sumsq(const sb_blob *blob, sb_part part, double *out, sb_error *err) {
    return on_device(blob, part, err, [=] { return __real_sb_blob_sumsq(blob, part, out, err); });
}
}
