/* Tests saves to links that lead to open files, saves in folders that may not be read or that have
   no path, access lists of saved files, and reads of files on which another process has a lease. */
#include "folder.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/xattr.h>

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

TEST_ON(folder, a_save_to_standard_output_is_refused) {
    assert_int_equal(fflush(stdout), 0);
    const int kept = dup(1), file = open(f->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && file >= 0);
    assert_int_equal(dup2(file, 1), 1);
    const sb_status st = write_file("/dev/stdout", &err);
    assert_int_equal(dup2(kept, 1), 1);
    (void)close(kept);
    (void)close(file);
    assert_int_equal(st, SB_ERR_IO);
    assert_non_null(strstr(err.message, "leads to an open file"));
    assert_true(file_holds(f->file, ""));
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
