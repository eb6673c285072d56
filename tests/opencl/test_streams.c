/* Tests command queues of the caller, and failures of queued commands. */
#include "blobs.h"
#include "device.h"
#include "driver.h"
#include "pointers.h"

#include <pthread.h>

enum { COUNT = 1000, OWNED = 64 };

struct place {
    const sb_backend *table;
    sb_context *context;
    void *device;
    const sb_opencl_device *opencl;
    sb_stream own;
    cl_command_queue queue;
    size_t owned_before;
    int64_t nth; /* the number of the query that fails */
    void *events[OWNED], *blocks[OWNED];
    cl_event callers[OWNED];
    int num_callers;
};

static struct sb__opencl_device *opened(const struct place *place) {
    return place->device;
}

static void place_open_on(struct place *place, int32_t memory) {
    *place = (struct place){.table = opencl_backend(memory), .owned_before = test_num_owned()};
    assert_ok(opencl_context(place->table, &place->context, &err));
    place->opencl = opencl_device(place->context, &place->device);
    place->queue = opencl_queue(place->context, NULL);
    place->own = (sb_stream)opened(place)->own.queue;
}

static void place_open(struct place *place) {
    place_open_on(place, SB_OPENCL_SVM);
}

static void place_end(struct place *place) {
    test_end_after(place->owned_before);
    for (int i = 0; i < OWNED; i++) {
        if (place->events[i])
            place->table->event_destroy(place->device, place->events[i]);
        if (place->blocks[i])
            place->table->free(place->device, place->blocks[i], COUNT, place->own);
    }
    while (place->num_callers)
        (void)clReleaseEvent(place->callers[--place->num_callers]);
    assert_ok(sb_context_forget_stream(place->context, (sb_stream)place->queue, &err));
    (void)clReleaseCommandQueue(place->queue);
    sb_context_release(place->context);
}

static void place_close(struct place *place) {
    place_end(place);
    assert_nothing_is_live();
}

static int find(void *const things[OWNED], const void *thing) {
    int i = 0;
    while (i < OWNED && things[i] != thing)
        i++;
    assert_true(i < OWNED);
    return i;
}

static void place_reopen(struct place *place, int32_t memory) {
    place_close(place);
    place_open_on(place, memory);
}

TEST_ON(place, unsuitable_queues_are_refused) {
    const cl_queue_properties out_of_order[] = {CL_QUEUE_PROPERTIES,
                                                CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    struct place other;
    const void *in;
    cl_command_queue queue = opencl_queue(f->context, out_of_order);
    sb_mem *mem = test_mem(f->context, 100);
    place_open(&other);
    assert_reports(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, (sb_stream)queue, &in, &err),
                   "out of order");
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_gpu_on(mem, (sb_stream)other.queue, &in, &err));
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)f->queue, &in, &err));
    (void)clReleaseCommandQueue(queue);
    place_end(&other);
}

TEST_ON(place, commands_of_the_caller_work_on_the_memory) {
    const float one = 1;
    const size_t half = COUNT / 2, bytes = half * sizeof one;
    for (int32_t memory = SB_OPENCL_SVM; memory <= SB_OPENCL_FINE_SVM; memory++) {
        size_t offset;
        place_reopen(f, memory);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
        float *out = blob_pointer_on(blob, SB_DATA, MUTABLE_GPU_ON, (sb_stream)f->queue);
        cl_int result;
        if (memory == SB_OPENCL_BUFFERS) {
            cl_mem mem = f->opencl->buffer(f->device, out + half, &offset);
            result =
                clEnqueueFillBuffer(f->queue, mem, &one, sizeof one, offset, bytes, 0, NULL, NULL);
            assert_null(f->opencl->buffer(f->device, &offset, &offset));
        } else {
            result =
                clEnqueueSVMMemFill(f->queue, out + half, &one, sizeof one, bytes, 0, NULL, NULL);
        }
        assert_int_equal(result, CL_SUCCESS);
        const float *in = blob_pointer(blob, SB_DATA, CPU_DATA);
        assert_true(in[0] == 0 && in[half - 1] == 0 && in[half] == 1 && in[COUNT - 1] == 1);
    }
}

