/* Makes memory requests to the C library and the kernel fail. */
#include "blobs.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

static struct {
    bool armed;
    int64_t left; /* the request that decreases this number to 0 fails */
    bool fired;
} fault;

static bool fires(void) {
    if (!fault.armed || --fault.left != 0)
        return false;
    fault.fired = true;
    errno = ENOMEM;
    return true;
}

#define WRAP(type, name, parameters, arguments, failure)                                           \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        return fires() ? (failure) : __real_##name arguments;                                      \
    }

WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t count, size_t size), (count, size), NULL)
WRAP(void *, realloc, (void *old, size_t size), (old, size), NULL)
WRAP(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL)
WRAP(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset), MAP_FAILED)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), -1)
WRAP(int, pthread_mutexattr_init, (pthread_mutexattr_t * attributes), (attributes), ENOMEM)
WRAP(int, pthread_mutexattr_settype, (pthread_mutexattr_t * attributes, int type),
     (attributes, type), ENOMEM)

#define SMALL 64
#define LARGE ((size_t)20 << 20) /* so large that the allocator and the device use mmap */

struct scene {
    sb_context *context;
    sb_mem *mem, *large; /* `mem` has SMALL bytes of 0x21 on the host; `large` is untouched */
    sb_stream stream;
    sb_context *made, *fresh;
    sb_stream made_stream;
    void *made_ptr;
    int launched;
};

static sb_status open_context(sb_context **out, sb_error *err) {
    const uint32_t flags = SB_CONTEXT_NO_HOST_CACHE | SB_CONTEXT_NO_PINNED;
    return sb_context_create(&CONTEXT_OPTIONS(.device = "sim:0", .flags = flags), out, err);
}

static void scene_open(struct scene *s) {
    memset(s, 0, sizeof *s);
    assert_ok(open_context(&s->context, &err));
    assert_ok(open_context(&s->fresh, &err));
    s->mem = mem_filled(s->context, SMALL, 0x21);
    assert_ok(sb_mem_create(s->context, LARGE, &s->large, &err));
    assert_ok(sb_sim_stream_create(s->context, &s->stream, &err));
}

static void scene_close(struct scene *s) {
    sb_mem_release(s->mem);
    sb_mem_release(s->large);
    ignore(sb_sim_free(s->context, s->made_ptr, NULL));
    ignore(sb_context_forget_stream(s->context, s->stream, NULL));
    sb_context_release(s->context); /* destroys its streams */
    sb_context_release(s->made);
    sb_context_release(s->fresh);
}

static struct row {
    const char *name;
    sb_status (*call)(struct scene *, sb_error *);
    int64_t least; /* the least number of requests */
} calls[16];
static size_t num_calls;

#define CALL(name, least, expression)                                                              \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return expression;                                                                         \
    }                                                                                              \
    __attribute__((constructor)) static void add_##name(void) {                                    \
        calls[num_calls++] = (struct row){#name, name, least};                                     \
    }

CALL(create_context, 4, open_context(&s->made, err))
CALL(create_stream, 1, sb_sim_stream_create(s->context, &s->made_stream, err))
CALL(device_malloc, 2, sb_sim_malloc(s->context, SMALL, &s->made_ptr, err))

/* Destroying the context frees the block. */
CALL(first_device_malloc, 4, sb_sim_malloc(s->fresh, SMALL, &(void *){NULL}, err))

CALL(large_device_malloc, 4, sb_sim_malloc(s->context, LARGE, &s->made_ptr, err))

/* This block is larger than the device's first range of addresses. */
CALL(huge_device_malloc, 1000, sb_sim_malloc(s->context, (size_t)5 << 30, &s->made_ptr, err))

static void count_launch(void *user) {
    ++*(int *)user;
}

CALL(launch, 1, sb_sim_launch(s->context, s->stream, count_launch, &s->launched, err))
CALL(upload, 3, sb_mem_gpu(s->mem, &(const void *){NULL}, err))
CALL(push, 4, sb_mem_async_gpu_push(s->mem, s->stream, err))
CALL(touch_host, 1, sb_mem_cpu(s->large, &(const void *){NULL}, err))
CALL(touch_device, 4, sb_mem_gpu(s->large, &(const void *){NULL}, err))

static bool is_unchanged(const struct scene *s) {
    return !s->made && !s->made_stream && !s->made_ptr && !s->launched &&
           sb_mem_head(s->mem) == SB_HEAD_AT_CPU &&
           sb_mem_head(s->large) == SB_HEAD_UNINITIALIZED && mem_holds(s->mem, "!!!!", 4);
}

static bool run(size_t i, int64_t n) {
    struct scene s;
    scene_open(&s);
    fault.left = n;
    fault.fired = false;
    fault.armed = true;
    support_poison_error(&err);
    sb_status st = calls[i].call(&s, &err);
    fault.armed = false;
    support_check_status(fault.fired ? SB_ERR_OUT_OF_MEMORY : SB_OK, st, &err, calls[i].name,
                         __FILE__, __LINE__);
    if (fault.fired && !is_unchanged(&s))
        fail_with("%s, request %d changed something", calls[i].name, (int)n);
    if (fault.fired)
        assert_ok(calls[i].call(&s, &err));
    scene_close(&s);
    return fault.fired;
}

TEST(calls_survive_the_failure_of_the_nth_request) {
    for (size_t i = 0; i < num_calls; i++) {
        int64_t n = 1, step = 1;
        if (calls[i].least > 100 && test_is_quick())
            continue;
        for (; run(i, n); n += step)
            step = n > 50 ? 97 : 1; /* skips most of a thousand equal requests */
        assert_true(n > calls[i].least);
    }
}
