/* Every system call on files failing in turn. The program's own definitions
   of the calls come before those of libc, so that the library calls these. */
#include "support.h"

#include "files.h"
#include "nets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum mode {
    FAILS,       /* with EIO */
    INTERRUPTED, /* with EINTR, once: the call is to be made again */
    SHORT,       /* reads and writes one byte less than asked, where there are two */
    LIES,        /* from this call on, reads find other bytes */
    ENDS,        /* a read finds the end of the file */
    NOTHING,     /* a write takes nothing and says so */
    KILLS        /* the process ends there, by SIGKILL */
};

static struct {
    bool armed;
    int left; /* the call at which this reaches 0 */
    enum mode mode;
    bool fired;
    const char *name;
    const struct wire *lie; /* as large as the file */
} fault;

static void arm(enum mode mode, int n) {
    fault.mode = mode;
    fault.left = n;
    fault.fired = false;
    fault.name = "";
    fault.armed = true;
}

/* Whether it came to the n-th call. */
static bool disarm(void) {
    fault.armed = false;
    return fault.fired;
}

/* Whether the call that is being made is the one. */
static bool fires(const char *name) {
    if (!fault.armed || fault.mode == LIES || --fault.left != 0)
        return false;
    fault.fired = true;
    fault.name = name;
    if (fault.mode == KILLS)
        (void)kill(getpid(), SIGKILL);
    return true;
}

static bool fails(const char *name) {
    const bool fired = fires(name);
    if (fired)
        errno = fault.mode == INTERRUPTED ? EINTR : EIO;
    return fired;
}

static ssize_t lie(void *buffer, size_t size, off_t offset) {
    size_t left = fault.lie->size - (size_t)offset;
    size = size < left ? size : left;
    memcpy(buffer, fault.lie->bytes + offset, size);
    return (ssize_t)size;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset) {
    if (fault.armed && fault.mode == LIES)
        return --fault.left <= 0 ? lie(buffer, size, offset)
                                 : syscall(SYS_pread64, fd, buffer, size, offset);
    if (fires("pread")) {
        if (fault.mode == ENDS) {
            errno = EINTR; /* of an earlier call */
            return 0;
        }
        if (fault.mode == SHORT && size > 1)
            return syscall(SYS_pread64, fd, buffer, size - 1, offset);
        errno = fault.mode == INTERRUPTED ? EINTR : EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, buffer, size, offset);
}

ssize_t write(int fd, const void *buffer, size_t size) {
    if (fires("write")) {
        if (fault.mode == SHORT && size > 1)
            return syscall(SYS_write, fd, buffer, size - 1);
        if (fault.mode == NOTHING)
            return 0;
        errno = fault.mode == INTERRUPTED ? EINTR : EIO;
        return -1;
    }
    return syscall(SYS_write, fd, buffer, size);
}

int open(const char *path, int flags, ...) {
    if (fails("open"))
        return -1;
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    if (fails("openat"))
        return -1;
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

/* The call of fsync at which this reaches 0 says EINVAL. */
static int refused_fsync;

int fsync(int fd) {
    if (refused_fsync > 0 && --refused_fsync == 0) {
        errno = EINVAL;
        return -1;
    }
    (void)fd; /* no test here is about the disk */
    return fails("fsync") ? -1 : 0;
}

int fchmod(int fd, mode_t mode) {
    return fails("fchmod") ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int fchown(int fd, uid_t owner, gid_t group) {
    return fails("fchown") ? -1 : (int)syscall(SYS_fchown, fd, owner, group);
}

/* Random numbers are all 0. */
static bool no_luck;

ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
    if (no_luck) {
        memset(buffer, 0, size);
        return (ssize_t)size;
    }
    return fails("getrandom") ? -1 : syscall(SYS_getrandom, buffer, size, flags);
}

ssize_t readlinkat(int folder, const char *path, char *buffer, size_t size) {
    return fails("readlinkat") ? -1 : syscall(SYS_readlinkat, folder, path, buffer, size);
}

int unlinkat(int folder, const char *path, int flags) {
    return fails("unlinkat") ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size) {
    return fails("lgetxattr") ? -1 : syscall(SYS_lgetxattr, path, name, value, size);
}

int fremovexattr(int fd, const char *name) {
    return fails("fremovexattr") ? -1 : (int)syscall(SYS_fremovexattr, fd, name);
}

int renameat(int from, const char *old, int to, const char *new) {
    if (fails("renameat"))
        return -1;
    return (int)syscall(SYS_renameat, from, old, to, new);
}

/* Closes in any case, as the kernel does. */
int close(int fd) {
    int closed = (int)syscall(SYS_close, fd);
    return fails("close") ? -1 : closed;
}

/* ThreadSanitizer must see every mapping. */
#if !defined(__SANITIZE_THREAD__)
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && fails("mmap"))
        return MAP_FAILED;
