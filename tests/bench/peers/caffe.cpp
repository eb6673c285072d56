// Calls Caffe for the benchmarks.
#include "caffe.h"

#include "caffe/blob.hpp"
#include "caffe/filler.hpp"
#include "caffe/util/math_functions.hpp"

#include <google/protobuf/io/coded_stream.h>

#include <memory>

namespace {

using Blob = caffe::Blob<float>;

Blob *blob_of(void *blob) {
    return static_cast<Blob *>(blob);
}

template <typename T> void keep(const T &value) {
    asm volatile("" : : "r"(value) : "memory");
}

void *create(int n, int c, int h, int w) {
    Blob *blob = new Blob(n, c, h, w);
    blob->mutable_cpu_data();
    return blob;
}

void destroy(void *blob) {
    delete blob_of(blob);
}

void borrow(void *blob, float *data, float *diff) {
    blob_of(blob)->data()->set_cpu_data(data);
    if (diff)
        blob_of(blob)->diff()->set_cpu_data(diff);
}

void update(void *blob) {
    blob_of(blob)->Update();
}

void asum(void *blob) {
    keep(blob_of(blob)->asum_data());
}

void sumsq(void *blob) {
    keep(blob_of(blob)->sumsq_data());
}

void scale(void *blob) {
    blob_of(blob)->scale_data(-1);
}

void copy(void *to, const void *from) {
    blob_of(to)->CopyFrom(*static_cast<const Blob *>(from));
}

std::unique_ptr<caffe::Filler<float>> make_filler(int filler, int rows) {
    static const char *const types[] = {"constant", "uniform",           "gaussian",
                                        "gaussian", "positive_unitball", "bilinear"};
    caffe::FillerParameter parameter;
    parameter.set_type(types[filler]);
    if (filler == PEER_SPARSE)
        parameter.set_sparse((rows + 9) / 10);
    return std::unique_ptr<caffe::Filler<float>>(caffe::GetFiller<float>(parameter));
}

void fill(void *blob, int filler) {
    static std::unique_ptr<caffe::Filler<float>> made;
    static int made_filler = -1, made_rows;
    int rows = blob_of(blob)->shape(0);
    if (filler != made_filler || rows != made_rows)
        made = make_filler(filler, rows);
    made_filler = filler;
    made_rows = rows;
    made->Fill(blob_of(blob));
}

void *load(const void *bytes, size_t size) {
    caffe::BlobProto message;
    google::protobuf::io::CodedInputStream input(static_cast<const uint8_t *>(bytes),
                                                 static_cast<int>(size));
    input.SetTotalBytesLimit(INT_MAX); // protobuf's default limit is 64 MiB
    CHECK(message.ParseFromCodedStream(&input));
    Blob *blob = new Blob();
    blob->FromProto(message);
    return blob;
}

void save(const void *blob, void *buffer, size_t capacity) {
    caffe::BlobProto message;
    static_cast<const Blob *>(blob)->ToProto(&message);
    CHECK(message.SerializeToArray(buffer, static_cast<int>(capacity)));
}

} // namespace

extern "C" const caffe_peer caffe_peer = {create, destroy, borrow, update, asum, sumsq,
                                          scale,  copy,    fill,   load,   save};
