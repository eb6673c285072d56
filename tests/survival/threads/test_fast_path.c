/* Tests that requests for a ready side take no lock and call no function of the device. */
#include "blobs.h"
#include "nets.h"
#include "pointers.h"

#include <syncblob/filler.h>

#include <dlfcn.h>
#include <sys/mman.h>

#define BYTES ((size_t)256)

static _Thread_local int64_t locks;

/* Sanitizers replace pthread_mutex_lock, too. */
#if !IS_SANITIZED
int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static int (*next)(pthread_mutex_t *);
    void *symbol = NULL;
    locks++;
    if (!next) {
        symbol = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        memcpy(&next, &symbol, sizeof next);
    }
    return next(mutex);
}
#endif

static int64_t spread;

static void count_spread(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    spread++;
    for (int64_t i = 0; i < tasks; i++)
        task(arg, i);
}

struct scale {
    struct rig rig;
    sb_mem *mem;
    sb_blob *blob, *source;
};

static void scale_open(struct scale *s) {
    rig_open_options(&s->rig, CONTEXT_OPTIONS(.device = "sim:0", .parallel_for = count_spread));
    s->mem = test_mem(s->rig.context, BYTES);
    for (int i = 0; i < 2; i++) {
        sb_blob *blob = test_vector(s->rig.context, SB_DTYPE_F32, 64);
        (void)blob_pointer(blob, SB_DATA, MUTABLE_CPU);
        (void)blob_pointer(blob, SB_DIFF, MUTABLE_CPU);
        *(i ? &s->source : &s->blob) = blob;
    }
}

static void scale_close(struct scale *s) {
    rig_close(&s->rig);
}

static int64_t calls_so_far(struct scale *s) {
    const int64_t locks_before = locks;
    const struct tally t = rig_tally(&s->rig);
    const struct counting_allocator *counting = &s->rig.counting;
    int64_t calls = t.host_allocs + counting->object_calls + counting->free_calls + spread;
    for (int op = 0; op < SB_SIM_OP_COUNT; op++)
        calls += t.calls[op];
    locks = locks_before; /* does not count the locks that rig_tally takes */
    return calls + locks;
}

