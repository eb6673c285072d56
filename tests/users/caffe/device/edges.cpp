// Prints the results of Blob and SyncedMemory between host and device. Caffe's own classes and
// bindings/caffe must print the same.
#include "device.hpp"

#include <cstdio>
#include <vector>

#include "caffe/blob.hpp"

namespace {

using caffe::Blob;
using caffe::BlobProto;
using caffe::SyncedMemory;

const int count = 6;

void write_device(void *device, float first) {
    float values[count];
    for (int i = 0; i < count; i++)
        values[i] = first + static_cast<float>(i);
    device_write(device, values, sizeof values);
}

float read_device(const void *device, int index) {
    float values[count];
    device_read(values, device, sizeof values);
    return values[index];
}

void report(const char *what, float value, SyncedMemory *memory) {
    std::printf("%s: %g, head %d\n", what, value, memory->head());
}

float on_device(SyncedMemory *memory, int index) {
    return read_device(memory->gpu_data(), index);
}

float on_host(SyncedMemory *memory, int index) {
    return static_cast<const float *>(memory->cpu_data())[index];
}

void memory_moves() {
    SyncedMemory memory(count * sizeof(float)), fresh(count * sizeof(float));
    report("first on the device", on_device(&memory, 5), &memory);
    report("then on the host", on_host(&memory, 5), &memory);
    static_cast<float *>(memory.mutable_cpu_data())[5] = 7;
    report("written on the host", 0, &memory);
    report("up again", on_device(&memory, 5), &memory);
    write_device(memory.mutable_gpu_data(), 10);
    report("written on the device", 0, &memory);
    report("down again", on_host(&memory, 5), &memory);
    fresh.mutable_gpu_data();
    report("first written on the device", 0, &fresh);
    report("zeros", on_host(&fresh, 0), &fresh);
}

void memory_is_lent() {
    SyncedMemory memory(count * sizeof(float));
    void *lent = device_malloc(count * sizeof(float)),
         *other = device_malloc(count * sizeof(float));
    float host[count] = {30, 31};
    write_device(lent, 20);
    write_device(other, 40);
    memory.mutable_gpu_data();
    memory.set_gpu_data(lent);
    report("lent to the device", memory.gpu_data() == lent, &memory);
    report("down", on_host(&memory, 1), &memory);
    memory.set_cpu_data(host);
    report("lent to the host", memory.cpu_data() == host, &memory);
    report("up to what was lent", on_device(&memory, 1), &memory);
    report("which stays", memory.gpu_data() == lent, &memory);
    memory.set_gpu_data(other);
    report("down to what was lent", on_host(&memory, 1), &memory);
    report("which is overwritten", host[1], &memory);
    device_free(lent);
    device_free(other);
}

void memory_is_pushed() {
    SyncedMemory memory(count * sizeof(float));
    cudaStream_t stream = stream_create();
    for (int i = 0; i < 2; i++) {
        static_cast<float *>(memory.mutable_cpu_data())[3] = static_cast<float>(50 + i);
        memory.async_gpu_push(stream);
        report("pushed", 0, &memory);
        stream_synchronize(stream);
        report("there", on_device(&memory, 3), &memory);
    }
    stream_destroy(stream);
}

void show(const char *what, const Blob<float> &blob) {
    std::printf("%s: heads %d %d, data %g %g, diff %g %g\n", what, blob.data()->head(),
                blob.diff()->head(), blob.asum_data(), blob.sumsq_data(), blob.asum_diff(),
                blob.sumsq_diff());
}

void blob_is_computed_with() {
    Blob<float> blob(1, 2, 3, 1);
    show("never written", blob);
    write_device(blob.mutable_gpu_data(), 1);
    show("data on the device", blob);
    write_device(blob.mutable_gpu_diff(), 2);
    blob.Update();
    show("updated there", blob);
    blob.scale_data(2);
    blob.scale_diff(-1);
    show("scaled there", blob);
    blob.cpu_data();
    blob.cpu_diff();
    show("looked at on the host", blob);
    blob.Update();
    show("updated", blob);
    blob.mutable_cpu_data();
    blob.mutable_cpu_diff();
    blob.Update();
    show("updated on the host", blob);
    report("an element", blob.data_at(0, 1, 2, 0), blob.data().get());
    report("of the diff", blob.diff_at(0, 0, 1, 0), blob.diff().get());
}

void blob_is_copied_and_shared() {
    Blob<float> from(1, 2, 3, 1), to(1, 2, 3, 1), sharer(1, 2, 3, 1);
    to.CopyFrom(from);
    show("copied from one never written", to);
    write_device(from.mutable_gpu_data(), 3);
    write_device(from.mutable_gpu_diff(), 4);
    to.CopyFrom(from);
    show("a copy of the data", to);
    to.CopyFrom(from, true);
    show("and of the diff", to);
    std::printf("the source: heads %d %d\n", from.data()->head(), from.diff()->head());
    sharer.ShareData(from);
    std::printf("shared: %d\n", sharer.gpu_data() == from.gpu_data());
    write_device(sharer.mutable_gpu_data(), 5);
    std::printf("written by the sharer: %g\n", from.cpu_data()[0]);
    from.mutable_cpu_data()[0] = 9;
    from.Reshape(1, 1, 2, 1);
    report("shrunk", on_device(from.data().get(), 0), from.data().get());
    from.Reshape(1, 1, 7, 1);
    show("grown", from);
    Blob<float> host(1, 2, 3, 1);
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    host.CopyFrom(sharer);
    std::printf("copied by the host: head %d, the source %d\n", host.data()->head(),
                sharer.data()->head());
    caffe::Caffe::set_mode(caffe::Caffe::GPU);
}

void blob_is_written_to_messages() {
    Blob<float> blob(1, 2, 3, 1), back;
    int shape[4];
    write_device(blob.mutable_gpu_data(), 6);
    device_read(shape, blob.gpu_shape(), sizeof shape);
    std::printf("shape on the device: %d %d %d %d\n", shape[0], shape[1], shape[2], shape[3]);
    BlobProto message;
    blob.ToProto(&message);
    report("the last value of a message", message.data(5), blob.data().get());
    back.FromProto(message);
    report("read", 0, back.data().get());
    report("and on the device", on_device(back.data().get(), 5), back.data().get());
}

void blob_is_lent() {
    Blob<float> blob(1, 2, 3, 1), sharer(1, 2, 3, 1);
    void *lent = device_malloc(count * sizeof(float));
    write_device(lent, 8);
    blob.mutable_cpu_data();
    sharer.ShareData(blob);
    blob.data()->set_gpu_data(lent);
    report("a blob's lent memory", blob.gpu_data() == lent, blob.data().get());
    report("is the sharer's", sharer.gpu_data() == lent, sharer.data().get());
    report("whose values", sharer.cpu_data()[0], blob.data().get());
    device_free(lent);
}

} // namespace

int main() {
    memory_moves();
    memory_is_lent();
    memory_is_pushed();
    blob_is_computed_with();
    blob_is_copied_and_shared();
    blob_is_written_to_messages();
    blob_is_lent();
    return 0;
}