struct blocked {
    cl_event user;
    cl_int status;
};

static struct blocked block(struct place *place, cl_command_queue queue) {
    cl_int result;
    cl_event *const events = &place->callers[place->num_callers];
    assert_true((place->num_callers += 2) <= OWNED);
    events[0] = clCreateUserEvent(place->opencl->context(place->device), &result);
    assert_int_equal(clEnqueueBarrierWithWaitList(queue, 1, &events[0], &events[1]), CL_SUCCESS);
    return (struct blocked){events[0], CL_COMPLETE};
}

/* If the event fails, pocl also fails the commands that wait for the event. */
static void unblock(const struct blocked *blocked, cl_int status) {
    assert_int_equal(clSetUserEventStatus(blocked->user, status), CL_SUCCESS);
}

static void *unblock_soon(void *user) {
    const struct timespec some = {0, 20000000};
    const struct blocked *blocked = user;
    (void)nanosleep(&some, NULL);
    unblock(blocked, blocked->status);
    return NULL;
}

#define FAIL_COPY(place) driver_fail("clEnqueueSVMMemcpy", 1, DRIVER_LATER, CL_OUT_OF_RESOURCES)

/* On a shared queue, only a marker shows the end of the library's work. */
#define TEST_ON_BOTH(name)                                                                         \
    static void on_both_##name(struct place *f);                                                   \
    TEST_ON(place, name) {                                                                         \
        on_both_##name(f);                                                                         \
        place_reopen(f, SB_OPENCL_SVM);                                                            \
        assert_ptr_equal(f->table->own_stream(f->device), f->own);                                 \
        on_both_##name(f);                                                                         \
    }                                                                                              \
    static void on_both_##name(struct place *f)

static void *record_on(struct place *f, sb_stream stream) {
    void **event = &f->events[find(f->events, NULL)];
    assert_ok(f->table->event_record(f->device, stream, event, &err));
    return *event;
}

static void *record(struct place *f) {
    return record_on(f, f->own);
}

static void event_end(struct place *f, void *event) {
    f->events[find(f->events, event)] = NULL;
    f->table->event_destroy(f->device, event);
}

static void copy(const struct place *place, void *dst) {
    static const char bytes[COUNT];
    assert_ok(place->table->upload(place->device, dst, bytes, COUNT, place->own, &err));
}

static void zero(const struct place *f, void *dst, sb_stream stream) {
    assert_ok(f->table->zero(f->device, dst, COUNT, stream, &err));
}

static sb_status wait_for(const struct place *f, void *event) {
    return f->table->event_wait(f->device, event, &err);
}

static sb_status synchronize(const struct place *f, sb_stream stream) {
    return f->table->stream_synchronize(f->device, stream, &err);
}

static void order(const struct place *f, sb_stream stream, void *event) {
    assert_ok(f->table->stream_wait(f->device, stream, event, &err));
}

#define assert_fails(call) assert_status(SB_ERR_DEVICE_FAILURE, call)

static bool is_done(const struct place *place, void *event) {
    int32_t done;
    assert_ok(place->table->event_query(place->device, event, &done, &err));
    return done;
}

static void *alloc_on(struct place *f, sb_stream stream) {
    void **ptr = &f->blocks[find(f->blocks, NULL)];
    assert_ok(f->table->alloc(f->device, COUNT, stream, ptr, &err));
    return *ptr;
}

static void *alloc(struct place *f) {
    return alloc_on(f, f->own);
}

static void release_on(struct place *f, void *ptr, sb_stream stream) {
    f->blocks[find(f->blocks, ptr)] = NULL;
    f->table->free(f->device, ptr, COUNT, stream);
}

static void release(struct place *f, void *ptr) {
    release_on(f, ptr, f->own);
}

