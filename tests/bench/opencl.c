/* Compares the library on opencl:0 with plain OpenCL on the same kind of memory: copies, updates,
   calls on valid data, and reads of 64 bytes while the device is busy. Usage: opencl [KIND], where
   KIND is the kind of memory, the number SB_OPENCL_SVM or SB_OPENCL_BUFFERS. */
#include "harness.h"

#include <syncblob/opencl.h>
#include <syncblob/syncblob.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 1000, FEW = 64 };

static const char source[] =
    "kernel void axpy(ulong n, float a, global float *y, global const float *x) {\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        y[i] += a * x[i];\n"
    "}\n";

/* The objects of plain OpenCL. */
static struct {
    cl_context context;
    cl_device_id id;
    cl_command_queue queue;
    cl_kernel axpy;
    bool is_svm;
    cl_svm_mem_flags grain; /* of shared virtual memory */
} plain;

struct memory {
    size_t bytes;
    void *svm;
    cl_mem buffer;
};

/* --- plain OpenCL ---------------------------------------------------------------------- */

static cl_command_queue make_queue(void) {
    cl_int result;
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(plain.context, plain.id, NULL, &result);
    must(result);
    return queue;
}

static void plain_open(const sb_context *context) {
    const void *table;
    void *device;
    const char *text = source;
    cl_int result;
    must(sb_context_extension(context, SB_OPENCL_DEVICE, &table, &device, NULL));
    const sb_opencl_device *opencl = table;
    plain.context = opencl->context(device);
    plain.id = opencl->id(device);
    const int32_t kind = opencl->memory(device);
    plain.is_svm = kind == SB_OPENCL_SVM || kind == SB_OPENCL_FINE_SVM;
    plain.grain = kind == SB_OPENCL_FINE_SVM ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0;
    plain.queue = make_queue();
    cl_program program = clCreateProgramWithSource(plain.context, 1, &text, NULL, &result);
    must(result);
    must(clBuildProgram(program, 1, &plain.id, NULL, NULL, NULL));
    plain.axpy = clCreateKernel(program, "axpy", &result);
    must(result);
    must(clReleaseProgram(program));
}

static void write_plain(const struct memory *memory, const void *host) {
    if (plain.is_svm)
        must(clEnqueueSVMMemcpy(plain.queue, CL_TRUE, memory->svm, host, memory->bytes, 0, NULL,
                                NULL));
    else
        must(clEnqueueWriteBuffer(plain.queue, memory->buffer, CL_TRUE, 0, memory->bytes, host, 0,
                                  NULL, NULL));
}

static void read_plain(cl_command_queue queue, const struct memory *memory, void *host) {
    if (plain.is_svm)
        must(clEnqueueSVMMemcpy(queue, CL_TRUE, host, memory->svm, memory->bytes, 0, NULL, NULL));
    else
        must(clEnqueueReadBuffer(queue, memory->buffer, CL_TRUE, 0, memory->bytes, host, 0, NULL,
                                 NULL));
}

static struct memory memory_make(size_t bytes, const void *host) {
    struct memory memory = {.bytes = bytes};
    cl_int result = CL_SUCCESS;
    if (plain.is_svm)
        memory.svm = clSVMAlloc(plain.context, CL_MEM_READ_WRITE | plain.grain, bytes, 0);
    else
        memory.buffer = clCreateBuffer(plain.context, CL_MEM_READ_WRITE, bytes, NULL, &result);
    must(memory.svm || memory.buffer ? result : CL_OUT_OF_RESOURCES);
    write_plain(&memory, host);
    return memory;
}

static void memory_free(struct memory *memory) {
    if (plain.is_svm)
        clSVMFree(plain.context, memory->svm);
    else
        must(clReleaseMemObject(memory->buffer));
}

static void set_memory(cl_uint index, const struct memory *memory) {
    if (plain.is_svm)
        must(clSetKernelArgSVMPointer(plain.axpy, index, memory->svm));
    else
        must(clSetKernelArg(plain.axpy, index, sizeof memory->buffer,
                            (const void *)&memory->buffer));
}