#ifdef __s390x__ /* whose call takes the place of its arguments */
    const long arguments[] = {(long)address, (long)size, protection, flags, fd, offset};
    return (void *)syscall(SYS_mmap, arguments);
#else
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
#endif
}
#endif

#if defined(SYS_newfstatat)
int fstat(int fd, struct stat *out) {
    if (fails("fstat"))
        return -1;
    return (int)syscall(SYS_newfstatat, fd, "", out, 0x1000 /* AT_EMPTY_PATH */);
}

int fstatat(int directory, const char *path, struct stat *out, int flags) {
    if (fails("fstatat"))
        return -1;
    return (int)syscall(SYS_newfstatat, directory, path, out, flags);
}
#endif

/* --- scenes ------------------------------------------------------------------------------ */

static const int64_t large[] = {20000}, two[] = {2}, unpacked[] = {10000};

struct scene {
    char folder[64], path[96], target[96], mean[96];
    sb_model *model; /* opened from `path`, with an edit and an added layer */
    sb_model *made;
    sb_blob *blob, *single; /* of two values; doubles, floats */
};

static void put_unpacked(struct wire *wire, uint32_t field) {
    struct wire blob = {0}, shape = {0};
    for (int64_t i = 0; i < *unpacked; i++)
        wire_float(&blob, 5, (float)i);
    wire_numbers(&shape, 1, unpacked, 1);
    wire_message(&blob, 7, &shape);
    wire_message(wire, field, &blob);
    wire_free(&blob);
    wire_free(&shape);
}

/* A solver state, so that one file serves all models; its first blob is larger than any window, and
   so is its third, of values one by one. */
static void scene_open(struct scene *s) {
    struct wire wire = {0};
    memset(s, 0, sizeof *s);
    strcpy(s->folder, "/tmp/syncblob-io-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    (void)snprintf(s->path, sizeof s->path, "%s/state", s->folder);
    (void)snprintf(s->target, sizeof s->target, "%s/target", s->folder);
    (void)snprintf(s->mean, sizeof s->mean, "%s/mean", s->folder);
    wire_blob(&wire, large, 1, 1);
    file_write(s->mean, wire.bytes, wire.size);
    wire.size = 0;
    wire_number(&wire, 1, 5);
    wire_text(&wire, 2, "net");
    wire_blob_field(&wire, 3, large, 1, 1);
    wire_blob_field(&wire, 3, two, 1, 9);
    put_unpacked(&wire, 3);
    file_write(s->path, wire.bytes, wire.size);
    file_write(s->target, "old", 3);
    bool given = chown(s->target, 12345, 23456) == 0; /* by root; then they are to be kept */
    (void)given;
    wire_free(&wire);
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F64, two, 1, &s->blob, &err));
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, two, 1, &s->single, &err));
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, s->path, 0, NULL, &s->model, &err));
    assert_ok(sb_model_set_blob(s->model, SB_NO_LAYER, 1, s->blob, 0, &err));
}

static int files_in(const char *folder) {
    int files = -2; /* the folder itself and the one above */
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    while (readdir(listing))
        files++;
    (void)closedir(listing);
    return files;
}

static void scene_close(struct scene *s) {
    sb_model_destroy(s->model);
    sb_model_destroy(s->made);
    sb_blob_destroy(s->blob);
    sb_blob_destroy(s->single);
    assert_int_equal(files_in(s->folder), 3); /* nothing was left beside them */
    (void)unlink(s->path);
    (void)unlink(s->target);
    (void)unlink(s->mean);
    assert_int_equal(rmdir(s->folder), 0);
}

