/* Tests files on a real file system: paths, links, permissions, access lists and changes. */
#include "blobs.h"
#include "child.h"
#include "files.h"
#include "nets.h"
#include "pointers.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

enum { SOMEBODY = 12345, THEIRS = 23456, OURS = 34567, NOBODY = 65534 };
enum { COUNT = 50000 }; /* more floats than a window or a buffer holds */

struct folder {
    struct rig rig;
    const char *path;
    int here;
    sb_blob *blob;
    sb_model *model;
};

static sb_blob *new_blob(int64_t count) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, count);
    fill_values(SB_DTYPE_F32, count, 0, 1, host_to_write(blob, SB_DATA));
    return blob;
}

static void folder_open(struct folder *folder) {
    rig_open_on(&folder->rig, NULL, 0);
    (void)rig_path(&folder->rig, "file");
    (void)rig_path(&folder->rig, "other");
    folder->path = folder->rig.folder;
    folder->here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(folder->path), 0);
    folder->blob = new_blob(COUNT);
    folder->model = test_model(NULL, SB_FORMAT_SOLVERSTATE);
    assert_ok(sb_model_add_blob(folder->model, SB_NO_LAYER, folder->blob, 0, &err));
}

static void folder_close(struct folder *folder) {
    assert_int_equal(fchdir(folder->here) | close(folder->here), 0);
    rig_close(&folder->rig); /* checks that the folder has no other file */
}

enum { READ_BLOB, OPEN_MODEL, OPEN_MAPPED, READERS };

static sb_status read_with(int reader, const char *path, sb_error *err) {
    sb_blob *blob = new_blob(3);
    sb_model *model = NULL;
    const uint32_t flags = reader == OPEN_MAPPED ? SB_OPEN_MAPPED : 0;
    sb_status st;
    if (reader == READ_BLOB)
        st = sb_blob_load_file(blob, path, SB_PROTO_RESHAPE, NULL, err);
    else
        st = sb_model_open_file(NULL, SB_FORMAT_SOLVERSTATE, path, flags, NULL, &model, err);
    if (model && num_blobs(model, SB_NO_LAYER) > 0)
        st = sb_model_load_blob(model, SB_NO_LAYER, 0, blob, err);
    assert_values(blob, SB_DATA, st != SB_OK || sb_blob_count(blob) < COUNT ? 3 : COUNT, 0);
    sb_model_destroy(model);
    test_end(blob);
    return st;
}

static sb_status write_blob(const struct folder *f, const char *path, sb_error *err) {
    return sb_blob_save_file(f->blob, path, 0, err);
}

static sb_status write_model(const struct folder *f, const char *path, sb_error *err) {
    return sb_model_save_file(f->model, path, err);
}

static void check_readers(const char *path, sb_status status, int error) {
    for (int reader = 0; reader < READERS; reader++) {
        assert_status(status, read_with(reader, path, &err));
        assert_int_equal(err.device_code, error);
    }
}

static void check_writers(const struct folder *f, const char *path, int error, const char *words) {
    for (int i = 0; i < 2; i++) {
        assert_reports(SB_ERR_IO, i ? write_model(f, path, &err) : write_blob(f, path, &err),
                       words);
        assert_int_equal(err.device_code, error);
        assert_null(strstr(err.message, ".syncblob-"));
    }
}

static void assert_whole(const char *path) {
    assert_ok(read_with(READ_BLOB, path, &err));
}

static void assert_saves(const struct folder *f, const char *path, const char *file) {
    assert_ok(write_blob(f, path, &err));
    assert_whole(file);
    assert_int_equal(unlink(file), 0);
}

static struct stat info_of(const char *path) {
    struct stat info = {.st_mode = 0};
    (void)lstat(path, &info);
    return info;
}

static mode_t mode_of(const char *path) {
    return info_of(path).st_mode & 07777;
}

static sb_model *open_model(uint32_t flags) {
    sb_model *model;
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_AUTO, "file", flags, NULL, &model, &err));
    return test_own_model(model);
}

#define NO_FOLDER   " is in a directory that cannot be opened: No such file or directory"
#define NOT_REGULAR " cannot be replaced: it is not a regular file"
#define NOT_WRITTEN " cannot be written: "

static char endless[10000], dots[4095];

