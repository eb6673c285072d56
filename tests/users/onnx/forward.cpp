// forward LIST OUT: runs Caffe's nets in phase TEST. A line of LIST is "PROTOTXT MODEL INPUTS": the
// files of a net, of its weights ("-": none) and of the floats of its inputs. OUT is, for each net,
// the number of its outputs, and of each the length of its name, its axes, the name, the sizes and
// the floats; numbers are 32 bits, little-endian.
#include <cstdint>
#include <fstream>
#include <string>

#include "caffe/caffe.hpp"

namespace {

void write_number(std::ofstream *out, int32_t number) {
    out->write(reinterpret_cast<const char *>(&number), sizeof number);
}

void fill(caffe::Net<float> *net, const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    for (caffe::Blob<float> *blob : net->input_blobs()) {
        const auto bytes = static_cast<std::streamsize>(sizeof(float)) * blob->count();
        file.read(reinterpret_cast<char *>(blob->mutable_cpu_data()), bytes);
        CHECK_EQ(file.gcount(), bytes) << path << " is too short";
    }
    CHECK_EQ(file.peek(), EOF) << path << " is too long";
}

void write_blob(std::ofstream *out, const std::string &name, const caffe::Blob<float> &blob) {
    write_number(out, static_cast<int32_t>(name.size()));
    write_number(out, blob.num_axes());
    out->write(name.data(), static_cast<std::streamsize>(name.size()));
    for (const int size : blob.shape())
        write_number(out, size);
    out->write(reinterpret_cast<const char *>(blob.cpu_data()),
               static_cast<std::streamsize>(sizeof(float)) * blob.count());
}

void run(const std::string &prototxt, const std::string &model, const std::string &inputs,
         std::ofstream *out) {
    caffe::Net<float> net(prototxt, caffe::TEST);
    if (model != "-")
        net.CopyTrainedLayersFrom(model);
    fill(&net, inputs);
    net.Forward();
    write_number(out, net.num_outputs());
    for (const int index : net.output_blob_indices())
        write_blob(out, net.blob_names()[index], *net.blobs()[index]);
    out->flush();
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    google::InitGoogleLogging(argv[0]);
    FLAGS_logtostderr = true;
    FLAGS_minloglevel = google::GLOG_ERROR;
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    std::ifstream list(argv[1]);
    std::ofstream out(argv[2], std::ios::binary);
    std::string prototxt, model, inputs;
    while (list >> prototxt >> model >> inputs)
        run(prototxt, model, inputs, &out);
    return out.good() ? 0 : 1;
}