static int open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#define CALL(name, expression)                                                                     \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return expression;                                                                         \
    }

CALL(open_file, sb_model_open_file(NULL, SB_FORMAT_AUTO, s->path, 0, NULL, &s->made, err))
CALL(open_mapped,
     sb_model_open_file(NULL, SB_FORMAT_AUTO, s->path, SB_OPEN_MAPPED, NULL, &s->made, err))
CALL(load_blob, sb_model_load_blob(s->model, SB_NO_LAYER, 0, s->blob, err))
CALL(load_single, sb_model_load_blob(s->model, SB_NO_LAYER, 0, s->single, err))
CALL(load_unpacked, sb_model_load_blob(s->model, SB_NO_LAYER, 2, s->single, err))
CALL(model_size, sb_model_size(s->model, &(size_t){0}, err))

static sb_status blob_info(struct scene *s, sb_error *err) {
    sb_blob_info info = SB_BLOB_INFO_INIT;
    return sb_model_blob_info(s->model, SB_NO_LAYER, 0, &info, err);
}

static sb_status save(struct scene *s, sb_error *err) {
    static unsigned char buffer[160000];
    return sb_model_save(s->model, buffer, sizeof buffer, NULL, err);
}

CALL(read_values, sb_model_read_values(s->model, SB_NO_LAYER, 0, SB_DATA, 1, 1, SB_DTYPE_F64,
                                       &(double){0}, sizeof(double), err))

static sb_status layer_message(struct scene *s, sb_error *err) {
    unsigned char buffer[256];
    return sb_model_layer_message(s->model, SB_NO_LAYER, buffer, sizeof buffer, NULL, err);
}

CALL(save_file, sb_model_save_file(s->model, s->target, err))

static sb_status lend_nothing(void *user, int64_t layer, int64_t index, const sb_blob **out,
                              sb_error *err) {
    (void)user, (void)layer, (void)index, (void)out, (void)err;
    abort(); /* nothing was announced */
}

CALL(save_file_from, sb_model_save_file_from(s->model, s->target, lend_nothing, NULL, err))
CALL(write_file, sb_blob_save_file(s->blob, s->target, 0, err))

CALL(read_file, sb_blob_load_file(s->blob, s->mean, SB_PROTO_RESHAPE, NULL, err))

static sb_status open_descriptor(struct scene *s, sb_error *err) {
    sb_source source = SB_SOURCE_INIT;
    sb_status st = SB_ERR_IO;
    int fd;
    do
        fd = open(s->path, O_RDONLY);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0)
        st = sb_source_of_descriptor(fd, SB_SOURCE_CLOSES, &source, err);
    else
        ignore(sb_error_fill(err, st, errno, NULL));
    if (st == SB_OK)
        st = sb_model_open_source(NULL, SB_FORMAT_AUTO, &source, NULL, NULL, &s->made, err);
    if (st != SB_OK && fd >= 0)
        (void)close(fd);
    return st;
}

enum { WRITE_FILE = 13, CALLS = 15 };

static const struct {
    const char *name;
    sb_status (*call)(struct scene *, sb_error *);
    sb_status result;
    bool writes;
} calls[CALLS] = {
    {"open", open_file, SB_OK, false},
    {"open mapped", open_mapped, SB_OK, false},
    {"open descriptor", open_descriptor, SB_OK, false},
    {"load_blob", load_blob, SB_OK, false},
    {"load_blob, as it is", load_single, SB_OK, false},
    {"load_blob, unpacked", load_unpacked, SB_OK, false},
    {"size", model_size, SB_OK, false},
    {"blob_info", blob_info, SB_OK, false},
    {"layer_message", layer_message, SB_OK, false},
    {"read_values", read_values, SB_OK, false},
    {"save", save, SB_OK, false},
    {"save_file", save_file, SB_OK, true},
    {"save_file_from", save_file_from, SB_OK, true},
    {"write_file", write_file, SB_OK, true},
    {"read_file", read_file, SB_OK, false},
};