TEST_ON(folder, paths_of_other_things_than_files_are_refused) {
    static const struct {
        const char *path, *link;
        int reads, writes; /* the expected errno, or 0 if not tried */
        const char *words;
    } rows[] = {
        {"", NULL, ENOENT, ENOENT, NOT_WRITTEN},
        {"other", NULL, ENOENT, 0, NULL},
        {".", NULL, EISDIR, EISDIR, NOT_REGULAR},
        {"/", NULL, EISDIR, EISDIR, NOT_REGULAR},
        {"not/there", NULL, ENOENT, ENOENT, "\"not/there\"" NO_FOLDER},
        {"not/", NULL, ENOENT, ENOENT, NO_FOLDER},
        {endless, NULL, ENAMETOOLONG, ENAMETOOLONG, NOT_WRITTEN},
        {"/dev/null", NULL, EINVAL, 0, NULL}, /* a save could replace the device */
        {"file", "file", ELOOP, ELOOP, "\"file\"" NOT_WRITTEN},
        {"file", "other", ENOENT, 0, NULL},
        {"file", ".", EISDIR, EISDIR, "\".\"" NOT_REGULAR},
        {"file", "not/there", ENOENT, ENOENT, "\"not/there\"" NO_FOLDER},
        {"file", "not/", ENOENT, ENOENT, "\"not/\"" NO_FOLDER},
        {"file", "fifo", EINVAL, EINVAL, "\"fifo\"" NOT_REGULAR},
        {"./file", dots, ENOENT, ENAMETOOLONG, NOT_WRITTEN}, /* too long with "./" */
        {"fifo", NULL, EINVAL, EINVAL, NOT_REGULAR},         /* an open of a FIFO must not block */
    };
    memset(endless, 'a', sizeof endless - 1);
    for (size_t i = 0; i < sizeof dots - 1; i++)
        dots[i] = "./"[i % 2];
    dots[sizeof dots - 3] = dots[sizeof dots - 2] = 'x';
    assert_int_equal(mkfifo(rig_path(&f->rig, "fifo"), 0600), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].link)
            assert_int_equal(symlink(rows[i].link, "file"), 0);
        const struct stat before = info_of(rows[i].path);
        check_readers(rows[i].path, SB_ERR_IO, rows[i].reads);
        if (rows[i].writes)
            check_writers(f, rows[i].path, rows[i].writes, rows[i].words);
        const struct stat after = info_of(rows[i].path);
        assert_true(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
        assert_int_equal(rows[i].link ? unlink("file") : 0, 0);
    }
}

TEST_ON(folder, sizes_of_files_are_checked) {
    static const char claim[] = "\x2a\x80\x80\x80\x80\x04"; /* data of 2^30 bytes */
    check_readers("/proc/self/status", SB_ERR_IO, 0);
    assert_non_null(strstr(err.message, "has a size of 0, but contains bytes"));
    file_write("file", "", 0);
    assert_ok(read_with(OPEN_MODEL, "file", &err));
    assert_ok(read_with(OPEN_MAPPED, "file", &err));
    assert_int_equal(truncate("file", 1 << 30), 0);
    check_readers("file", SB_ERR_MALFORMED, 0);
    file_write("file", claim, sizeof claim - 1);
    assert_int_equal(truncate("file", (off_t)sizeof claim - 1 + (1 << 30)), 0);
    sb_blob *blob = test_unshaped(f->rig.context, SB_DTYPE_F32);
    assert_status(SB_ERR_LENGTH_MISMATCH,
                  sb_blob_load_file(blob, "file", SB_PROTO_RESHAPE, NULL, &err));
    assert_int_equal(f->rig.counting.buffer_calls, 0);
}

TEST_ON(folder, a_save_to_a_link_writes_the_file_that_the_link_names) {
    assert_int_equal(mkdir("inside", 0700) | symlink("../other", "inside/first"), 0);
    const char *const texts[] = {"other", rig_path(&f->rig, "other"), "inside/first"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(symlink(texts[i], "file"), 0);
        assert_ok(write_blob(f, "file", &err));
        assert_saves(f, "file", "other");
        assert_true(S_ISLNK(info_of("file").st_mode) && S_ISLNK(info_of("inside/first").st_mode));
        assert_int_equal(unlink("file"), 0);
    }
    assert_int_equal(unlink("inside/first") | rmdir("inside"), 0);
}

/* Linux follows at most 40 links. */
TEST_ON(folder, the_last_of_many_links_names_the_new_file) {
    for (int count = 39; count <= 41; count += 2) {
        char link[8] = "0", next[8];
        for (int n = 0; n < count; n++) {
            (void)snprintf(link, sizeof link, "%d", n);
            (void)snprintf(next, sizeof next, "%d", n + 1);
            assert_int_equal(symlink(n + 1 == count ? "other" : next, link), 0);
        }
        if (count == 39)
            assert_saves(f, "0", "other");
        else
            check_writers(f, "0", ELOOP, NOT_WRITTEN);
        for (int n = 0; n < count; n++) {
            (void)snprintf(link, sizeof link, "%d", n);
            assert_int_equal(unlink(link), 0);
        }
    }
}

