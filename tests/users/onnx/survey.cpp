// survey NET: prints what a net takes: a line "input NAME SIZES" for each input, a line
// "blob LAYER TYPE SIZES" for each blob of weights. The words of a line are parted by tabs.
// survey NET MODEL INPUTS: prints a line "LAYER FACTOR" for each layer with weights. Multiplied by
// it, the first blob of a layer that sums gives outputs whose deviation is 1; a BatchNorm's mean
// and, twice, its variance become those of what it gets.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "caffe/caffe.hpp"

namespace {

using Blob = caffe::Blob<float>;
using Net = caffe::Net<float>;

void print_sizes(const Blob &blob) {
    for (const int size : blob.shape())
        std::printf("\t%d", size);
    std::printf("\n");
}

void print_shapes(const Net &net) {
    for (const int index : net.input_blob_indices()) {
        std::printf("input\t%s", net.blob_names()[index].c_str());
        print_sizes(*net.blobs()[index]);
    }
    for (size_t i = 0; i < net.layers().size(); i++)
        for (const auto &blob : net.layers()[i]->blobs()) {
            std::printf("blob\t%s\t%s", net.layer_names()[i].c_str(), net.layers()[i]->type());
            print_sizes(*blob);
        }
}

void fill(const Net &net, const char *path) {
    std::ifstream file(path, std::ios::binary);
    for (Blob *blob : net.input_blobs())
        file.read(reinterpret_cast<char *>(blob->mutable_cpu_data()),
                  static_cast<std::streamsize>(sizeof(float)) * blob->count());
    CHECK(file.good()) << path << " is too short";
}

double deviation(const Blob &blob) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < blob.count(); i++) {
        sum += blob.cpu_data()[i];
        squares += std::pow(blob.cpu_data()[i], 2);
    }
    const double mean = sum / blob.count();
    return std::sqrt(squares / blob.count() - mean * mean);
}

bool is_sum(const char *type) {
    for (const char *one : {"Convolution", "Deconvolution", "InnerProduct", "Normalize"})
        if (std::strcmp(type, one) == 0)
            return true;
    return false;
}

void scale(const Net &net, int layer, float factor) {
    const auto &blobs = net.layers()[layer]->blobs();
    blobs[0]->scale_data(factor);
    if (std::strcmp(net.layers()[layer]->type(), "BatchNorm") == 0)
        blobs[1]->scale_data(factor * factor);
}

void print_factors(Net *net) {
    for (int i = 0; i < static_cast<int>(net->layers().size()); i++) {
        const char *type = net->layers()[i]->type();
        double factor = 1;
        if (std::strcmp(type, "BatchNorm") == 0) {
            factor = deviation(*net->bottom_vecs()[i][0]);
            scale(*net, i, static_cast<float>(factor));
        }
        net->ForwardFromTo(i, i);
        if (is_sum(type)) {
            factor = 1 / deviation(*net->top_vecs()[i][0]);
            scale(*net, i, static_cast<float>(factor));
            net->ForwardFromTo(i, i);
        }
        if (!net->layers()[i]->blobs().empty())
            std::printf("%s\t%.9g\n", net->layer_names()[i].c_str(), factor);
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2 && argc != 4)
        return 2;
    google::InitGoogleLogging(argv[0]);
    FLAGS_logtostderr = true;
    FLAGS_minloglevel = google::GLOG_ERROR;
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    Net net(argv[1], caffe::TEST);
    if (argc == 2) {
        print_shapes(net);
        return 0;
    }
    net.CopyTrainedLayersFrom(argv[2]);
    fill(net, argv[3]);
    print_factors(&net);
    return 0;
}
