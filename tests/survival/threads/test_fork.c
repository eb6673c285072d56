/* Tests which calls work in a forked child, and that no call hangs. */
#include "child.h"
#include "estate.h"
#include "every_call.h"
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

struct busy {
    void (*step)(struct busy *);
    void *arg;
    quiet_flag has_begun, may_end;
};

static void *keep_busy(void *user) {
    struct busy *b = user;
    while (!atomic_load_explicit(&b->may_end, memory_order_relaxed)) {
        b->step(b);
        quiet_raise(&b->has_begun);
    }
    return NULL;
}

static void fork_beside(int members, struct busy b, int children, void (*task)(void *), void *arg) {
    pthread_t threads[TEAM_MAX];
    for (int i = 0; i < members; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &b), 0);
    quiet_await(&b.has_begun);
    for (int i = 0; i < children; i++)
        in_child(task, arg);
    quiet_raise(&b.may_end);
    for (int i = 0; i < members; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

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
    sb_blob *loaded = NULL;
    child_wants(sb_blob_create(e->context, SB_DTYPE_F32, &loaded, NULL) == SB_OK);
    child_wants(sb_model_load_blob(e->model, 0, 0, loaded, NULL) == SB_OK);
    sb_blob_destroy(loaded);
}

/* The first test must call hash_a_name: once the parent has a hash key, children keep the key. */
static void hash_a_name(void *out) {
    const struct sb__layer layer = {.name = "conv1", .name_size = 5};
    struct sb__named slots[8] = {{0, 0}};
    struct sb__names names;
    size_t bytes;
    child_wants(sb__names_bytes(1, &bytes) && bytes == sizeof slots);
    sb__names_begin(&names, slots, 1);
    sb__names_add(&names, &layer, 0);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        *(uint32_t *)out += slots[i].hash; /* only one slot is used */
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

#define child_is_refused(call) child_wants((call) == SB_ERR_FORKED)

struct forked_call {
    const struct every_call *call;
    struct world world;
    bool pending; /* the data is being pushed, and the diff is being pulled */
    bool locked;  /* the child cannot read the page-locked memory of data and diff */
    sb_status expected;
    bool uses_device;
};

static void open_world(struct forked_call *c, enum world_storage storage) {
    struct world *w = &c->world;
    world_open(w, storage, false, 3, 0);
    for (sb_part part = SB_DATA; part <= SB_DIFF && c->locked; part++) {
        w->context->backend.flags |= SB_BACKEND_PINNED_NOT_IN_CHILD;
        sb_blob_drop(w->blob, part);
        (void)blob_pointer(w->blob, part, MUTABLE_CPU);
    }
    if (!c->pending)
        return;
    (void)blob_pointer(w->blob, SB_DATA, MUTABLE_CPU);
    (void)blob_pointer(w->blob, SB_DIFF, MUTABLE_GPU);
    assert_ok(sb_sim_set_schedule(w->context, SB_SIM_LAZY, 0, &err));
    assert_ok(sb_mem_async_gpu_push(data_of(w->blob), w->stream, &err));
    assert_ok(sb_mem_async_cpu_pull(diff_of(w->blob), w->stream, &err));
}

static bool run_call(struct forked_call *c) {
    sb_context *context = sb_context_retain(c->world.context);
    const struct sb__sim *sim = context->device;
    int64_t before[SB_SIM_OP_COUNT];
    memcpy(before, sim->calls, sizeof before);
    c->call->run(&c->world);
    const bool uses = memcmp(before, sim->calls, sizeof before) != 0;
    sb_context_release(context);
    return uses;
}

static bool has_part(const char *name, const char *const *parts) {
    while (*parts && !strstr(name, *parts))
        parts++;
    return *parts;
}

/* Calls that replace storage are not refused, because they need not use the device. */
static bool is_refused(const struct forked_call *c) {
    static const char *const handles[] = {"_gpu", "context_stream", "device_status", "extension",
                                          NULL};
    static const char *const bytes[] = {"_cpu",      "_clear",   "sum",        "_scale",
                                        "_update",   "blob_at",  "_at_legacy", "blob_to_",
                                        "blob_save", "set_blob", NULL};
    static const char *const replace[] = {"_overwrite_cpu", "_evict_",  "_from",     "_share",
                                          "_set_",          "_reshape", "blob_drop", "_destroy",
                                          "load_",          "_release", "blob_fill", NULL};
    const char *name = c->call->name;
    if (c->locked && c->expected == SB_OK && has_part(name, bytes))
        return !strstr(name, "_set_cpu");
    if (has_part(name, replace) && !(c->pending && strncmp(name, "sb_mem_", 7) == 0))
        return false;
    return c->uses_device || (c->expected == SB_OK && has_part(name, handles));
}

static void call_in_child(void *arg) {
    struct forked_call *c = arg;
    const bool uses_device = run_call(c);
    const sb_status st = c->world.status;
    if (uses_device || (st != SB_ERR_FORKED && (is_refused(c) || st != c->expected)))
        child_fails(c->call->name, __LINE__);
}

TEST(no_call_in_a_child_uses_the_device) {
    static const enum world_storage storages[] = {WORLD_HOST_OUTDATED, WORLD_DEVICE_OUTDATED,
                                                  WORLD_HOST_WRITABLE, WORLD_HOST_WRITABLE};
    for (int i = 0; i < every_call_count; i++)
        for (int kind = 0; kind < 4; kind++) {
            struct forked_call c = {&every_call[i], .pending = kind == 2, .locked = kind == 3};
            open_world(&c, storages[kind]);
            c.uses_device = run_call(&c);
            c.expected = c.world.status;
            world_close(&c.world);
            open_world(&c, storages[kind]);
            in_child(call_in_child, &c);
            world_close(&c.world);
        }
}

/* Some drivers make page-locked memory unreadable in the child. */
struct locked {
    struct rig rig;
    sb_mem *mem;
    sb_blob *imported[2]; /* in the same context, and in a context without a device */
    sb_dl_managed_versioned *tensor;
};

static void touch_page_locked_bytes(void *arg) {
    struct locked *l = arg;
    const void *in;
    sb_mem *own;
    sb_blob *copy;
    char bytes[BYTES];
    child_is_refused(sb_mem_cpu(l->mem, &in, NULL));
    child_is_refused(sb_blob_cpu(l->imported[0], SB_DATA, &in, NULL));
    child_is_refused(sb_blob_cpu(l->imported[1], SB_DATA, &in, NULL));
    child_is_refused(sb_blob_create_from_dlpack(NULL, l->tensor, &copy, NULL));
    child_wants(sb_mem_set_cpu(l->mem, memset(bytes, 5, BYTES), BYTES, 0, NULL, NULL, NULL) ==
                SB_OK);
    child_wants(host_holds(l->mem, BYTES, 5));
    child_wants(sb_mem_create(l->rig.context, BYTES, &own, NULL) == SB_OK);
    child_wants(host_holds(own, BYTES, 0));
    sb_mem_release(own);
    test_end_after(l->rig.owned_before);
    l->tensor->deleter(l->tensor);
}

TEST(page_locked_and_host_coherent_bytes_may_be_unreadable_in_a_child) {
    for (int is_coherent = 0; is_coherent < 2; is_coherent++) {
        struct locked l;
        sb_backend table = is_coherent ? *coherent_table() : sb__sim_backend;
        table.flags |= SB_BACKEND_PINNED_NOT_IN_CHILD;
        rig_open_options(&l.rig, CONTEXT_OPTIONS(.device = "sim:0", .backend = &table));
        sb_blob *blob = test_vector(l.rig.context, SB_DTYPE_F32, BYTES / sizeof(float));
        l.mem = data_of(blob);
        (void)mem_pointer(l.mem, MUTABLE_CPU);
        assert_int_equal(sb_mem_storage(l.mem, SB_SIDE_CPU),
                         is_coherent ? SB_STORAGE_OWNED : SB_STORAGE_PINNED);
        for (int i = 0; i < 2; i++) {
            assert_ok(sb_blob_to_dlpack(blob, SB_DATA, SB_SIDE_CPU, &l.tensor, &err));
            l.imported[i] = test_unshaped(i ? NULL : l.rig.context, SB_DTYPE_F32);
            assert_ok(
                sb_blob_from_dlpack(l.imported[i], SB_DATA, l.tensor, SB_DLPACK_RESHAPE, &err));
        }
        assert_ok(sb_blob_to_dlpack(blob, SB_DATA, SB_SIDE_CPU, &l.tensor, &err));
        in_child(touch_page_locked_bytes, &l);
        assert_true(host_holds(l.mem, BYTES, 0));
        l.tensor->deleter(l.tensor);
        rig_close(&l.rig);
    }
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

static sb_backend first_backend, second_backend;

static void register_again(struct busy *b) {
    assert_int_equal(sb_backend_register(&first_backend, NULL), SB_OK);
}

static void open_backends(void *arg) {
    child_wants(sb_backend_register(&second_backend, NULL) == SB_OK);
    child_wants(try_device(NULL, "first:0", NULL) == SB_OK);
    child_wants(try_device(NULL, "second:0", NULL) == SB_OK);
}

/* The parent may be registering a backend at the fork. */
TEST(a_child_registers_backends) {
    static struct plain plain;
    first_backend = second_backend = plain_backend(&plain);
    first_backend.name = "first";
    second_backend.name = "second";
    fork_beside(1, (struct busy){.step = register_again}, 10, open_backends, NULL);
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "second:0", &err));
}