/* After a failed command, clFinish and later markers succeed. */
TEST_ON_BOTH(an_event_reports_the_failure_before_it_on_every_wait) {
    void *ptr = alloc(f);
    FAIL_COPY(f);
    copy(f, ptr);
    void *event = record(f);
    copy(f, ptr);
    void *next = record(f);
    assert_ok(wait_for(f, next));
    for (int i = 0; i < 3; i++) {
        assert_fails(wait_for(f, event));
        assert_int_equal(err.device_code, CL_OUT_OF_RESOURCES);
        assert_true(is_done(f, event));
    }
    assert_ok(synchronize(f, f->own)); /* the failure has already been reported */
}

/* pocl 3.1 aborts if a command fails after its event was released. */
TEST_ON_BOTH(a_wait_for_the_stream_reports_a_failure_once) {
    void *ptr = alloc(f);
    for (int in_driver = 0; in_driver < 2; in_driver++) {
        struct blocked blocked;
        if (in_driver)
            blocked = block(f, opened(f)->own.queue);
        else
            FAIL_COPY(f);
        copy(f, ptr);
        event_end(f, record(f));
        if (in_driver)
            unblock(&blocked, CL_OUT_OF_RESOURCES);
        assert_fails(synchronize(f, f->own));
        assert_ok(synchronize(f, f->own));
    }
    assert_ok(wait_for(f, record(f)));
}

TEST_ON_BOTH(memory_is_freed_if_the_queued_free_fails) {
    driver_fail("clEnqueueSVMFree", 1, DRIVER_LATER, CL_OUT_OF_RESOURCES);
    release(f, alloc(f));
    assert_ok(synchronize(f, f->own));
    assert_int_equal(driver_live.blocks, 0);
}

static void wait_for_events(struct place *f, sb_stream stream) {
    const sb_stream other = stream == f->own ? f->table->read_stream(f->device) : f->own;
    void *event, *ptr = alloc(f);
    for (int commands = 0; commands < 3; commands++) {
        for (int i = 0; i < commands; i++)
            zero(f, ptr, stream);
        event = record_on(f, stream);
        order(f, other, event);
        assert_ok(wait_for(f, event));
        assert_true(is_done(f, event));
        event_end(f, event);
        assert_ok(synchronize(f, stream));
    }
}

/* A marker costs as much as a small copy. */
TEST_ON(place, only_shared_queues_need_markers) {
    driver_fail("clEnqueueMarkerWithWaitList", 1, DRIVER_NOW, CL_OUT_OF_RESOURCES);
    wait_for_events(f, f->own);
    wait_for_events(f, f->table->read_stream(f->device));
    assert_null(driver_fired());
    assert_ptr_equal(f->table->own_stream(f->device), f->own);
    assert_status(SB_ERR_OUT_OF_MEMORY, synchronize(f, f->own));
    assert_non_null(driver_fired());
    wait_for_events(f, f->own);
}

static void *fail_on_a_thread(void *place) {
    struct place *f = place;
    void *ptr = alloc(f);
    FAIL_COPY(f);
    copy(f, ptr);
    release(f, ptr);
    return NULL;
}

static void *synchronize_on_a_thread(void *place) {
    struct place *f = place;
    static sb_status st;
    sb_error error;
    st = f->table->stream_synchronize(f->device, f->own, &error);
    return &st;
}

static sb_status on_a_new_thread(void *(*run)(void *), struct place *f) {
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, run, f), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return result ? *(const sb_status *)result : (sb_status)SB_OK;
}

/* A new thread may get the stack, and so the addresses, of an ended thread. */
TEST_ON(place, failures_of_ended_threads_are_bounded_and_reach_no_new_thread) {
    for (int i = 0; i < SB__OPENCL_FAILED; i++) {
        assert_ok(on_a_new_thread(fail_on_a_thread, f));
        assert_fails(synchronize(f, f->own));
        assert_int_equal(on_a_new_thread(synchronize_on_a_thread, f), SB_OK);
        assert_null(opened(f)->own.first ? opened(f)->own.first->after : NULL);
    }
    assert_ok(on_a_new_thread(fail_on_a_thread, f));
    void *event = record(f);
    assert_reports(SB_ERR_DEVICE_LOST, synchronize(f, f->own), "more than 64 failures");
    assert_status(SB_ERR_DEVICE_LOST, wait_for(f, event));
    assert_int_equal(on_a_new_thread(synchronize_on_a_thread, f), SB_ERR_DEVICE_LOST);
    assert_true(driver_live.events <= 2 * SB__OPENCL_FAILED + 2);
}