TEST_ON(folder, a_save_to_a_descriptor_is_refused) {
    char link[64];
    int ends[2];
    file_write("file", "old", 3);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const int descriptors[] = {open("file", O_RDWR | O_CLOEXEC),
                               memfd_create("syncblob-memory", MFD_CLOEXEC), ends[1], ends[0]};
    for (int i = 0; i < 6; i++) {
        if (i == 3) /* the kernel now appends " (deleted)" to the text of the first link */
            assert_true(file_holds("file", "old") && unlink("file") == 0);
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptors[i % 3]);
        check_writers(f, link, EINVAL, "leads to an open file");
    }
    assert_int_equal(symlink(link, "file"), 0);
    check_writers(f, "file", EINVAL, "leads to an open file");
    for (int i = 0; i < 4; i++)
        (void)close(descriptors[i]);
}

/* The kernel follows a link to an open folder in /proc/self, whatever the link's text is. The path
   of the current folder may be longer than PATH_MAX. */
TEST_ON(folder, a_folder_may_be_named_by_its_descriptor_or_be_deep) {
    enum { LEVELS = 30 };
    char path[64], name[201] = "";
    const int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/file", folder);
    assert_saves(f, path, "file");
    assert_saves(f, "/proc/self/cwd/file", "file");
    memset(name, 'd', sizeof name - 1);
    for (int i = 0; i < LEVELS; i++)
        assert_int_equal(mkdir(name, 0700) | chdir(name), 0);
    assert_saves(f, "blob", "blob");
    assert_int_equal(symlink("other", "blob"), 0);
    assert_saves(f, "./blob", "other");
    assert_int_equal(unlink("blob"), 0);
    for (int i = 0; i < LEVELS; i++)
        assert_int_equal(chdir("..") | rmdir(name), 0);
    (void)close(folder);
}

TEST_ON(folder, descriptor_0_works_like_any_other) {
    const int kept = dup(0), closed = close(0);
    const sb_status written = write_blob(f, "file", &err);
    const sb_status read = read_with(READ_BLOB, "file", &err);
    const sb_status refused = write_blob(f, ".", &err);
    const bool open = fcntl(0, F_GETFD) >= 0;
    if (closed == 0)
        (void)dup2(kept, 0);
    (void)close(kept);
    assert_true(written == SB_OK && read == SB_OK && refused == SB_ERR_IO && !open);
}

TEST_ON(folder, a_mapped_file_is_unmapped) {
    assert_ok(write_model(f, "file", &err)); /* 200 kB */
    const size_t before = process_memory_now().mapped;
    for (int i = 0; i < 500; i++)
        test_end(open_model(SB_OPEN_MAPPED));
    assert_true(process_memory_now().mapped < before + ((size_t)50 << 20));
}

enum { SAVED, LINKED, UNLINKED, WRITTEN, A_NANOSECOND_LATER, A_SECOND_LATER, LONGER, SHORTER };

static void change(int how, const sb_model *model) {
    const int fd = open("file", O_WRONLY | O_CLOEXEC);
    const struct timespec long_ago = {1000, 0}, pause = {0, 30000000};
    const struct timespec times[] = {long_ago,
                                     {1000 + (how == A_SECOND_LATER), how == A_NANOSECOND_LATER}};
    (void)nanosleep(&pause, NULL); /* gives later changes another time */
    if (how == SAVED)
        assert_ok(sb_model_save_file(model, "file", &err));
    if (how == LINKED || how == UNLINKED)
        assert_int_equal(how == LINKED ? link("file", "other") : unlink("file"), 0);
    if (how == WRITTEN)
        assert_int_equal(pwrite(fd, "xyz", 3, 1000), 3);
    if (how == LONGER || how == SHORTER)
        assert_int_equal(ftruncate(fd, how == LONGER ? 400000 : 4), 0);
    assert_int_equal(how < WRITTEN ? 0 : futimens(fd, times), 0);
    (void)close(fd);
}

/* `change` restores the modification time, but no program can set the ctime. To create or remove a
   hard link is not a change, but sets the ctime. */
