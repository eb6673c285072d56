/* After a fork the child reads host memory that was current and releases everything. Any call that
   would use the parent's device returns FORKED. No call hangs, whichever locks other threads held
   at the fork. */
#include "child.h"
#include "estate.h"
#include "sim_tables.h"
#include "team.h"

#include "blob/blob.h"
#include "context/context.h"
#include "memory/mem.h"
#include "model/index.h"
#include "sim/device.h"
#include "sim/table.h"

#include <syncblob/dlpack.h>

#include <sys/mman.h>

static void estate_close(struct estate *e) {
    estate_release(e);
    assert_true(e->host.deleted == 1 && e->device.deleted == 1);
}

static void read_current_bytes(struct estate *e) {
    double sum = 0;
    float value = 0;
    child_wants(host_holds(e->pinned, LARGE, 1));
    child_wants(host_holds(e->pushed, BYTES, 2));
    child_wants(host_holds(e->lent_host, BYTES, 5));
    child_wants(sb_blob_asum(e->sharer, SB_DATA, &sum, NULL) == SB_OK && sum == 200);
    child_wants(sb_blob_at_f32(e->blob, SB_DATA, (int64_t[]){99}, 1, &value, NULL) == SB_OK);
    child_wants(value == 2);
}

static void read_and_release(void *arg) {
    struct estate *e = arg;
    read_current_bytes(e);
    sb_blob *loaded = NULL;
    child_wants(sb_blob_create(e->context, SB_DTYPE_F32, &loaded, NULL) == SB_OK);
    child_wants(sb_model_load_blob(e->model, 0, 0, loaded, NULL) == SB_OK);
    sb_blob_destroy(loaded);
    estate_release(e);
    child_wants(e->host.deleted == 1 && e->device.deleted == 1);
}

/* Must run in the first test, before this process has hashed a name. */
static void hash_a_name(void *out) {
    const struct sb__layer layer = {.name = "conv1", .name_size = 5};
    struct sb__named slots[8] = {{0, 0}};
    struct sb__names names;
    size_t bytes;
    child_wants(sb__names_bytes(1, &bytes) && bytes == sizeof slots);
    sb__names_begin(&names, slots, 1);
    sb__names_add(&names, &layer, 0);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        *(uint32_t *)out += slots[i].hash; /* one slot is used */
}

TEST(each_process_hashes_names_differently) {
    const size_t bytes = 2 * sizeof(uint32_t);
    uint32_t *hashes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANON, -1, 0);
    assert_ptr_not_equal(hashes, MAP_FAILED);
    for (int i = 0; i < 2; i++)
        in_child(hash_a_name, &hashes[i]);
    assert_int_not_equal(hashes[0], hashes[1]);
    assert_int_equal(munmap(hashes, bytes), 0);
}

TEST_ON(estate, a_child_reads_current_bytes_and_releases_everything) {
    assert_int_equal(sb_mem_storage(f->pinned, SB_SIDE_CPU), SB_STORAGE_PINNED);
    in_child(read_and_release, f);
    /* The parent is unaffected: its transfers are still pending, and succeed. */
    assert_int_equal(f->host.deleted + f->device.deleted, 0);
    assert_ok(sb_mem_synchronize(f->pushed, &err));
    assert_true(host_holds(f->pulled, BYTES, 3));
    assert_true(host_holds(f->at_device, BYTES, 4));
    assert_ok(sb_context_forget_stream(f->context, f->stream, &err));
}

/* --- the parent's device in the child -------------------------------------------------------- */

#define child_is_refused(call) child_wants((call) == SB_ERR_FORKED)

