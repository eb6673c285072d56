/* A file that is replaced while a call to the system fails: the old bytes stay or the new ones are
   whole, the failure is told by its number and its step, and nothing is left beside the file. */
#include "support.h"

#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST "system.posix_acl_access"

/* The linker (--wrap) leads every reference in this program to __wrap_X; what these call is the
   function itself. */
enum { SHORT = -1, NOTHING = -2 }; /* for `error`: what write does that is none */

static struct {
    const char *function; /* NULL: none fails */
    int nth, error;
    int calls, last;                     /* of it; the last one that fails */
    int open;                            /* descriptors: opened, and not closed */
    bool closed_twice, inherited, shown; /* a descriptor, by another program, to another user */
} fault;

/* A file system that lacks something, and random failures of any call: errors at random. */
static struct {
    bool armed;
    uint64_t random;
    int one_in;           /* of so many calls one fails */
    const char *lacks[4]; /* these fail always, */
    int with;             /* with this */
    bool one_mode;        /* every file has the mode 0777 */
    bool rename_is_lost;  /* a rename that fails was made half of the times */
    int failed_unlinks;   /* calls that failed */
    bool lost;            /* a rename that was made was reported as failed */
} world;

static bool lacks(const char *function) {
    for (int i = 0; i < 4 && world.lacks[i]; i++)
        if (strcmp(world.lacks[i], function) == 0)
            return true;
    return false;
}

/* Which the caller has to believe. */
static bool says_nothing_is_there(const char *function, int error) {
    return strcmp(function, "fstatat") == 0
               ? error == ENOENT
               : strcmp(function, "lgetxattr") == 0 &&
                     (error == ENODATA || error == ENOTSUP || error == ENOSYS || error == EINVAL);
}

static bool happens(const char *function) {
    if (lacks(function)) {
        errno = world.with;
        return true;
    }
    if (world.one_in == 0 || test_random(&world.random) % (uint64_t)world.one_in != 0)
        return false;
    errno = 1 + (int)(test_random(&world.random) % 133);
    if (says_nothing_is_there(function, errno))
        errno = EIO;
    return true;
}

static bool fires(const char *function) {
    if (world.armed)
        return happens(function);
    if (!fault.function || strcmp(fault.function, function) != 0)
        return false;
    const int call = ++fault.calls;
    if (call < fault.nth || call > fault.last)
        return false;
    errno = fault.error;
    return true;
}

/* The names are the linker's.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        return fires(#name) ? -1 : __real_##name arguments;                                        \
    }

WRAP(int, fchmod, (int file, mode_t mode), (file, mode))
WRAP(int, fchown, (int file, uid_t owner, gid_t group), (file, owner, group))
WRAP(ssize_t, getrandom, (void *out, size_t size, unsigned flags), (out, size, flags))
WRAP(ssize_t, readlinkat, (int folder, const char *name, char *text, size_t size),
     (folder, name, text, size))
WRAP(ssize_t, pread, (int file, void *to, size_t size, off_t at), (file, to, size, at))
WRAP(ssize_t, lgetxattr, (const char *path, const char *name, void *out, size_t size),
     (path, name, out, size))
WRAP(int, fsetxattr, (int file, const char *name, const void *value, size_t size, int flags),
     (file, name, value, size, flags))
WRAP(int, fremovexattr, (int file, const char *name), (file, name))

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __real_openat(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat(int folder, const char *name, int flags, mode_t mode);
int __real_close(int file);
int __wrap_close(int file);
int __real_fsync(int file);
int __wrap_fsync(int file);
int __real_fstat(int file, struct stat *out);
int __wrap_fstat(int file, struct stat *out);
int __real_fstatat(int folder, const char *name, struct stat *out, int flags);
int __wrap_fstatat(int folder, const char *name, struct stat *out, int flags);
int __real_renameat(int from, const char *old, int to, const char *new);
int __wrap_renameat(int from, const char *old, int to, const char *new);
int __real_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);
ssize_t __real_write(int file, const void *bytes, size_t size);
ssize_t __wrap_write(int file, const void *bytes, size_t size);

int __wrap_open(const char *path, int flags, mode_t mode) {
    const int file = fires("open") ? -1 : __real_open(path, flags, mode);
    fault.open += file >= 0;
    fault.inherited |= !(flags & O_CLOEXEC);
    return file;
}

int __wrap_openat(int folder, const char *name, int flags, mode_t mode) {
    const int file = fires("openat") ? -1 : __real_openat(folder, name, flags, mode);
    fault.open += file >= 0;
    fault.inherited |= !(flags & O_CLOEXEC) || !(fcntl(folder, F_GETFD) & FD_CLOEXEC);
    fault.shown |= (mode & 077) != 0;
    return file;
}

/* A descriptor is gone whatever close says, as on Linux. */
int __wrap_close(int file) {
    const bool fails = fires("close");
    const int error = errno;
    const bool was_open = __real_close(file) == 0;
    fault.open -= was_open;
    fault.closed_twice |= !was_open;
    errno = error;
    return fails ? -1 : 0;
}

