/* Tests command queues of the caller, and failures of queued commands. */
#include "blobs.h"
#include "device.h"
#include "driver.h"
#include "modes.h"

#include <pthread.h>

enum { COUNT = 1000 };

/* A device of a context, and a queue of the caller. */
struct place {
    const sb_backend *table;
    sb_context *context;
    void *device;
    const sb_opencl_device *opencl;
    sb_stream own; /* the library's queue */
    cl_command_queue queue;
};

static struct place place_open(int32_t memory) {
    struct place place = {.table = opencl_backend(memory)};
    cl_int result;
    assert_ok(opencl_context(place.table, &place.context, &err));
    place.opencl = opencl_device(place.context, &place.device);
    place.queue = clCreateCommandQueueWithProperties(place.opencl->context(place.device),
                                                     place.opencl->id(place.device), NULL, &result);
    assert_non_null(place.queue);
    place.own = place.table->own_stream(place.device);
    return place;
}

static void place_end(struct place *place) {
    assert_ok(sb_context_forget_stream(place->context, (sb_stream)place->queue, &err));
    (void)clReleaseCommandQueue(place->queue);
    sb_context_release(place->context);
}

static void place_close(struct place *place) {
    place_end(place);
    assert_nothing_is_live();
}

TEST(unsuitable_queues_are_refused) {
    const cl_queue_properties out_of_order[] = {CL_QUEUE_PROPERTIES,
                                                CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    struct place place = place_open(SB_OPENCL_SVM), other = place_open(SB_OPENCL_SVM);
    cl_int result;
    const void *in;
    sb_mem *mem;
    cl_command_queue queue = clCreateCommandQueueWithProperties(
        place.opencl->context(place.device), place.opencl->id(place.device), out_of_order, &result);
    assert_non_null(queue);
    assert_ok(sb_mem_create(place.context, 100, &mem, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, (sb_stream)queue, &in, &err));
    assert_non_null(strstr(err.message, "out of order"));
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_gpu_on(mem, (sb_stream)other.queue, &in, &err));
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)place.queue, &in, &err));
    sb_mem_release(mem);
    (void)clReleaseCommandQueue(queue);
    place_end(&other);
    place_close(&place);
}

/* --- the caller's kernels -------------------------------------------------------------- */

static cl_kernel kernel_of(const struct place *place, cl_program *program) {
    const char *source = "kernel void add(global float *x, ulong before) {"
                         "    x[before + get_global_id(0)] += 1;"
                         "}";
    const cl_device_id id = place->opencl->id(place->device);
    cl_int result;
    *program =
        clCreateProgramWithSource(place->opencl->context(place->device), 1, &source, NULL, &result);
    assert_int_equal(clBuildProgram(*program, 1, &id, NULL, NULL, NULL), CL_SUCCESS);
    cl_kernel kernel = clCreateKernel(*program, "add", &result);
    assert_non_null(kernel);
    return kernel;
}

/* Sets the kernel's arguments to a device pointer, as opencl.h describes. */
static void set_pointer(const struct place *place, cl_kernel kernel, const void *ptr) {
    size_t offset = 0;
    cl_mem mem;
    if (place->opencl->memory(place->device) == SB_OPENCL_BUFFERS) {
        mem = place->opencl->buffer(place->device, ptr, &offset);
        assert_non_null(mem);
        assert_int_equal(clSetKernelArg(kernel, 0, sizeof mem, (void *)&mem), CL_SUCCESS);
    } else {
        assert_int_equal(clSetKernelArgSVMPointer(kernel, 0, ptr), CL_SUCCESS);
    }
    const cl_ulong before = offset / sizeof(float);
    assert_int_equal(clSetKernelArg(kernel, 1, sizeof before, &before), CL_SUCCESS);
}

