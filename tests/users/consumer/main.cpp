// Uses the installed library in C++, with raii.hpp.
#include "raii.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <type_traits>

namespace {

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            throw std::logic_error("line " + std::to_string(__LINE__) + ": " #condition);          \
    } while (0)

template <class T> void computed_and_saved(const raii::Context &context) {
    raii::Blob<T> blob({4, 5}, context);
    std::iota(blob.mutable_data(), blob.mutable_data() + blob.size(), T{0});
    std::fill_n(blob.mutable_data(SB_DIFF), blob.size(), T{1});
    blob.update();
    CHECK(blob.asum() == 1 + 18 * 19 / 2);

    blob.write("blob.binaryproto", SB_PROTO_WRITE_DIFF);
    const raii::Blob<T> read = raii::Blob<T>::read("blob.binaryproto", context);
    CHECK(read.shape() == blob.shape());
    CHECK(std::equal(read.data(), read.data() + read.size(), blob.data()));
    CHECK(read.data(SB_DIFF)[19] == 1);

    raii::Blob<T> moved = std::move(blob);
    CHECK(moved.size() == 20 && !blob.get());
    static_assert(!std::is_copy_constructible<raii::Blob<T>>::value, "a deep copy is explicit");
}

template <class Call> sb_status thrown_by(Call function) {
    try {
        function();
    } catch (const raii::Error &error) {
        return error.code;
    }
    return SB_OK;
}

void failures_are_exceptions() {
    CHECK(thrown_by([] { raii::Blob<float> blob({-1}); }) == SB_ERR_INVALID_ARGUMENT);
    CHECK(thrown_by([] { raii::Blob<float>::read("/nonexistent"); }) == SB_ERR_IO);
    CHECK(thrown_by([] { raii::Context context("abacus:0"); }) == SB_ERR_UNSUPPORTED);
    CHECK(thrown_by([] { raii::Blob<float>({2}).update(); }) == SB_ERR_UNINITIALIZED);
}

void structs_have_defaults() {
    sb_limits limits = SB_LIMITS_INIT;
    sb_stats stats = SB_STATS_INIT;
    sb_filler filler = SB_FILLER_INIT;
    CHECK(limits.struct_size && stats.struct_size && filler.struct_size);
}

} // namespace

int main() {
    try {
        raii::Context device("sim:0");
        computed_and_saved<float>(raii::Context());
        computed_and_saved<double>(raii::Context(device));
        failures_are_exceptions();
        structs_have_defaults();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