TEST_ON(place, failures_of_one_thread_displace_no_other_failure) {
    for (int i = 0; i < 2 * SB__OPENCL_FAILED; i++) {
        (void)fail_on_a_thread(f);
        assert_int_equal(on_a_new_thread(synchronize_on_a_thread, f), SB_ERR_DEVICE_FAILURE);
    }
    assert_fails(synchronize(f, f->own));
    assert_ok(synchronize(f, f->own));
}

static void *wait_for_last_event(void *place) {
    static sb_status st;
    struct place *f = place;
    void *event = record(f);
    sb_error error;
    driver_fail("clGetEventInfo", f->nth, DRIVER_NOW, CL_OUT_OF_HOST_MEMORY);
    st = f->table->event_wait(f->device, event, &error);
    driver_fail(NULL, 0, DRIVER_NOW, 0);
    event_end(f, event);
    return &st;
}

TEST_ON(place, a_failed_query_clears_no_failure) {
    for (f->nth = 1; f->nth < 5; f->nth++) {
        (void)fail_on_a_thread(f);
        assert_int_not_equal(on_a_new_thread(wait_for_last_event, f), SB_OK);
        assert_fails(synchronize(f, f->own));
    }
}

TEST_ON(place, a_failed_wait_of_a_sum_clears_no_failure) {
    double sum;
    void *ptr = alloc(f);
    assert_ok(f->table->prepare_arithmetic(f->device, &err));
    FAIL_COPY(f);
    copy(f, ptr);
    driver_fail("clWaitForEvents", 1, DRIVER_NOW, CL_OUT_OF_RESOURCES);
    assert_status(SB_ERR_DEVICE_FAILURE,
                  f->table->asum(f->device, SB_DTYPE_F32, 2, ptr, &sum, f->own, &err));
}

/* OpenCL may give a new queue the address of a released queue. */
TEST_ON(place, the_failure_of_a_released_queue_reaches_no_other_queue) {
    void *ptr = alloc(f);
    const sb_stream own = f->own;
    for (int i = 0; i < 8; i++) {
        cl_command_queue queue = opencl_queue(f->context, NULL);
        f->own = (sb_stream)queue;
        if (i % 2 == 0)
            FAIL_COPY(f);
        copy(f, ptr);
        assert_int_equal(on_a_new_thread(synchronize_on_a_thread, f),
                         i % 2 ? SB_OK : SB_ERR_DEVICE_FAILURE);
        if (i % 2)
            assert_ok(synchronize(f, f->own));
        (void)clReleaseCommandQueue(queue);
    }
    f->own = own;
}

static const struct timespec moment = {0, 1000000};

static void wait_until_failed(struct sb__opencl_command *command) {
    cl_int progress = CL_COMPLETE;
    for (int i = 0; i < 2000 && progress >= 0; i++) {
        (void)nanosleep(&moment, NULL);
        assert_int_equal(sb__opencl_progress(command, &progress), CL_SUCCESS);
    }
    assert_true(progress < 0);
}

static void assert_stays_pending(const struct place *place, void *event) {
    for (int i = 0; i < 50; i++) {
        assert_false(is_done(place, event));
        (void)nanosleep(&moment, NULL);
    }
}

/* In pocl, a failed barrier ends before the copy that the barrier waits for. */
struct failing {
    struct blocked late, user;
    void *ptr, *failed, *copied;
};

static struct failing failing_make(struct place *f) {
    struct failing b = {.ptr = alloc(f)};
    b.late = block(f, opened(f)->own.queue);
    b.user = block(f, f->queue);
    b.failed = record_on(f, (sb_stream)f->queue);
    copy(f, b.ptr);
    b.copied = record(f);
    order(f, f->own, b.failed);
    return b;
}

