/* Tests blob files: reads, atomic writes, and paths that are not blob files. */
#include "folder.h"
#include "nets.h"
#include "process_memory.h"

static const int64_t two_by_three[] = {2, 3};

static sb_status read_file(const char *path, sb_error *err) {
    sb_blob *blob = new_blob(3);
    sb_status st = sb_blob_load_file(blob, path, SB_PROTO_RESHAPE, NULL, err);
    if (st != SB_OK)
        assert_int_equal(sb_blob_count(blob), 3); /* a failed load changes nothing */
    test_end(blob);
    return st;
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
    for (size_t i = 0; i < sizeof buffer; i++)
        assert_int_equal(buffer[i], 0x5a);
    return st;
}

TEST_ON(folder, test_a_file_that_changes_while_a_model_is_open) {
    static const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    static const struct timespec later[][2] = {{{1000, 0}, {1000, 1}}, {{1000, 0}, {1001, 0}}};
    for (int change = 0; change < 5; change++) {
        /* Change 0 shrinks the file. The test does not shrink a mapped file, because reads of
           the file would raise SIGBUS, as documented. */
        for (uint32_t flags = 0; flags <= (change ? SB_OPEN_MAPPED : 0); flags += SB_OPEN_MAPPED) {
            struct wire wire = {0};
            sb_blob *blob = new_blob(3);
            wire_blob(&wire, two_by_three, 2, 1);
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
        assert_status(SB_ERR_IO, sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
        assert_non_null(strstr(err.message, "changed while it was read"));
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

static void assert_owned(const char *path, uid_t owner, gid_t group, mode_t mode) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_uid, owner);
    assert_int_equal(info.st_gid, group);
    assert_int_equal(info.st_mode & 07777, mode);
}

static void new_file_of(const char *path, gid_t group, mode_t mode) {
    file_write(path, "old", 3);
    assert_int_equal(chown(path, SOMEBODY, group), 0);
    assert_int_equal(chmod(path, mode), 0);
}

TEST_ON(folder, test_root_keeps_owner_and_group) {
    static const mode_t modes[] = {0600, 0644, 0660, 0604, 0400};
    skip_unless_root(f);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        new_file_of(f->file, THEIRS, modes[i]);
        assert_ok(write_file(f->file, &err));
        assert_owned(f->file, SOMEBODY, THEIRS, modes[i]);
        assert_int_equal(unlink(f->file), 0);
    }
}

TEST_ON(folder, test_without_the_group_nobody_gets_more_access) {
    static const struct {
        gid_t group, kept;
        mode_t before, after;
    } rows[] = {
        /* The writer is a member of the old file's group. */
        {OURS, OURS, 0664, 0664},
        {OURS, OURS, 0640, 0640},
        /* Group and others get only permissions that the old group and others both had. */
        {THEIRS, NOBODY, 0640, 0600},
        {THEIRS, NOBODY, 0664, 0644},
        {THEIRS, NOBODY, 0604, 0600},
        {THEIRS, NOBODY, 0666, 0666},
        {THEIRS, NOBODY, 0600, 0600},
        {THEIRS, NOBODY, 0444, 0444},
        {THEIRS, NOBODY, 0701, 0700},
    };
    skip_unless_root(f);
    assert_int_equal(chmod(f->path, 0777), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        new_file_of(f->file, rows[i].group, rows[i].before);
        assert_int_equal(write_as_nobody(f->file), SB_OK);
        assert_owned(f->file, NOBODY, rows[i].kept, rows[i].after);
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

TEST_ON(folder, test_no_other_program_inherits_an_open_file) {
    struct stat file, there;
    int found = 0;
    assert_ok(write_file(f->file, &err));
    assert_int_equal(stat(f->file, &file), 0);
    (void)open_model(f->file, SB_FORMAT_AUTO, 0);
    for (int fd = 0; fd < 256; fd++)
        if (fstat(fd, &there) == 0 && there.st_ino == file.st_ino && there.st_dev == file.st_dev) {
            assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
            found++;
        }
    assert_int_equal(found, 1);
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
