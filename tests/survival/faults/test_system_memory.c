/* The n-th request of the library to the C library or the kernel for memory
   fails, for every n: those of the built-in allocator and of the simulated
   device, which an allocator of the caller's does not see. A status, nothing
   changed, and the same call succeeds afterwards. */
#include "support.h"

#include <syncblob/sim.h>

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

/* The linker (--wrap) leads every reference in this program to __wrap_X; what these call is the
   function itself. */
static struct {
    bool armed;
    int64_t left; /* the request at which this reaches 0 */
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

/* --- scenes ---------------------------------------------------------------------- */

#define SMALL 64
#define LARGE ((size_t)20 << 20) /* mapped, by the allocator and by the device */

struct scene {
    sb_context *context, *fresh; /* of `fresh` the device has no memory yet */
    sb_mem *large;               /* never touched */
    sb_stream stream;
    sb_context *made;
    sb_stream made_stream;
    void *made_ptr;
    int launched;
};

static sb_status open_context(sb_context **out, sb_error *err) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "sim:0";
    options.flags = SB_CONTEXT_NO_HOST_CACHE | SB_CONTEXT_NO_PINNED;
    return sb_context_create(&options, out, err);
}

static void scene_open(struct scene *s) {
    memset(s, 0, sizeof *s);
    assert_ok(open_context(&s->context, &err));
    assert_ok(open_context(&s->fresh, &err));
    assert_ok(sb_mem_create(s->context, LARGE, &s->large, &err));
    assert_ok(sb_sim_stream_create(s->context, &s->stream, &err));
}

static void scene_close(struct scene *s) {
    sb_mem_release(s->large);
    ignore(sb_sim_free(s->context, s->made_ptr, NULL));
    sb_context_release(s->context); /* its streams go with it */
    sb_context_release(s->made);
    sb_context_release(s->fresh);
}

/* --- calls -------------------------------------------------------------------------- */

#define CALL(name, expression)                                                                     \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return expression;                                                                         \
    }

static void count_launch(void *user) {
    ++*(int *)user;
}

CALL(create_context, open_context(&s->made, err))
CALL(create_stream, sb_sim_stream_create(s->context, &s->made_stream, err))
CALL(small_malloc, sb_sim_malloc(s->context, SMALL, &s->made_ptr, err))
CALL(first_malloc, sb_sim_malloc(s->fresh, SMALL, &(void *){NULL}, err)) /* ends with `fresh` */
CALL(large_malloc, sb_sim_malloc(s->context, LARGE, &s->made_ptr, err))
CALL(huge_malloc, sb_sim_malloc(s->context, (size_t)5 << 30, &s->made_ptr, err)) /* 2 ranges */
CALL(launch, sb_sim_launch(s->context, s->stream, count_launch, &s->launched, err))
CALL(touch_host, sb_mem_cpu(s->large, &(const void *){NULL}, err))
CALL(touch_device, sb_mem_gpu(s->large, &(const void *){NULL}, err))
CALL(use_stream, sb_mem_gpu_on(s->large, s->stream, &(const void *){NULL}, err))

static sb_status create_mem(struct scene *s, sb_error *err) {
    sb_mem *mem = NULL;
    sb_status st = sb_mem_create(s->context, SMALL, &mem, err);
    sb_mem_release(mem);
    return st;
}

static const struct {
    const char *name;
    sb_status (*call)(struct scene *, sb_error *);
    int64_t least;  /* requests that it must make */
    bool is_costly; /* left out under valgrind */
} calls[] = {
    {"context_create", create_context, .least = 4},
    {"sim_stream_create", create_stream, .least = 1},
    {"sim_malloc, small", small_malloc, .least = 2},
    {"sim_malloc, first", first_malloc, .least = 4},
    {"sim_malloc, large", large_malloc, .least = 4},
    {"sim_malloc, huge", huge_malloc, .least = 1000, .is_costly = true},
    {"sim_launch", launch, .least = 1},
    {"cpu_data", touch_host, .least = 1},
    {"gpu_data", touch_device, .least = 4},
    {"gpu_data_on", use_stream, .least = 4},
    {"mem_create", create_mem, .least = 1},
};
#define CALLS (sizeof calls / sizeof *calls)

static bool is_unchanged(const struct scene *s) {
    return !s->made && !s->made_stream && !s->made_ptr && !s->launched &&
           sb_mem_head(s->large) == SB_HEAD_UNINITIALIZED;
}

/* Whether there was an n-th request. */
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

TEST(the_nth_request_fails) {
    for (size_t i = 0; i < CALLS; i++) {
        int64_t n = 1, step = 1;
        if (calls[i].is_costly && test_is_quick())
            continue;
        for (; run(i, n); n += step)
            step = n > 50 ? 97 : 1; /* a thousand requests of one kind */
        print_message("  %-20s %d requests\n", calls[i].name, (int)n - 1);
        assert_true(n > calls[i].least);
    }
}