TEST(kernels_of_the_caller_work_on_the_memory) {
    for (int32_t memory = SB_OPENCL_SVM; memory <= SB_OPENCL_FINE_SVM; memory++) {
        struct place place = place_open(memory);
        const size_t half = COUNT / 2;
        cl_program program;
        cl_kernel kernel = kernel_of(&place, &program);
        sb_blob *blob;
        float *out;
        const float *in;
        assert_ok(
            sb_blob_create_shaped(place.context, SB_DTYPE_F32, (int64_t[]){COUNT}, 1, &blob, &err));
        assert_ok(
            sb_blob_mutable_gpu_on(blob, SB_DATA, (sb_stream)place.queue, (void **)&out, &err));
        set_pointer(&place, kernel, out + half);
        assert_int_equal(
            clEnqueueNDRangeKernel(place.queue, kernel, 1, NULL, &half, NULL, 0, NULL, NULL),
            CL_SUCCESS);
        assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &in, &err));
        assert_true(in[0] == 0 && in[half - 1] == 0 && in[half] == 1 && in[COUNT - 1] == 1);
        sb_blob_destroy(blob);
        (void)clReleaseKernel(kernel);
        (void)clReleaseProgram(program);
        place_close(&place);
    }
}

TEST(foreign_pointers_are_in_no_buffer) {
    struct place place = place_open(SB_OPENCL_BUFFERS);
    size_t offset;
    int local;
    assert_null(place.opencl->buffer(place.device, &local, &offset));
    place_close(&place);
}

/* --- failures of queued commands ------------------------------------------------------- */

#define FAIL_COPY(place) driver_fail("clEnqueueSVMMemcpy", 1, DRIVER_LATER, CL_OUT_OF_RESOURCES)

static void *record(const struct place *place) {
    void *event;
    assert_ok(place->table->event_record(place->device, place->own, &event, &err));
    return event;
}

static void copy(const struct place *place, void *dst) {
    static const char bytes[COUNT];
    assert_ok(place->table->upload(place->device, dst, bytes, COUNT, place->own, &err));
}

static void *alloc(const struct place *place) {
    void *ptr;
    assert_ok(place->table->alloc(place->device, COUNT, place->own, &ptr, &err));
    return ptr;
}

static void release(const struct place *place, void *ptr) {
    place->table->free(place->device, ptr, COUNT, place->own);
}

/* clFinish succeeds after a failed command, and so does a marker that is queued after it. */
TEST(an_event_reports_the_failure_before_it_on_every_wait) {
    struct place place = place_open(SB_OPENCL_SVM);
    void *ptr = alloc(&place);
    int32_t done = 0;
    FAIL_COPY(&place);
    copy(&place, ptr);
    void *event = record(&place);
    copy(&place, ptr);
    void *next = record(&place);
    assert_ok(place.table->event_wait(place.device, next, &err)); /* covers only the second copy */
    for (int i = 0; i < 3; i++) {
        assert_status(SB_ERR_DEVICE_FAILURE, place.table->event_wait(place.device, event, &err));
        assert_int_equal(err.device_code, CL_OUT_OF_RESOURCES);
        assert_ok(place.table->event_query(place.device, event, &done, &err));
        assert_int_equal(done, 1);
    }
    assert_ok(place.table->stream_synchronize(place.device, place.own, &err)); /* reported before */
    place.table->event_destroy(place.device, event);
    place.table->event_destroy(place.device, next);
    release(&place, ptr);
    place_close(&place);
}

static void *record_elsewhere(void *place) {
    return record(place);
}