static void refuse_memory_calls(struct estate *e) {
    const struct {
        sb_mem *mem;
        enum call calls[10]; /* ended by CALLS */
    } rows[] = {
        {e->lent_host,
         {GPU_DATA, GPU_DATA_ON, MUTABLE_GPU, MUTABLE_GPU_ON, OVERWRITE_GPU, OVERWRITE_GPU_ON,
          SET_GPU, ASYNC_PUSH, PREFETCH_GPU, CALLS}},
        {e->at_device,
         {CPU_DATA, MUTABLE_CPU, GPU_DATA, GPU_DATA_ON, MUTABLE_GPU, ASYNC_PULL, PREFETCH_CPU,
          CLEAR, CALLS}},
        {e->written, {CPU_DATA, CALLS}},
        /* calls that wait for a pending transfer */
        {e->pushed,
         {SYNCHRONIZE, MUTABLE_CPU, OVERWRITE_CPU, SET_CPU, EVICT_CPU, EVICT_GPU, CALLS}},
        {e->pulled, {SYNCHRONIZE, CPU_DATA, CALLS}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const enum call *call = rows[i].calls; *call != CALLS; call++) {
            void *ptr = *call == SET_GPU ? e->device.ptr : e->host.ptr;
            const struct call_arguments arguments = {
                .stream = e->stream, .ptr = ptr, .bytes = BYTES};
            if (mem_call(rows[i].mem, *call, &arguments, &ptr, NULL) != SB_ERR_FORKED)
                child_fails(call_kinds[*call].name, __LINE__);
        }
    child_is_refused(sb_mem_gpu_on(e->lent_host, NULL, &(const void *){NULL}, NULL));
}

static void refuse_blob_calls(struct estate *e) {
    sb_blob *copy = NULL;
    for (enum call call = GPU_DATA; call < POINTER_CALLS; call++)
        for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
            child_is_refused(blob_call(e->blob, part, call, e->stream, &(void *){NULL}, NULL));
    child_is_refused(sb_blob_gpu_shape(e->blob, &(const int64_t *){NULL}, NULL));
    child_is_refused(sb_blob_set_gpu(e->blob, SB_DATA, e->device.ptr, BYTES, 0, NULL, NULL, NULL));
    /* calls on data whose head is at the device */
    child_wants(sb_blob_create_shaped(e->context, SB_DTYPE_F32, (int64_t[]){128}, 1, &copy, NULL) ==
                SB_OK);
    sb__replace(&copy->memory[SB_DATA], sb_mem_retain(e->at_device));
    child_is_refused(sb_blob_asum(copy, SB_DATA, &(double){0}, NULL));
    child_is_refused(sb_blob_sumsq(copy, SB_DATA, &(double){0}, NULL));
    child_is_refused(sb_blob_scale(copy, SB_DATA, 2, NULL));
    child_is_refused(sb_blob_update(copy, NULL));
    child_is_refused(sb_blob_clear(copy, SB_DATA, NULL));
    child_is_refused(sb_blob_copy_from(e->blob, SB_DATA, copy, SB_COPY_RESHAPE, NULL));
    child_is_refused(sb_blob_at(copy, SB_DATA, (int64_t[]){0}, 1, &(float){0}, NULL));
    sb_blob_destroy(copy);
}

static void nothing(void *user) {
}

static void refuse_context_calls(struct estate *e) {
    sb_context *context = e->context;
    int64_t calls[SB_SIM_OP_COUNT];
    void *ptr = NULL;
    char bytes[4];
    child_is_refused(sb_context_device_status(context));
    child_is_refused(
        sb_context_extension(context, SB_SIM_DEVICE, &(const void *){NULL}, &ptr, NULL));
    child_is_refused(sb_context_stream(context, &(sb_stream){0}, NULL));
    child_is_refused(sb_context_synchronize(context, NULL));
    child_is_refused(sb_context_forget_stream(context, e->stream, NULL));
    child_is_refused(sb_sim_set_schedule(context, SB_SIM_EAGER, 0, NULL));
    child_is_refused(sb_sim_fail(context, SB_SIM_ANY, 1, SB_SIM_FAIL_NOW, NULL));
    child_is_refused(sb_sim_calls(context, calls, SB_SIM_OP_COUNT, NULL));
    child_is_refused(sb_sim_stream_create(context, &(sb_stream){0}, NULL));
    child_is_refused(sb_sim_stream_destroy(context, e->stream, NULL));
    child_is_refused(sb_sim_launch(context, e->stream, nothing, NULL, NULL));
    child_is_refused(sb_sim_malloc(context, 10, &ptr, NULL));
    child_is_refused(sb_sim_free(context, e->device.ptr, NULL));
    child_is_refused(sb_sim_peek(context, bytes, e->device.ptr, sizeof bytes, NULL));
    child_is_refused(sb_sim_poke(context, e->device.ptr, bytes, sizeof bytes, NULL));
    child_wants(sb_sim_address(context, e->device.ptr, 1) == NULL);
}

static void use_the_device(void *arg) {
    refuse_memory_calls(arg);
    refuse_blob_calls(arg);
    refuse_context_calls(arg);
    read_current_bytes(arg);
    estate_release(arg);
}

TEST_ON(estate, every_use_of_the_device_in_a_child_returns_forked) {
    in_child(use_the_device, f);
    assert_int_equal(sb_context_device_status(f->context), SB_OK);
}

/* An estate whose page-locked memory a child cannot read. */
struct locked_estate {
    sb_backend table;
    struct estate all;
    sb_mem *replaced;
    sb_blob *blob;                   /* all.pinned is its data */
    sb_blob *imported;               /* imports a tensor of the data of `blob` */
    sb_blob *elsewhere;              /* imports such a tensor in a context without a device */
    sb_dl_managed_versioned *tensor; /* exported from the data of `blob` */
};

static void locked_estate_open(struct locked_estate *e, bool is_coherent) {
    sb_dl_managed_versioned *tensor;
    e->table = is_coherent ? *coherent_table() : sb__sim_backend;
    e->table.flags |= SB_BACKEND_PINNED_NOT_IN_CHILD;
    estate_open_on(&e->all, &e->table);
    assert_int_equal(sb_mem_storage(e->all.pinned, SB_SIDE_CPU),
                     is_coherent ? SB_STORAGE_OWNED : SB_STORAGE_PINNED);
    e->replaced = mem_filled(e->all.context, BYTES, 2);
    e->blob = blob_of_count(e->all.context, SB_DTYPE_F32, LARGE / sizeof(float));
    sb__replace(&e->blob->memory[SB_DATA], sb_mem_retain(e->all.pinned));
    assert_ok(sb_blob_to_dlpack(e->blob, SB_DATA, SB_SIDE_CPU, &tensor, &err));
    assert_ok(sb_blob_create_from_dlpack(e->all.context, tensor, &e->imported, &err));
    assert_ok(sb_blob_to_dlpack(e->blob, SB_DATA, SB_SIDE_CPU, &tensor, &err));
    assert_ok(sb_blob_create_from_dlpack(NULL, tensor, &e->elsewhere, &err));
    assert_ok(sb_blob_to_dlpack(e->blob, SB_DATA, SB_SIDE_CPU, &e->tensor, &err));
}

static void locked_estate_release(struct locked_estate *e) {
    sb_mem_release(e->replaced);
    sb_blob_destroy(e->blob);
    sb_blob_destroy(e->imported);
    sb_blob_destroy(e->elsewhere);
    e->tensor->deleter(e->tensor);
    estate_release(&e->all);
}

static void touch_page_locked_bytes(void *arg) {
    struct locked_estate *e = arg;
    const void *in;
    static char buffer[1 << 20];
    void *out;
    size_t size;
    sb_mem *own;
    sb_blob *copy;
    for (enum call call = CPU_DATA; call <= OVERWRITE_CPU; call++)
        child_is_refused(mem_call(e->all.pinned, call, &(struct call_arguments){0}, &out, NULL));
    child_is_refused(sb_mem_clear(e->all.pinned, NULL));
    child_is_refused(sb_blob_asum(e->blob, SB_DATA, &(double){0}, NULL));
    child_is_refused(sb_blob_scale(e->blob, SB_DATA, 2, NULL));
    child_is_refused(sb_blob_cpu(e->imported, SB_DATA, &in, NULL));
    child_is_refused(sb_blob_cpu(e->elsewhere, SB_DATA, &in, NULL));
    child_is_refused(sb_blob_create_from_dlpack(NULL, e->tensor, &copy, NULL));
    child_is_refused(sb_blob_at(e->blob, SB_DATA, (int64_t[]){0}, 1, &(float){0}, NULL));
    child_is_refused(sb_blob_to_proto(e->blob, 0, buffer, sizeof buffer, &size, NULL));
    child_wants(sb_blob_create_shaped(e->all.context, SB_DTYPE_F32, sb_blob_shape(e->blob), 1,
                                      &copy, NULL) == SB_OK);
    child_wants(sb_blob_overwrite_cpu(copy, SB_DATA, &out, NULL) == SB_OK);
    child_is_refused(sb_blob_copy_from(copy, SB_DATA, e->blob, 0, NULL));
    sb_blob_destroy(copy);
    child_wants(host_holds(e->all.lent_host, BYTES, 5));
    child_wants(sb_mem_set_cpu(e->replaced, e->all.host.ptr, BYTES, 0, NULL, NULL, NULL) == SB_OK);
    child_wants(host_holds(e->replaced, BYTES, 5));
    child_wants(sb_mem_create(e->all.context, BYTES, &own, NULL) == SB_OK);
    child_wants(host_holds(own, BYTES, 0));
    sb_mem_release(own);
    locked_estate_release(e);
}

static void end_a_write(void *arg) {
    sb_write *write = arg;
    child_is_refused(sb_write_end(write, SB_WRITE_DONE, NULL));
    sb_write_destroy(write);
}

TEST_ON(rig, a_write_that_was_begun_before_a_fork_ends_only_in_the_parent) {
    sb_write *write;
    void *ptr;
    rig_reopen_on(f, "cpu", 0);
    sb_mem *mem = mem_filled(f->context, BYTES, 1);
    assert_ok(sb_write_begin(mem, SB_SIDE_CPU, 0, &ptr, &write, &err));
    in_child(end_a_write, write);
    memset(ptr, 2, BYTES);
    assert_ok(sb_write_end(write, SB_WRITE_DONE, &err));
    sb_write_destroy(write);
    assert_true(host_holds(mem, BYTES, 2));
    sb_mem_release(mem);
}

static void read_from_the_device(void *mem) {
    const void *ptr;
    child_is_refused(sb_mem_cpu(mem, &ptr, NULL));
}

TEST_ON(rig, a_child_does_not_read_from_a_device_without_a_default_stream) {
    static sb_backend table; /* in use until the fixture ends */
    table = sb__sim_backend;
    table.flags |= SB_BACKEND_NO_DEFAULT_STREAM;
    rig_reopen_options(f, CONTEXT_OPTIONS(.device = "sim:0", .backend = &table));
    sb_mem *mem = mem_filled(f->context, BYTES, 1);
    (void)mem_pointer(mem, MUTABLE_GPU);
    in_child(read_from_the_device, mem);
    assert_true(host_holds(mem, BYTES, 1));
    sb_mem_release(mem);
}

/* Some drivers do not promise that page-locked memory is readable in the child. */
TEST(page_locked_and_host_coherent_bytes_may_be_unreadable_in_a_child) {
    for (int is_coherent = 0; is_coherent < 2; is_coherent++) {
        struct locked_estate e;
        double sum = 0;
        locked_estate_open(&e, is_coherent);
        in_child(touch_page_locked_bytes, &e);
        assert_ok(sb_blob_asum(e.blob, SB_DATA, &sum, &err)); /* the parent can read the bytes */
        assert_true(sum > 0 && host_holds(e.all.pinned, LARGE, 1));
        locked_estate_release(&e);
    }
}

static void open_another(void *arg) {
    struct estate *e = arg, own;
    const void *ptr;
    estate_open(&own);
    read_current_bytes(&own);
    child_wants(sb_mem_gpu(own.pinned, &ptr, NULL) == SB_OK);
    child_wants(host_holds(own.pulled, BYTES, 3));
    child_wants(host_holds(own.lent_device, BYTES, 6));
    child_is_refused(sb_mem_gpu(e->lent_host, &ptr, NULL));
    estate_release(&own);
    estate_release(e);
}

TEST_ON(estate, a_child_may_open_another_context) {
    in_child(open_another, f);
}

/* --- backends ------------------------------------------------------------------------------- */

struct registrar {
    sb_backend first, second;
    quiet_flag has_begun, may_end;
};

static void *register_again(void *user) {
    struct registrar *r = user;
    while (!atomic_load_explicit(&r->may_end, memory_order_relaxed)) {
        assert_int_equal(sb_backend_register(&r->first, NULL), SB_OK);
        quiet_raise(&r->has_begun);
    }
    return NULL;
}

static void open_backends(void *arg) {
    static const char *const devices[] = {"first:0", "second:0"};
    struct registrar *r = arg;
    sb_context *context;
    child_wants(sb_backend_register(&r->second, NULL) == SB_OK);
    for (int i = 0; i < 2; i++) {
        child_wants(create_with_backend(NULL, devices[i], &context, NULL) == SB_OK);
        sb_context_release(context);
    }
}

/* The parent may be registering a backend at the fork. A child's registrations do not affect the
   parent. */
TEST(a_child_registers_backends) {
    static struct plain plain;
    static struct registrar r;
    pthread_t thread;
    r.first = r.second = plain_backend(&plain);
    r.first.name = "first";
    r.second.name = "second";
    assert_int_equal(pthread_create(&thread, NULL, register_again, &r), 0);
    quiet_await(&r.has_begun);
    for (int i = 0; i < 10; i++)
        in_child(open_backends, &r);
    quiet_raise(&r.may_end);
    assert_int_equal(pthread_join(thread, NULL), 0);
    sb_context *context;
    assert_status(SB_ERR_UNSUPPORTED,
                  sb_context_create(&CONTEXT_OPTIONS(.device = "second:0"), &context, &err));
}

/* --- locks that other threads hold ----------------------------------------------------------- */

struct holder {
    pthread_mutex_t *lock;
    quiet_flag holds, may_end;
};

static void *hold(void *user) {
    struct holder *h = user;
    (void)pthread_mutex_lock(h->lock);
    quiet_raise(&h->holds);
    quiet_await(&h->may_end);
    (void)pthread_mutex_unlock(h->lock);
    return NULL;
}

/* Uses, in the child, objects that no other thread used at the fork. */
static void live_on(void *arg) {
    struct estate *e = arg;
    sb_stats stats = SB_STATS_INIT;
    const void *in;
    sb_mem *mem = NULL;
    void *out;
    child_wants(sb_context_stats(e->context, &stats, NULL) == SB_OK);
    child_wants(sb_mem_create(e->context, LARGE, &mem, NULL) == SB_OK);
    child_wants(sb_mem_overwrite_cpu(mem, &out, NULL) == SB_OK);
    memset(out, 9, LARGE);
    child_wants(host_holds(mem, LARGE, 9));
    sb_mem_release(mem);
    sb_context_trim(e->context);
    child_is_refused(sb_mem_cpu(e->at_device, &in, NULL));
    child_is_refused(sb_mem_gpu_on(e->lent_host, e->stream, &in, NULL));
    use_the_device(e);
}

static void fork_while_held(pthread_mutex_t *lock, void (*task)(void *arg), void *arg) {
    struct holder h = {.lock = lock};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold, &h), 0);
    quiet_await(&h.holds);
    in_child(task, arg);
    quiet_raise(&h.may_end);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST_ON(estate, a_child_with_unshared_objects_does_not_hang_on_held_locks) {
    sb_mem *other = mem_filled(f->context, BYTES, 8);
    struct sb__sim *sim = f->context->device;
    fork_while_held(&f->context->cache.lock, live_on, f);
    fork_while_held(&f->context->streams.lock, live_on, f);
    fork_while_held(&f->context->quarantine.lock, live_on, f);
    fork_while_held(&sim->lock, live_on, f);
    fork_while_held(&other->lock, live_on, f);
    sb_mem_release(other);
}