/* No test here is about the disk. */
int __wrap_fsync(int file) {
    return fires("fsync") ? -1 : fcntl(file, F_GETFD) >= 0 ? 0 : -1;
}

static int with_one_mode(int result, struct stat *out) {
    if (result == 0 && world.armed && world.one_mode)
        out->st_mode |= 0777;
    return result;
}

int __wrap_fstat(int file, struct stat *out) {
    return fires("fstat") ? -1 : with_one_mode(__real_fstat(file, out), out);
}

int __wrap_fstatat(int folder, const char *name, struct stat *out, int flags) {
    return fires("fstatat") ? -1 : with_one_mode(__real_fstatat(folder, name, out, flags), out);
}

int __wrap_renameat(int from, const char *old, int to, const char *new) {
    if (!fires("renameat"))
        return __real_renameat(from, old, to, new);
    const int error = errno;
    if (world.armed && world.rename_is_lost && test_random(&world.random) % 2 == 0)
        world.lost |= __real_renameat(from, old, to, new) == 0;
    errno = error;
    return -1;
}

int __wrap_unlinkat(int folder, const char *name, int flags) {
    if (!fires("unlinkat"))
        return __real_unlinkat(folder, name, flags);
    world.failed_unlinks += errno != EINTR;
    return -1;
}