static void hold(struct busy *b) {
    (void)pthread_mutex_lock(b->arg);
    quiet_raise(&b->has_begun);
    quiet_await(&b->may_end);
    (void)pthread_mutex_unlock(b->arg);
}

static void fork_while_held(pthread_mutex_t *lock, void (*task)(void *arg), void *arg) {
    fork_beside(1, (struct busy){.step = hold, .arg = lock}, 1, task, arg);
}

static void live_on(void *arg) {
    struct estate *e = arg;
    sb_stats stats = SB_STATS_INIT;
    const void *in;
    sb_mem *mem = NULL;
    void *out;
    child_wants(sb_context_stats(e->context, &stats, NULL) == SB_OK);
    e->context->host.cap = 1;
    child_wants(sb_mem_create(e->context, BYTES, &mem, NULL) == SB_ERR_CAP_REACHED);
    e->context->host.cap = 0;
    child_wants(sb_mem_create(e->context, LARGE, &mem, NULL) == SB_OK);
    child_wants(sb_mem_overwrite_cpu(mem, &out, NULL) == SB_OK);
    memset(out, 9, LARGE);
    child_wants(host_holds(mem, LARGE, 9));
    sb_mem_release(mem);
    sb_context_trim(e->context);
    child_is_refused(sb_mem_cpu(e->at_device, &in, NULL));
    child_is_refused(sb_mem_cpu(e->written, &in, NULL));
    child_is_refused(sb_mem_gpu_on(e->lent_host, e->stream, &in, NULL));
    read_current_bytes(e);
    estate_release(e);
    child_wants(e->host.deleted == 1 && e->device.deleted == 1);
}

