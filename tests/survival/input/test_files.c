/* Makes every call that reads or writes a file, on files that are not regular, not accessible or of
   a wrong size. Each call must return an error, keep the old file, and leave no other file in the
   folder. */
#include "blobs.h"
#include "child.h"
#include "files.h"
#include "nets.h"
#include "pointers.h"

#include <errno.h>
#include <sys/stat.h>

#define NOBODY 65534
enum { COUNT = 50000 }; /* floats of the blob: more than a window or a buffer holds */

struct place { /* the objects of one test */
    struct rig rig;
    const char *folder, *file, *other;
    sb_blob *blob;   /* COUNT floats that count up */
    sb_model *model; /* a solver state with that blob */
};

static void place_open(struct place *p) {
    rig_open_on(&p->rig, NULL, 0);
    p->file = rig_path(&p->rig, "file");
    p->other = rig_path(&p->rig, "other");
    p->folder = p->rig.folder;
    assert_int_equal(chmod(p->folder, 0755), 0);
    p->blob = test_vector(p->rig.context, SB_DTYPE_F32, COUNT);
    fill_values(SB_DTYPE_F32, COUNT, 0, 1, blob_pointer(p->blob, SB_DATA, OVERWRITE_CPU));
    p->model = test_model(p->rig.context, SB_FORMAT_SOLVERSTATE);
    assert_ok(sb_model_add_blob(p->model, SB_NO_LAYER, p->blob, 0, &err));
}

static void place_close(struct place *p) {
    rig_close(&p->rig); /* checks that the folder has no other file */
}

/* --- the calls ------------------------------------------------------------------- */

enum { READ_BLOB, OPEN_MODEL, OPEN_MAPPED, READERS };
enum { WRITE_BLOB, SAVE_MODEL, WRITERS };

static const char *const reader_names[] = {"read_file", "open_file", "open_file, mapped"};
static const char *const writer_names[] = {"write_file", "save_file"};

static sb_status load_first(const char *path, uint32_t flags, sb_blob *blob, sb_error *err) {
    sb_model *model = NULL;
    sb_status st = sb_model_open_file(NULL, SB_FORMAT_SOLVERSTATE, path, flags, NULL, &model, err);
    if (st == SB_OK && num_blobs(model, SB_NO_LAYER) > 0)
        st = sb_model_load_blob(model, SB_NO_LAYER, 0, blob, err);
    sb_model_destroy(model);
    return st;
}

/* Reads with one of the readers. On failure the blob must be unchanged: one value, 7. */
static sb_status read_with(int reader, const char *path, sb_error *err) {
    sb_blob *blob;
    float *x = NULL;
    const float *found = NULL;
    assert_int_equal(sb_blob_create_shaped(NULL, SB_DTYPE_F32, (int64_t[]){1}, 1, &blob, NULL), 0);
    assert_int_equal(sb_blob_mutable_cpu_f32(blob, SB_DATA, &x, NULL), SB_OK);
    *x = 7;
    sb_status st = reader == READ_BLOB
                       ? sb_blob_load_file(blob, path, SB_PROTO_RESHAPE, NULL, err)
                       : load_first(path, reader == OPEN_MAPPED ? SB_OPEN_MAPPED : 0, blob, err);
    assert_int_equal(sb_blob_cpu_f32(blob, SB_DATA, &found, NULL), SB_OK);
    if (st != SB_OK) {
        assert_int_equal(sb_blob_count(blob), 1);
        assert_true(*found == 7);
    } else if (sb_blob_count(blob) == COUNT) {
        for (int i = 0; i < COUNT; i += 97)
            assert_true(found[i] == (float)i);
    }
    sb_blob_destroy(blob);
    return st;
}

static sb_status write_with(const struct place *p, int writer, const char *path, sb_error *err) {
    return writer == WRITE_BLOB ? sb_blob_save_file(p->blob, path, 0, err)
                                : sb_model_save_file(p->model, path, err);
}

static void check_readers(const char *path, sb_status status, int error) {
    for (int reader = 0; reader < READERS; reader++) {
        support_poison_error(&err);
        sb_status st = read_with(reader, path, &err);
        support_check_status(status, st, &err, reader_names[reader], __FILE__, __LINE__);
        if (error)
            assert_int_equal(err.device_code, error);
    }
}

static void check_writers(const struct place *p, const char *path, int error) {
    for (int writer = 0; writer < WRITERS; writer++) {
        support_poison_error(&err);
        sb_status st = write_with(p, writer, path, &err);
        support_check_status(SB_ERR_IO, st, &err, writer_names[writer], __FILE__, __LINE__);
        assert_int_equal(err.device_code, error);
    }
}

/* --- files that are not regular -------------------------------------------------------- */