static void update_plain(const struct memory *y, const struct memory *x) {
    const cl_ulong count = x->bytes / sizeof(float);
    const size_t items = (count + 63) / 64 * 64;
    const float alpha = -1;
    must(clSetKernelArg(plain.axpy, 0, sizeof count, &count));
    must(clSetKernelArg(plain.axpy, 1, sizeof alpha, &alpha));
    set_memory(2, y);
    set_memory(3, x);
    must(clEnqueueNDRangeKernel(plain.queue, plain.axpy, 1, NULL, &items, NULL, 0, NULL, NULL));
    must(clFlush(plain.queue));
}

/* --- the cases ------------------------------------------------------------------------- */

/* The memory of the contestants in a case: a blob of the library, and memory of plain OpenCL. */
struct pair {
    sb_context *context;
    sb_blob *blob;
    struct memory y, x;
    void *host;
};

static sb_blob *make_blob(sb_context *context, size_t bytes) {
    const int64_t count = (int64_t)(bytes / sizeof(float));
    sb_blob *blob;
    void *values;
    must(sb_blob_create_shaped(context, SB_DTYPE_F32, &count, 1, &blob, NULL));
    must(sb_blob_mutable_gpu(blob, SB_DIFF, &values, NULL));
    must(sb_blob_mutable_gpu(blob, SB_DATA, &values, NULL));
    return blob;
}

static struct pair pair_make(sb_context *context, size_t bytes) {
    struct pair pair = {.context = context, .host = fresh_memory(bytes)};
    must(pair.host ? 0 : -1);
    memset(pair.host, 0, bytes); /* unwritten pages would be copied faster: they are one page */
    pair.blob = make_blob(context, bytes);
    pair.y = memory_make(bytes, pair.host);
    pair.x = memory_make(bytes, pair.host);
    return pair;
}

static void pair_free(struct pair *pair) {
    memory_free(&pair->x);
    memory_free(&pair->y);
    sb_blob_destroy(pair->blob);
    fresh_memory_free(pair->host, pair->y.bytes);
}

static void upload(void *state) {
    const struct pair *pair = state;
    const void *in;
    void *out;
    must(sb_blob_mutable_cpu(pair->blob, SB_DATA, &out, NULL));
    must(sb_blob_gpu(pair->blob, SB_DATA, &in, NULL));
}

static void plain_upload(void *state) {
    const struct pair *pair = state;
    write_plain(&pair->y, pair->host);
}

static void download(void *state) {
    const struct pair *pair = state;
    const void *in;
    void *out;
    must(sb_blob_mutable_gpu(pair->blob, SB_DATA, &out, NULL));
    must(sb_blob_cpu(pair->blob, SB_DATA, &in, NULL));
}

static void plain_download(void *state) {
    const struct pair *pair = state;
    read_plain(plain.queue, &pair->y, pair->host);
}

static void update(void *state) {
    const struct pair *pair = state;
    void *out;
    must(sb_blob_mutable_gpu(pair->blob, SB_DATA, &out, NULL));
    must(sb_blob_update(pair->blob, NULL));
    must(sb_context_synchronize(pair->context, NULL));
}

static void plain_update(void *state) {
    const struct pair *pair = state;
    update_plain(&pair->y, &pair->x);
    must(clFinish(plain.queue));
}

static void compare(const char *what, size_t bytes, double limit, void *state, void (*ours)(void *),
                    void (*theirs)(void *), void (*after)(void *)) {
    struct contest contest = {.what = what, .bytes = bytes, .threads = 1};
    contest_add(&contest, "syncblob", ours, after, state);
    contest_add(&contest, "plain OpenCL", theirs, after, state);
    contest_run(&contest);
    goal_ratio(&contest, "plain OpenCL", limit);
    contest_free(&contest);
}

