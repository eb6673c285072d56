/* Measures the library on opencl:0 beside plain OpenCL with the same kind of memory: copies,
   updates, calls on valid data, and reads of 64 bytes while the device is busy. opencl [KIND],
   where KIND is the number of a kind of memory, SB_OPENCL_SVM or SB_OPENCL_BUFFERS. Prints
   microseconds, medians of 31 rounds, and the ratio to plain OpenCL. */
#include <syncblob/opencl.h>
#include <syncblob/syncblob.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 31, CALLS = 1000 };

static sb_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SB_OK) {                                                                     \
            (void)fprintf(stderr, "%s: %s\n", #call, err.message);                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void check(cl_int result, const char *call) {
    if (result == CL_SUCCESS)
        return;
    (void)fprintf(stderr, "%s: %d\n", call, result);
    exit(1);
}

#define CL(call) check(call, #call)

static const char source[] =
    "kernel void axpy(ulong n, float a, global float *y, global const float *x) {\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        y[i] += a * x[i];\n"
    "}\n";

/* What plain OpenCL needs. */
static struct {
    cl_context context;
    cl_device_id id;
    cl_command_queue queue;
    cl_kernel axpy;
    bool is_svm;
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
    check(result, "clCreateCommandQueueWithProperties");
    return queue;
}

static void plain_open(const sb_context *context) {
    const void *table;
    void *device;
    const char *text = source;
    cl_int result;
    OK(sb_context_extension(context, SB_OPENCL_DEVICE, &table, &device, &err));
    const sb_opencl_device *opencl = table;
    plain.context = opencl->context(device);
    plain.id = opencl->id(device);
    plain.is_svm = opencl->memory(device) == SB_OPENCL_SVM;
    plain.queue = make_queue();
    cl_program program = clCreateProgramWithSource(plain.context, 1, &text, NULL, &result);
    check(result, "clCreateProgramWithSource");
    CL(clBuildProgram(program, 1, &plain.id, NULL, NULL, NULL));
    plain.axpy = clCreateKernel(program, "axpy", &result);
    check(result, "clCreateKernel");
    CL(clReleaseProgram(program));
}

static void write_plain(const struct memory *memory, const void *host) {
    if (plain.is_svm)
        CL(clEnqueueSVMMemcpy(plain.queue, CL_TRUE, memory->svm, host, memory->bytes, 0, NULL,
                              NULL));
    else
        CL(clEnqueueWriteBuffer(plain.queue, memory->buffer, CL_TRUE, 0, memory->bytes, host, 0,
                                NULL, NULL));
}

static void read_plain(cl_command_queue queue, const struct memory *memory, void *host) {
    if (plain.is_svm)
        CL(clEnqueueSVMMemcpy(queue, CL_TRUE, host, memory->svm, memory->bytes, 0, NULL, NULL));
    else
        CL(clEnqueueReadBuffer(queue, memory->buffer, CL_TRUE, 0, memory->bytes, host, 0, NULL,
                               NULL));
}

static struct memory memory_make(size_t bytes, const void *host) {
    struct memory memory = {.bytes = bytes};
    cl_int result = CL_SUCCESS;
    if (plain.is_svm)
        memory.svm = clSVMAlloc(plain.context, CL_MEM_READ_WRITE, bytes, 0);
    else
        memory.buffer = clCreateBuffer(plain.context, CL_MEM_READ_WRITE, bytes, NULL, &result);
    check(memory.svm || memory.buffer ? result : CL_OUT_OF_RESOURCES, "an allocation");
    write_plain(&memory, host);
    return memory;
}

static void memory_free(struct memory *memory) {
    if (plain.is_svm)
        clSVMFree(plain.context, memory->svm);
    else
        CL(clReleaseMemObject(memory->buffer));
}

static void set_memory(cl_uint index, const struct memory *memory) {
    if (plain.is_svm)
        CL(clSetKernelArgSVMPointer(plain.axpy, index, memory->svm));
    else
        CL(clSetKernelArg(plain.axpy, index, sizeof memory->buffer, (const void *)&memory->buffer));
}

static void update_plain(const struct memory *y, const struct memory *x) {
    const cl_ulong count = x->bytes / sizeof(float);
    const size_t items = (count + 63) / 64 * 64;
    const float alpha = -1;
    CL(clSetKernelArg(plain.axpy, 0, sizeof count, &count));
    CL(clSetKernelArg(plain.axpy, 1, sizeof alpha, &alpha));
    set_memory(2, y);
    set_memory(3, x);
    CL(clEnqueueNDRangeKernel(plain.queue, plain.axpy, 1, NULL, &items, NULL, 0, NULL, NULL));
    CL(clFlush(plain.queue));
}

/* --- times ----------------------------------------------------------------------------- */

static double now(void) {
    struct timespec time;
    (void)timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double times[ROUNDS]) {
    qsort(times, ROUNDS, sizeof *times, compare);
    return times[ROUNDS / 2];
}

static void print(const char *what, double ours[ROUNDS], double theirs[ROUNDS]) {
    const double a = median(ours), b = median(theirs);
    printf("%-44s %10.1f us, plain OpenCL %10.1f us: %.2f\n", what, a, b, a / b);
}

#define TIME(times, i, statement)                                                                  \
    do {                                                                                           \
        const double start_ = now();                                                               \
        statement;                                                                                 \
        (times)[i] = now() - start_;                                                               \
    } while (0)

/* --- the cases ------------------------------------------------------------------------- */

static sb_blob *make_blob(sb_context *context, size_t bytes) {
    const int64_t count = (int64_t)(bytes / sizeof(float));
    sb_blob *blob;
    float *values;
    OK(sb_blob_create_shaped(context, SB_DTYPE_F32, &count, 1, &blob, &err));
    OK(sb_blob_mutable_gpu_f32(blob, SB_DIFF, &values, &err));
    OK(sb_blob_mutable_gpu_f32(blob, SB_DATA, &values, &err));
    return blob;
}

static void finish_update(const struct memory *y, const struct memory *x) {
    update_plain(y, x);
    CL(clFinish(plain.queue));
}

static void finish_blob(sb_context *context, sb_blob *blob) {
    OK(sb_blob_update(blob, &err));
    OK(sb_context_synchronize(context, &err));
}

static void measure_copies(sb_context *context, size_t bytes) {
    double up[2][ROUNDS], down[2][ROUNDS], update[2][ROUNDS];
    char what[64];
    float *values;
    const float *in;
    void *host = calloc(1, bytes);
    check(host ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY, "calloc");
    sb_blob *blob = make_blob(context, bytes);
    struct memory x = memory_make(bytes, host), y = memory_make(bytes, host);
    for (int i = 0; i < ROUNDS; i++) {
        TIME(up[1], i, write_plain(&x, host));
        OK(sb_blob_mutable_cpu_f32(blob, SB_DATA, &values, &err));
        TIME(up[0], i, OK(sb_blob_gpu_f32(blob, SB_DATA, &in, &err)));
        TIME(down[1], i, read_plain(plain.queue, &x, host));
        OK(sb_blob_mutable_gpu_f32(blob, SB_DATA, &values, &err));
        TIME(down[0], i, OK(sb_blob_cpu_f32(blob, SB_DATA, &in, &err)));
        OK(sb_blob_mutable_gpu_f32(blob, SB_DATA, &values, &err));
        TIME(update[1], i, finish_update(&y, &x));
        TIME(update[0], i, finish_blob(context, blob));
    }
    (void)snprintf(what, sizeof what, "upload of %zu bytes", bytes);
    print(what, up[0], up[1]);
    (void)snprintf(what, sizeof what, "download of %zu bytes", bytes);
    print(what, down[0], down[1]);
    (void)snprintf(what, sizeof what, "update of %zu bytes, and the wait", bytes);
    print(what, update[0], update[1]);
    memory_free(&y);
    memory_free(&x);
    sb_blob_destroy(blob);
    free(host);
}

static void measure_calls(sb_context *context) {
    double host[ROUNDS], device[ROUNDS], stream[ROUNDS];
    const void *in;
    sb_blob *blob = make_blob(context, 64);
    OK(sb_blob_cpu(blob, SB_DATA, &in, &err));
    for (int i = 0; i < ROUNDS; i++) {
        TIME(host, i, for (int k = 0; k < CALLS; k++) OK(sb_blob_cpu(blob, SB_DATA, &in, &err)));
        TIME(device, i, for (int k = 0; k < CALLS; k++) OK(sb_blob_gpu(blob, SB_DATA, &in, &err)));
        TIME(stream, i,
             for (int k = 0; k < CALLS; k++)
                 OK(sb_blob_gpu_on(blob, SB_DATA, (sb_stream)plain.queue, &in, &err)));
    }
    printf("calls on valid data: cpu %.1f ns, gpu %.1f ns, gpu_on %.1f ns\n", median(host),
           median(device), median(stream)); /* microseconds of 1,000 calls */
    sb_blob_destroy(blob);
}

/* Reads 64 bytes that work on another queue than the busy one has written, and bytes whose writer
   has ended. */
static void measure_reads(sb_context *context) {
    const size_t large = (size_t)256 << 20;
    double named[ROUNDS], pointer[ROUNDS], theirs[ROUNDS];
    float values[16] = {0};
    const float *in;
    void *out;
    void *host = calloc(1, large);
    check(host ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY, "calloc");
    sb_blob *busy = make_blob(context, large), *small = make_blob(context, sizeof values);
    struct memory x = memory_make(large, host), y = memory_make(large, host);
    struct memory few = memory_make(sizeof values, values);
    cl_command_queue other = make_queue();
    for (int i = 0; i < ROUNDS; i++) {
        update_plain(&y, &x);
        TIME(theirs, i, read_plain(other, &few, values));
        CL(clFinish(plain.queue));
        OK(sb_blob_mutable_gpu_on(small, SB_DATA, (sb_stream)other, &out, &err));
        OK(sb_blob_update(busy, &err));
        TIME(named, i, OK(sb_blob_cpu_f32(small, SB_DATA, &in, &err)));
        OK(sb_context_synchronize(context, &err));
        OK(sb_blob_mutable_gpu(small, SB_DIFF, &out, &err));
        OK(sb_blob_update(busy, &err));
        TIME(pointer, i, OK(sb_blob_cpu_f32(small, SB_DIFF, &in, &err)));
        OK(sb_context_synchronize(context, &err));
    }
    print("read of 64 bytes beside an update, named queue", named, theirs);
    print("read of 64 bytes beside an update, no queue", pointer, theirs);
    OK(sb_context_forget_stream(context, (sb_stream)other, &err));
    CL(clReleaseCommandQueue(other));
    memory_free(&few);
    memory_free(&y);
    memory_free(&x);
    sb_blob_destroy(small);
    sb_blob_destroy(busy);
    free(host);
}

int main(int argc, char **argv) {
    int32_t kind = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : SB_OPENCL_SVM;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_backend table = *sb_opencl_backend();
    sb_context *context;
    table.user = &kind;
    options.backend = &table;
    options.device = "opencl:0";
    OK(sb_context_create(&options, &context, &err));
    plain_open(context);
    for (size_t bytes = 64; bytes <= (size_t)64 << 20; bytes *= 128)
        measure_copies(context, bytes);
    measure_calls(context);
    measure_reads(context);
    OK(sb_context_forget_stream(context, (sb_stream)plain.queue, &err));
    CL(clReleaseKernel(plain.axpy));
    CL(clReleaseCommandQueue(plain.queue));
    sb_context_release(context);
    return 0;
}
