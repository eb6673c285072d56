/* Replaces a file while a system call fails. */
#include "blobs.h"
#include "files.h"
#include "nets.h"
#include "pointers.h"
#include "system_calls.h"

#include <syncblob/io.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define LIST "system.posix_acl_access"

enum file_contents { OLD, NEW };

/* The rows omit EINTR, which test_formats.c tests. */
static const struct row {
    const char *function;
    int nth, last, error;
    sb_status status;
    int code;
    const char *words;
    enum file_contents after;
} rows[] = {
    {"fstatat", 1, 1, EIO, SB_ERR_IO, EIO, "not a regular file", OLD},
    {"getrandom", 1, 1, EIO, SB_ERR_IO, EIO, "temporary file in the same directory", OLD},
    {"open", 1, 1, EIO, SB_ERR_IO, EIO, "in a directory that cannot be opened", OLD},
    {"open", 1, 1, EACCES, SB_OK, 0, NULL, NEW}, /* no permission to read the folder */
    {"open", 1, 2, EACCES, SB_ERR_IO, EACCES, "in a directory that cannot be opened", OLD},
    {"readlinkat", 1, 1, EIO, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"openat", 1, 1, EACCES, SB_ERR_IO, EACCES, "temporary file in the same directory", OLD},
    {"openat", 1, 1, EEXIST, SB_OK, 0, NULL, NEW}, /* the library tries another name */
    {"openat", 1, 99, EEXIST, SB_OK, 0, NULL, NEW},
    {"openat", 1, 100, EEXIST, SB_ERR_IO, EEXIST, "temporary file in the same directory", OLD},
    {"fstat", 1, 1, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"fstat", 2, 2, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"fstat", 3, 3, EIO, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"lgetxattr", 1, 1, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"lgetxattr", 1, 1, ENOTSUP, SB_OK, 0, NULL, NEW}, /* not supported by this file system */
    {"lgetxattr", 1, 1, ENOSYS, SB_OK, 0, NULL, NEW},
    {"lgetxattr", 1, 1, EINVAL, SB_OK, 0, NULL, NEW},
    {"fremovexattr", 1, 1, EIO, SB_ERR_IO, EIO, "permissions that cannot be kept", OLD},
    {"fremovexattr", 1, 1, ENOTSUP, SB_OK, 0, NULL, NEW},
    {"fchmod", 1, 1, EPERM, SB_ERR_IO, EPERM, "permissions that cannot be kept", OLD},
    {"write", 1, 1, ENOSPC, SB_ERR_IO, ENOSPC, "cannot be written", OLD},
    {"write", 2, 2, ENOSPC, SB_ERR_IO, ENOSPC, "cannot be written", OLD},
    {"write", 1, 1, NOTHING, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"write", 1, 9, SHORT, SB_OK, 0, NULL, NEW},
    {"fsync", 1, 1, EIO, SB_ERR_IO, EIO, "cannot be written", OLD},
    {"close", 1, 1, EINTR, SB_OK, 0, NULL, NEW}, /* EINTR does not mean that bytes were lost */
    {"close", 1, 1, EDQUOT, SB_ERR_IO, EDQUOT, "cannot be written", OLD},
    {"renameat", 1, 1, EXDEV, SB_ERR_IO, EXDEV, "cannot be written", OLD},
    {"fsync", 2, 2, EBADF, SB_OK, 0, NULL, NEW}, /* the folder could not be opened for reading */
    {"fsync", 2, 2, ENOTSUP, SB_OK, 0, NULL, NEW},
    {"fsync", 2, 2, ENOSYS, SB_OK, 0, NULL, NEW},
    {"fsync", 2, 2, EIO, SB_ERR_IO, EIO, "is in place, but", NEW},
    {"fsync", 2, 2, EINVAL, SB_OK, 0, NULL, NEW}, /* not supported by this file system */
    {"close", 2, 2, EIO, SB_OK, 0, NULL, NEW},
};

static sb_status write_blob(const sb_blob *blob, const char *file, const struct row *row,
                            sb_error *err) {
    fault_set((struct system_fault){row->function, row->nth, row->last, row->error, 0});
    const sb_status st = sb_blob_save_file(blob, file, 0, err);
    const int calls = fault_end();
    if (calls < row->last)
        fail_with("%s was called %d times, not %d", row->function, calls, row->last);
    return st;
}