/* The host bytes are current, so reads and queries need no lock. */
static void read_beside_the_lock(void *arg) {
    const sb_blob *blob = arg;
    sb_dl_managed_versioned *tensor = NULL;
    const sb_mem *mem = NULL;
    const void *in;
    child_wants(sb_blob_mem(blob, SB_DATA, &mem, NULL) == SB_OK);
    child_wants(sb_mem_storage(mem, SB_SIDE_CPU) != SB_STORAGE_NONE);
    child_wants(sb_mem_synchronize(mem, NULL) == SB_OK);
    child_wants(sb_mem_prefetch_cpu(mem, NULL, NULL) == SB_OK);
    child_wants(sb_mem_cpu(mem, &in, NULL) == SB_OK);
    child_wants(sb_blob_to_dlpack(blob, SB_DATA, SB_SIDE_CPU, &tensor, NULL) == SB_OK);
    child_wants(tensor->dl_tensor.data == in);
    tensor->deleter(tensor);
}

TEST_ON(rig, a_child_reads_current_bytes_without_the_memory_s_lock) {
    const char *const devices[] = {"cpu", "sim:0"};
    for (int i = 0; i < 2; i++) {
        rig_reopen_on(f, devices[i], 0);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 100);
        memset(blob_pointer(blob, SB_DATA, OVERWRITE_CPU), 0, 100 * sizeof(float));
        if (i == 1)
            (void)blob_pointer(blob, SB_DATA, GPU_DATA);
        fork_while_held(&data_of(blob)->lock, read_beside_the_lock, blob);
    }
}

