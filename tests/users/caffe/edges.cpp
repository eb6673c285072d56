// Compares Caffe's own classes and bindings/caffe, which must print the same: random calls of a few
// blobs, also on a device (device.hpp), and edge cases. With an argument, prints the cases of the
// table "Where the two differ" in c/guide/caffe.md, for Caffe's own classes:
// tests/behaviour/test_differences.c has the same cases.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#ifdef CPU_ONLY
const bool has_device = false;
#else
#include "device.hpp" // before Caffe's headers: declares device_context
const bool has_device = true;
#endif
#include "caffe/blob.hpp"

namespace {

using caffe::Blob;
using caffe::BlobProto;
using caffe::SyncedMemory;

const int steps = 6000, num_blobs = 4, most = 24;

unsigned below(unsigned bound) {
    static unsigned state = 1;
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % bound;
}

// A class of a fork that derives from Blob.
struct Derived : Blob<float> {
    // Returns whether Caffe would stay within its memories if the blob had `count` elements.
    bool fits(int count) const {
        return count > capacity_ ||
               count * sizeof(float) <= std::min(data()->size(), diff()->size());
    }
    SyncedMemory *part(bool is_diff) const {
        return (is_diff ? diff() : data()).get();
    }
};

std::vector<int> random_shape() {
    std::vector<int> shape;
    for (int left = most, axes = below(6); axes > 0; axes--) {
        shape.push_back(1 + below(left < 5 ? left : 5));
        left /= shape.back();
    }
    return shape;
}

void copy(void *to, const void *from, size_t bytes, bool on_device, bool to_device) {
#ifndef CPU_ONLY
    if (on_device)
        return to_device ? device_write(to, from, bytes) : device_read(to, from, bytes);
#endif
    std::memcpy(to, from, bytes);
}

// Writes small whole numbers, so that every order of additions gives the same sums.
void write(Derived *blob, bool is_diff, bool on_device) {
    float values[most];
    for (float &value : values)
        value = static_cast<float>(below(17)) - 8;
    SyncedMemory *memory = blob->part(is_diff);
    void *to = on_device ? memory->mutable_gpu_data() : memory->mutable_cpu_data();
    copy(to, values, blob->count() * sizeof(float), on_device, true);
}

void read(const Derived &blob, bool is_diff, bool on_device) {
    float values[most];
    SyncedMemory *memory = blob.part(is_diff);
    const void *from = on_device ? memory->gpu_data() : memory->cpu_data();
    copy(values, from, blob.count() * sizeof(float), on_device, false);
    for (int i = 0; i < blob.count(); i++)
        std::printf(" %g", values[i]);
}

// Lends a new block, which is never freed.
void lend(SyncedMemory *memory, bool on_device) {
    float *host = new float[most]();
#ifndef CPU_ONLY
    if (on_device) {
        void *device = device_malloc(sizeof(float) * most);
        device_write(device, host, sizeof(float) * most);
        memory->mutable_gpu_data();
        return memory->set_gpu_data(device);
    }
#endif
    memory->mutable_cpu_data();
    memory->set_cpu_data(host);
    std::printf(" %d", memory->cpu_data() == host);
}

void push(SyncedMemory *memory) {
#ifndef CPU_ONLY
    cudaStream_t stream = stream_create();
    memory->mutable_cpu_data();
    memory->async_gpu_push(stream);
    stream_synchronize(stream);
    stream_destroy(stream);
#endif
}

void show_shape_on_device(const Derived &blob) {
#ifndef CPU_ONLY
    int shape[6];
    if (blob.num_axes() > 0)
        device_read(shape, blob.gpu_shape(), blob.num_axes() * sizeof(int));
    for (int i = 0; i < blob.num_axes(); i++)
        std::printf(" %d", shape[i]);
#endif
}

void call(Derived *blob, const Derived &other, BlobProto *message, unsigned what) {
    const bool is_diff = below(2), on_device = has_device && below(2);
    const std::vector<int> shape = random_shape();
    int count = 1;
    for (const int dim : shape)
        count *= dim;
    std::printf("%u %d %d:", what, is_diff, on_device);
    switch (what) {
    case 0:
        return blob->fits(count) ? blob->Reshape(shape) : void();
    case 1:
        return blob->fits(other.count()) ? blob->ReshapeLike(other) : void();
    case 2:
        if (blob->count() == other.count())
            is_diff ? blob->ShareDiff(other) : blob->ShareData(other);
        return;
    case 3:
        if (has_device)
            caffe::Caffe::set_mode(on_device ? caffe::Caffe::GPU : caffe::Caffe::CPU);
        if (blob->part(is_diff) != other.part(is_diff) && blob->fits(other.count()))
            blob->CopyFrom(other, is_diff, true);
        return;
    case 4:
    case 5:
        return write(blob, is_diff, on_device);
    case 6:
        return is_diff ? blob->scale_diff(-1) : blob->scale_data(-1);
    case 7: // Caffe's own Update aborts before the first write; values stay small
        if (blob->data()->head() != SyncedMemory::UNINITIALIZED && blob->asum_data() < 1000)
            blob->Update();
        return;
    case 8:
        return lend(blob->part(is_diff), on_device);
    case 9:
        std::printf(" %g %g %g %g", blob->asum_data(), blob->asum_diff(), blob->sumsq_data(),
                    blob->sumsq_diff());
        return;
    case 10:
        return blob->ToProto(message, is_diff);
    case 11:
        if (blob->ShapeEquals(*message) || blob->fits(message->data_size()))
            blob->FromProto(*message, !blob->ShapeEquals(*message));
        return;
    case 12:
        return push(blob->part(is_diff));
    case 13:
        return show_shape_on_device(*blob);
    default:
        return read(*blob, is_diff, on_device);
    }
}

void random_calls() {
    Derived blobs[num_blobs];
    BlobProto message;
    for (Derived &blob : blobs)
        blob.Reshape(random_shape());
    blobs[0].ToProto(&message, true);
    for (int i = 0; i < steps; i++) {
        call(&blobs[below(num_blobs)], blobs[below(num_blobs)], &message, below(16));
        for (const Derived &blob : blobs) {
            std::printf(" | %s %d %d", blob.shape_string().c_str(), blob.data()->head(),
                        blob.diff()->head());
            for (const Derived &other : blobs)
                std::printf(" %d%d", blob.data() == other.data(), blob.diff() == other.diff());
        }
        std::printf(" %zu\n", std::hash<std::string>()(message.SerializeAsString()));
    }
}

void number(float *to, int count) {
    for (int i = 0; i < count; i++)
        to[i] = static_cast<float>(i + 1);
}

std::vector<int> of(int count) {
    return std::vector<int>(1, count);
}

void shapes_and_indices() {
    Blob<float> never, like, blob(2, 1, 3, 4), none(1, 1, 1, 10);
    like.ReshapeLike(never);
    std::printf("never shaped: %g %g %s\n", never.asum_data(), never.sumsq_diff(),
                like.shape_string().c_str());
    none.Reshape(0, 1, 1, 10);
    never.ShareData(none);
    std::printf("a share of no elements: %d %s\n", never.data() == none.data(),
                never.shape_string().c_str());
    never.Reshape(1, 1, 1, 3);
    std::printf("and then with a shape: %d %g\n", never.data() == none.data(), never.cpu_data()[2]);
    caffe::BlobShape shape;
    shape.add_dim(3);
    shape.add_dim(2);
    like.Reshape(shape);
    number(blob.mutable_cpu_data(), 24);
    number(blob.mutable_cpu_diff(), 24);
    std::printf("by a message: %s\n", like.shape_string().c_str());
    std::printf("offsets: %d %d %d %d\n", blob.offset(0, 1), blob.offset(2),
                blob.offset(1, 0, 2, 3), blob.offset(of(1)));
    std::printf("elements: %g %g %g %g\n", blob.data_at(1, 0, 2, 3), blob.diff_at(1, 0, 1, 2),
                blob.data_at({1, 0, 2, 1}), blob.diff_at(std::vector<int>(4, 0)));
    std::printf("counts: %d %d %d, axes: %d %d, legacy: %d\n", blob.count(1), blob.count(1, 3),
                blob.count(4), blob.shape(-1), blob.CanonicalAxisIndex(-4), blob.LegacyShape(-2));
    std::printf("one axis: %d %d %d\n", like.num(), like.width(), like.LegacyShape(-1));
}

void types() {
    BlobProto proto;
    Blob<double> precise(1, 1, 1, 3);
    precise.mutable_cpu_data()[2] = 0.1;
    precise.mutable_cpu_diff()[1] = 0.2;
    precise.ToProto(&proto, true);
    std::printf("in double: %zu\n", std::hash<std::string>()(proto.SerializeAsString()));
    proto.Clear();
    proto.set_num(1);
    proto.set_width(3);
    proto.set_channels(1);
    proto.set_height(1);
    for (int i = 0; i < 3; i++)
        proto.add_data(static_cast<float>(i));
    Blob<int> whole;
    whole.FromProto(proto);
    Blob<float> flat(of(3));
    flat.FromProto(proto, false);
    std::printf("legacy dimensions: %s %d, %s %g\n", whole.shape_string().c_str(),
                whole.cpu_data()[2], flat.shape_string().c_str(), flat.cpu_data()[2]);
    flat.set_cpu_data(proto.mutable_data()->mutable_data());
    flat.scale_data(2);
    flat.ToProto(&proto);
    std::printf("written to the message that lent it: %g %g\n", proto.data(1), proto.data(2));
    Blob<bool> flags(1, 1, 1, 5);
    flags.mutable_cpu_data()[4] = true;
    std::printf("bool: %d %zu\n", flags.data_at(0, 0, 0, 4), flags.data()->size());
}

// Prints whether a call ends the process.
template <typename Call> void dies(const char *what, Call call) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        google::SetStderrLogging(google::GLOG_FATAL + 1);
        close(STDERR_FILENO);
        call();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    std::printf("%s: %s\n", what, WIFSIGNALED(status) ? "aborts" : "returns");
}