static void check_bytes(const char *file, const struct wire *whole, bool is_new, uint64_t seed) {
    struct wire there = wire_of_file(file);
    const bool is_whole =
        there.size == whole->size && memcmp(there.bytes, whole->bytes, whole->size) == 0;
    const bool is_old = there.size == 3 && memcmp(there.bytes, "old", 3) == 0;
    wire_free(&there);
    if (is_new ? !is_whole : !is_old)
        fail_with("seed %llu: according to the status the file should be %s, but it is %s",
                  (unsigned long long)seed, is_new ? "new" : "old",
                  is_whole ? "new"
                  : is_old ? "old"
                           : "neither");
}

static void check_descriptors(void) {
    assert_int_equal(descriptors.open, 0);
    assert_false(descriptors.closed_twice || descriptors.inherited || descriptors.shown);
}

struct scene {
    struct rig rig;
    const char *file, *made; /* in a folder that has one other file */
    sb_blob *blob;
    sb_model *model; /* contains `blob`, and a blob of the other file */
    struct wire whole, whole_model;
};

static void scene_open(struct scene *s) {
    static const int64_t count = 100000;
    static const struct row nothing = {.words = ""};
    rig_open_on(&s->rig, NULL, 0);
    s->file = rig_path(&s->rig, "blob");
    s->made = rig_path(&s->rig, "made");
    const char *source = rig_path(&s->rig, "source");
    s->blob = test_vector(s->rig.context, SB_DTYPE_F32, count);
    fill_values(SB_DTYPE_F32, count, 0, 1, blob_pointer(s->blob, SB_DATA, OVERWRITE_CPU));
    assert_ok(write_blob(s->blob, s->file, &nothing, &err));
    s->whole = wire_of_file(s->file);
    s->model = test_model(s->rig.context, SB_FORMAT_SOLVERSTATE);
    assert_ok(sb_model_add_blob(s->model, SB_NO_LAYER, s->blob, 0, &err));
    assert_ok(sb_model_save_file(s->model, source, &err));
    assert_ok(sb_model_open_file(s->rig.context, SB_FORMAT_AUTO, source, 0, NULL, &s->model, &err));
    assert_ok(sb_model_add_blob(s->model, SB_NO_LAYER, s->blob, 0, &err));
    assert_ok(sb_model_save_file(s->model, s->file, &err));
    s->whole_model = wire_of_file(s->file);
    assert_int_equal(unlink(s->file), 0);
}

static void scene_close(struct scene *s) {
    sb_model_destroy(s->model);
    rig_close(&s->rig);
}

static void check(const struct scene *s, const struct row *row) {
    file_write(s->file, "old", 3);
    descriptors = (struct descriptors){.open = 0};
    assert_status(row->status, write_blob(s->blob, s->file, row, &err));
    if (row->status != SB_OK) {
        assert_int_equal(err.device_code, row->code);
        assert_non_null(strstr(err.message, row->words));
    }
    check_descriptors();
    assert_int_equal(files_in(s->rig.folder), 2);
    check_bytes(s->file, &s->whole, row->after == NEW, 0);
    assert_int_equal(unlink(s->file), 0);
}

TEST_ON(scene, after_any_failure_the_file_is_the_old_or_the_new_one) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(f, &rows[i]);
}

/* An access control list, version 2: entries for owner, user 1002, group, mask and all others. */
static const uint8_t list[] = {2,    0,    0,    0,    1,    0,    6,  0,    0xff, 0xff, 0xff,
                               0xff, 2,    0,    6,    0,    0xea, 3,  0,    0,    4,    0,
                               4,    0,    0xff, 0xff, 0xff, 0xff, 16, 0,    6,    0,    0xff,
                               0xff, 0xff, 0xff, 32,   0,    0,    0,  0xff, 0xff, 0xff, 0xff};