ssize_t __wrap_write(int file, const void *bytes, size_t size) {
    if (!fires("write"))
        return __real_write(file, bytes, size);
    if (fault.error == SHORT)
        return __real_write(file, bytes, size > 3 ? 3 : size);
    if (fault.error != NOTHING)
        return -1;
    errno = EINTR; /* of an earlier call */
    return 0;
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

/* --- what each failure comes to ---------------------------------------------------------- */

enum what_is_there { OLD, NEW };

static const struct row {
    const char *function;
    int nth, last, error;
    sb_status status;
    int code; /* as it is told */
    const char *words;
    enum what_is_there after;
} rows[] = {
    {"fstatat", 1, 1, EIO, SB_ERR_IO, EIO, "not a regular file", OLD},
    {"getrandom", 1, 1, EIO, SB_ERR_IO, EIO, "cannot be written beside", OLD},
    {"open", 1, 1, EIO, SB_ERR_IO, EIO, "in a directory that cannot be opened", OLD},
    {"open", 1, 5, EINTR, SB_OK, 0, NULL, NEW},
    {"open", 1, 1, EACCES, SB_OK, 0, NULL, NEW}, /* a folder that may not be read */
    {"open", 1, 2, EACCES, SB_ERR_IO, EACCES, "in a directory that cannot be opened", OLD},
    {"readlinkat", 1, 1, EIO, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"readlinkat", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"fstatat", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"getrandom", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"openat", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"openat", 1, 1, EACCES, SB_ERR_IO, EACCES, "cannot be written beside", OLD},
    {"openat", 1, 1, EEXIST, SB_OK, 0, NULL, NEW}, /* another name is tried */
    {"openat", 1, 99, EEXIST, SB_OK, 0, NULL, NEW},
    {"openat", 1, 100, EEXIST, SB_ERR_IO, EEXIST, "cannot be written beside", OLD},
    {"fstat", 1, 1, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"fstat", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"fstat", 2, 2, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"fstat", 3, 3, EIO, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"lgetxattr", 1, 1, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"lgetxattr", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"lgetxattr", 1, 1, ENOTSUP, SB_OK, 0, NULL, NEW}, /* no such thing on this file system */
    {"lgetxattr", 1, 1, ENOSYS, SB_OK, 0, NULL, NEW},
    {"lgetxattr", 1, 1, EINVAL, SB_OK, 0, NULL, NEW},
    {"fremovexattr", 1, 1, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"fremovexattr", 1, 1, ENOTSUP, SB_OK, 0, NULL, NEW},
    {"fremovexattr", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"fchmod", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"fchmod", 1, 1, EPERM, SB_ERR_IO, EPERM, "permissions that cannot be kept", OLD},
    {"write", 1, 1, ENOSPC, SB_ERR_IO, ENOSPC, "cannot be written", OLD},
    {"write", 2, 2, ENOSPC, SB_ERR_IO, ENOSPC, "cannot be written", OLD},
    {"write", 1, 1, NOTHING, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"write", 1, 5, EINTR, SB_OK, 0, NULL, NEW},
    {"write", 1, 9, SHORT, SB_OK, 0, NULL, NEW},
    {"fsync", 1, 1, EIO, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"fsync", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"close", 1, 1, EINTR, SB_OK, 0, NULL, NEW}, /* which is no word about the bytes */
    {"close", 1, 1, EDQUOT, SB_ERR_IO, EDQUOT, "cannot be written", OLD},
    {"renameat", 1, 1, EXDEV, SB_ERR_IO, EXDEV, "cannot be written", OLD},
    {"renameat", 1, 3, EINTR, SB_OK, 0, NULL, NEW},
    {"fsync", 2, 4, EINTR, SB_OK, 0, NULL, NEW},
    {"fsync", 2, 2, EBADF, SB_OK, 0, NULL, NEW}, /* of a folder that may not be read */
    {"fsync", 2, 2, ENOTSUP, SB_OK, 0, NULL, NEW},
    {"fsync", 2, 2, ENOSYS, SB_OK, 0, NULL, NEW},
    {"fsync", 2, 2, EIO, SB_ERR_IO, EIO, "is in place, but", NEW},
    {"fsync", 2, 2, EINVAL, SB_OK, 0, NULL, NEW}, /* no such thing on this file system */
    {"close", 2, 2, EIO, SB_OK, 0, NULL, NEW},
};

static int entries_of(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 2;
}

static sb_status write_blob(const sb_blob *blob, const char *file, const struct row *row,
                            sb_error *err) {
    fault.function = row->function;
    fault.nth = row->nth;
    fault.last = row->last;
    fault.error = row->error;
    fault.calls = 0;
    const sb_status st = sb_blob_save_file(blob, file, 0, err);
    fault.function = NULL;
    assert_true(fault.calls >= row->last);
    return st;
}

static void check(const struct row *row, const char *folder, const sb_blob *blob,
                  const struct wire *whole) {
    char file[96];
    (void)snprintf(file, sizeof file, "%s/blob", folder);
    file_write(file, "old", 3);
    fault.open = 0;
    fault.closed_twice = fault.inherited = fault.shown = false;
    assert_status(row->status, write_blob(blob, file, row, &err));
    if (row->status != SB_OK) {
        assert_int_equal(err.device_code, row->code);
        assert_non_null(strstr(err.message, row->words));
    }
    assert_int_equal(fault.open, 0);
    assert_false(fault.closed_twice);
    assert_false(fault.inherited);
    assert_false(fault.shown);
    assert_int_equal(entries_of(folder), 1);
    struct wire there = wire_of_file(file);
    if (row->after == NEW) {
        assert_int_equal(there.size, whole->size);
        assert_memory_equal(there.bytes, whole->bytes, whole->size);
    } else {
        assert_int_equal(there.size, 3);
    }
    wire_free(&there);
    assert_int_equal(unlink(file), 0);
}

struct scene {
    char folder[64], file[96], source[96];
    sb_blob *blob;
    sb_model *model;                /* of the same blob, and of one in `source` */
    struct wire whole, whole_model; /* what the two calls write */
};

static void scene_open(struct scene *s) {
    static const int64_t count = 100000;
    static const struct row nothing = {.words = ""};
    float *x;
    *s = (struct scene){.folder = "/tmp/syncblob-replace-XXXXXX"};
    assert_non_null(mkdtemp(s->folder));
    (void)snprintf(s->file, sizeof s->file, "%s/blob", s->folder);
    (void)snprintf(s->source, sizeof s->source, "%s.source", s->folder);
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, &count, 1, &s->blob, &err));
    assert_ok(sb_blob_overwrite_cpu_f32(s->blob, SB_DATA, &x, &err));
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)i;
    assert_ok(write_blob(s->blob, s->file, &nothing, &err));
    s->whole = wire_of_file(s->file);
    assert_ok(sb_model_create(NULL, SB_FORMAT_SOLVERSTATE, &s->model, &err));
    assert_ok(sb_model_add_blob(s->model, SB_NO_LAYER, s->blob, 0, &err));
    assert_ok(sb_model_save_file(s->model, s->source, &err));
    sb_model_destroy(s->model);
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, s->source, 0, NULL, &s->model, &err));
    assert_ok(sb_model_add_blob(s->model, SB_NO_LAYER, s->blob, 0, &err));
    assert_ok(sb_model_save_file(s->model, s->file, &err));
    s->whole_model = wire_of_file(s->file);
    assert_int_equal(unlink(s->file), 0);
}