/* What the call must have left as it was. */
static void check_failure(const struct scene *s, size_t call, const sb_error *err, int n) {
    bool in_place = calls[call].writes && !file_holds(s->target, "old");
    bool told = strstr(err->message, "is in place") != NULL;
    if (err->code != SB_ERR_IO || in_place != told)
        fail_with("%s, call %d (%s): %s", calls[call].name, n, fault.name, err->message);
    if (fault.mode == ENDS && strcmp(fault.name, "pread") == 0)
        assert_non_null(strstr(err->message, "changed while it was read"));
    if (strcmp(fault.name, "fstat") == 0)
        assert_null(strstr(err->message, "changed while"));
    if (strstr(err->message, "\"cannot") || strstr(err->message, "\"is in place"))
        fail_with("%s names no file: %s", calls[call].name, err->message);
    assert_int_equal(sb_blob_count(s->blob), 2);
    assert_int_equal(sb_blob_count(s->single), 2);
    assert_null(s->made);
}

static void run(size_t call, enum mode mode, int n, bool *fired) {
    struct scene s;
    sb_error err = {.code = SB_OK};
    scene_open(&s);
    int before = open_files();
    arm(mode, n);
    sb_status st = calls[call].call(&s, &err);
    *fired = disarm();
    bool harmless = strcmp(fault.name, "close") == 0 ||
                    strcmp(fault.name, "fchown") == 0; /* kept where the process may */
    bool resumes =
        mode == INTERRUPTED ||
        (mode == SHORT && (strcmp(fault.name, "pread") == 0 || strcmp(fault.name, "write") == 0));
    if (st == SB_OK && *fired && !harmless && !resumes)
        fail_with("%s, call %d (%s) failed unseen", calls[call].name, n, fault.name);
    if (st != SB_OK && *fired) {
        if (resumes)
            fail_with("%s, call %d (%s): %s", calls[call].name, n, fault.name, err.message);
        check_failure(&s, call, &err, n);
        assert_int_equal(open_files(), before);
        assert_ok(calls[call].call(&s, &err));
    } else {
        assert_int_equal(st, calls[call].result);
    }
    scene_close(&s);
}

/* At each of its system calls in turn; how many it makes. */
static int run_all(size_t call, enum mode mode) {
    int n = 0;
    for (bool fired = true; fired;)
        run(call, mode, ++n, &fired);
    return n - 1;
}

TEST(test_every_call_fails_in_turn) {
    for (size_t call = 0; call < CALLS; call++) {
        int made = run_all(call, FAILS);
        print_message("  %-20s %d system calls\n", calls[call].name, made);
        assert_true(made > 0);
    }
}

static bool target_is_whole(struct scene *s, size_t call);

/* The same for a file that is not there yet, behind a link. */
TEST(test_a_link_to_nothing_stays_one) {
    bool fired = true;
    for (int n = 1; fired; n++) {
        struct scene s;
        sb_error err = {.code = SB_OK};
        char made[128];
        scene_open(&s);
        (void)snprintf(made, sizeof made, "%s/made", s.folder);
        assert_int_equal(unlink(s.target), 0);
        assert_int_equal(symlink("made", s.target), 0);
        arm(FAILS, n);
        sb_status st = write_file(&s, &err);
        fired = disarm();
        bool in_place = st == SB_OK || strstr(err.message, "is in place") != NULL;
        if (st == SB_OK && fired && strcmp(fault.name, "close") != 0)
            fail_with("call %d (%s) failed unseen", n, fault.name);
        assert_int_equal(access(made, F_OK) == 0, in_place);
        assert_int_equal(files_in(s.folder), in_place ? 4 : 3);
        assert_int_equal(syscall(SYS_readlinkat, AT_FDCWD, s.target, made, sizeof made), 4);
        assert_ok(write_file(&s, &err));
        assert_true(target_is_whole(&s, WRITE_FILE));
        (void)snprintf(made, sizeof made, "%s/made", s.folder);
        assert_int_equal(unlink(made), 0);
        scene_close(&s);
    }
}

/* Another's file of the name that is drawn is neither used nor removed. */
TEST_ON(scene, test_a_name_that_is_taken_is_left_alone) {
    char taken[128];
    (void)snprintf(taken, sizeof taken, "%s/.syncblob-0000000000000000.tmp", f->folder);
    file_write(taken, "left", 4);
    no_luck = true;
    sb_status st = write_file(f, &err);
    no_luck = false;
    assert_int_equal(st, SB_ERR_IO);
    assert_int_equal(err.device_code, EEXIST);
    assert_true(file_holds(f->target, "old"));
    assert_ok(write_file(f, &err));
    struct wire left = wire_of_file(taken);
    assert_true(left.size == 4 && memcmp(left.bytes, "left", 4) == 0);
    wire_free(&left);
    assert_int_equal(unlink(taken), 0);
}

