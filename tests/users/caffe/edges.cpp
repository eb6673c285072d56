// Prints edge cases of Blob and SyncedMemory. Caffe's own classes and bindings/caffe must print the
// same. With an argument, prints the results of Caffe's own classes for the table "Where the two
// differ" of c/guide/caffe.md.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "caffe/blob.hpp"

namespace {

using caffe::Blob;
using caffe::BlobProto;
using caffe::SyncedMemory;

void show(const char *what, const Blob<float> &blob) {
    std::printf("%s: %s data %g diff %g\n", what, blob.shape_string().c_str(), blob.sumsq_data(),
                blob.sumsq_diff());
}

void write(float *to, int count) {
    for (int i = 0; i < count; i++)
        to[i] = static_cast<float>(1 << i);
}

void fill(Blob<float> *blob) {
    write(blob->mutable_cpu_data(), blob->count());
    write(blob->mutable_cpu_diff(), blob->count());
}

void reshape() {
    Blob<float> blob;
    show("never shaped", blob);
    blob.Reshape(std::vector<int>(1, 10));
    blob.Reshape(std::vector<int>(1, 5));
    fill(&blob);
    const float *data = blob.cpu_data();
    blob.Reshape(std::vector<int>(1, 10));
    std::printf("the capacity counts from the first Reshape: %d %g\n", blob.cpu_data() == data,
                blob.cpu_data()[4]);
    blob.mutable_cpu_data();
    blob.Reshape(2, 3, 4, 5);
    show("growth begins anew, diff too", blob);
    std::printf("heads: %d %d\n", blob.data()->head(), blob.diff()->head());
    fill(&blob);
    blob.Reshape(std::vector<int>());
    show("a scalar", blob);
    Blob<float> like;
    like.ReshapeLike(Blob<float>());
    std::printf("like one without a shape: %s\n", like.shape_string().c_str());
    caffe::BlobShape shape;
    shape.add_dim(3);
    shape.add_dim(2);
    like.Reshape(shape);
    std::printf("by a message: %s\n", like.shape_string().c_str());
}

struct Image : Blob<float> {
    using Blob<float>::Reshape;
    void Reshape(int height, int width) {
        Reshape(1, 3, height, width);
    }
};

void derive() {
    Image image;
    image.Reshape(4, 5);
    show("derived", image);
}

void share_nothing() {
    Blob<float> none(1, 1, 1, 10), other;
    none.Reshape(0, 1, 1, 10);
    other.ShareData(none);
    std::printf("a share of no elements, without a shape: %d %s\n", other.data() == none.data(),
                other.shape_string().c_str());
    other.Reshape(1, 1, 1, 3);
    fill(&other);
    show("and then with one", other);
}

void write_a_lent_message() {
    BlobProto proto;
    for (int i = 1; i <= 3; i++)
        proto.add_data(static_cast<float>(i));
    Blob<float> blob(1, 1, 1, 3);
    blob.set_cpu_data(proto.mutable_data()->mutable_data());
    blob.scale_data(2);
    blob.ToProto(&proto);
    std::printf("written to the message that lent it: %g %g %g\n", proto.data(0), proto.data(1),
                proto.data(2));
}

void share() {
    Blob<float> large(1, 1, 1, 20), small(1, 1, 1, 10);
    fill(&large);
    const SyncedMemory *before = large.data().get();
    large.Reshape(1, 1, 2, 5);
    small.ShareData(large);
    small.ShareDiff(large);
    std::printf("shared: %d %d %d\n", small.data().get() == before, small.data() == large.data(),
                small.diff() == large.diff());
    float lent[20] = {3};
    small.set_cpu_data(lent);
    std::printf("lent memory is the sharers', too: %d\n", large.cpu_data() == lent);
    small.Reshape(1, 1, 1, 20);
    std::printf("growth leaves the share: %d %d\n", small.data() == large.data(),
                large.cpu_data() == lent);
}

void copy() {
    Blob<float> from(1, 2, 3, 1), to(1, 2, 3, 1);
    fill(&to);
    to.CopyFrom(from);
    std::printf("a copy of what was never written: %d %d %g\n", from.data()->head(),
                to.data()->head(), to.sumsq_data());
    to.Update();
    show("and an update", to);
    from.CopyFrom(to, true);
    show("diff", from);
    Blob<float> other;
    other.CopyFrom(to, false, true);
    show("with the shape", other);
    other.CopyFrom(other);
    other.scale_data(-2);
    other.scale_diff(0.5F);
    show("scaled", other);
    std::printf("sums: %g %g\n", other.asum_data(), other.asum_diff());
}

void index() {
    Blob<float> blob(2, 1, 3, 4);
    fill(&blob);
    std::printf("offsets: %d %d %d %d\n", blob.offset(0, 1), blob.offset(2),
                blob.offset(1, 0, 2, 3), blob.offset(std::vector<int>(1, 1)));
    std::printf("elements: %g %g\n", blob.data_at(1, 0, 2, 3),
                blob.diff_at(std::vector<int>(4, 0)));
    std::printf("counts: %d %d %d, axes: %d %d, legacy: %d\n", blob.count(1), blob.count(1, 3),
                blob.count(4), blob.shape(-1), blob.CanonicalAxisIndex(-4), blob.LegacyShape(-2));
    blob.Reshape(std::vector<int>(1, 7));
    std::printf("one axis: %d %d %d\n", blob.num(), blob.width(), blob.LegacyShape(-1));
}

void messages() {
    Blob<float> blob(1, 2, 1, 3);
    fill(&blob);
    BlobProto proto;
    blob.ToProto(&proto, true);
    std::printf("a message: %zu\n", std::hash<std::string>()(proto.SerializeAsString()));
    std::printf("its shape: %d\n", blob.ShapeEquals(proto));
    Blob<double> precise;
    precise.FromProto(proto);
    precise.ToProto(&proto);
    std::printf("in double: %s %zu\n", precise.shape_string().c_str(),
                std::hash<std::string>()(proto.SerializeAsString()));
    proto.Clear();
    proto.set_num(1);
    proto.set_width(3);
    proto.set_channels(1);
    proto.set_height(1);
    for (int i = 0; i < 3; i++)
        proto.add_data(static_cast<float>(i));
    Blob<int> whole;
    whole.FromProto(proto);
    std::printf("in int: %s %d\n", whole.shape_string().c_str(), whole.cpu_data()[2]);
    Blob<float> flat(std::vector<int>(1, 3));
    flat.FromProto(proto, false);
    std::printf("legacy dimensions: %s %g\n", flat.shape_string().c_str(), flat.cpu_data()[2]);
}

void memories() {
    SyncedMemory memory(12);
    std::printf("memory: %zu %d\n", memory.size(), memory.head());
    const char *zeros = static_cast<const char *>(memory.cpu_data());
    std::printf("zeros: %d %d\n", zeros[11], memory.head());
    char lent[12] = {7};
    memory.set_cpu_data(lent);
    const void *mutated = memory.mutable_cpu_data();
    std::printf("lent: %d %d\n", mutated == lent, memory.head());
    Blob<bool> flags(1, 1, 1, 5);
    flags.mutable_cpu_data()[4] = true;
    std::printf("bool: %d %zu\n", flags.data_at(0, 0, 0, 4), flags.data()->size());
}

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

void deaths() {
    Blob<float> blob(1, 2, 3, 4), other(1, 2, 3, 5), empty;
    dies("an axis too many", [&] { blob.shape(4); });
    dies("an index too far", [&] { blob.offset(0, 3); });
    dies("an index at its extent, by a vector", [&] { blob.offset(std::vector<int>(1, 1)); });
    dies("a copy of another shape", [&] { blob.CopyFrom(other); });
    dies("a share of another count", [&] { blob.ShareData(other); });
    dies("a negative dimension", [&] { blob.Reshape(1, -1, 1, 1); });
    dies("a count beyond int", [&] { blob.Reshape(1 << 16, 1 << 16, 1, 1); });
    dies("33 axes", [&] { blob.Reshape(std::vector<int>(33, 1)); });
    dies("data without a shape", [&] { empty.cpu_data(); });
    dies("an update of what was never written", [&] { blob.Update(); });
    dies("no memory lent", [&] { blob.set_cpu_data(NULL); });
    dies("a sum of int", [] { Blob<int>(1, 1, 1, 1).asum_data(); });
    dies("too few values", [&] { blob.FromProto(BlobProto()); });
    dies("a legacy accessor on five axes", [] { Blob<int>(std::vector<int>(5, 1)).num(); });
    dies("a device that there is not", [&] { blob.gpu_data(); });
}

// --- the table "Where the two differ" ---

template <typename... Values> void print(const char *what, const char *format, Values... values) {
    std::printf("%s: ", what);
    std::printf(format, values...);
    std::printf("\n");
}

std::vector<int> of(int count) {
    return std::vector<int>(1, count);
}

void number(float *to, int count) {
    for (int i = 0; i < count; i++)
        to[i] = static_cast<float>(i + 1);
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
    print("diff of the same blob", "%s", blob.cpu_diff()[4] == 5 ? "as it was" : "new");
}

void growth() {
    Blob<float> owner(of(10)), sharer(of(10)), large(of(20)), wide(of(20));
    number(owner.mutable_cpu_data(), 10);
    sharer.ShareData(owner);
    owner.Reshape(of(40));
    print("B shares A's data, A grows to 40: element 4 of B", "%g", sharer.cpu_data()[4]);
    print("do A and B share data then", "%s", owner.data() == sharer.data() ? "yes" : "no");
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
    print("the same, but A.data()->set_cpu_data with 60", "%g", sharer.cpu_data()[4]);
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
    reshape();
    derive();
    share();
    share_nothing();
    copy();
    index();
    messages();
    write_a_lent_message();
    memories();
    deaths();
    return 0;
}