// --- the table "Where the two differ" ---

template <typename... Values> void print(const char *what, const char *format, Values... values) {
    std::printf("%s: ", what);
    std::printf(format, values...);
    std::printf("\n");
}

void offsets() {
    Blob<float> blob(2, 1, 3, 4);
    number(blob.mutable_cpu_data(), blob.count());
    print("offset(0, 1) of a 2 x 1 x 3 x 4 blob", "%d", blob.offset(0, 1));
    print("offset(0, -1) of that blob", "%d", blob.offset(0, -1));
    print("data_at(0, 1, 0, 0), where element 12 is 13", "%g", blob.data_at(0, 1, 0, 0));
}

void shapes() {
    Blob<float> never, blob, hollow(of(0));
    blob.ReshapeLike(never);
    print("shape after ReshapeLike with an unshaped blob", "%s", blob.shape_string().c_str());
    dies("CopyFrom an unshaped blob, with reshape", [&] { blob.CopyFrom(never, false, true); });
    dies("cpu_data of an unshaped blob", [&] { never.cpu_data(); });
    dies("cpu_data of a blob without elements", [&] { hollow.cpu_data(); });
}

void capacity() {
    Blob<float> blob(of(10)), asked(of(10));
    asked.data();
    for (Blob<float> *each : {&blob, &asked}) {
        each->Reshape(of(5));
        number(each->mutable_cpu_data(), 5);
        each->Reshape(of(10));
    }
    print("10 elements, reshaped to 5, filled, reshaped to 10: element 4", "%g",
          blob.cpu_data()[4]);
    print("the same, but data() is called first", "%g", asked.cpu_data()[4]);
}