static void failing_fail(struct place *f, const struct failing *b) {
    unblock(&b->user, CL_OUT_OF_RESOURCES);
    wait_until_failed(opened(f)->own.tail);
}

TEST_ON_BOTH(an_event_behind_a_failed_barrier_waits_for_the_work_before_the_barrier) {
    cl_command_queue queue = opencl_queue(f->context, NULL);
    const sb_stream other = (sb_stream)queue;
    const struct failing b = failing_make(f);
    failing_fail(f, &b);
    void *event = record(f);
    order(f, other, event);
    zero(f, b.ptr, other);
    void *elsewhere = record_on(f, other);
    assert_stays_pending(f, elsewhere);
    assert_false(is_done(f, event));
    unblock(&b.late, CL_COMPLETE);
    assert_ok(wait_for(f, event));
    assert_true(is_done(f, b.copied));
    assert_ok(wait_for(f, elsewhere));
    copy(f, b.ptr); /* the copy removes the barrier from the library's list */
    assert_false(sb__opencl_has_failed_barrier(opened(f), opened(f)->own.queue));
    assert_ok(synchronize(f, f->own));
    assert_ok(synchronize(f, other));
    (void)clReleaseCommandQueue(queue);
}

/* The library has not recorded the barrier that the caller has queued. */
TEST_ON(place, an_event_behind_a_failed_barrier_of_the_caller_waits_for_earlier_work) {
    void *ptr = alloc(f);
    assert_ptr_equal(f->table->own_stream(f->device), f->own); /* the queue is now shared */
    const struct blocked late = block(f, opened(f)->own.queue);
    copy(f, ptr);
    void *copied = record(f);
    const struct blocked user = block(f, opened(f)->own.queue);
    void *event = record(f);
    unblock(&user, CL_OUT_OF_RESOURCES);
    assert_stays_pending(f, event);
    unblock(&late, CL_COMPLETE);
    assert_fails(wait_for(f, event));
    assert_true(is_done(f, copied));
    ignore(synchronize(f, f->own));
}

struct freeing {
    struct place *place;
    void *ptr;
    sb_stream stream;
};

static void *free_on_thread(void *arg) {
    const struct freeing *freeing = arg;
    release_on(freeing->place, freeing->ptr, freeing->stream);
    return NULL;
}

static void free_after_the_copy(struct place *f, const struct failing *b, sb_stream stream) {
    struct freeing freeing = {f, b->ptr, stream};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_on_thread, &freeing), 0);
    for (int i = 0; i < 50 && driver_live.blocks; i++)
        (void)nanosleep(&moment, NULL);
    assert_int_equal(driver_live.blocks, 1);
    unblock(&b->late, CL_COMPLETE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(synchronize(f, f->own));
    assert_ok(synchronize(f, stream));
    assert_int_equal(driver_live.blocks, 0);
}

TEST_ON(place, memory_is_not_freed_before_the_work_on_another_queue_ends) {
    for (int is_queued = 0; is_queued < 2; is_queued++) {
        cl_command_queue queue = opencl_queue(f->context, NULL);
        const sb_stream other = (sb_stream)queue;
        const struct failing b = failing_make(f);
        void *event = record(f);
        order(f, other, event);
        if (is_queued)
            release_on(f, b.ptr, other);
        failing_fail(f, &b);
        if (is_queued) {
            assert_ok(synchronize(f, other));
            assert_int_equal(driver_live.blocks, 1);
            unblock(&b.late, CL_COMPLETE);
            assert_ok(synchronize(f, f->own));
            assert_ok(synchronize(f, other));
            assert_int_equal(driver_live.blocks, 0);
        } else {
            free_after_the_copy(f, &b, other);
        }
        (void)clReleaseCommandQueue(queue);
    }
}