static const struct {
    const char *name;
    const char *lacks[4];
    int with;
    bool one_mode;
    enum {
        NEVER,
        IF_MODE_IS_RIGHT,
        ALWAYS
    } saves; /* whether a save succeeds if no other call fails */
} file_systems[] = {
    {"all there", {NULL}, 0, false, ALWAYS},
    {"one mode for all", {"fchmod", "fchown"}, EPERM, true, ALWAYS},
    {"one mode for all, ENOSYS", {"fchmod", "fchown"}, ENOSYS, true, ALWAYS},
    {"no modes", {"fchmod"}, EPERM, false, IF_MODE_IS_RIGHT},
    {"no owners", {"fchown"}, EPERM, false, ALWAYS},
    {"no lists", {"lgetxattr", "fsetxattr", "fremovexattr"}, ENOTSUP, false, ALWAYS},
    {"no such calls", {"lgetxattr", "fsetxattr", "fremovexattr"}, ENOSYS, false, ALWAYS},
    {"no new lists", {"fsetxattr"}, EPERM, false, ALWAYS},
    {"no new lists, ENOTSUP", {"fsetxattr"}, ENOTSUP, false, ALWAYS},
    {"no new lists, EINVAL", {"fsetxattr"}, EINVAL, false, ALWAYS},
    {"no new lists, ENOSPC", {"fsetxattr"}, ENOSPC, false, ALWAYS},
    {"no links", {"readlinkat"}, EINVAL, false, ALWAYS},
    {"no fsync", {"fsync"}, EINVAL, false, NEVER},
    {"no fsync, ENOSYS", {"fsync"}, ENOSYS, false, NEVER},
    {"read-only", {"openat", "fchmod", "renameat", "unlinkat"}, EROFS, false, NEVER},
};

/* Without the access list, the new mode grants only permissions that every entry grants. */
static void save_at_random(const struct scene *s, size_t system, int one_in, uint64_t seed) {
    static const mode_t modes[] = {0600, 0640, 0664, 0604};
    const mode_t mode = modes[seed / 2 % 4];
    const bool is_model = seed % 2, is_dangling = one_in > 0 && seed % 5 == 4;
    struct stat info;
    sb_error err = {.code = SB_OK};
    file_write(s->file, "old", 3);
    const bool listed =
        !is_dangling && seed % 3 == 0 && setxattr(s->file, LIST, list, sizeof list, 0) == 0;
    assert_int_equal(chmod(s->file, mode), 0);
    if (is_dangling)
        assert_true(unlink(s->file) == 0 && symlink("made", s->file) == 0);
    struct world w = {.with = file_systems[system].with,
                      .one_mode = file_systems[system].one_mode,
                      .one_in = one_in,
                      .random = seed};
    memcpy(w.lacks, file_systems[system].lacks, sizeof w.lacks);
    descriptors = (struct descriptors){.open = 0};
    world = &w;
    const sb_status st = is_model ? sb_model_save_file(s->model, s->file, &err)
                                  : sb_blob_save_file(s->blob, s->file, 0, &err);
    const bool keeps_lists = !world_lacks("lgetxattr");
    world = NULL;
    const bool is_new = st == SB_OK || strstr(err.message, "is in place") != NULL;
    if (st != SB_OK && st != SB_ERR_IO)
        fail_with("seed %llu: %s", (unsigned long long)seed, err.message);
    const unsigned saves = file_systems[system].saves;
    const bool works = saves == ALWAYS || (saves == IF_MODE_IS_RIGHT && (mode == 0600 || listed));
    if (one_in == 0 && (st == SB_OK) != works)
        fail_with("%s: %s", file_systems[system].name, err.message);
    if (is_dangling) {
        char link[8];
        descriptors.shown = false; /* a new file gets its mode from the umask */
        assert_int_equal(readlink(s->file, link, sizeof link), 4);
        assert_int_equal(access(s->made, F_OK) == 0, is_new);
        if (!is_new)
            file_write(s->made, "old", 3);
        assert_int_equal(rename(s->made, s->file), 0);
    }
    check_bytes(s->file, is_model ? &s->whole_model : &s->whole, is_new, seed);
    if (remove_leftovers(s->rig.folder) > w.failed_unlinks)
        fail_with("seed %llu: a temporary file is left", (unsigned long long)seed);
    assert_int_equal(files_in(s->rig.folder), 2);
    check_descriptors();
    assert_int_equal(stat(s->file, &info), 0);
    if ((info.st_mode & 07777 & ~mode) != 0 && !w.one_mode && !is_dangling)
        fail_with("seed %llu: the mode was %o and is %o", (unsigned long long)seed, mode,
                  info.st_mode & 07777);
    if (is_new && listed && getxattr(s->file, LIST, NULL, 0) < 0 && keeps_lists)
        assert_int_equal(info.st_mode & 077 & ~((4 & mode >> 3 & mode) * 011), 0);
    assert_int_equal(unlink(s->file), 0);
}