TEST(test_interrupted_and_short_calls_are_resumed) {
    for (size_t call = 0; call < CALLS; call++)
        for (enum mode mode = INTERRUPTED; mode <= SHORT; mode++)
            if (calls[call].call != open_mapped) /* which has no loop */
                (void)run_all(call, mode);
}

/* No system does so, but waiting for ever would be the worst answer. */
TEST(test_a_write_that_takes_nothing_is_an_error) {
    for (size_t call = 0; call < CALLS; call++)
        if (calls[call].writes)
            (void)run_all(call, NOTHING);
}

static void remove_leftovers(const char *folder) {
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;)
        if (strncmp(entry->d_name, ".syncblob-", 10) == 0)
            assert_int_equal(unlinkat(dirfd(listing), entry->d_name, 0), 0);
    (void)closedir(listing);
}

/* Whether a child that makes the call was killed at its n-th system call. One
   that was not ends by a signal too: at an exit, valgrind counts what the parent
   still owns as leaks. */
static bool killed_at(size_t call, int n, struct scene *s) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        arm(KILLS, n);
        raise(calls[call].call(s, NULL) == SB_OK ? SIGTERM : SIGABRT);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_not_equal(WTERMSIG(status), SIGABRT);
    return WTERMSIG(status) == SIGKILL;
}

static bool target_is_whole(struct scene *s, size_t call) {
    if (calls[call].call == write_file)
        return sb_blob_load_file(s->single, s->target, SB_PROTO_RESHAPE, NULL, &err) == SB_OK;
    sb_model_destroy(s->made);
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, s->target, 0, NULL, &s->made, &err));
    return sb_model_load_blob(s->made, SB_NO_LAYER, 2, s->single, &err) == SB_OK &&
           sb_blob_count(s->single) == *unpacked;
}

/* What is left of a killed writer is one file of its own beside the target. */
TEST(test_a_killed_writer_leaves_the_old_file_or_the_new_one) {
    for (size_t call = 0; call < CALLS; call++) {
        bool killed = calls[call].writes;
        for (int n = 1; killed; n++) {
            struct scene s;
            scene_open(&s);
            killed = killed_at(call, n, &s);
            assert_true(file_holds(s.target, "old") ? killed : target_is_whole(&s, call));
            assert_true(files_in(s.folder) <= (killed ? 4 : 3));
            assert_ok(calls[call].call(&s, &err)); /* what is left is not in the way */
            assert_true(target_is_whole(&s, call));
            remove_leftovers(s.folder);
            scene_close(&s);
        }
    }
}

/* A file system that cannot bring a folder to the disk says EINVAL. */
TEST_ON(scene, test_a_folder_that_cannot_be_synced_is_no_failure) {
    refused_fsync = 2; /* the first is the file's */
    assert_ok(write_file(f, &err));
    assert_int_equal(refused_fsync, 0);
    assert_true(target_is_whole(f, WRITE_FILE));
    refused_fsync = 1;
    assert_status(SB_ERR_IO, write_file(f, &err));
    assert_int_equal(err.device_code, EINVAL);
}

TEST(test_the_error_may_be_null) {
    for (size_t call = 0; call < CALLS; call++) {
        struct scene s;
        scene_open(&s);
        arm(FAILS, 1);
        assert_int_equal(calls[call].call(&s, NULL), SB_ERR_IO);
        (void)disarm();
        scene_close(&s);
    }
}

TEST(test_a_file_that_ends_early_is_an_error) {
    for (size_t call = 0; call < CALLS; call++)
        (void)run_all(call, ENDS);
}

TEST_ON(scene, test_the_bytes_are_right_after_resumed_calls) {
    const void *p;
    for (int n = 1; n < 12; n++) {
        arm(n % 2 ? SHORT : INTERRUPTED, n);
        sb_status st = load_blob(f, &err);
        (void)disarm();
        if (st != SB_OK)
            continue; /* a call that cannot be short */
        assert_ok(sb_blob_cpu(f->blob, SB_DATA, &p, &err));
        for (int i = 0; i < 20000; i++)
            assert_true(((const double *)p)[i] == 1 + (double)i);
    }
}