void lent_room() {
    float lent[20];
    Blob<float> blob(of(10));
    number(lent, 20);
    blob.set_cpu_data(lent);
    number(blob.mutable_cpu_diff(), 10);
    blob.Reshape(of(20));
    print("a blob of 10, lent 20 elements, reshaped to 20: data", "%s",
          blob.cpu_data() == lent ? "as lent" : "new");
    print("the same: diff", "%s", blob.cpu_diff()[4] == 5 ? "as it was" : "new");
}

void growth() {
    Blob<float> owner(of(10)), sharer(of(10)), large(of(20)), wide(of(20));
    number(owner.mutable_cpu_data(), 10);
    sharer.ShareData(owner);
    owner.Reshape(of(40));
    print("B shares A's data, A grows to 40: element 4 of B", "%g", sharer.cpu_data()[4]);
    print("do A and B still share data", "%s", owner.data() == sharer.data() ? "yes" : "no");
    large.mutable_cpu_data();
    large.Reshape(of(10));
    Blob<float> narrow(of(10));
    narrow.ShareData(large);
    narrow.Reshape(of(20));
    print("a blob of 10 shares a memory of 20, is reshaped to 20: does it still share", "%s",
          narrow.data() == large.data() ? "yes" : "no");
    wide.Reshape(of(10));
    wide.ShareData(sharer);
    wide.Reshape(of(20));
    print("a blob of 20, reshaped to 10, shares a memory of 10, is reshaped to 20: elements "
          "in its memory",
          "%d", static_cast<int>(wide.data()->size() / sizeof(float)));
}