static void measure_copies(sb_context *context, size_t bytes) {
    struct pair pair = pair_make(context, bytes);
    compare("upload", bytes, 1.05, &pair, upload, plain_upload, NULL);
    compare("download", bytes, 1.05, &pair, download, plain_download, NULL);
    compare("update, and the wait", bytes, 1.05, &pair, update, plain_update, NULL);
    pair_free(&pair);
}

static void call_gpu_on(void *blob) {
    const void *in;
    for (int i = 0; i < CALLS; i++)
        must(sb_blob_gpu_on(blob, SB_DATA, (sb_stream)plain.queue, &in, NULL));
}

static void measure_calls(sb_context *context) {
    struct contest contest = {.what = "gpu_on of valid data", .threads = 1};
    sb_blob *blob = make_blob(context, FEW);
    contest_add(&contest, "syncblob", call_gpu_on, NULL, blob);
    contest_run(&contest);
    goal_value(contest.what, 0, "ns", contest.contestants[0].best / CALLS, 100);
    contest_free(&contest);
    sb_blob_destroy(blob);
}

/* Reads of few bytes while one queue is busy. The bytes were written by work on another queue, or
   by the caller through a pointer. */
struct reads {
    struct pair busy;
    sb_blob *few;
    struct memory plain_few;
    cl_command_queue other;
};

static void read_of_queue(void *state) {
    const struct reads *reads = state;
    const void *in;
    void *out;
    must(sb_blob_mutable_gpu_on(reads->few, SB_DATA, (sb_stream)reads->other, &out, NULL));
    must(sb_blob_update(reads->busy.blob, NULL));
    must(sb_blob_cpu(reads->few, SB_DATA, &in, NULL));
}

static void read_of_pointer(void *state) {
    const struct reads *reads = state;
    const void *in;
    void *out;
    must(sb_blob_mutable_gpu(reads->few, SB_DIFF, &out, NULL));
    must(sb_blob_update(reads->busy.blob, NULL));
    must(sb_blob_cpu(reads->few, SB_DIFF, &in, NULL));
}

static void plain_read(void *state) {
    const struct reads *reads = state;
    float values[FEW / sizeof(float)];
    update_plain(&reads->busy.y, &reads->busy.x);
    read_plain(reads->other, &reads->plain_few, values);
}

static void end_work(void *state) {
    const struct reads *reads = state;
    must(clFinish(plain.queue));
    must(sb_context_synchronize(reads->busy.context, NULL));
}

static void measure_reads(sb_context *context) {
    static const char zeros[FEW];
    struct reads reads = {.busy = pair_make(context, (size_t)256 << 20),
                          .few = make_blob(context, FEW),
                          .plain_few = memory_make(FEW, zeros),
                          .other = make_queue()};
    compare("read beside an update, of a queue", FEW, 1.1, &reads, read_of_queue, plain_read,
            end_work);
    compare("read beside an update, of a pointer", FEW, 1.1, &reads, read_of_pointer, plain_read,
            end_work);
    must(sb_context_forget_stream(context, (sb_stream)reads.other, NULL));
    must(clReleaseCommandQueue(reads.other));
    memory_free(&reads.plain_few);
    sb_blob_destroy(reads.few);
    pair_free(&reads.busy);
}

int main(int argc, char **argv) {
    int32_t kind = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : SB_OPENCL_SVM;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_backend table = *sb_opencl_backend();
    sb_context *context;
    bench.effort = NORMAL;
    table.user = &kind;
    options.backend = &table;
    options.device = "opencl:0";
    must(sb_context_create(&options, &context, NULL));
    plain_open(context);
    printf("     best    median     limit  unit  threads    goal\n");
    for (size_t bytes = FEW; bytes <= (size_t)64 << 20; bytes *= 128)
        measure_copies(context, bytes);
    measure_calls(context);
    measure_reads(context);
    printf("\n%d met, %d missed\n", bench.met, bench.missed);
    must(sb_context_forget_stream(context, (sb_stream)plain.queue, NULL));
    must(clReleaseKernel(plain.axpy));
    must(clReleaseCommandQueue(plain.queue));
    sb_context_release(context);
    return 0;
}