static void scene_close(struct scene *s) {
    wire_free(&s->whole);
    wire_free(&s->whole_model);
    sb_blob_destroy(s->blob);
    sb_model_destroy(s->model);
    assert_int_equal(unlink(s->source), 0);
    assert_int_equal(rmdir(s->folder), 0);
}

TEST_ON(scene, a_file_is_the_old_one_or_the_new_one_whatever_fails) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], f->folder, f->blob, &f->whole);
}

/* --- permissions ------------------------------------------------------------------------ */

/* A file system may have one mode for all files, and refuse to change it. */
TEST_ON(scene, a_mode_that_is_right_need_not_be_set) {
    static const int errors[] = {EPERM, ENOSYS, ENOTSUP, EROFS};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        const struct row row = {.function = "fchmod", .nth = 1, .last = 0, .error = errors[i]};
        file_write(f->file, "old", 3);
        assert_int_equal(chmod(f->file, 0600), 0);
        assert_ok(write_blob(f->blob, f->file, &row, &err));
        assert_int_equal(fault.calls, 0);
        assert_int_equal(unlink(f->file), 0);
    }
}

/* A list: version 2, then for the owner, the user 1002, the group, the mask and all others. */
static const uint8_t list[] = {2,    0,    0,    0,    1,    0,    6,  0,    0xff, 0xff, 0xff,
                               0xff, 2,    0,    6,    0,    0xea, 3,  0,    0,    4,    0,
                               4,    0,    0xff, 0xff, 0xff, 0xff, 16, 0,    6,    0,    0xff,
                               0xff, 0xff, 0xff, 32,   0,    0,    0,  0xff, 0xff, 0xff, 0xff};

/* Where the list cannot be kept the mode gives only what every entry of it gave. */
TEST_ON(scene, a_list_that_cannot_be_kept_gives_nobody_more) {
    static const int errors[] = {EPERM, ENOTSUP, EINVAL, ENOSPC};
    struct stat info;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        const struct row row = {.function = "fsetxattr", .nth = 1, .last = 1, .error = errors[i]};
        file_write(f->file, "old", 3);
        if (setxattr(f->file, LIST, list, sizeof list, 0) != 0) {
            print_message("skipped: this file system keeps no access lists\n");
            assert_int_equal(unlink(f->file), 0);
            break;
        }
        assert_ok(write_blob(f->blob, f->file, &row, &err));
        assert_int_equal(stat(f->file, &info), 0);
        assert_int_equal(info.st_mode & 07777, 0600);
        assert_true(getxattr(f->file, LIST, NULL, 0) < 0);
        assert_int_equal(unlink(f->file), 0);
    }
}

/* --- random failures ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *lacks[4];
    int with;
    bool one_mode;
    enum { NEVER, IF_MODE_IS_RIGHT, ALWAYS } saves; /* where nothing else fails */
} file_systems[] = {
    {"all there", {NULL}, 0, false, ALWAYS},
    {"one mode for all", {"fchmod", "fchown"}, EPERM, true, ALWAYS},
    {"one mode for all, no such call", {"fchmod", "fchown"}, ENOSYS, true, ALWAYS},
    {"no modes", {"fchmod"}, EPERM, false, IF_MODE_IS_RIGHT},
    {"no owners", {"fchown"}, EPERM, false, ALWAYS},
    {"no lists", {"lgetxattr", "fsetxattr", "fremovexattr"}, ENOTSUP, false, ALWAYS},
    {"no such calls", {"lgetxattr", "fsetxattr", "fremovexattr"}, ENOSYS, false, ALWAYS},
    {"no links", {"readlinkat"}, EINVAL, false, ALWAYS},
    {"no fsync", {"fsync"}, EINVAL, false, NEVER},
    {"no fsync, no such call", {"fsync"}, ENOSYS, false, NEVER},
    {"read-only", {"openat", "fchmod", "renameat", "unlinkat"}, EROFS, false, NEVER},
};

static void check_bytes(const char *file, const struct wire *whole, bool is_new, uint64_t seed) {
    struct wire there = wire_of_file(file);
    const bool is_whole =
        there.size == whole->size && memcmp(there.bytes, whole->bytes, whole->size) == 0;
    const bool is_old = there.size == 3 && memcmp(there.bytes, "old", 3) == 0;
    wire_free(&there);
    if (is_new ? !is_whole : !is_old)
        fail_with("seed %llu: the status says that the file is %s, and it is %s",
                  (unsigned long long)seed, is_new ? "new" : "old",
                  is_whole ? "new"
                  : is_old ? "old"
                           : "neither");
}