TEST_ON(place, directories_are_refused) {
    check_readers(f->folder, SB_ERR_IO, EISDIR);
    check_writers(f, f->folder, EISDIR);
    check_readers("/", SB_ERR_IO, EISDIR);
}

TEST_ON(place, pipes_are_refused_without_a_wait) {
    struct stat info;
    assert_int_equal(mkfifo(f->file, 0600), 0);
    check_readers(f->file, SB_ERR_IO, EINVAL); /* does not block */
    check_writers(f, f->file, EINVAL);
    assert_int_equal(lstat(f->file, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

TEST_ON(place, devices_are_refused) {
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/dev/full"};
    for (size_t i = 0; i < 3; i++) {
        struct stat before, after;
        assert_int_equal(stat(paths[i], &before), 0);
        check_readers(paths[i], SB_ERR_IO, EINVAL);
        check_writers(f, paths[i], EINVAL);
        assert_int_equal(stat(paths[i], &after), 0);
        assert_true(S_ISCHR(after.st_mode) && before.st_rdev == after.st_rdev);
    }
}

/* A file that the kernel generates has a size of 0, but is not empty. */
TEST_ON(place, files_of_proc_are_refused) {
    check_readers("/proc/self/status", SB_ERR_IO, 0);
    assert_reports(SB_ERR_IO, read_with(OPEN_MODEL, "/proc/self/status", &err),
                   "has a size of 0, but contains bytes");
    file_write(f->file, "", 0);
    assert_ok(read_with(OPEN_MODEL, f->file, &err));
    assert_ok(read_with(OPEN_MAPPED, f->file, &err));
}

TEST_ON(place, links_to_nothing_and_cycles_are_refused) {
    assert_int_equal(symlink("other", f->file), 0); /* a link to a file that does not exist */
    check_readers(f->file, SB_ERR_IO, ENOENT);
    assert_int_equal(symlink("file", f->other), 0); /* a cycle of links */
    check_readers(f->file, SB_ERR_IO, ELOOP);
    check_writers(f, f->file, ELOOP);
}

/* --- files without permission -------------------------------------------------------------- */

/* Runs in a child; drops the rights of root. */
static void is_denied(void *arg) {
    const struct place *p = arg;
    child_wants(geteuid() != 0 || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
    for (int reader = 0; reader < READERS; reader++)
        child_wants(read_with(reader, p->file, &err) == SB_ERR_IO && err.device_code == EACCES);
    for (int i = 0; i < 2 * WRITERS; i++)
        child_wants(write_with(p, i / 2, i % 2 ? p->other : p->file, &err) == SB_ERR_IO &&
                    err.device_code == EACCES);
}

TEST_ON(place, files_without_permission_are_refused) {
    file_write(f->file, "old", 3);
    assert_int_equal(symlink("new", f->other), 0); /* a link to a file that does not exist */
    assert_int_equal(chmod(f->file, 0), 0);
    assert_int_equal(chmod(f->folder, 0555), 0); /* the folder is not writable */
    const int not_writable = status_in_child(is_denied, f);
    assert_int_equal(chmod(f->folder, 0), 0); /* the folder is not searchable */
    const int not_searchable = status_in_child(is_denied, f);
    assert_int_equal(chmod(f->folder, 0755), 0); /* restored even if a child has failed */
    assert_int_equal(chmod(f->file, 0600), 0);
    assert_child_status(not_writable);
    assert_child_status(not_searchable);
    assert_true(file_holds(f->file, "old"));
}

/* --- misleading sizes ------------------------------------------------------------------------ */

/* The test behaviour.foreign makes sparse files that are larger than a message. */
TEST_ON(place, a_sparse_file_is_refused_because_of_its_first_byte) {
    file_write(f->file, "", 0);
    assert_int_equal(truncate(f->file, 1 << 30), 0);
    check_readers(f->file, SB_ERR_MALFORMED, 0);
}

/* The file is a message that claims a gigabyte of data; the data is a hole in the sparse file. */
TEST_ON(place, sparse_payloads_are_counted_before_they_are_read) {
    static const char claim[] = "\x2a\x80\x80\x80\x80\x04"; /* data, 2^30 bytes */
    file_write(f->file, claim, sizeof claim - 1);
    assert_int_equal(truncate(f->file, (off_t)sizeof claim - 1 + (1 << 30)), 0);
    sb_blob *blob = test_unshaped(f->rig.context, SB_DTYPE_F32);
    const int64_t calls = f->rig.counting.buffer_calls;
    assert_status(SB_ERR_LENGTH_MISMATCH,
                  sb_blob_load_file(blob, f->file, SB_PROTO_RESHAPE, NULL, &err));
    assert_int_equal(f->rig.counting.buffer_calls, calls);
}