/* Calls that need the lock return FORKED: the thread that held it does not exist in the child. */
static void change_beside_the_lock(void *arg) {
    sb_mem *mem = arg;
    void *out;
    child_is_refused(sb_mem_mutable_cpu(mem, &out, NULL));
    child_is_refused(sb_mem_overwrite_cpu(mem, &out, NULL));
    child_is_refused(sb_mem_evict_gpu(mem, NULL));
    child_is_refused(sb_mem_set_cpu(mem, &out, BYTES, 0, NULL, NULL, NULL));
    sb_mem_release(mem);
}

/* Calls that wait for a transfer return FORKED too. */
static void wait_beside_the_lock(void *arg) {
    sb_mem *mem = arg;
    sb_blob *blob;
    const void *in;
    child_wants(sb_blob_create(sb_mem_context(mem), SB_DTYPE_F32, &blob, &err) == SB_OK);
    child_is_refused(sb_blob_set_mem(blob, SB_DATA, mem, &err));
    child_wants(strstr(err.message, "another thread") != NULL);
    sb_blob_destroy(blob);
    child_is_refused(sb_mem_cpu(mem, &in, &err));
    child_wants(strstr(err.message, "another thread") != NULL);
    child_is_refused(sb_mem_synchronize(mem, &err));
    child_wants(strstr(err.message, "another thread") != NULL);
}

