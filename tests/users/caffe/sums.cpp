// Prints the relative error of the norm of N numbers, computed by sumsq_diff, with which solvers
// clip gradients.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "caffe/blob.hpp"

namespace {

// Fills `to` with numbers between -1 and 1, the same on every machine.
void generate(float *to, int count) {
    uint32_t state = 1;
    for (int i = 0; i < count; i++) {
        state = state * 1664525U + 1013904223U;
        to[i] = static_cast<float>(static_cast<int32_t>(state) >> 8) / 8388608.0F;
    }
}

} // namespace

int main() {
    for (int count = 1000; count <= 10000000; count *= 100) {
        caffe::Blob<float> blob(std::vector<int>(1, count));
        float *diff = blob.mutable_cpu_diff();
        generate(diff, count);
        long double exact = 0;
        for (int i = 0; i < count; i++)
            exact += static_cast<long double>(diff[i]) * diff[i];
        const double norm = std::sqrt(static_cast<double>(exact));
        std::printf("%d %.3g\n", count, std::fabs(std::sqrt(blob.sumsq_diff()) / norm - 1));
    }
    return 0;
}