TEST(events_of_other_threads_do_not_hide_a_failure) {
    struct place place = place_open(SB_OPENCL_SVM);
    void *ptr = alloc(&place), *elsewhere;
    pthread_t thread;
    FAIL_COPY(&place);
    copy(&place, ptr);
    assert_int_equal(pthread_create(&thread, NULL, record_elsewhere, &place), 0);
    assert_int_equal(pthread_join(thread, &elsewhere), 0);
    void *event = record(&place);
    assert_status(SB_ERR_DEVICE_FAILURE, place.table->event_wait(place.device, elsewhere, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, place.table->event_wait(place.device, event, &err));
    place.table->event_destroy(place.device, event);
    place.table->event_destroy(place.device, elsewhere);
    release(&place, ptr);
    place_close(&place);
}

TEST(a_wait_for_the_stream_reports_a_failure_once) {
    struct place place = place_open(SB_OPENCL_SVM);
    void *ptr = alloc(&place);
    FAIL_COPY(&place);
    copy(&place, ptr);
    place.table->event_destroy(place.device, record(&place)); /* no call waited for it */
    assert_status(SB_ERR_DEVICE_FAILURE,
                  place.table->stream_synchronize(place.device, place.own, &err));
    assert_ok(place.table->stream_synchronize(place.device, place.own, &err));
    void *event = record(&place);
    assert_ok(place.table->event_wait(place.device, event, &err));
    place.table->event_destroy(place.device, event);
    release(&place, ptr);
    place_close(&place);
}

TEST(memory_is_freed_if_the_queued_free_fails) {
    struct place place = place_open(SB_OPENCL_SVM);
    driver_fail("clEnqueueSVMFree", 1, DRIVER_LATER, CL_OUT_OF_RESOURCES);
    release(&place, alloc(&place));
    assert_ok(place.table->stream_synchronize(place.device, place.own, &err));
    assert_int_equal(driver_live().blocks, 0);
    place_close(&place);
}

/* Tests a failure in the driver itself: the queue waits for an event of the caller, which fails.
   pocl then also fails the commands that wait for this event. */
TEST(a_failure_before_a_push_fails_the_push) {
    struct place place = place_open(SB_OPENCL_SVM);
    cl_int result;
    sb_mem *mem;
    void *out;
    cl_event user = clCreateUserEvent(place.opencl->context(place.device), &result), held;
    assert_ok(sb_mem_create(place.context, COUNT, &mem, &err));
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    memset(out, 0x44, COUNT);
    assert_int_equal(clEnqueueBarrierWithWaitList(place.queue, 1, &user, &held), CL_SUCCESS);
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)place.queue, &err));
    assert_int_equal(clSetUserEventStatus(user, CL_OUT_OF_RESOURCES), CL_SUCCESS);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_synchronize(mem, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    assert_int_equal(sb_context_device_status(place.context), SB_OK);
    (void)clReleaseEvent(held);
    (void)clReleaseEvent(user);
    sb_mem_release(mem);
    ignore(sb_context_forget_stream(place.context, (sb_stream)place.queue, NULL));
    place_close(&place);
}

/* The library must not keep a list of all commands for a program that never waits. */
TEST(finished_commands_are_forgotten) {
    struct place place = place_open(SB_OPENCL_SVM);
    void *ptr = alloc(&place);
    for (int i = 0; i < 50; i++) {
        copy(&place, ptr);
        (void)clFinish(((struct sb__opencl_device *)place.device)->queue);
    }
    assert_int_equal(driver_live().events, 1);
    release(&place, ptr);
    place_close(&place);
}

/* --- host-coherent memory -------------------------------------------------------------- */

TEST(fine_grained_memory_is_never_copied) {
    struct place place = place_open(SB_OPENCL_FINE_SVM);
    sb_stats stats = SB_STATS_INIT;
    float *host, *device;
    const float *read;
    sb_blob *blob = blob_of_count(place.context, SB_DTYPE_F32, COUNT);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        assert_ok(sb_blob_mutable_cpu_f32(blob, part, &host, &err));
        for (int i = 0; i < COUNT; i++)
            host[i] = part == SB_DATA ? 5 : 2;
    }
    assert_ok(sb_blob_mutable_gpu_f32(blob, SB_DATA, &device, &err));
    driver_close_gate(place.queue);
    assert_ok(sb_blob_update_on(blob, (sb_stream)place.queue, &err));
    assert_ok(sb_blob_mutable_cpu_f32(blob, SB_DIFF, &host, &err)); /* waits for its reader */
    host[COUNT - 1] = 100;
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &read, &err));
    assert_ptr_equal(read, device);
    assert_true(read[0] == 3 && read[COUNT - 1] == 3);
    assert_ok(sb_context_stats(place.context, &stats, &err));
    assert_int_equal(stats.uploads + stats.downloads + stats.device_copies, 0);
    assert_int_equal(stats.device_bytes, 2 * COUNT * sizeof(float));
    sb_blob_destroy(blob);
    place_close(&place);
}