TEST_ON(folder, a_change_of_an_open_file_is_noticed) {
    static const struct timespec long_ago[] = {{1000, 0}, {1000, 0}};
    for (int how = SAVED; how <= SHORTER; how++)
        /* A read of a mapped file that was shortened raises SIGBUS, as documented. */
        for (uint32_t flags = 0; flags <= (how < SHORTER ? SB_OPEN_MAPPED : 0);
             flags += SB_OPEN_MAPPED) {
            static unsigned char buffer[4 * COUNT + 100];
            sb_blob *blob = new_blob(3);
            assert_ok(write_model(f, "file", &err));
            assert_int_equal(utimensat(AT_FDCWD, "file", long_ago, 0), 0);
            sb_model *model = open_model(flags);
            change(how, model);
            const sb_status st = sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err);
            assert_int_equal(st, how < WRITTEN ? SB_OK : SB_ERR_IO);
            assert_values(blob, SB_DATA, st == SB_OK ? COUNT : 3, 0);
            if (st != SB_OK) {
                assert_non_null(strstr(err.message, "changed while it was read"));
                assert_status(SB_ERR_IO, sb_model_save_file(model, "other", &err));
                assert_int_equal(access("other", F_OK), -1);
                assert_status(SB_ERR_IO, sb_model_save(model, buffer, sizeof buffer, NULL, &err));
                assert_true(bytes_are(buffer, sizeof buffer, 0));
            }
            (void)(unlink("file") | unlink("other"));
        }
}