/* --- storage that others use ----------------------------------------------------------------- */

CALL(read_one_blob, sb_blob_load_file(s->blob, s->target, SB_PROTO_RESHAPE, NULL, err))

static const void *host_bytes(const sb_blob *blob) {
    const void *p = NULL;
    assert_ok(sb_blob_cpu(blob, SB_DATA, &p, &err));
    return p;
}

/* Reads into `blob`, which has room and a sharer, failing at the n-th system call; whether there
   was one. */
static bool read_shared(sb_status (*call)(struct scene *, sb_error *), struct scene *s,
                        sb_blob *blob, enum mode mode, int n) {
    sb_blob *sharer;
    const size_t size = (size_t)sb_blob_count(blob) * sb_dtype_size(sb_blob_dtype(blob));
    unsigned char *before = malloc(size);
    assert_non_null(before);
    assert_ok(sb_blob_create_shaped(NULL, sb_blob_dtype(blob), large, 1, &sharer, &err));
    assert_ok(sb_blob_share(sharer, SB_DATA, blob, &err));
    const void *bytes = host_bytes(sharer);
    memcpy(before, bytes, size);
    arm(mode, n);
    sb_status st = call(s, &err);
    bool fired = disarm();
    assert_ptr_equal(host_bytes(blob), bytes);
    assert_ptr_equal(host_bytes(sharer), bytes);
    if (memcmp(before, bytes, size) != 0 && st != SB_OK)
        fail_with("a sharer sees a read that failed at call %d (%s)", n, fault.name);
    sb_blob_destroy(sharer);
    free(before);
    return fired;
}

TEST(test_a_read_that_fails_leaves_what_sharers_see) {
    static sb_status (*const reads[])(struct scene *, sb_error *) = {load_blob, load_single,
                                                                     load_unpacked, read_one_blob};
    for (size_t i = 0; i < 2 * sizeof reads / sizeof *reads; i++) {
        sb_status (*call)(struct scene *, sb_error *) = reads[i / 2];
        struct scene s;
        void *p;
        scene_open(&s);
        sb_blob *blob = call == load_blob || call == read_one_blob ? s.blob : s.single;
        assert_ok(sb_blob_reshape(s.blob, large, 1, NULL, &err));
        assert_ok(sb_blob_save_file(s.blob, s.target, 0, &err));
        bool fired = true;
        for (int n = 1; fired; n++) {
            assert_ok(sb_blob_reshape(blob, large, 1, NULL, &err));
            assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &p, &err));
            memset(p, 0x5a, (size_t)*large * sb_dtype_size(sb_blob_dtype(blob)));
            fired = read_shared(call, &s, blob, i % 2 ? ENDS : FAILS, n);
        }
        scene_close(&s);
    }
}

/* --- bytes that change between one look and the next, their file's time unchanged ------------ */

enum { IMAGES = 13, IMAGE_BYTES = 40000 };

