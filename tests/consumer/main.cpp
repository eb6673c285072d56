// Every public header in one C++ translation unit, and a handle held by
// std::unique_ptr.
#include <syncblob/backend.h>
#include <syncblob/base.h>
#include <syncblob/blob.h>
#include <syncblob/context.h>
#include <syncblob/mem.h>
#include <syncblob/model.h>
#include <syncblob/proto.h>
#include <syncblob/sim.h>
#include <syncblob/status.h>
#include <syncblob/syncblob.h>
#include <syncblob/typed.h>

#include <cstdint>
#include <cstdio>
#include <memory>

namespace {

struct Destroy {
    void operator()(sb_blob *blob) const {
        sb_blob_destroy(blob);
    }
};
using Blob = std::unique_ptr<sb_blob, Destroy>;

Blob make_blob(const std::int64_t *shape, std::int32_t axes) {
    sb_blob *blob = nullptr;
    sb_error err;
    if (sb_blob_create_shaped(nullptr, SB_DTYPE_F64, shape, axes, &blob, &err) != SB_OK)
        std::fprintf(stderr, "%s\n", err.message);
    return Blob(blob);
}

} // namespace

int main() {
    const std::int64_t shape[] = {4, 5};
    Blob blob = make_blob(shape, 2);
    double *x = nullptr;
    double sum = 0;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_limits limits = SB_LIMITS_INIT;
    sb_stats stats = SB_STATS_INIT;
    if (!blob || sb_blob_mutable_cpu_data_f64(blob.get(), &x, nullptr) != SB_OK)
        return 1;
    x[19] = -2.5;
    if (sb_blob_asum_data(blob.get(), &sum, nullptr) != SB_OK || sum != 2.5)
        return 1;
    return options.struct_size && limits.struct_size && stats.struct_size ? 0 : 1;
}
