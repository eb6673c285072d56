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
#include <unistd.h>

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

static bool fires(const char *function) {
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

WRAP(int, fsync, (int file), (file))
WRAP(int, fchmod, (int file, mode_t mode), (file, mode))
WRAP(int, fstat, (int file, struct stat *out), (file, out))
WRAP(int, fstatat, (int folder, const char *name, struct stat *out, int flags),
     (folder, name, out, flags))
WRAP(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
WRAP(ssize_t, getrandom, (void *out, size_t size, unsigned flags), (out, size, flags))

int __real_openat(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat(int folder, const char *name, int flags, mode_t mode);
int __real_close(int file);
int __wrap_close(int file);
ssize_t __real_write(int file, const void *bytes, size_t size);
ssize_t __wrap_write(int file, const void *bytes, size_t size);

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
    {"openat", 1, 1, EACCES, SB_ERR_IO, EACCES, "cannot be written beside", OLD},
    {"openat", 1, 1, EEXIST, SB_OK, 0, NULL, NEW}, /* another name is tried */
    {"openat", 1, 99, EEXIST, SB_OK, 0, NULL, NEW},
    {"openat", 1, 100, EEXIST, SB_ERR_IO, EEXIST, "cannot be written beside", OLD},
    {"fstat", 1, 1, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"fchmod", 1, 1, EPERM, SB_ERR_IO, EPERM, "permissions that cannot be kept", OLD},
    {"write", 1, 1, ENOSPC, SB_ERR_IO, ENOSPC, "cannot be written", OLD},
    {"write", 2, 2, ENOSPC, SB_ERR_IO, ENOSPC, "cannot be written", OLD},
    {"write", 1, 1, NOTHING, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"write", 1, 5, EINTR, SB_OK, 0, NULL, NEW},
    {"write", 1, 9, SHORT, SB_OK, 0, NULL, NEW},
    {"fsync", 1, 1, EIO, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"close", 1, 1, EDQUOT, SB_ERR_IO, EDQUOT, "cannot be written", OLD},
    {"renameat", 1, 1, EXDEV, SB_ERR_IO, EXDEV, "cannot be written", OLD},
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
    const sb_status st = sb_blob_write_file(blob, file, 0, err);
    fault.function = NULL;
    assert_true(fault.calls >= row->last);
    return st;
}

static void check(const struct row *row, const char *folder, const sb_blob *blob,
                  const struct wire *whole) {
    char file[96];
    sb_error err;
    (void)snprintf(file, sizeof file, "%s/blob", folder);
    file_write(file, "old", 3);
    fault.open = 0;
    fault.closed_twice = fault.inherited = fault.shown = false;
    assert_status(row->status, write_blob(blob, file, row, &err));
    if (row->status != SB_OK) {
        assert_int_equal(err.device_code, row->code);
        assert_non_null(strstr(err.message, row->words));
    }
    assert_int_equal(fault.open, -1); /* the folder is opened by another function */
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

TEST(a_file_is_the_old_one_or_the_new_one_whatever_fails) {
    static const int64_t count = 100000;
    static const struct row nothing = {.words = ""};
    char folder[] = "/tmp/syncblob-replace-XXXXXX", file[96];
    sb_error err;
    sb_blob *blob;
    void *p;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/blob", folder);
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, &count, 1, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu_data(blob, &p, &err));
    for (int64_t i = 0; i < count; i++)
        ((float *)p)[i] = (float)i;
    assert_ok(write_blob(blob, file, &nothing, &err));
    struct wire whole = wire_of_file(file);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], folder, blob, &whole);
    wire_free(&whole);
    sb_blob_destroy(blob);
    assert_int_equal(rmdir(folder), 0);
}