/* Files of one size that differ in whatever an index counts. */
static struct wire image(int kind) {
    struct wire wire = {0}, layer = {0}, blob = {0};
    static char name[30000];
    static const float zeros[2500];
    const int64_t dims[] = {5000};
    switch (kind) {
    case 0: /* many layers */
        for (int i = 0; i < 3000; i++)
            wire_text(&wire, 100, "\x0a\x01n");
        break;
    case 1: /* one layer, many blobs */
        for (int i = 0; i < 3000; i++)
            wire_blob_field(&layer, 7, two, 0, 1);
        break;
    case 2: /* a long name */
        memset(name, 'n', sizeof name);
        wire_bytes(&layer, 1, name, sizeof name);
        wire_bytes(&wire, 1, name, 3000);
        break;
    case 3: /* a large blob */
        wire_blob_field(&layer, 7, dims, 1, 1);
        break;
    case 4: /* the same blob with fewer values */
        wire_floats(&blob, 5, NULL, 0);
        wire_bytes(&blob, 12, name, 20004); /* exactly as long */
        wire_message(&layer, 7, &blob);
        break;
    case 5: /* V1 layers of types without names */
        for (int i = 0; i < 3000; i++)
            wire_text(&wire, 2, "\x28\xff\xff\xff\xff\x07");
        break;
    case 6: /* half of the values, in a message as long */
        wire_floats(&blob, 5, zeros, 2500);
        wire_bytes(&blob, 12, name, 10010);
        wire_text(&blob, 7, "\x08\xc4\x13"); /* beyond the reader's window */
        wire_message(&layer, 7, &blob);
        break;
    case 7: /* numbers of field 1, wherever one begins to read */
        memset(name, 1 << 3, sizeof name);
        wire_raw(&wire, name, sizeof name);
        break;
    case 9:
    case 11: /* raw halves */
    case 10: /* more of them in the same place */
        wire_number(&blob, 10, 2);
        wire_bytes(&blob, 12, zeros, kind == 10 ? 10000 : 5000);
        wire_bytes(&blob, 14, name, 20000);
        wire_text(&blob, 7, "\x08\xc4\x13");
        wire_message(&layer, 7, &blob);
        break;
    case 12: /* single floats there */
        wire_number(&blob, 10, 2);
        for (int i = 0; i < 5000; i++)
            wire_float(&blob, 12, 1);
        wire_message(&layer, 7, &blob);
        break;
    default: /* unpacked values */
        for (int i = 0; i < 5000; i++)
            wire_float(&blob, 5, 1);
        wire_text(&blob, 7, "\x08\x88\x27");
        wire_message(&layer, 7, &blob);
        break;
    }
    if (layer.size > 0)
        wire_message(&wire, 100, &layer);
    wire_tag(&wire, 2000, 2);
    wire_overlong(&wire, IMAGE_BYTES - wire.size - 5, 5);
    char *rest = calloc(1, IMAGE_BYTES);
    wire_raw(&wire, rest, IMAGE_BYTES - wire.size);
    free(rest);
    wire_free(&layer);
    wire_free(&blob);
    return wire;
}

static bool is_fair(sb_status st) {
    return st == SB_OK || st == SB_ERR_IO || (st <= SB_ERR_MALFORMED && st >= SB_ERR_DATA_LIMIT);
}

/* All that there is to do with a model, the n-th read and later ones finding `other`; whether
   there were as many. */
static bool use_while_changing(const char *path, const struct wire *other, int n) {
    sb_model *model = NULL;
    sb_blob *blob;
    size_t size = 1;
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, two, 1, &blob, &err));
    fault.lie = other;
    arm(LIES, n);
    sb_status st = sb_model_open_file(NULL, SB_FORMAT_CAFFEMODEL, path, 0, NULL, &model, &err);
    assert_true(is_fair(st));
    if (st == SB_OK && num_blobs(model, 0) > 0) {
        assert_true(is_fair(sb_model_load_blob(model, 0, 0, blob, &err)));
        assert_true(is_fair(sb_model_set_blob(model, 0, 0, blob, 0, &err)));
    }
    if (st == SB_OK) {
        st = sb_model_size(model, &size, &err);
        assert_true(is_fair(st));
        /* A buffer of exactly that size; the model may have grown in its eyes since. */
        unsigned char *buffer = malloc(size);
        if (st == SB_OK)
            st = sb_model_save(model, buffer, size, NULL, &err);
        assert_true(is_fair(st) || st == SB_ERR_BUFFER_TOO_SMALL);
        free(buffer);
    }
    (void)disarm();
    sb_model_destroy(model);
    sb_blob_destroy(blob);
    return fault.left <= 0;
}

TEST(test_bytes_that_change_are_survived) {
    for (int i = 0; i < IMAGES; i++) {
        char path[] = "/tmp/syncblob-lies-XXXXXX";
        struct wire before = image(i);
        assert_int_equal(before.size, IMAGE_BYTES);
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        file_write(path, before.bytes, before.size);
        for (int k = 0; k < (test_is_quick() ? 1 : test_is_full() ? IMAGES : 5); k++) {
            struct wire after = image((i + k + 1) % IMAGES);
            for (int n = 1; use_while_changing(path, &after, n); n++)
                ;
            wire_free(&after);
        }
        wire_free(&before);
        (void)unlink(path);
    }
}
