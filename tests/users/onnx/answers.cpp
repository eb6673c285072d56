// answers forward LIST OUT: runs Caffe's nets in phase TEST. A line of LIST is "PROTOTXT MODEL
//   INPUTS": the files of a net, of its weights and of the floats of its inputs. nets.read_answers
//   reads OUT.
// answers shapes NET: prints a line "input NAME SIZES" for each input of a net, and a line "blob
//   LAYER TYPE SIZES" for each blob of weights. Tabs separate the words of a line.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "caffe/caffe.hpp"

namespace {

using Blob = caffe::Blob<float>;
using Net = caffe::Net<float>;

void fill(const Net &net, const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    for (Blob *blob : net.input_blobs()) {
        const auto bytes = static_cast<std::streamsize>(sizeof(float)) * blob->count();
        file.read(reinterpret_cast<char *>(blob->mutable_cpu_data()), bytes);
        CHECK_EQ(file.gcount(), bytes) << path << " is too short";
    }
    CHECK_EQ(file.peek(), EOF) << path << " is too long";
}

void write_number(std::ofstream *out, int32_t number) {
    out->write(reinterpret_cast<const char *>(&number), sizeof number);
}

void write_blob(std::ofstream *out, const std::string &name, const Blob &blob) {
    write_number(out, static_cast<int32_t>(name.size()));
    write_number(out, blob.num_axes());
    out->write(name.data(), static_cast<std::streamsize>(name.size()));
    for (const int size : blob.shape())
        write_number(out, size);
    out->write(reinterpret_cast<const char *>(blob.cpu_data()),
               static_cast<std::streamsize>(sizeof(float)) * blob.count());
}

int forward(const std::string &path, const std::string &to) {
    std::ifstream list(path);
    std::ofstream out(to, std::ios::binary);
    std::string prototxt, model, inputs;
    while (list >> prototxt >> model >> inputs) {
        Net net(prototxt, caffe::TEST);
        net.CopyTrainedLayersFrom(model);
        fill(net, inputs);
        net.Forward();
        write_number(&out, net.num_outputs());
        for (const int index : net.output_blob_indices())
            write_blob(&out, net.blob_names()[index], *net.blobs()[index]);
        out.flush();
    }
    return out.good() ? 0 : 1;
}

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

} // namespace

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    google::InitGoogleLogging(argv[0]);
    FLAGS_logtostderr = true;
    FLAGS_minloglevel = google::GLOG_ERROR;
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    if (what == "forward" && argc == 4)
        return forward(argv[2], argv[3]);
    if (what != "shapes" || argc != 3)
        return 2;
    print_shapes(Net(argv[2], caffe::TEST));
    return 0;
}