TEST_ON(place, a_wait_for_a_queue_drops_no_failure_of_the_caller) {
    const sb_stream stream = (sb_stream)f->queue;
    for (int allocates = 0; allocates < 2; allocates++) {
        pthread_t thread;
        sb_status waited = SB_OK;
        struct blocked blocked = block(f, f->queue);
        blocked.status = CL_OUT_OF_RESOURCES;
        assert_int_equal(pthread_create(&thread, NULL, unblock_soon, &blocked), 0);
        if (allocates) {
            driver_fail("clSVMAlloc", 1, DRIVER_NOW, CL_OUT_OF_RESOURCES);
            (void)alloc_on(f, stream);
        } else {
            waited = synchronize(f, stream);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        const sb_status st = wait_for(f, record_on(f, stream));
        assert_int_equal(allocates ? st : waited, SB_ERR_DEVICE_FAILURE);
    }
}

TEST_ON(place, an_alloc_gets_the_memory_of_failed_frees) {
    void *ptr = alloc(f);
    const struct blocked user = block(f, opened(f)->own.queue);
    release(f, ptr);
    unblock(&user, CL_OUT_OF_RESOURCES);
    wait_until_failed(opened(f)->own.tail);
    driver_fail("clSVMAlloc", 1, DRIVER_NOW, CL_OUT_OF_RESOURCES);
    (void)alloc(f);
    assert_int_equal(driver_live.blocks, 1);
}

TEST_ON(place, no_record_of_a_released_queue_remains) {
    cl_command_queue queue = opencl_queue(f->context, NULL);
    const struct failing b = failing_make(f);
    order(f, (sb_stream)queue, b.failed);
    failing_fail(f, &b);
    assert_ok(synchronize(f, (sb_stream)queue));
    (void)clReleaseCommandQueue(queue);
    unblock(&b.late, CL_COMPLETE);
    assert_ok(synchronize(f, f->own));
    ignore(synchronize(f, (sb_stream)f->queue));
    copy(f, b.ptr);
    for (const struct sb__opencl_stream *at = opened(f)->streams; at; at = at->next)
        assert_ptr_not_equal(at->queue, queue);
}

TEST_ON(place, a_failure_before_a_barrier_counts) {
    const sb_stream stream = (sb_stream)f->queue;
    const struct blocked blocked = block(f, f->queue), other = block(f, opened(f)->own.queue);
    copy(f, alloc(f));
    void *event = record(f);
    order(f, stream, event);
    unblock(&blocked, CL_OUT_OF_RESOURCES);
    unblock(&other, CL_COMPLETE);
    event = record_on(f, stream);
    assert_fails(wait_for(f, event));
}

/* A long list of events is slow in pocl. */
TEST_ON(place, many_waits_for_one_queue_have_short_lists) {
    const sb_stream stream = (sb_stream)f->queue;
    const struct blocked blocked = block(f, f->queue);
    void *event, *ptr = alloc(f);
    for (int i = 0; i < 50; i++) {
        cl_event *events;
        cl_uint count;
        zero(f, ptr, stream);
        event = record_on(f, stream);
        assert_ok(
            sb__opencl_running(opened(f), event, opened(f)->own.queue, &events, &count, &err));
        assert_true(count > 0 && count <= 2);
        sb__opencl_running_end(events, count);
        order(f, f->own, event);
        event_end(f, event);
    }
    unblock(&blocked, CL_COMPLETE);
    assert_ok(synchronize(f, stream));
}

/* The library must not keep a list of all commands for a program that never waits. */
TEST_ON(place, finished_commands_are_forgotten) {
    void *ptr = alloc(f);
    for (int i = 0; i < 50; i++) {
        copy(f, ptr);
        (void)clFinish(opened(f)->own.queue);
    }
    assert_int_equal(driver_live.events, 1);
    /* The caller may release a queue after a wait, so no event of the queue may be left. */
    void *event;
    const sb_stream stream = (sb_stream)f->queue;
    zero(f, ptr, stream);
    event = record_on(f, stream);
    assert_ok(wait_for(f, event));
    event_end(f, event);
    assert_ok(synchronize(f, stream));
    assert_int_equal(driver_live.events, 1);
}