void lending() {
    float lent[10];
    alignas(8) char bytes[44] = {0};
    Blob<float> owner(of(10)), sharer(of(10)), odd(of(10));
    number(owner.mutable_cpu_data(), 10);
    sharer.ShareData(owner);
    number(lent, 10);
    lent[4] = 50;
    owner.set_cpu_data(lent);
    print("B shares A's data, A.set_cpu_data with 50: element 4 of B", "%g", sharer.cpu_data()[4]);
    lent[4] = 60;
    owner.data()->set_cpu_data(lent);
    print("the same with set_cpu_data of A's memory, and 60", "%g", sharer.cpu_data()[4]);
    odd.set_cpu_data(reinterpret_cast<float *>(bytes + 1));
    print("set_cpu_data with a misaligned pointer", "accepted");
    odd.data()->set_cpu_data(bytes + 1);
    print("set_cpu_data of a memory with a misaligned pointer", "accepted");
}

void copies() {
    static const char *const heads[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"};
    Blob<float> from(of(2)), to(of(2));
    to.CopyFrom(from);
    print("the head of a source that was never written, after CopyFrom", "%s",
          heads[from.data()->head()]);
    to.mutable_cpu_diff()[1] = 3;
    to.Update();
    print("element 1 of the copy, after Update with diff 3", "%g", to.cpu_data()[1]);
    Blob<float> never(of(2));
    dies("Update of a blob that was never written", [&] { never.Update(); });
}

void arithmetic() {
    Blob<float> blob(of(1));
    blob.mutable_cpu_data()[0] = NAN;
    blob.scale_data(0);
    print("NaN after scale_data(0)", "%s", std::isnan(blob.cpu_data()[0]) ? "NaN" : "0");
}

void values_of_messages() {
    BlobProto proto;
    proto.add_data(1.9F);
    proto.add_data(-1.9F);
    proto.mutable_shape()->add_dim(2);
    Blob<int> whole;
    whole.FromProto(proto);
    print("a message with 1.9 and -1.9, read into a Blob<int>", "%d, %d", whole.cpu_data()[0],
          whole.cpu_data()[1]);
    proto.mutable_shape()->set_dim(0, (int64_t(1) << 32) + 2);
    Blob<float> blob;
    blob.FromProto(proto);
    print("a message of 2^32 + 2 elements, with two values", "%s", blob.shape_string().c_str());
}

} // namespace

int main(int argc, char **) {
    if (argc > 1) {
        offsets();
        shapes();
        capacity();
        lent_room();
        growth();
        lending();
        copies();
        arithmetic();
        values_of_messages();
        return 0;
    }
    random_calls();
    if (has_device)
        return 0;
    shapes_and_indices();
    types();
    dies("an axis too many", [] { Blob<float>(1, 2, 3, 4).shape(4); });
    return 0;
}