TEST_ON(scene, saves_survive_random_failures) {
    const uint64_t rounds = test_is_full() ? 20000 : test_is_quick() ? 100 : 600;
    for (size_t system = 0; system < sizeof file_systems / sizeof *file_systems; system++) {
        for (uint64_t seed = 0; seed < 24; seed++)
            save_at_random(f, system, 0, seed);
        for (uint64_t seed = 0; seed < rounds; seed++)
            save_at_random(f, system, seed % 5 == 0 ? 3 : seed % 5 == 1 ? 100 : 15, seed);
    }
}

/* A network file system may lose the reply to a successful rename. */
TEST_ON(scene, a_rename_that_was_done_is_not_a_failure) {
    for (int error = 1; error < 134; error++) {
        struct world w = {.lacks = {"renameat"},
                          .with = error == EINTR ? ENOENT : error,
                          .rename_is_lost = true,
                          .random = (uint64_t)error};
        file_write(f->file, "old", 3);
        world = &w;
        const sb_status st = sb_blob_save_file(f->blob, f->file, 0, &err);
        world = NULL;
        assert_int_equal(st, w.lost ? SB_OK : SB_ERR_IO);
        check_bytes(f->file, &f->whole, w.lost, (uint64_t)error);
        assert_int_equal(files_in(f->rig.folder), 2);
        assert_int_equal(unlink(f->file), 0);
    }
}

/* Another process's lease makes open fail with EAGAIN until the kernel breaks the lease. */
TEST_ON(scene, a_read_waits_for_the_end_of_a_lease) {
    struct timespec start, end;
    file_write(f->file, "\x2a\4\0\0\0\0", 6);
    fault_set((struct system_fault){"open", 1, 4, EAGAIN, 0});
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    assert_ok(sb_blob_load_file(f->blob, f->file, SB_PROTO_RESHAPE, NULL, &err));
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    assert_int_equal(fault_end(), 5);
    assert_true(end.tv_sec > start.tv_sec || end.tv_nsec - start.tv_nsec >= 10000000);
    fault_set((struct system_fault){"open", 1, 1, EAGAIN, 0}); /* a folder has no lease */
    assert_status(SB_ERR_IO, sb_blob_load_file(f->blob, f->rig.folder, 0, NULL, &err));
    assert_int_equal(err.device_code, EAGAIN);
    assert_int_equal(fault_end(), 1);
}

TEST(a_failed_read_reports_the_missing_bytes) {
    static const struct {
        struct system_fault fault;
        const char *words;
        int code;
    } broken[] = {
        {{"pread", 1, 1, EIO, 0}, "20 bytes at offset 2 cannot be read", EIO},
        {{"pread", 1, 1, EINTR, EIO}, "20 bytes at offset 2 cannot be read", EIO},
        {{"pread", 1, 1, SHORT, EIO}, "17 bytes at offset 5 cannot be read", EIO},
        {{"pread", 1, 1, ENDS, 0}, "the file changed while it was read", 0},
        {{"pread", 1, 2, SHORT, ENDS}, "the file changed while it was read", 0},
    };
    sb_source source = SB_SOURCE_INIT;
    FILE *file = tmpfile();
    assert_true(file && fputs("more than twenty-two bytes", file) >= 0 && fflush(file) == 0);
    assert_ok(sb_source_of_descriptor(fileno(file), 0, &source, &err));
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        unsigned char to[20];
        fault_set(broken[i].fault);
        assert_status(SB_ERR_IO, source.read_at(source.user, 2, to, sizeof to, &err));
        (void)fault_end();
        assert_non_null(strstr(err.message, broken[i].words));
        assert_int_equal(err.device_code, broken[i].code);
    }
    assert_int_equal(fclose(file), 0);
}
