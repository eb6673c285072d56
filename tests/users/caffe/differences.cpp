// Runs the cases of the table "Where the two differ" in c/guide/caffe.md with Caffe's own classes;
// prints a line "case: result" for each. blobs.c has the same cases.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "caffe/blob.hpp"

namespace {

using caffe::Blob;
using caffe::BlobProto;
using std::vector;

template <typename... Values> void show(const char *what, const char *format, Values... values) {
    std::printf("%s: ", what);
    std::printf(format, values...);
    std::printf("\n");
}

// Prints whether a call ends the process.
template <typename Call> void aborts(const char *what, Call call) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        call();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    show(what, WIFSIGNALED(status) ? "aborts" : "returns");
}

vector<int> of(int count) {
    return vector<int>(1, count);
}

void write(float *to, int count) {
    for (int i = 0; i < count; i++)
        to[i] = static_cast<float>(i + 1);
}

void offsets() {
    Blob<float> blob(2, 1, 3, 4);
    write(blob.mutable_cpu_data(), blob.count());
    show("offset(0, 1) of a 2 x 1 x 3 x 4 blob", "%d", blob.offset(0, 1));
    show("offset(0, -1) of that blob", "%d", blob.offset(0, -1));
    show("data_at(0, 1, 0, 0), where element 12 is 13", "%g", blob.data_at(0, 1, 0, 0));
}

void shapes() {
    Blob<float> never, blob, hollow(of(0));
    blob.ReshapeLike(never);
    show("shape after ReshapeLike with an unshaped blob", "%s", blob.shape_string().c_str());
    aborts("CopyFrom an unshaped blob, with reshape", [&] { blob.CopyFrom(never, false, true); });
    aborts("cpu_data of an unshaped blob", [&] { never.cpu_data(); });
    aborts("cpu_data of a blob without elements", [&] { hollow.cpu_data(); });
}

void capacity() {
    Blob<float> blob(of(10)), asked(of(10));
    asked.data();
    for (Blob<float> *each : {&blob, &asked}) {
        each->Reshape(of(5));
        write(each->mutable_cpu_data(), 5);
        each->Reshape(of(10));
    }
    show("10 elements, reshaped to 5, filled, reshaped to 10: element 4", "%g", blob.cpu_data()[4]);
    show("the same, but data() is called first", "%g", asked.cpu_data()[4]);
}

void lent_room() {
    float lent[20];
    Blob<float> blob(of(10));
    write(lent, 20);
    blob.set_cpu_data(lent);
    write(blob.mutable_cpu_diff(), 10);
    blob.Reshape(of(20));
    show("a blob of 10, lent 20 elements, reshaped to 20: data", "%s",
         blob.cpu_data() == lent ? "as lent" : "new");
    show("the same: diff", "%s", blob.cpu_diff()[4] == 5 ? "as it was" : "new");
}

void growth() {
    Blob<float> owner(of(10)), sharer(of(10)), large(of(20)), wide(of(20));
    write(owner.mutable_cpu_data(), 10);
    sharer.ShareData(owner);
    owner.Reshape(of(40));
    show("B shares A's data, A grows to 40: element 4 of B", "%g", sharer.cpu_data()[4]);
    show("do A and B still share data", "%s", owner.data() == sharer.data() ? "yes" : "no");
    large.mutable_cpu_data();
    large.Reshape(of(10));
    Blob<float> narrow(of(10));
    narrow.ShareData(large);
    narrow.Reshape(of(20));
    show("a blob of 10 shares a memory of 20, is reshaped to 20: does it still share", "%s",
         narrow.data() == large.data() ? "yes" : "no");
    wide.Reshape(of(10));
    wide.ShareData(sharer);
    wide.Reshape(of(20));
    show("a blob of 20, reshaped to 10, shares a memory of 10, is reshaped to 20: elements "
         "in its memory",
         "%d", static_cast<int>(wide.data()->size() / sizeof(float)));
}

void lending() {
    float lent[10];
    alignas(8) char bytes[44] = {0};
    Blob<float> owner(of(10)), sharer(of(10)), odd(of(10));
    write(owner.mutable_cpu_data(), 10);
    sharer.ShareData(owner);
    write(lent, 10);
    lent[4] = 50;
    owner.set_cpu_data(lent);
    show("B shares A's data, A.set_cpu_data with 50: element 4 of B", "%g", sharer.cpu_data()[4]);
    lent[4] = 60;
    owner.data()->set_cpu_data(lent);
    show("the same with set_cpu_data of A's memory, and 60", "%g", sharer.cpu_data()[4]);
    odd.set_cpu_data(reinterpret_cast<float *>(bytes + 1));
    show("set_cpu_data with a misaligned pointer", "accepted");
    odd.data()->set_cpu_data(bytes + 1);
    show("set_cpu_data of a memory with a misaligned pointer", "accepted");
}

void copies() {
    static const char *const heads[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"};
    Blob<float> from(of(2)), to(of(2));
    to.CopyFrom(from);
    show("the head of a source that was never written, after CopyFrom", "%s",
         heads[from.data()->head()]);
    to.mutable_cpu_diff()[1] = 3;
    to.Update();
    show("element 1 of the copy, after Update with diff 3", "%g", to.cpu_data()[1]);
    Blob<float> never(of(2));
    aborts("Update of a blob that was never written", [&] { never.Update(); });
}

void arithmetic() {
    Blob<float> blob(of(1));
    blob.mutable_cpu_data()[0] = NAN;
    blob.scale_data(0);
    show("NaN after scale_data(0)", "%s", std::isnan(blob.cpu_data()[0]) ? "NaN" : "0");
}

void messages() {
    BlobProto proto;
    proto.add_data(1.9F);
    proto.add_data(-1.9F);
    proto.mutable_shape()->add_dim(2);
    Blob<int> whole;
    whole.FromProto(proto);
    show("a message with 1.9 and -1.9, read into a Blob<int>", "%d, %d", whole.cpu_data()[0],
         whole.cpu_data()[1]);
    proto.mutable_shape()->set_dim(0, (int64_t(1) << 32) + 2);
    Blob<float> blob;
    blob.FromProto(proto);
    show("a message of 2^32 + 2 elements, with two values", "%s", blob.shape_string().c_str());
}

} // namespace

int main() {
    FLAGS_minloglevel = google::GLOG_FATAL;
    offsets();
    shapes();
    capacity();
    lent_room();
    growth();
    lending();
    copies();
    arithmetic();
    messages();
    return 0;
}
