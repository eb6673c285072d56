// A program that has the same messages three times: in Google's library, in a protobuf-c of its
// own, and inside syncblob. Each reads what the others write.
#include <syncblob/syncblob.h>

#include "caffe.pb-c.h"
#include "caffe.pb.h" // made of syncblob's messages, as the package caffe
#include "sb.pb.h"    // and under syncblob's own name

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            throw std::logic_error("line " + std::to_string(__LINE__) + ": " #condition);          \
    } while (0)

template <class Message> std::string packed_by_google() {
    Message message;
    message.mutable_shape()->add_dim(2);
    message.mutable_shape()->add_dim(3);
    for (int i = 0; i < 6; i++)
        message.add_data(static_cast<float>(i));
    return message.SerializeAsString();
}

std::string through_syncblob(const std::string &bytes) {
    sb_blob *blob = nullptr;
    const float *data = nullptr;
    std::size_t size = 0;
    CHECK(sb_blob_create(nullptr, SB_DTYPE_F32, &blob, nullptr) == SB_OK);
    CHECK(sb_blob_from_proto(blob, bytes.data(), bytes.size(), SB_PROTO_RESHAPE, nullptr,
                             nullptr) == SB_OK);
    CHECK(sb_blob_count(blob) == 6);
    CHECK(sb_blob_cpu_f32(blob, SB_DATA, &data, nullptr) == SB_OK && data[5] == 5);
    CHECK(sb_blob_proto_size(blob, 0, &size, nullptr) == SB_OK);
    std::string out(size, ' ');
    CHECK(sb_blob_to_proto(blob, 0, &out[0], out.size(), nullptr, nullptr) == SB_OK);
    sb_blob_destroy(blob);
    return out;
}

template <class Message> void read_by_google(const std::string &bytes) {
    Message message;
    CHECK(message.ParseFromString(bytes));
    CHECK(message.shape().dim_size() == 2 && message.shape().dim(1) == 3);
    CHECK(message.data_size() == 6 && message.data(5) == 5);
}

void read_by_protobuf_c(const std::string &bytes) {
    Caffe__BlobProto *message = caffe__blob_proto__unpack(
        nullptr, bytes.size(), reinterpret_cast<const unsigned char *>(bytes.data()));
    CHECK(message && message->n_data == 6 && message->data[5] == 5);
    CHECK(message->shape->n_dim == 2 && message->shape->dim[1] == 3);
    caffe__blob_proto__free_unpacked(message, nullptr);
}

} // namespace

int main() {
    try {
        for (const std::string &bytes :
             {packed_by_google<caffe::BlobProto>(), packed_by_google<sb::BlobProto>()}) {
            const std::string packed = through_syncblob(bytes);
            CHECK(packed.size() == bytes.size());
            read_by_google<caffe::BlobProto>(packed);
            read_by_google<sb::BlobProto>(packed);
            read_by_protobuf_c(packed);
        }
        google::protobuf::ShutdownProtobufLibrary();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