TEST_ON(estate, calls_that_need_a_lock_held_at_the_fork_are_refused_in_the_child) {
    sb_mem *mem = mem_filled(f->context, BYTES, 8);
    (void)mem_pointer(mem, GPU_DATA);
    fork_while_held(&mem->lock, change_beside_the_lock, mem);
    fork_while_held(&f->pulled->lock, wait_beside_the_lock, f->pulled);
    sb_mem_release(mem);
}

/* The child's threads wait for each other as usual, even in a context of the parent. */
static void touch_first(void *arg, int member) {
    const void *in;
    child_wants(sb_mem_cpu(arg, &in, NULL) == SB_OK);
}

static void touch_with_threads(void *arg) {
    for (int i = 0; i < 50; i++) {
        sb_mem *mem = NULL;
        child_wants(sb_mem_create(NULL, (size_t)4 << 20, &mem, NULL) == SB_OK);
        team_run(4, touch_first, mem);
        sb_mem_release(mem);
    }
}

TEST(threads_of_a_child_share_memories) {
    in_child(touch_with_threads, NULL);
}

struct slow {
    sb_mem *mem;
    quiet_flag holds;
};

/* Owns a lock for longer than a child waits for a lock whose owner does not exist. */
static void hold_long(struct slow *s) {
    const struct timespec pause = {.tv_nsec = 500000000};
    child_wants(sb__lock(s->mem, NULL) == SB_OK);
    quiet_raise(&s->holds);
    (void)nanosleep(&pause, NULL);
    sb__unlock(s->mem);
}