/* Releases the child's copy of the rig's context, which valgrind would report as possibly lost. */
static void become_nobody(struct folder *f) {
    const gid_t groups[] = {OURS};
    child_wants(geteuid() != 0 ||
                (setgroups(1, groups) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
    sb_context_release(f->rig.context);
}

static void save_twice(void *f) {
    become_nobody(f);
    for (int i = 0; i < 2; i++)
        child_wants(write_blob(f, "file", NULL) == SB_OK);
}

static void is_denied(void *f) {
    become_nobody(f);
    for (int reader = 0; reader < READERS; reader++)
        child_wants(read_with(reader, "file", &err) == SB_ERR_IO && err.device_code == EACCES);
    for (int i = 0; i < 2; i++) {
        const char *path = i ? "other" : "file";
        child_wants(write_blob(f, path, &err) == SB_ERR_IO && err.device_code == EACCES);
        child_wants(write_model(f, path, &err) == SB_ERR_IO && err.device_code == EACCES);
    }
}

TEST_ON(folder, access_to_the_folder_decides) {
    static const struct {
        mode_t folder;
        void (*task)(void *f);
    } rows[] = {{0555, is_denied}, {0, is_denied}, {0333, save_twice}};
    for (int i = 0; i < 3; i++) {
        file_write("file", "old", 3);
        assert_int_equal(chmod("file", 0) | symlink("new", "other") | chmod(".", rows[i].folder),
                         0);
        const int status = status_in_child(rows[i].task, f);
        /* Restores the folder even if the child has failed. */
        assert_int_equal(chmod(f->path, 0700) | chmod("file", 0600) | unlink("other"), 0);
        assert_child_status(status);
        assert_int_equal(file_holds("file", "old"), rows[i].task == is_denied);
        assert_int_equal(unlink("file"), 0);
    }
}

#define ACCESS  "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

/* `digits` has the permissions of the owner, named users, the group, a named group, the mask and
   others. In the mode of a file with a list, the group bits are the mask. */
static struct wire list_of(const char *digits, uint32_t users) {
    struct wire list = {0};
    wire_raw(&list, "\2\0\0\0", 4);
    for (int i = 0; i < 6; i++)
        for (uint32_t k = 0; k < (i == 1 ? users : 1); k++) {
            const uint32_t id = i == 1 ? 1002 + k : i == 3 ? 1003 : UINT32_MAX;
            wire_raw(&list, (const char[]){(char)(1 << i), 0, (char)(digits[i] - '0'), 0}, 4);
            wire_value(&list, &id, sizeof id);
        }
    return list;
}

static void set_list(const char *path, const char *which, const struct wire *list) {
    if (setxattr(path, which, list->bytes, list->size, 0) == 0)
        return;
    (void)(unlink("file") | chmod(".", 0700));
    print_message("skipped: this file system does not support access lists: %s\n", strerror(errno));
    test_skip();
}

static void assert_list(const struct wire *expected) {
    unsigned char bytes[4000];
    const ssize_t size = getxattr("file", ACCESS, bytes, sizeof bytes);
    const struct wire found = {bytes, size < 0 ? 0 : (size_t)size, 0};
    assert_wire(&found, expected ? expected : &(struct wire){0});
}

TEST_ON(folder, nobody_gets_more_access) {
    static const struct {
        uid_t writer;
        gid_t group;
        mode_t mode;
        const char *list; /* NULL if the file has no list */
        gid_t kept;
        mode_t after;
    } rows[] = {
        {0, THEIRS, 0600, NULL, THEIRS, 0600},       {0, THEIRS, 0664, NULL, THEIRS, 0664},
        {0, THEIRS, 0604, NULL, THEIRS, 0604},       {0, THEIRS, 06755, NULL, THEIRS, 0755},
        {0, THEIRS, 0, "660060", THEIRS, 0660},      {0, THEIRS, 0, "600000", THEIRS, 0600},
        {0, THEIRS, 0, "644064", THEIRS, 0664},      {0, THEIRS, 0, "670770", THEIRS, 0670},
        {NOBODY, OURS, 0664, NULL, OURS, 0664},      {NOBODY, OURS, 0640, NULL, OURS, 0640},
        {NOBODY, THEIRS, 0640, NULL, NOBODY, 0600},  {NOBODY, THEIRS, 0664, NULL, NOBODY, 0644},
        {NOBODY, THEIRS, 0604, NULL, NOBODY, 0600},  {NOBODY, THEIRS, 0666, NULL, NOBODY, 0666},
        {NOBODY, THEIRS, 0701, NULL, NOBODY, 0700},  {NOBODY, THEIRS, 0, "664464", NOBODY, 0644},
        {NOBODY, THEIRS, 0, "664064", NOBODY, 0600}, {NOBODY, THEIRS, 0, "667677", NOBODY, 0666},
        {NOBODY, THEIRS, 0, "660060", NOBODY, 0600}, {NOBODY, THEIRS, 0, "646465", NOBODY, 0644},
        {NOBODY, THEIRS, 0, "676757", NOBODY, 0644},
    };
    assert_int_equal(chmod(".", 0777), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct wire list = list_of(rows[i].list ? rows[i].list : "000000", 1);
        file_write("file", "old", 3);
        if (chown("file", SOMEBODY, rows[i].group) != 0) {
            assert_int_equal(unlink("file"), 0);
            print_message("skipped: only root may change owners\n");
            test_skip();
        }
        assert_int_equal(chmod("file", rows[i].mode), 0);
        if (rows[i].list)
            set_list("file", ACCESS, &list);
        if (rows[i].writer)
            assert_child_status(status_in_child(save_twice, f));
        else
            assert_ok(write_blob(f, "file", &err));
        const struct stat info = info_of("file");
        assert_int_equal(info.st_uid, rows[i].writer ? NOBODY : SOMEBODY);
        assert_int_equal(info.st_gid, rows[i].kept);
        assert_int_equal(info.st_mode & 07777, rows[i].after);
        assert_list(rows[i].list && !rows[i].writer ? &list : NULL);
        assert_int_equal(unlink("file"), 0);
    }
}

TEST_ON(folder, a_file_keeps_its_mode_and_a_new_file_gets_that_of_the_mask) {
    static const mode_t modes[] = {0600, 0664, 0400, 06755}, masks[] = {0, 022, 027};
    for (int i = 0; i < 4; i++) {
        file_write("file", "old", 3);
        assert_int_equal(chmod("file", modes[i]) | link("file", "other"), 0);
        assert_ok(write_blob(f, "file", &err));
        assert_int_equal(mode_of("file"), modes[i] & 0777);
        assert_true(file_holds("other", "old"));
        assert_int_equal(unlink("file") | unlink("other"), 0);
    }
    for (int i = 0; i < 3; i++) {
        const mode_t old = umask(masks[i]);
        assert_ok(write_blob(f, "file", &err));
        (void)umask(old);
        assert_int_equal(mode_of("file"), 0666 & ~masks[i]);
        assert_int_equal(unlink("file"), 0);
    }
}

TEST_ON(folder, lists_of_folders_and_lists_that_are_too_long) {
    const struct wire all = list_of("777777", 1), none = list_of("664464", 290);
    file_write("file", "old", 3);
    assert_int_equal(chmod("file", 0640), 0);
    set_list(".", DEFAULT, &all);
    assert_ok(write_blob(f, "file", &err));
    assert_list(NULL);
    assert_int_equal(mode_of("file"), 0640);
    assert_int_equal(unlink("file"), 0);
    assert_ok(write_blob(f, "file", &err));
    assert_true(getxattr("file", ACCESS, NULL, 0) > 0);
    set_list("file", ACCESS, &none);
    assert_ok(write_blob(f, "file", &err));
    assert_list(NULL);
    assert_int_equal(mode_of("file"), 0600);
}
