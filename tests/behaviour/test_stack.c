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

enum call {
    NO_CALL,
    OPEN,
    OPEN_ANOTHER_KIND, /* the library reads the file's bytes to describe them in the error */
    LOAD,
    LOAD_DOUBLES,
    SAVE,
    WRITE_DOUBLES,
    WRITE,
    READ,
    SAVE_NOWHERE,
    SAVE_ON_A_FULL_DISK
};

struct scene {
    const char *file, *other;
    sb_model *model;         /* opened from `file`, with an edit in a layer */
    sb_blob *blob, *doubles; /* floats and doubles, as many as in a blob of the model */
    enum call call;
    sb_status status; /* the status of the call */
    sb_error err;
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

static sb_status open_another_kind(sb_error *err) {
    for (sb_format format = SB_FORMAT_AUTO; format <= SB_FORMAT_SOLVERSTATE; format++) {
        sb_model *model;
        const sb_status st = sb_model_open_file(NULL, format, SB_SOURCE_DIR "/dev", 0, NULL, &model,
                                                format % 2 ? err : NULL);
        if (st == SB_OK || st == SB_ERR_IO)
            return SB_ERR_INTERNAL;
    }
    return SB_OK;
}

/* Limits the size of files, so that a save fails in the middle as on a full disk. */
static sb_status save_on_a_full_disk(struct scene *s) {
    struct rlimit unlimited;
    bool set = getrlimit(RLIMIT_FSIZE, &unlimited) == 0;
    set &= setrlimit(RLIMIT_FSIZE, &(struct rlimit){10000, unlimited.rlim_max}) == 0;
    const sb_status st = sb_model_save_file(s->model, s->other, &s->err);
    set &= setrlimit(RLIMIT_FSIZE, &unlimited) == 0;
    return set ? st : SB_ERR_INTERNAL;
}

static sb_status make(struct scene *s) {
    sb_model *model = NULL;
    sb_status st;
    switch (s->call) {
    case OPEN:
        st = sb_model_open_file(NULL, SB_FORMAT_AUTO, s->file, 0, NULL, &model, NULL);
        sb_model_destroy(model);
        return st;
    case OPEN_ANOTHER_KIND:
        return open_another_kind(&s->err);
    case LOAD:
        return sb_model_load_blob(s->model, 0, 1, s->blob, NULL);
    case LOAD_DOUBLES:
        return sb_model_load_blob(s->model, 0, 1, s->doubles, NULL);
    case SAVE:
        return sb_model_save_file(s->model, s->other, NULL);
    case WRITE_DOUBLES:
        return sb_blob_save_file(s->doubles, s->other, SB_PROTO_WRITE_DIFF, NULL);
    case WRITE:
        return sb_blob_save_file(s->blob, s->other, SB_PROTO_WRITE_DIFF, NULL);
    case READ:
        return sb_blob_load_file(s->blob, s->other, SB_PROTO_RESHAPE, NULL, NULL);
    case SAVE_NOWHERE:
        return sb_model_save_file(s->model, "/not/there", &s->err);
    case SAVE_ON_A_FULL_DISK:
        return save_on_a_full_disk(s);
    default:
        return SB_OK;
    }
}

static void *make_on_thread(void *user) {
    struct scene *s = user;
    s->status = make(s);
    return NULL;
}

/* Returns how many bytes of its stack a thread writes while it makes the call. */
static size_t touched(struct scene *s, enum call call) {
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;
    unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    assert_true(stack != MAP_FAILED);
    memset(stack, 0xa5, STACK_BYTES);
    s->call = call;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, make_on_thread, s), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    while (untouched < STACK_BYTES && stack[untouched] == 0xa5)
        untouched++;
    (void)pthread_attr_destroy(&attributes);
    assert_int_equal(munmap(stack, STACK_BYTES), 0);
    return STACK_BYTES - untouched;
}

TEST_ON(rig, files_take_less_stack_than_documented) {
    static const char *const names[] = {
        [OPEN] = "open",
        [OPEN_ANOTHER_KIND] = "open another kind",
        [LOAD] = "load",
        [LOAD_DOUBLES] = "load doubles",
        [SAVE] = "save",
        [WRITE_DOUBLES] = "write doubles",
        [WRITE] = "write",
        [READ] = "read",
        [SAVE_NOWHERE] = "a save nowhere",
        [SAVE_ON_A_FULL_DISK] = "a full disk",
    };
    if (IS_SANITIZED) {
        print_message("skipped: a sanitizer adds stack frames\n");
        test_skip();
    }
    struct scene s = scene_of(f);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (enum call call = OPEN; call <= SAVE_ON_A_FULL_DISK; call++) {
        (void)touched(&s, call); /* the first call also runs the dynamic loader */
        const size_t made = touched(&s, call);
        assert_int_equal(s.status, call >= SAVE_NOWHERE ? SB_ERR_IO : SB_OK);
        const size_t bytes = made - touched(&s, NO_CALL);
        print_message("  %-18s %zu bytes of stack\n", names[call], bytes);
        assert_true(bytes <= PROMISED_BYTES);
    }
    assert_int_equal(s.err.device_code, EFBIG);
    (void)signal(SIGXFSZ, handler);
    sb_model_destroy(s.model);
}