static void hold_or_write(void *arg, int member) {
    struct slow *s = arg;
    if (member == 0) {
        hold_long(s);
        return;
    }
    quiet_await(&s->holds);
    child_wants(sb_mem_overwrite_cpu(s->mem, &(void *){NULL}, NULL) == SB_OK);
}

static void wait_for_a_slow_thread(void *arg) {
    struct slow s = {.mem = arg};
    team_run(2, hold_or_write, &s);
    sb_mem_release(s.mem);
}

TEST_ON(rig, a_child_waits_for_its_own_threads_without_a_limit) {
    rig_reopen_on(f, "cpu", 0);
    /* The memory was never written, so that a write takes the lock. */
    in_child(wait_for_a_slow_thread, test_mem(f->context, BYTES));
}

static void trim_and_release(void *arg) {
    struct estate *e = arg;
    sb_mem *mem = NULL;
    const void *in;
    child_wants(sb_mem_create(e->context, LARGE, &mem, NULL) == SB_OK);
    child_wants(sb_mem_cpu(mem, &in, NULL) == SB_OK && bytes_are(in, LARGE, 0));
    sb_mem_release(mem);
    sb_context_trim(e->context);
    sb_context_release(e->context);
}

TEST(host_only_contexts_work_despite_held_locks) {
    struct estate e = {.context = NULL};
    for (int builtin = 0; builtin < 2; builtin++) {
        if (!builtin)
            assert_ok(sb_context_create(NULL, &e.context, &err));
        sb_mem_release(mem_filled(e.context, LARGE, 1));
        fork_while_held(&sb__context(e.context)->cache.lock, trim_and_release, &e);
        sb_context_release(e.context);
        e.context = NULL;
    }
}