#define assert_fast(s, expr)                                                                       \
    do {                                                                                           \
        int64_t before_ = calls_so_far(s);                                                         \
        assert_ok(expr);                                                                           \
        if (calls_so_far(s) != before_)                                                            \
            fail_with("%s made %d locks or calls", #expr, (int)(calls_so_far(s) - before_));       \
    } while (0)

TEST_ON(scale, slow_paths_are_counted) {
    const int64_t calls = calls_so_far(f), locks_before = locks;
    (void)mem_pointer(f->mem, CPU_DATA);
    (void)mem_pointer(f->mem, GPU_DATA);
    assert_true(calls_so_far(f) > calls + locks - locks_before);
    assert_true(IS_SANITIZED || locks > locks_before);
}

TEST_ON(scale, a_request_for_a_ready_side_is_fast) {
    const void *in;
    void *out;
    assert_ok(sb_mem_overwrite_cpu(f->mem, &out, &err));
    assert_fast(f, sb_mem_cpu(f->mem, &in, &err));
    assert_fast(f, sb_mem_mutable_cpu(f->mem, &out, &err));
    assert_ok(sb_mem_gpu(f->mem, &in, &err));
    assert_fast(f, sb_mem_cpu(f->mem, &in, &err));
    assert_fast(f, sb_mem_gpu(f->mem, &in, &err));
    assert_ok(sb_mem_mutable_gpu(f->mem, &out, &err));
    assert_fast(f, sb_mem_gpu(f->mem, &in, &err));
    assert_fast(f, sb_mem_mutable_gpu(f->mem, &out, &err));
    assert_ok(sb_mem_mutable_cpu(f->mem, &out, &err));
    /* The host can read without waiting for the push. */
    assert_ok(sb_mem_async_gpu_push(f->mem, NULL, &err));
    assert_fast(f, sb_mem_cpu(f->mem, &in, &err));
}

static sb_status look_around(sb_mem *mem) {
    sb_mem_release(sb_mem_retain(mem));
    return sb_mem_head(mem) >= 0 && sb_mem_size(mem) == BYTES && sb_mem_is_unique(mem) >= 0 &&
                   sb_mem_context(mem)
               ? SB_OK
               : SB_ERR_INTERNAL;
}

TEST_ON(scale, blobs_are_as_fast_as_their_memories) {
    sb_mem *mem;
    sb_stats stats = SB_STATS_INIT;
    sb_filler filler = SB_FILLER_INIT;
    const void *in;
    void *out;
    float value;
    double sum;
    assert_fast(f, sb_blob_mutable_mem(f->blob, SB_DATA, &mem, &err));
    assert_fast(f, sb_blob_cpu(f->blob, SB_DATA, &in, &err));
    assert_fast(f, sb_blob_mutable_cpu(f->blob, SB_DATA, &out, &err));
    assert_fast(f, sb_blob_at(f->blob, SB_DATA, (int64_t[]){5}, 1, &value, &err));
    assert_fast(f, look_around(mem));
    assert_fast(f, sb_context_stats(f->rig.context, &stats, &err));
    assert_fast(f, sb_blob_update(f->blob, &err));
    assert_fast(f, sb_blob_scale(f->blob, SB_DATA, 2, &err));
    assert_fast(f, sb_blob_copy_from(f->blob, SB_DATA, f->source, 0, &err));
    assert_fast(f, sb_blob_fill(f->blob, &filler, 1, &err));
    assert_fast(f, sb_blob_asum(f->blob, SB_DATA, &sum, &err));
    assert_fast(f, sb_blob_sumsq(f->blob, SB_DIFF, &sum, &err));
    assert_ok(sb_blob_gpu(f->blob, SB_DATA, &in, &err));
    assert_fast(f, sb_blob_gpu(f->blob, SB_DATA, &in, &err));
}

#define ARENA_BYTES ((size_t)16 << 20)

struct arena {
    char *bytes;
    size_t used;
    sb_context *context;
    sb_blob *blob;
    sb_model *model;
};

static void *take(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    struct arena *arena = user;
    const size_t at = (arena->used + alignment - 1) / alignment * alignment;
    if (at + bytes > ARENA_BYTES)
        return NULL;
    arena->used = at + bytes;
    return arena->bytes + at;
}

static void ignore_free(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags) {
}

static void protect(const struct arena *arena, int protection) {
    assert_int_equal(mprotect(arena->bytes, ARENA_BYTES, protection), 0);
}

static void arena_open(struct arena *arena) {
    memset(arena, 0, sizeof *arena);
    arena->bytes =
        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(arena->bytes != MAP_FAILED);
    const sb_allocator allocator = {take, ignore_free, arena};
    assert_ok(sb_context_create(&CONTEXT_OPTIONS(.allocator = allocator), &arena->context, &err));
    arena->blob = blob_of_count(arena->context, SB_DTYPE_F32, 100);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
        memset(blob_pointer(arena->blob, part, MUTABLE_CPU), 0, 400);
    arena->model = small_model(arena->context);
}

static void arena_close(struct arena *arena) {
    protect(arena, PROT_READ | PROT_WRITE);
    sb_model_destroy(arena->model);
    sb_blob_destroy(arena->blob);
    sb_context_release(arena->context);
    assert_int_equal(munmap(arena->bytes, ARENA_BYTES), 0);
}

static void read_blob(sb_blob *blob) {
    const int64_t index[] = {42};
    float value;
    double sum;
    int64_t offset;
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        (void)blob_pointer(blob, part, CPU_DATA);
        assert_ok(sb_blob_at(blob, part, index, 1, &value, &err));
        assert_ok(sb_blob_asum(blob, part, &sum, &err));
        assert_ok(sb_blob_sumsq(blob, part, &sum, &err));
    }
    assert_ok(sb_blob_offset(blob, index, 1, &offset, &err));
}

static void read_model(const sb_model *model) {
    for (int64_t i = 0; i < sb_model_num_layers(model); i++) {
        sb_layer_info layer = SB_LAYER_INFO_INIT;
        sb_blob_info info = SB_BLOB_INFO_INIT;
        float value;
        int64_t found;
        assert_ok(sb_model_layer_info(model, i, &layer, &err));
        assert_ok(sb_model_find_layer(model, layer.name.bytes, layer.name.size, &found, &err));
        for (int64_t n = 0; n < layer.num_blobs; n++) {
            assert_ok(sb_model_blob_info(model, i, n, &info, &err));
            assert_ok(sb_model_read_values(model, i, n, SB_DATA, 0, 1, SB_DTYPE_F32, &value,
                                           sizeof value, &err));
        }
    }
}

TEST_ON(arena, const_calls_on_host_data_write_nothing_that_threads_share) {
    protect(f, PROT_READ);
    read_blob(f->blob);
    read_model(f->model);
}
