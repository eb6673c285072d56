/* Tests that saving and opening models use no more stack than io.h documents. */
#include "support.h"

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
    char file[64], other[96];
    sb_model *model;         /* opened from `file`, with an edit in a layer */
    sb_blob *blob, *doubles; /* floats and doubles, as many as in a blob of the model */
    sb_status status;
};

static struct scene scene_of(void) {
    struct scene s = {"/tmp/syncblob-stack-XXXXXX", "", NULL, NULL, NULL, SB_OK};
    struct wire wire = {0}, layer = {0};
    const int64_t shape[] = {5000};
    const int file = mkstemp(s.file);
    assert_true(file >= 0 && close(file) == 0);
    (void)snprintf(s.other, sizeof s.other, "%s.other", s.file);
    wire_text(&layer, 1, "name");
    wire_blob_field(&layer, 7, shape, 1, 1);
    wire_blob_field(&layer, 7, shape, 1, 1);
    wire_message(&wire, 100, &layer);
    file_write_wire(s.file, &wire);
    assert_int_equal(symlink(s.file, s.other), 0);
    wire_free(&layer);
    wire_free(&wire);
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, 1, &s.blob, &err));
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F64, shape, 1, &s.doubles, &err));
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, s.file, 0, NULL, &s.model, &err));
    assert_ok(sb_model_set_blob(s.model, 0, 0, s.blob, 0, &err));
    return s;
}

static void *nothing(void *user) {
    return user;
}

static void *open_model(void *user) {
    struct scene *s = user;
    sb_model *model = NULL;
    s->status = sb_model_open_file(NULL, SB_FORMAT_AUTO, s->file, 0, NULL, &model, NULL);
    sb_model_destroy(model);
    return NULL;
}

static void *load(void *user) {
    struct scene *s = user;
    s->status = sb_model_load_blob(s->model, 0, 1, s->blob, NULL);
    return NULL;
}

static void *load_doubles(void *user) {
    struct scene *s = user;
    s->status = sb_model_load_blob(s->model, 0, 1, s->doubles, NULL);
    return NULL;
}

/* Opens a file that is not a model, so that the library reads its bytes to describe them. */
static void *open_another_kind(void *user) {
    struct scene *s = user;
    sb_model *model = NULL;
    for (sb_format format = SB_FORMAT_AUTO; format <= SB_FORMAT_SOLVERSTATE; format++) {
        const sb_status st = sb_model_open_file(NULL, format, SB_SOURCE_DIR "/dev", 0, NULL, &model,
                                                format % 2 ? &err : NULL);
        if (st == SB_OK || st == SB_ERR_IO)
            s->status = SB_ERR_INTERNAL;
    }
    return NULL;
}

static void *save(void *user) {
    struct scene *s = user;
    s->status = sb_model_save_file(s->model, s->other, NULL);
    return NULL;
}

static void *write_blob(void *user) {
    struct scene *s = user;
    s->status = sb_blob_save_file(s->blob, s->other, SB_PROTO_WRITE_DIFF, NULL);
    return NULL;
}

static void *write_doubles(void *user) {
    struct scene *s = user;
    s->status = sb_blob_save_file(s->doubles, s->other, SB_PROTO_WRITE_DIFF, NULL);
    return NULL;
}

static void *read_blob(void *user) {
    struct scene *s = user;
    s->status = sb_blob_load_file(s->blob, s->other, SB_PROTO_RESHAPE, NULL, NULL);
    return NULL;
}

static void *fail_to_save(void *user) {
    const struct scene *s = user;
    if (sb_model_save_file(s->model, "/not/there", &err) != SB_ERR_IO)
        abort();
    return NULL;
}

/* Limits the size of files, so that a save fails in the middle as on a full disk. */
static void *fail_to_write(void *user) {
    struct scene *s = user;
    struct rlimit unlimited, tight;
    bool set = getrlimit(RLIMIT_FSIZE, &unlimited) == 0;
    tight = (struct rlimit){10000, unlimited.rlim_max};
    set &= setrlimit(RLIMIT_FSIZE, &tight) == 0;
    const sb_status st = sb_model_save_file(s->model, s->other, &err);
    set &= setrlimit(RLIMIT_FSIZE, &unlimited) == 0;
    if (!set || st != SB_ERR_IO || err.device_code != EFBIG)
        abort();
    return NULL;
}

/* Returns how many bytes of its stack a thread writes while it calls `run`. */
static size_t touched(void *(*run)(void *), struct scene *s) {
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;
    unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    assert_true(stack != MAP_FAILED);
    memset(stack, 0xa5, STACK_BYTES);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run, s), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    while (untouched < STACK_BYTES && stack[untouched] == 0xa5)
        untouched++;
    (void)pthread_attr_destroy(&attributes);
    assert_int_equal(munmap(stack, STACK_BYTES), 0);
    return STACK_BYTES - untouched;
}

TEST(files_take_less_stack_than_documented) {
    static const struct {
        const char *name;
        void *(*run)(void *);
    } rows[] = {{"open", open_model},
                {"open another kind", open_another_kind},
                {"load", load},
                {"load doubles", load_doubles},
                {"save", save},
                {"write doubles", write_doubles},
                {"write", write_blob},
                {"read", read_blob},
                {"a save nowhere", fail_to_save},
                {"a full disk", fail_to_write}};
    if (IS_SANITIZED) {
        print_message("skipped: a sanitizer adds stack frames\n");
        test_skip();
    }
    struct scene s = scene_of();
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)touched(rows[i].run, &s); /* the first call also runs the dynamic loader */
        const size_t bytes = touched(rows[i].run, &s) - touched(nothing, &s);
        print_message("  %-18s %zu bytes of stack\n", rows[i].name, bytes);
        assert_int_equal(s.status, SB_OK);
        assert_true(bytes <= PROMISED_BYTES);
    }
    (void)signal(SIGXFSZ, handler);
    sb_model_destroy(s.model);
    sb_blob_destroy(s.blob);
    sb_blob_destroy(s.doubles);
    assert_int_equal(unlink(s.file) | unlink(s.other), 0);
}