/* --- a busy parent --------------------------------------------------------------------------- */

enum { HAMMERS = 4 };

struct forge {
    struct estate estate;
    sb_mem *shared; /* used by the threads, on the same context */
    quiet_flag end;
};

static void strike(struct forge *f, int i) {
    const void *in;
    use_new_memory(f->estate.context, f->estate.stream, i % 2 ? LARGE : BYTES);
    ignore(sb_mem_gpu(f->shared, &in, NULL));
    ignore(sb_context_synchronize(f->estate.context, NULL));
    if (i % 8 == 0)
        sb_context_trim(f->estate.context);
}

static void *hammer(void *user) {
    struct forge *f = user;
    for (int i = 0; !atomic_load_explicit(&f->end, memory_order_relaxed); i++)
        strike(f, i);
    return NULL;
}

TEST(forks_of_a_busy_process_do_not_hang) {
    struct forge f = {.end = 0};
    pthread_t threads[HAMMERS];
    /* Sanitizers have locks that other threads may hold at the fork: AddressSanitizer's allocator,
       ThreadSanitizer's stacks (before LLVM 19). */
    if (IS_SANITIZED) {
        print_message("skipped: sanitizers themselves may hang in forks of a busy process\n");
        test_skip();
    }
    estate_open(&f.estate);
    f.shared = mem_filled(f.estate.context, BYTES, 8);
    for (int i = 0; i < HAMMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &f), 0);
    for (int i = 0; i < (test_is_quick() ? 5 : 50); i++)
        in_child(live_on, &f.estate);
    quiet_raise(&f.end);
    for (int i = 0; i < HAMMERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    sb_mem_release(f.shared);
    estate_release(&f.estate);
}