TEST_ON(estate, a_child_uses_and_releases_its_objects_whichever_locks_are_held) {
    assert_int_equal(sb_mem_storage(f->pinned, SB_SIDE_CPU), SB_STORAGE_PINNED);
    sb_mem *other = mem_filled(f->context, BYTES, 8);
    struct sb__sim *sim = f->context->device;
    fork_while_held(&f->context->cache.lock, live_on, f);
    fork_while_held(&f->context->streams.lock, live_on, f);
    fork_while_held(&f->context->quarantine.lock, live_on, f);
    fork_while_held(&sim->lock, live_on, f);
    fork_while_held(&other->lock, live_on, f);
    sb_mem_release(other);
    /* The parent's transfers are still pending, and succeed. */
    assert_int_equal(f->host.deleted + f->device.deleted, 0);
    assert_ok(sb_mem_synchronize(f->pushed, &err));
    assert_true(host_holds(f->pulled, BYTES, 3));
    assert_true(host_holds(f->at_device, BYTES, 4));
    assert_ok(sb_context_forget_stream(f->context, f->stream, &err));
}

/* These calls need no lock, because the host bytes are current. */
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
    child_wants(!sb_mem_is_unique(mem)); /* without the lock, the child cannot know */
    child_is_refused(sb_blob_reclaim_cpu(arg, SB_DATA, lent_deleter, &arg, NULL));
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

/* The thread that held the lock does not exist in the child. */
static void change_beside_the_lock(void *arg) {
    sb_mem *mem = arg;
    void *out;
    child_is_refused(sb_mem_mutable_cpu(mem, &out, NULL));
    child_is_refused(sb_mem_overwrite_cpu(mem, &out, NULL));
    child_is_refused(sb_mem_evict_gpu(mem, NULL));
    child_is_refused(sb_mem_set_cpu(mem, &out, BYTES, 0, NULL, NULL, NULL));
    sb_mem_release(mem);
}

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

struct slow {
    sb_mem *mem;
    quiet_flag holds;
};

/* Holds the lock for longer than a child waits for the lock of a missing thread. */
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
    /* A write to a memory that was never written takes the lock. */
    in_child(wait_for_a_slow_thread, test_mem(f->context, BYTES));
}

struct forge {
    struct estate estate;
    sb_mem *shared;
};

static void strike(struct busy *b) {
    static _Thread_local int i;
    const struct forge *f = b->arg;
    const void *in;
    use_new_memory(f->estate.context, f->estate.stream, i % 2 ? LARGE : BYTES);
    ignore(sb_mem_gpu(f->shared, &in, NULL));
    ignore(sb_context_synchronize(f->estate.context, NULL));
    if (i++ % 8 == 0)
        sb_context_trim(f->estate.context);
}

TEST(forks_of_a_busy_process_do_not_hang) {
    struct forge f;
    /* At a fork, another thread may hold a lock of AddressSanitizer's allocator or, before LLVM 19,
       of ThreadSanitizer's stacks. */
    if (IS_SANITIZED) {
        print_message("skipped: sanitizers themselves may hang in forks of a busy process\n");
        test_skip();
    }
    estate_open(&f.estate);
    f.shared = mem_filled(f.estate.context, BYTES, 8);
    fork_beside(4, (struct busy){.step = strike, .arg = &f}, test_is_quick() ? 5 : 50, live_on,
                &f.estate);
    sb_mem_release(f.shared);
    estate_release(&f.estate);
}
