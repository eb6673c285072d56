/* Tests blob files: reads, atomic writes, links, owners, access lists, folders, leases. */
#include "blobs.h"
#include "child.h"
#include "files.h"
#include "nets.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
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
static sb_blob *new_blob(int64_t count) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, count);
    fill_values(SB_DTYPE_F32, count, 0, 1, host_to_write(blob, SB_DATA));
    return blob;
}

static sb_status write_file(const char *path, sb_error *err) {
    sb_blob *blob = new_blob(BLOB_COUNT);
    const sb_status st = sb_blob_save_file(blob, path, 0, err);
    test_end(blob);
    return st;
}

/* Reads a whole blob of BLOB_COUNT values. */
static sb_status read_file(const char *path, sb_error *err) {
    sb_blob *blob = new_blob(3);
    const sb_status st = sb_blob_load_file(blob, path, SB_PROTO_RESHAPE, NULL, err);
    assert_int_equal(sb_blob_count(blob),
                     st == SB_OK ? BLOB_COUNT : 3); /* a failed load changes nothing */
    test_end(blob);
    return st;
}

static bool is_written(const char *path) {
    return read_file(path, NULL) == SB_OK;
}

static mode_t mode_of(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void write_in_child(void *path) {
    const gid_t groups[] = {OURS};
    const bool may =
        geteuid() != 0 || (setgroups(1, groups) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    _exit(may ? -write_file(path, NULL) : 255);
}

/* Writes the file in a child process. If this process is root, the child's user is nobody, in the
   group OURS. Returns -255 if the child could not change its user. */
static sb_status write_as_nobody(char *path) {
    const int status = status_in_child(write_in_child, path);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

/* Skips the test if this process may not change a file's owner: the process is not root, or the
   user namespace lacks the new owner or group. */
static void skip_unless_root(const struct folder *folder) {
    file_write(folder->file, "", 0);
    const bool may = chown(folder->file, SOMEBODY, THEIRS) == 0;
    assert_int_equal(unlink(folder->file), 0);
    if (may)
        return;
    print_message("skipped: only root may change owners\n");
    test_skip();
}

static sb_model *open_model(const char *path, sb_format format, uint32_t flags) {
    sb_model *model;
    assert_ok(sb_model_open_file(NULL, format, path, flags, NULL, &model, &err));
    return test_own_model(model);
}

/* --- reading ---------------------------------------------------------------------------- */

TEST_ON(folder, test_the_error_for_a_missing_file_has_its_name) {
    assert_status(SB_ERR_IO, read_file(f->file, &err));
    assert_int_equal(err.device_code, ENOENT);
    assert_non_null(strstr(err.message, f->file));
    assert_non_null(strstr(err.message, "No such file"));
    assert_status(SB_ERR_IO, read_file("", &err));
}

/* Calls sb_model_save, which must fail and not write to the buffer; returns its status. */
static sb_status save_untouched(const sb_model *model, sb_error *err) {
    unsigned char buffer[64];
    memset(buffer, 0x5a, sizeof buffer);
    sb_status st = sb_model_save(model, buffer, sizeof buffer, NULL, err);
    assert_true(bytes_are(buffer, sizeof buffer, 0x5a));
    return st;
}

TEST_ON(folder, test_a_file_that_changes_while_a_model_is_open) {
    static const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    static const struct timespec later[][2] = {{{1000, 0}, {1000, 1}}, {{1000, 0}, {1001, 0}}};
    for (int change = 0; change < 5; change++) {
        /* Change 0 shrinks the file. The test does not shrink a mapped file, because reads of
           the file would raise SIGBUS, as documented. */
        for (uint32_t flags = 0; flags <= (change ? SB_OPEN_MAPPED : 0); flags += SB_OPEN_MAPPED) {
            const struct wire wire = wire_of("[2 3]1");
            sb_blob *blob = new_blob(3);
            file_write_wire(f->file, &wire);
            if (change >= 3)
                assert_int_equal(utimensat(AT_FDCWD, f->file, long_ago, 0), 0);
            sb_model *model = open_model(f->file, SB_FORMAT_AUTO, flags);
            if (change == 0)
                assert_int_equal(truncate(f->file, 4), 0);
            else if (change == 1)
                assert_int_equal(truncate(f->file, 4000), 0);
            else
                assert_int_equal(
                    utimensat(AT_FDCWD, f->file, change == 2 ? long_ago : later[change - 3], 0), 0);
            assert_status(SB_ERR_IO, sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
            assert_int_equal(sb_blob_count(blob), 3);
            assert_status(SB_ERR_IO, save_untouched(model, &err));
            assert_status(SB_ERR_IO, sb_model_save_file(model, f->other, &err));
            assert_int_equal(access(f->other, F_OK), -1);
        }
    }
}

/* Waits until the clock of file times has advanced, which it does every few milliseconds. */
static void wait_a_tick(void) {
    const struct timespec pause = {0, 30000000};
    (void)nanosleep(&pause, NULL);
}

/* A program can reset a file's mtime, but not its ctime. */
TEST_ON(folder, test_a_change_is_noticed_if_its_time_was_set_back) {
    for (uint32_t flags = 0; flags <= SB_OPEN_MAPPED; flags += SB_OPEN_MAPPED) {
        struct stat before;
        sb_blob *blob = new_blob(3);
        assert_ok(write_file(f->file, &err));
        assert_int_equal(stat(f->file, &before), 0);
        sb_model *model = open_model(f->file, SB_FORMAT_BLOB, flags);
        assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
        wait_a_tick();
        const int fd = open(f->file, O_WRONLY | O_CLOEXEC);
        const struct timespec times[] = {before.st_atim, before.st_mtim};
        assert_int_equal(pwrite(fd, "xyz", 3, 1000), 3);
        assert_int_equal(futimens(fd, times), 0);
        assert_int_equal(close(fd), 0);
        assert_reports(SB_ERR_IO, sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err),
                       "changed while it was read");
    }
}

/* A hard link that a file gains or loses does not count as a change. A save that replaces a file
   only removes a link of the old file, which an open model still reads. */
TEST_ON(folder, test_another_name_does_not_count_as_a_change) {
    for (int change = 0; change < 3; change++) {
        sb_blob *blob = new_blob(3);
        assert_ok(write_file(f->file, &err));
        sb_model *model = open_model(f->file, SB_FORMAT_BLOB, 0);
        wait_a_tick();
        if (change == 0)
            assert_ok(sb_model_save_file(model, f->file, &err));
        else if (change == 1)
            assert_int_equal(link(f->file, f->other), 0);
        else
            assert_int_equal(unlink(f->file), 0);
        assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
        assert_int_equal(sb_blob_count(blob), BLOB_COUNT);
        (void)unlink(f->other);
    }
}

/* --- writing ------------------------------------------------------------------------------ */

TEST_ON(folder, test_a_file_has_the_bytes_of_to_proto) {
    /* Files that are smaller than, as large as, and larger than the write buffer. */
    static const int64_t counts[] = {0, 1, 4093, 4094, 4095, 4096, 5000, 100000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sb_blob *blob = new_blob(counts[i]), *again = new_blob(1);
        void *bytes;
        size_t size;
        assert_ok(sb_blob_save_file(blob, f->file, SB_PROTO_WRITE_DIFF, &err));
        assert_ok(blob_message(blob, SB_PROTO_WRITE_DIFF, &bytes, &size, &err));
        struct wire found = wire_of_file(f->file);
        assert_int_equal(found.size, size);
        if (size > 0)
            assert_memory_equal(found.bytes, bytes, size);
        assert_ok(sb_blob_load_file(again, f->file, SB_PROTO_RESHAPE, NULL, &err));
        assert_int_equal(sb_blob_shape_equals(blob, again), 1);
        free(bytes);
    }
}

TEST_ON(folder, test_permissions_of_the_old_file_are_kept_without_set_id_bits) {
    static const mode_t modes[] = {0600, 0644, 0666, 0640, 0400, 06755};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        file_write(f->file, "old", 3);
        assert_int_equal(chmod(f->file, modes[i]), 0);
        assert_ok(write_file(f->file, &err));
        assert_int_equal(mode_of(f->file), modes[i] & 0777);
        assert_int_equal(unlink(f->file), 0);
    }
}

TEST_ON(folder, test_a_new_file_gets_the_permissions_of_the_mask) {
    static const mode_t masks[] = {0, 022, 027};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        mode_t old = umask(masks[i]);
        assert_ok(write_file(f->file, &err));
        umask(old);
        assert_int_equal(mode_of(f->file), 0666 & ~masks[i]);
        assert_int_equal(unlink(f->file), 0);
    }
}

static void assert_is_link(const char *path, bool expected) {
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    assert_int_equal(S_ISLNK(info.st_mode), expected);
}

/* A save to a dangling link creates the file that the link names, the next save replaces this file;
   the link remains. */
TEST_ON(folder, test_a_save_to_a_link_writes_the_file_that_the_link_names) {
    char inside[128], first[160];
    (void)snprintf(inside, sizeof inside, "%s/inside", f->path);
    (void)snprintf(first, sizeof first, "%s/first", inside);
    assert_int_equal(mkdir(inside, 0700), 0);
    const char *const targets[] = {"other", f->other, "inside/first"};
    for (int i = 0; i < 3; i++) { /* a relative link, an absolute link, a link to a link */
        assert_int_equal(symlink(targets[i], f->file), 0);
        if (i == 2)
            assert_int_equal(symlink("../other", first), 0);
        assert_ok(write_file(f->file, &err));
        assert_ok(write_file(f->file, &err));
        assert_is_link(f->file, true);
        assert_is_link(f->other, false);
        assert_ok(read_file(f->other, &err));
        assert_int_equal(unlink(f->file), 0);
        assert_int_equal(unlink(f->other), 0);
    }
    assert_is_link(first, true);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(rmdir(inside), 0);
}

TEST_ON(folder, test_links_that_lead_to_no_file) {
    static char endless[4096 - 2];
    static const struct {
        const char *contents;
        int error;
        const char *words;
    } rows[] = {
        {"blob", ELOOP, "cannot be written:"},
        {".", EISDIR, "it is not a regular file"},
        {"not/there", ENOENT, "is in a directory that cannot be opened"},
        {"/dev/null", EINVAL, "it is not a regular file"},
        {"x/", ENOENT, "is in a directory that cannot be opened"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(symlink(rows[i].contents, f->file), 0);
        assert_status(SB_ERR_IO, write_file(f->file, &err));
        assert_int_equal(err.device_code, rows[i].error);
        assert_non_null(strstr(err.message, rows[i].words));
        assert_is_link(f->file, true);
        /* The message names the link's target, or the link if the target cannot be found. */
        assert_int_equal(!strstr(err.message, f->file), rows[i].error != ELOOP);
        assert_int_equal(unlink(f->file), 0);
    }
    /* The link's folder and target, joined, are longer than the longest valid path. */
    char deep[320], link[340];
    (void)snprintf(deep, sizeof deep, "%s/%0200d", f->path, 0);
    (void)snprintf(link, sizeof link, "%s/link", deep);
    for (size_t i = 0; i + 2 < sizeof endless; i += 2)
        memcpy(endless + i, "./", 2);
    memcpy(endless + sizeof endless - 2, "x", 2);
    assert_int_equal(mkdir(deep, 0700), 0);
    assert_int_equal(symlink(endless, link), 0);
    assert_status(SB_ERR_IO, write_file(link, &err));
    assert_int_equal(err.device_code, ENAMETOOLONG);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(deep), 0);
}

/* A save follows a chain of as many links as the system allows, and fails for a longer chain. */
TEST_ON(folder, test_the_last_of_many_links_names_the_new_file) {
    static const int counts[] = {39, 41};
    char link[96], contents[16];
    for (int i = 0; i < 2; i++) {
        for (int n = 0; n < counts[i]; n++) {
            (void)snprintf(link, sizeof link, "%s/%d", f->path, n);
            (void)snprintf(contents, sizeof contents, "%d", n + 1);
            assert_int_equal(symlink(n + 1 == counts[i] ? "other" : contents, link), 0);
        }
        (void)snprintf(link, sizeof link, "%s/0", f->path);
        assert_status(i == 0 ? SB_OK : SB_ERR_IO, write_file(link, &err));
        assert_int_equal(access(f->other, F_OK), i == 0 ? 0 : -1);
        assert_true(i == 0 || err.device_code == ELOOP);
        (void)unlink(f->other);
        for (int n = 0; n < counts[i]; n++) {
            (void)snprintf(link, sizeof link, "%s/%d", f->path, n);
            assert_int_equal(unlink(link), 0);
        }
    }
}

TEST_ON(folder, test_another_name_of_the_file_keeps_the_old_bytes) {
    file_write(f->file, "old", 3);
    assert_int_equal(link(f->file, f->other), 0);
    assert_ok(write_file(f->file, &err));
    assert_true(file_holds(f->other, "old"));
    assert_ok(read_file(f->file, &err));
}

/* --- owners ---------------------------------------------------------------------------------- */

/* Root keeps owner and group. For other users, group and others get only permissions that the old
   group and others both had, unless the writer is a member of the old group. */
TEST_ON(folder, test_without_the_group_nobody_gets_more_access) {
    static const struct {
        uid_t writer;
        gid_t group, kept;
        mode_t before, after;
    } rows[] = {
        {0, THEIRS, THEIRS, 0600, 0600},      {0, THEIRS, THEIRS, 0644, 0644},
        {0, THEIRS, THEIRS, 0660, 0660},      {0, THEIRS, THEIRS, 0604, 0604},
        {0, THEIRS, THEIRS, 0400, 0400},      {NOBODY, OURS, OURS, 0664, 0664},
        {NOBODY, OURS, OURS, 0640, 0640},     {NOBODY, THEIRS, NOBODY, 0640, 0600},
        {NOBODY, THEIRS, NOBODY, 0664, 0644}, {NOBODY, THEIRS, NOBODY, 0604, 0600},
        {NOBODY, THEIRS, NOBODY, 0666, 0666}, {NOBODY, THEIRS, NOBODY, 0600, 0600},
        {NOBODY, THEIRS, NOBODY, 0444, 0444}, {NOBODY, THEIRS, NOBODY, 0701, 0700},
    };
    struct stat info;
    skip_unless_root(f);
    assert_int_equal(chmod(f->path, 0777), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file_write(f->file, "old", 3);
        assert_int_equal(chown(f->file, SOMEBODY, rows[i].group), 0);
        assert_int_equal(chmod(f->file, rows[i].before), 0);
        assert_int_equal(rows[i].writer ? write_as_nobody(f->file) : write_file(f->file, NULL),
                         SB_OK);
        assert_int_equal(stat(f->file, &info), 0);
        assert_int_equal(info.st_uid, rows[i].writer ? NOBODY : SOMEBODY);
        assert_int_equal(info.st_gid, rows[i].kept);
        assert_int_equal(info.st_mode & 07777, rows[i].after);
        assert_int_equal(unlink(f->file), 0);
    }
}

/* If a process has closed its standard input, the next file that it opens has descriptor 0. */
TEST_ON(folder, test_descriptor_0_works_like_any_other) {
    struct stat file;
    int kept = dup(0), closed = close(0);
    sb_status written = write_file(f->file, &err);
    sb_status read = read_file(f->file, &err);
    sb_status refused = write_file(f->path, &err); /* a folder */
    bool open = fstat(0, &file) == 0;
    if (closed == 0)
        (void)dup2(kept, 0);
    (void)close(kept);
    assert_int_equal(written, SB_OK);
    assert_int_equal(read, SB_OK);
    assert_int_equal(refused, SB_ERR_IO);
    assert_false(open);
}

TEST_ON(folder, test_a_mapped_file_is_unmapped) {
    assert_ok(write_file(f->file, &err)); /* 200 kB */
    const size_t before = process_memory_now().mapped;
    for (int i = 0; i < 500; i++)
        test_end(open_model(f->file, SB_FORMAT_AUTO, SB_OPEN_MAPPED));
    assert_true(process_memory_now().mapped < before + ((size_t)50 << 20));
}

TEST_ON(folder, test_paths_that_cannot_be_replaced_are_refused) {
    char path[256];
    assert_status(SB_ERR_IO, write_file("/", &err));
    assert_status(SB_ERR_IO, write_file("", &err));
    assert_int_equal(err.device_code, ENOENT);
    (void)snprintf(path, sizeof path, "%s/not/there", f->path);
    assert_status(SB_ERR_IO, write_file(path, &err));
    assert_int_equal(err.device_code, ENOENT);
    (void)snprintf(path, sizeof path, "%s/notthere/", f->path);
    assert_status(SB_ERR_IO, write_file(path, &err));
    char *endless = malloc(10000);
    memset(endless, 'a', 9999);
    endless[9999] = '\0';
    assert_status(SB_ERR_IO, write_file(endless, &err));
    assert_int_equal(err.device_code, ENAMETOOLONG);
    free(endless);
}

/* --- links to open files -------------------------------------------------------------------- */

static void assert_refused(const char *path) {
    assert_status(SB_ERR_IO, write_file(path, &err));
    assert_int_equal(err.device_code, EINVAL);
    assert_non_null(strstr(err.message, "leads to an open file"));
    assert_null(strstr(err.message, ".syncblob-"));
}

/* A save to a link in /proc/self/fd fails: the link's text may no longer be a path of the file, and
   if a save replaced the file, the descriptor would still be open on the old file. */
TEST_ON(folder, a_save_to_a_descriptor_is_refused) {
    char link[64];
    int ends[2];
    file_write(f->file, "old", 3);
    const int live = open(f->file, O_RDWR | O_CLOEXEC);
    const int memory = memfd_create("syncblob-memory", MFD_CLOEXEC);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const int descriptors[] = {live, memory, ends[1]};
    for (int removed = 0; removed < 2; removed++) {
        for (int i = 0; i < 3; i++) {
            (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptors[i]);
            assert_refused(link);
        }
        if (!removed) {
            assert_true(file_holds(f->file, "old"));
            assert_int_equal(unlink(f->file), 0); /* the link's text now ends in "(deleted)" */
        }
    }
    assert_int_equal(symlink(link, f->file), 0); /* a link to a link in /proc/self/fd */
    assert_refused(f->file);
    assert_int_equal(access("/memfd:syncblob-memory (deleted)", F_OK), -1);
    (void)close(live);
    (void)close(memory);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* In the folder part of a path, the kernel follows a link in /proc/self/fd to the open folder and
   ignores the link's text. */
TEST_ON(folder, a_folder_may_be_named_by_its_descriptor) {
    char path[64];
    const int folder = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/blob", folder);
    assert_ok(write_file(path, &err));
    assert_true(is_written(f->file));
    (void)close(folder);
    assert_int_equal(chdir(f->path), 0);
    assert_int_equal(unlink(f->file), 0);
    assert_ok(write_file("/proc/self/cwd/blob", &err));
    assert_true(is_written(f->file));
}

/* --- folders --------------------------------------------------------------------------------- */

/* A save creates and renames files, which requires no read permission for the folder. */
TEST_ON(folder, a_save_does_not_read_the_folder) {
    assert_int_equal(chmod(f->path, 0333), 0);
    const sb_status first = write_as_nobody(f->file), again = write_as_nobody(f->file);
    assert_int_equal(chmod(f->path, 0700), 0);
    assert_true(first == SB_OK && again == SB_OK);
    assert_true(is_written(f->file));
}

/* If `down`, makes and enters folders that nest very deeply, else leaves and removes them. */
static bool go_deep(int levels, bool down) {
    char name[201];
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    bool went = true;
    for (int i = 0; i < levels; i++)
        went &= down ? mkdir(name, 0700) == 0 && chdir(name) == 0
                     : chdir("..") == 0 && rmdir(name) == 0;
    return went;
}

TEST_ON(folder, a_save_works_in_a_folder_deeper_than_a_path) {
    enum { LEVELS = 30 };
    assert_int_equal(chdir(f->path), 0);
    assert_true(go_deep(LEVELS, true));
    assert_ok(write_file("blob", &err));
    assert_true(is_written("blob"));
    assert_int_equal(unlink("blob"), 0);
    assert_int_equal(symlink("other", "blob"), 0);
    assert_ok(write_file("blob", &err));
    assert_ok(write_file("./blob", &err));
    assert_true(is_written("other"));
    assert_int_equal(unlink("blob") | unlink("other"), 0);
    assert_true(go_deep(LEVELS, false));
}

/* --- access lists --------------------------------------------------------------------------- */

#define ACCESS  "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"
enum { OWNER = 1, USER = 2, GROUP = 4, NAMED_GROUP = 8, MASK = 16, OTHERS = 32 };

struct list {
    uint8_t bytes[4 + 8 * 300];
    size_t size;
};

static void add_entry(struct list *list, unsigned tag, unsigned permissions, uint32_t id) {
    const uint8_t entry[] = {(uint8_t)tag,         0,
                             (uint8_t)permissions, 0,
                             (uint8_t)id,          (uint8_t)(id >> 8),
                             (uint8_t)(id >> 16),  (uint8_t)(id >> 24)};
    memcpy(list->bytes + list->size, entry, sizeof entry);
    list->size += sizeof entry;
}

/* `digits` has the permissions of owner, named users, group, named group, mask and others. */
static struct list list_of(const char *digits, uint32_t users) {
    struct list list = {{2}, 4};
    add_entry(&list, OWNER, (unsigned)digits[0] - '0', UINT32_MAX);
    for (uint32_t i = 0; i < users; i++)
        add_entry(&list, USER, (unsigned)digits[1] - '0', 1002 + i);
    add_entry(&list, GROUP, (unsigned)digits[2] - '0', UINT32_MAX);
    add_entry(&list, NAMED_GROUP, (unsigned)digits[3] - '0', 1003);
    add_entry(&list, MASK, (unsigned)digits[4] - '0', UINT32_MAX);
    add_entry(&list, OTHERS, (unsigned)digits[5] - '0', UINT32_MAX);
    return list;
}

/* Sets a list of the file, or skips the test if the file system does not support such lists. */
static void set_list(const char *path, const char *which, struct list list) {
    if (setxattr(path, which, list.bytes, list.size, 0) == 0)
        return;
    print_message("skipped: this file system does not support access lists: %s\n", strerror(errno));
    test_skip();
}

static bool has_list(const char *path, struct list expected) {
    struct list found = {.size = 0};
    const ssize_t size = getxattr(path, ACCESS, found.bytes, sizeof found.bytes);
    return expected.size == 0 ? size < 0
                              : size == (ssize_t)expected.size &&
                                    memcmp(found.bytes, expected.bytes, expected.size) == 0;
}

/* The mode of a file with an access list has the list's mask as its group bits. */
TEST_ON(folder, an_access_list_is_kept) {
    static const char *const digits[] = {"660060", "644064", "670770", "600000"};
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        const struct list list = list_of(digits[i], 1);
        file_write(f->file, "old", 3);
        set_list(f->file, ACCESS, list);
        const mode_t before = mode_of(f->file);
        assert_ok(write_file(f->file, &err));
        assert_true(has_list(f->file, list));
        assert_int_equal(mode_of(f->file), before);
        assert_int_equal(unlink(f->file), 0);
    }
}

/* Only new files get the folder's default list, not files that replace old files. */
TEST_ON(folder, the_access_list_of_a_folder_is_for_new_files) {
    static const mode_t modes[] = {0600, 0640, 0664, 0666};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        file_write(f->file, "old", 3);
        assert_int_equal(chmod(f->file, modes[i]), 0);
        set_list(f->path, DEFAULT, list_of("777777", 1));
        assert_ok(write_file(f->file, &err));
        assert_true(has_list(f->file, (struct list){.size = 0}));
        assert_int_equal(mode_of(f->file), modes[i]);
        assert_int_equal(unlink(f->file), 0);
        assert_ok(write_file(f->file, &err)); /* a new file gets the folder's list */
        assert_true(getxattr(f->file, ACCESS, NULL, 0) > 0);
        assert_int_equal(unlink(f->file), 0);
        assert_int_equal(removexattr(f->path, DEFAULT), 0);
    }
}