static void remove_leftovers(const char *path, uint64_t seed) {
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, ".syncblob-", 10) == 0) {
            if (world.failed_unlinks-- <= 0)
                fail_with("seed %llu: %s is left", (unsigned long long)seed, entry->d_name);
            assert_int_equal(__real_unlinkat(dirfd(folder), entry->d_name, 0), 0);
        }
    (void)closedir(folder);
}

/* The old file's mode is `mode`, or a list's. */
static void save_at_random(const struct scene *s, size_t system, int one_in, uint64_t seed) {
    static const mode_t modes[] = {0600, 0640, 0664, 0604};
    const mode_t mode = modes[seed / 2 % 4];
    const bool is_model = seed % 2;
    struct stat info;
    sb_error err = {.code = SB_OK};
    file_write(s->file, "old", 3);
    const bool listed = seed % 3 == 0 && setxattr(s->file, LIST, list, sizeof list, 0) == 0;
    assert_int_equal(chmod(s->file, mode), 0);
    memset(&world, 0, sizeof world);
    memcpy(world.lacks, file_systems[system].lacks, sizeof world.lacks);
    world.with = file_systems[system].with;
    world.one_mode = file_systems[system].one_mode;
    world.one_in = one_in;
    world.random = seed;
    fault.open = 0;
    fault.closed_twice = fault.inherited = fault.shown = false;
    fault.error = 0;
    world.armed = true;
    const sb_status st = is_model ? sb_model_save_file(s->model, s->file, &err)
                                  : sb_blob_save_file(s->blob, s->file, 0, &err);
    world.armed = false;
    const bool is_new = st == SB_OK || strstr(err.message, "is in place") != NULL;
    if (st != SB_OK && st != SB_ERR_IO)
        fail_with("seed %llu: %s", (unsigned long long)seed, err.message);
    const unsigned saves = file_systems[system].saves;
    const bool works = saves == ALWAYS || (saves == IF_MODE_IS_RIGHT && (mode == 0600 || listed));
    if (one_in == 0 && (st == SB_OK) != works)
        fail_with("%s: %s", file_systems[system].name, err.message);
    check_bytes(s->file, is_model ? &s->whole_model : &s->whole, is_new, seed);
    remove_leftovers(s->folder, seed);
    assert_int_equal(entries_of(s->folder), 1);
    assert_int_equal(fault.open, 0);
    assert_false(fault.closed_twice || fault.inherited || fault.shown);
    assert_int_equal(stat(s->file, &info), 0);
    if ((info.st_mode & 07777 & ~mode) != 0 && !world.one_mode)
        fail_with("seed %llu: the mode was %o and is %o", (unsigned long long)seed, mode,
                  info.st_mode & 07777);
    if (is_new && listed && getxattr(s->file, LIST, NULL, 0) < 0 && !lacks("lgetxattr"))
        assert_int_equal(info.st_mode & 077 & ~((4 & mode >> 3 & mode) * 011), 0);
    assert_int_equal(unlink(s->file), 0);
}

TEST_ON(scene, saves_under_any_failures_at_random) {
    const uint64_t rounds = test_is_full() ? 20000 : test_is_quick() ? 100 : 600;
    for (size_t system = 0; system < sizeof file_systems / sizeof *file_systems; system++) {
        for (uint64_t seed = 0; seed < 24; seed++)
            save_at_random(f, system, 0, seed);
        for (uint64_t seed = 0; seed < rounds; seed++)
            save_at_random(f, system, seed % 5 == 0 ? 3 : seed % 5 == 1 ? 100 : 15, seed);
    }
}

/* Over a network the answer to a rename may be lost: then the file is in place, and the call says
   so, whatever it was told. */
TEST_ON(scene, a_rename_that_was_made_is_no_failure) {
    for (int error = 1; error < 134; error++) {
        file_write(f->file, "old", 3);
        memset(&world, 0, sizeof world);
        world.lacks[0] = "renameat";
        world.with = error == EINTR ? ENOENT : error;
        world.rename_is_lost = true;
        world.random = (uint64_t)error;
        fault.error = 0;
        world.armed = true;
        const sb_status st = sb_blob_save_file(f->blob, f->file, 0, &err);
        world.armed = false;
        assert_int_equal(st, world.lost ? SB_OK : SB_ERR_IO);
        check_bytes(f->file, &f->whole, world.lost, (uint64_t)error);
        assert_int_equal(entries_of(f->folder), 1);
        assert_int_equal(unlink(f->file), 0);
    }
}
