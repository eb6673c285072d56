/* Compares the library on opencl:0 with plain OpenCL. */
#include "harness.h"

#include <syncblob/opencl.h>

#include <string.h>

static const char source[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "kernel void axpy(ulong n, float a, global float *y, global const float *x) {\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        y[i] += a * x[i];\n"
    "}\n";

static sb_context *context;

static struct {
    cl_context context;
    cl_device_id id;
    cl_command_queue queue;
    cl_kernel axpy;
} plain;

static struct {
    size_t bytes;
    sb_blob *blob;
    void *y, *x, *host;
} pair;

/* --- plain OpenCL ---------------------------------------------------------------------- */

static void plain_open(void) {
    const void *table;
    void *device;
    const char *text = source;
    cl_int result;
    must(sb_context_extension(context, SB_OPENCL_DEVICE, &table, &device, NULL));
    const sb_opencl_device *opencl = table;
    plain.context = opencl->context(device);
    plain.id = opencl->id(device);
    must(opencl->memory(device) == SB_OPENCL_SVM ? CL_SUCCESS : CL_INVALID_DEVICE);
    plain.queue = clCreateCommandQueueWithProperties(plain.context, plain.id, NULL, &result);
    must(result);
    cl_program program = clCreateProgramWithSource(plain.context, 1, &text, NULL, &result);
    must(result);
    must(clBuildProgram(program, 1, &plain.id, NULL, NULL, NULL));
    plain.axpy = clCreateKernel(program, "axpy", &result);
    must(result);
    must(clReleaseProgram(program));
}

static void copy_plain(void *to, const void *from, size_t bytes) {
    must(clEnqueueSVMMemcpy(plain.queue, CL_TRUE, to, from, bytes, 0, NULL, NULL));
}

static void *memory_make(size_t bytes, const void *host) {
    void *memory = clSVMAlloc(plain.context, CL_MEM_READ_WRITE, bytes, 0);
    must(memory ? CL_SUCCESS : CL_OUT_OF_RESOURCES);
    copy_plain(memory, host, bytes);
    return memory;
}

static void update_plain(void) {
    const cl_ulong count = pair.bytes / sizeof(float);
    const size_t items = (count + 63) / 64 * 64;
    const float alpha = -1;
    must(clSetKernelArg(plain.axpy, 0, sizeof count, &count));
    must(clSetKernelArg(plain.axpy, 1, sizeof alpha, &alpha));
    must(clSetKernelArgSVMPointer(plain.axpy, 2, pair.y));
    must(clSetKernelArgSVMPointer(plain.axpy, 3, pair.x));
    must(clEnqueueNDRangeKernel(plain.queue, plain.axpy, 1, NULL, &items, NULL, 0, NULL, NULL));
    must(clFlush(plain.queue));
}

/* --- large memory ---------------------------------------------------------------------- */

static sb_blob *device_blob(size_t bytes) {
    sb_blob *blob = make_blob(context, SB_DTYPE_F32, bytes / sizeof(float));
    void *values;
    must(sb_blob_mutable_gpu(blob, SB_DIFF, &values, NULL));
    must(sb_blob_mutable_gpu(blob, SB_DATA, &values, NULL));
    return blob;
}

static void open_pair(size_t bytes) {
    pair.bytes = bytes;
    pair.host = fresh_memory(bytes);
    must(pair.host ? 0 : -1);
    memset(pair.host, 0, bytes); /* unwritten pages all map one zero page, which is copied faster */
    pair.blob = device_blob(bytes);
    pair.y = memory_make(bytes, pair.host);
    pair.x = memory_make(bytes, pair.host);
}

static void close_pair(void) {
    clSVMFree(plain.context, pair.x);
    clSVMFree(plain.context, pair.y);
    sb_blob_destroy(pair.blob);
    fresh_memory_free(pair.host, pair.bytes);
}

static void upload(void) {
    const void *in;
    void *out;
    must(sb_blob_mutable_cpu(pair.blob, SB_DATA, &out, NULL));
    must(sb_blob_gpu(pair.blob, SB_DATA, &in, NULL));
}

static void plain_upload(void) {
    copy_plain(pair.y, pair.host, pair.bytes);
}

static void download(void) {
    const void *in;
    void *out;
    must(sb_blob_mutable_gpu(pair.blob, SB_DATA, &out, NULL));
    must(sb_blob_cpu(pair.blob, SB_DATA, &in, NULL));
}

static void plain_download(void) {
    copy_plain(pair.host, pair.y, pair.bytes);
}

static void update(void) {
    void *out;
    must(sb_blob_mutable_gpu(pair.blob, SB_DATA, &out, NULL));
    must(sb_blob_update(pair.blob, NULL));
    must(sb_context_synchronize(context, NULL));
}

static void plain_update(void) {
    update_plain();
    must(clFinish(plain.queue));
}

/* Checks the median ratio, because the best time depends on when the driver's threads wake. */
static void compare(const char *what, size_t bytes, double limit, void (*ours)(void),
                    void (*theirs)(void)) {
    const struct contest contest = {
        .what = what,
        .contestants = {{"syncblob", ours, NULL}, {"plain OpenCL", theirs, NULL}},
    };
    goal_value(what, bytes, "times", contest_run(&contest, bytes, 1)[1].ratio, limit);
}

static void bench_copies(size_t bytes) {
    open_pair(bytes);
    compare("upload", bytes, 1.05, upload, plain_upload);
    compare("download", bytes, 1.05, download, plain_download);
    compare("update, and the wait", bytes, 1.05, update, plain_update);
    close_pair();
}

int main(void) {
    int32_t kind = SB_OPENCL_SVM;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_backend table = *sb_opencl_backend();
    table.user = &kind;
    options.backend = &table;
    options.device = "opencl:0";
    must(sb_context_create(&options, &context, NULL));
    plain_open();
    printf("     best    median     limit  unit  threads    goal\n");
    /* With fewer bytes, the 3 to 40 us in which a thread of the driver wakes would dominate. */
    bench_copies(MIB);
    bench_copies(64 * MIB);
    printf("\n%d met, %d missed\n", bench.met, bench.missed);
    must(sb_context_forget_stream(context, (sb_stream)plain.queue, NULL));
    must(clReleaseKernel(plain.axpy));
    must(clReleaseCommandQueue(plain.queue));
    sb_context_release(context);
    return 0;
}