/* The saved file has the writer's group, so that members of the old group count as others. Group
   and others therefore get only permissions that every entry of the old list grants. */
TEST_ON(folder, without_the_group_an_access_list_is_dropped) {
    static const struct {
        const char *digits;
        mode_t after;
    } rows[] = {{"664464", 0644}, {"664064", 0600}, {"667677", 0666},
                {"660060", 0600}, {"646465", 0644}, {"676757", 0644}};
    skip_unless_root(f);
    assert_int_equal(chmod(f->path, 0777), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file_write(f->file, "old", 3);
        assert_int_equal(chown(f->file, SOMEBODY, SOMEBODY), 0);
        set_list(f->file, ACCESS, list_of(rows[i].digits, 1));
        assert_int_equal(write_as_nobody(f->file), SB_OK);
        assert_int_equal(write_as_nobody(f->file), SB_OK); /* replaces the writer's own file */
        assert_true(has_list(f->file, (struct list){.size = 0}));
        assert_int_equal(mode_of(f->file), rows[i].after);
        assert_int_equal(unlink(f->file), 0);
    }
}

/* The access list has more entries than the library reads. */
TEST_ON(folder, a_list_that_is_too_long_leaves_access_to_the_owner_only) {
    file_write(f->file, "old", 3);
    set_list(f->file, ACCESS, list_of("664464", 290));
    assert_ok(write_file(f->file, &err));
    assert_true(has_list(f->file, (struct list){.size = 0}));
    assert_int_equal(mode_of(f->file), 0600);
}

