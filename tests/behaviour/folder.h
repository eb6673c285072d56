/* A folder in which a test saves blobs, as root or as another user. */
#ifndef SB_TESTS_FOLDER_H
#define SB_TESTS_FOLDER_H

#include "blobs.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SOMEBODY = 12345, THEIRS = 23456, OURS = 34567, NOBODY = 65534, BLOB_COUNT = 50000 };

struct folder {
    char path[64], file[96], other[96];
    int here; /* a descriptor of the current folder before the test */
};

static void folder_open(struct folder *folder) {
    *folder = (struct folder){.path = "/tmp/syncblob-file-XXXXXX"};
    assert_non_null(mkdtemp(folder->path));
    (void)snprintf(folder->file, sizeof folder->file, "%s/blob", folder->path);
    (void)snprintf(folder->other, sizeof folder->other, "%s/other", folder->path);
    folder->here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder->here >= 0);
}

/* Removes the tests' files and checks that no other file is left. */
static void folder_close(struct folder *folder) {
    (void)unlink(folder->file);
    (void)unlink(folder->other);
    assert_int_equal(fchdir(folder->here) | rmdir(folder->path), 0);
    (void)close(folder->here);
}

/* Creates a blob with the values 0, 1, ..., count - 1. */
static inline sb_blob *new_blob(int64_t count) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, count);
    fill_values(SB_DTYPE_F32, count, 0, 1, host_to_write(blob, SB_DATA));
    return blob;
}

static inline sb_status write_file(const char *path, sb_error *err) {
    sb_blob *blob = new_blob(BLOB_COUNT);
    const sb_status st = sb_blob_save_file(blob, path, 0, err);
    test_end(blob);
    return st;
}

/* Returns whether the file contains the whole blob. */
static inline bool is_written(const char *path) {
    sb_blob *blob = new_blob(3);
    const sb_status st = sb_blob_load_file(blob, path, SB_PROTO_RESHAPE, NULL, NULL);
    const int64_t count = sb_blob_count(blob);
    assert_true(st == SB_OK || count == 3); /* a failed load changes nothing */
    test_end(blob);
    return count == BLOB_COUNT;
}

static inline mode_t mode_of(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

/* Writes the file in a child process. If this process is root, the child's user is nobody, in the
   group OURS. Returns -255 if the child could not change its user. */
static inline sb_status write_as_nobody(const char *path) {
    const gid_t groups[] = {OURS};
    int status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bool may = geteuid() != 0 ||
                         (setgroups(1, groups) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
        _exit(may ? -write_file(path, NULL) : 255);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

/* Skips the test if this process may not change a file's owner: the process is not root, or the
   user namespace lacks the new owner or group. */
static inline void skip_unless_root(const struct folder *folder) {
    file_write(folder->file, "", 0);
    const bool may = chown(folder->file, SOMEBODY, THEIRS) == 0;
    assert_int_equal(unlink(folder->file), 0);
    if (may)
        return;
    print_message("skipped: only root may change owners\n");
    test_skip();
}

#endif
