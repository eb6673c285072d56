// train SOLVER ITERATIONS PREFIX: trains a net on generated data and writes snapshots.
// Prints the processor's milliseconds an iteration, the last loss, and the peak memory in KiB.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "caffe/caffe.hpp"
#include "caffe/layers/memory_data_layer.hpp"

namespace {

struct Samples {
    std::vector<float> values;
    std::vector<float> labels;
};

std::unique_ptr<Samples> generate(int count, int size) {
    std::unique_ptr<Samples> samples(new Samples);
    uint32_t state = 1;
    for (int i = 0; i < count; i++) {
        const int label = i * 7 % 10;
        samples->labels.push_back(static_cast<float>(label));
        for (int j = 0; j < size; j++) {
            state = state * 1664525U + 1013904223U;
            const float noise = static_cast<float>(state >> 8) / 16777216.0F;
            samples->values.push_back((j / 3 % 10 == label ? 0.7F : 0.1F) + 0.3F * noise);
        }
    }
    return samples;
}

void feed(caffe::Net<float> *net, std::vector<std::unique_ptr<Samples>> *all) {
    for (const auto &layer : net->layers()) {
        auto *data = dynamic_cast<caffe::MemoryDataLayer<float> *>(layer.get());
        if (data == nullptr)
            continue;
        const int count = data->batch_size() * 5;
        all->push_back(generate(count, data->channels() * data->height() * data->width()));
        data->Reset(all->back()->values.data(), all->back()->labels.data(), count);
    }
}

// For an ended child, the kernel reports a peak that includes the memory of the child's parent.
long peak_memory() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
        if (line.compare(0, 6, "VmHWM:") == 0)
            return std::atol(line.c_str() + 6);
    return -1;
}

} // namespace

// callgrind counts only the instructions of this function.
extern "C" __attribute__((noinline)) void counted(caffe::Solver<float> *solver) {
    solver->Solve();
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    google::InitGoogleLogging(argv[0]);
    FLAGS_minloglevel = google::GLOG_ERROR;
    const int iterations = std::atoi(argv[2]);
    caffe::SolverParameter parameter;
    caffe::ReadSolverParamsFromTextFileOrDie(argv[1], &parameter);
    parameter.set_snapshot_prefix(argv[3]);
    parameter.set_max_iter(iterations);
    parameter.set_random_seed(1);
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    caffe::Caffe::set_random_seed(1);
    std::unique_ptr<caffe::Solver<float>> solver(
        caffe::SolverRegistry<float>::CreateSolver(parameter));
    std::vector<std::unique_ptr<Samples>> samples;
    feed(solver->net().get(), &samples);
    for (const auto &net : solver->test_nets())
        feed(net.get(), &samples);
    const std::clock_t begin = std::clock();
    counted(solver.get());
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("%.6f %.9g %ld\n", 1000 * seconds / iterations,
                solver->net()->output_blobs()[0]->cpu_data()[0], peak_memory());
    return 0;
}