/* --- leases ----------------------------------------------------------------------------------- */

static int leased;

static void give_back(int signal) {
}

/* Runs in a child. Takes a lease on the file and writes "y" to `answer`, or "n" if the lease was
   refused. Releases the lease 100 ms after the kernel's signal that another process waits. */
static int hold_lease(const char *path, int answer) {
    const struct timespec pause = {0, 100000000};
    sigset_t none;
    (void)sigemptyset(&none);
    leased = open(path, O_RDWR);
    const bool has = leased >= 0 && signal(SIGIO, give_back) != SIG_ERR &&
                     fcntl(leased, F_SETLEASE, F_WRLCK) == 0;
    if (write(answer, has ? "y" : "n", 1) != 1 || !has)
        return 1;
    (void)sigsuspend(&none);
    (void)nanosleep(&pause, NULL);
    return fcntl(leased, F_SETLEASE, F_UNLCK) == 0 ? 0 : 1;
}

TEST_ON(folder, a_read_waits_for_the_end_of_a_lease) {
    int answer[2], status = -1;
    char has = 'n';
    sigset_t io, before;
    assert_ok(write_file(f->file, &err));
    assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
    (void)sigemptyset(&io);
    (void)sigaddset(&io, SIGIO);
    (void)sigprocmask(SIG_BLOCK, &io, &before); /* the child's sigsuspend unblocks SIGIO */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(hold_lease(f->file, answer[1]));
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(read(answer[0], &has, 1), 1);
    const bool read_whole = has == 'y' && is_written(f->file);
    assert_int_equal(waitpid(child, &status, 0), child);
    (void)close(answer[0]);
    (void)close(answer[1]);
    if (has != 'y') {
        print_message("skipped: this file system grants no leases\n");
        test_skip();
    }
    assert_true(read_whole);
    assert_int_equal(status, 0);
}
