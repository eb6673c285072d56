/* Tests that saving and opening models use no more stack than io.h documents. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 20, PROMISED_BYTES = 24 << 10 };

struct scene {
    const char *file, *other;
    sb_model *model; /* opened from `file`, with an edit in a layer */
    sb_blob *blob, *doubles;
    sb_error err;
    bool makes_calls, passed;
};

static struct scene scene_of(struct rig *rig) {
    struct scene s = {.file = rig_path(rig, "file"), .other = rig_path(rig, "other")};
    const struct wire wire = wire_of("100:{1:'name' 7:{[5000]1} 7:{[5000]1}}");
    const int64_t shape[] = {5000};
    file_write_wire(s.file, &wire);
    assert_int_equal(symlink(s.file, s.other), 0);
    s.blob = test_blob(NULL, SB_DTYPE_F32, 1, shape);
    s.doubles = test_blob(NULL, SB_DTYPE_F64, 1, shape);
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, s.file, 0, NULL, &s.model, &err));
    assert_ok(sb_model_set_blob(s.model, 0, 0, s.blob, 0, &err));
    return s;
}

static bool describes_another_kind(struct scene *s) {
    bool passed = true;
    for (sb_format format = SB_FORMAT_AUTO; format <= SB_FORMAT_SOLVERSTATE; format++) {
        sb_model *model;
        const sb_status st = sb_model_open_file(NULL, format, SB_SOURCE_DIR "/dev", 0, NULL, &model,
                                                format % 2 ? &s->err : NULL);
        passed &= st != SB_OK && st != SB_ERR_IO;
    }
    return passed;
}

static bool fails_on_a_full_disk(struct scene *s) {
    struct rlimit unlimited;
    bool set = getrlimit(RLIMIT_FSIZE, &unlimited) == 0;
    set &= setrlimit(RLIMIT_FSIZE, &(struct rlimit){10000, unlimited.rlim_max}) == 0;
    const sb_status st = sb_model_save_file(s->model, s->other, &s->err);
    set &= setrlimit(RLIMIT_FSIZE, &unlimited) == 0;
    return set && st == SB_ERR_IO && s->err.device_code == EFBIG;
}

static void *make_calls(void *user) {
    struct scene *s = user;
    sb_model *model = NULL;
    if (!s->makes_calls)
        return NULL;
    s->passed =
        sb_model_open_file(NULL, SB_FORMAT_AUTO, s->file, 0, NULL, &model, NULL) == SB_OK &&
        describes_another_kind(s) && sb_model_load_blob(s->model, 0, 1, s->blob, NULL) == SB_OK &&
        sb_model_load_blob(s->model, 0, 1, s->doubles, NULL) == SB_OK &&
        sb_model_save_file(s->model, s->other, NULL) == SB_OK &&
        sb_blob_save_file(s->doubles, s->other, SB_PROTO_WRITE_DIFF, NULL) == SB_OK &&
        sb_blob_save_file(s->blob, s->other, SB_PROTO_WRITE_DIFF, NULL) == SB_OK &&
        sb_blob_load_file(s->blob, s->other, SB_PROTO_RESHAPE, NULL, NULL) == SB_OK &&
        sb_model_save_file(s->model, "/not/there", &s->err) == SB_ERR_IO && fails_on_a_full_disk(s);
    sb_model_destroy(model);
    return NULL;
}

/* Returns how many bytes of a new thread's stack the thread writes. */
static size_t touched(struct scene *s, bool makes_calls) {
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;
    unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    assert_true(stack != MAP_FAILED);
    memset(stack, 0xa5, STACK_BYTES);
    s->makes_calls = makes_calls;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, make_calls, s), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    while (untouched < STACK_BYTES && stack[untouched] == 0xa5)
        untouched++;
    (void)pthread_attr_destroy(&attributes);
    assert_int_equal(munmap(stack, STACK_BYTES), 0);
    return STACK_BYTES - untouched;
}

TEST_ON(rig, files_take_less_stack_than_documented) {
    if (IS_SANITIZED) {
        print_message("skipped: a sanitizer adds stack frames\n");
        test_skip();
    }
    struct scene s = scene_of(f);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    (void)touched(&s, true); /* the first calls also run the dynamic loader */
    const size_t made = touched(&s, true);
    assert_true(s.passed);
    const size_t bytes = made - touched(&s, false);
    print_message("%zu bytes of stack\n", bytes);
    assert_true(bytes <= PROMISED_BYTES);
    (void)signal(SIGXFSZ, handler);
    sb_model_destroy(s.model);
}
