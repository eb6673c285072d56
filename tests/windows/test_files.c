/* Tests files on Windows: paths in UTF-8, files that other programs have open, and system
   errors. */
#include "blobs.h"
#include "files.h"
#include "nets.h"
#include "port/files.h"

#include <syncblob/model.h>
#include <syncblob/proto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <winioctl.h>

struct folder {
    char path[MAX_PATH], file[MAX_PATH + 8];
    wchar_t wide[MAX_PATH + 64];
};

static void folder_open(struct folder *folder) {
    char temporary[MAX_PATH - 32];
    *folder = (struct folder){.path = ""};
    assert_true(GetTempPathA(sizeof temporary, temporary) < sizeof temporary);
    (void)snprintf(folder->path, sizeof folder->path, "%ssyncblob-XXXXXX", temporary);
    assert_non_null(mkdtemp(folder->path));
    (void)snprintf(folder->file, sizeof folder->file, "%s\\blob", folder->path);
    assert_true(MultiByteToWideChar(CP_UTF8, 0, folder->file, -1, folder->wide, MAX_PATH + 8) > 0);
}

static void folder_close(struct folder *folder) {
    (void)SetFileAttributesW(folder->wide, FILE_ATTRIBUTE_NORMAL);
    (void)DeleteFileW(folder->wide);
    assert_true(RemoveDirectoryA(folder->path));
}

static sb_blob *new_blob(int64_t count, double first) {
    void *p;
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, count);
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &p, &err));
    fill_values(SB_DTYPE_F32, count, first, 1, p);
    return blob;
}

static sb_status write_file(const char *path, double first, sb_error *err) {
    return sb_blob_save_file(new_blob(300, first), path, 0, err);
}

static float read_file(const char *path, sb_error *err) {
    sb_blob *blob = new_blob(1, 0);
    const float *p = NULL;
    if (sb_blob_load_file(blob, path, SB_PROTO_RESHAPE, NULL, err) != SB_OK)
        return -1;
    assert_int_equal(sb_blob_cpu_f32(blob, SB_DATA, &p, NULL), SB_OK);
    return *p;
}

static HANDLE open_with(const struct folder *folder, DWORD access, DWORD share) {
    HANDLE handle =
        CreateFileW(folder->wide, access, share, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    assert_true(handle != INVALID_HANDLE_VALUE);
    return handle;
}

static const wchar_t *widened(const char *path, wchar_t wide[1032]) {
    assert_true(MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 1032) > 0);
    return wide;
}

static void assert_path_works(const char *path, const wchar_t *wide) {
    assert_ok(write_file(path, 3, &err));
    assert_ok(write_file(path, 4, &err));
    assert_true(read_file(path, &err) == 4);
    assert_true(DeleteFileW(wide));
}

TEST_ON(folder, test_paths_are_utf8) {
    char path[MAX_PATH + 64];
    (void)snprintf(path, sizeof path,
                   "%s\\Gr\xc3\xb6\xc3\x9f"
                   "e-\xe6\x95\xb0.blob",
                   f->path);
    wcscpy(f->wide + wcslen(f->wide) - 4, L"Gr\u00f6\u00dfe-\u6570.blob");
    assert_path_works(path, f->wide);
}

TEST_ON(folder, test_other_encodings_are_refused) {
    char path[MAX_PATH + 64];
    (void)snprintf(path, sizeof path, "%s\\\xff\xfe", f->path);
    assert_true(read_file(path, &err) == -1);
    assert_int_equal(err.code, SB_ERR_IO);
    assert_int_equal(err.device_code, ERROR_NO_UNICODE_TRANSLATION);
    assert_non_null(strstr(err.message, "not UTF-8"));
    assert_status(SB_ERR_IO, write_file(path, 1, &err));
    assert_int_equal(err.device_code, ERROR_NO_UNICODE_TRANSLATION);
}

TEST_ON(folder, test_long_paths_work) {
    char path[1032];
    wchar_t wide[1032];
    int at = snprintf(path, sizeof path, "\\\\?\\%s", f->path), depth = 0;
    for (; depth < 5; depth++) {
        at += snprintf(path + at, sizeof path - (size_t)at, "\\%080d", depth);
        assert_true(CreateDirectoryW(widened(path, wide), NULL));
    }
    strcpy(path + at, "\\blob");
    assert_path_works(path + 4, widened(path, wide));
    for (; depth > 0; depth--, at -= 81) {
        path[at] = '\0';
        assert_true(RemoveDirectoryW(widened(path, wide)));
    }
}

TEST_ON(folder, test_slashes_and_relative_paths_work) {
    char path[MAX_PATH + 8], here[MAX_PATH];
    (void)snprintf(path, sizeof path, "%s/blob", f->path);
    assert_path_works(path, f->wide);
    assert_true(GetCurrentDirectoryA(sizeof here, here) > 0);
    assert_true(SetCurrentDirectoryA(f->path));
    assert_path_works("blob", f->wide);
    assert_true(SetCurrentDirectoryA(here));
}

/* After the prefix \\?\, Windows uses all characters of a path literally, even a final dot. */
TEST_ON(folder, test_a_prefixed_path_is_taken_literally) {
    static const char *const names[] = {"dot.", "space ", "plain"};
    char path[MAX_PATH + 64];
    wchar_t wide[1032];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "\\\\?\\%s\\%s", f->path, names[i]);
        assert_path_works(path, widened(path, wide));
    }
}

static void assert_begins_with_path(const sb_error *err, const char *path) {
    char quoted[96];
    (void)snprintf(quoted, sizeof quoted, "\"%.80s", path);
    assert_memory_equal(err->message, quoted, strlen(quoted));
}

TEST_ON(folder, test_errors_have_the_words_of_other_systems) {
    const struct {
        const char *path;
        int code;
        const char *text;
        bool writes;
    } rows[] = {
        {f->file, ERROR_FILE_NOT_FOUND, "No such file or directory", false},
        {"", ERROR_FILE_NOT_FOUND, "No such file or directory", true},
        {"Z:\\not\\there\\blob", ERROR_PATH_NOT_FOUND, "No such file or directory", true},
        {f->path, 336, "Is a directory", true},
        {"NUL", ERROR_BAD_FILE_TYPE, "Invalid argument", false},
        {"C:\\a|b", ERROR_INVALID_NAME, "No file can have this name", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(read_file(rows[i].path, &err) == -1);
        assert_int_equal(err.code, SB_ERR_IO);
        assert_int_equal(err.device_code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].text));
        assert_begins_with_path(&err, rows[i].path);
        if (rows[i].writes) {
            assert_status(SB_ERR_IO, write_file(rows[i].path, 1, &err));
            assert_int_equal(err.device_code, rows[i].code);
            assert_begins_with_path(&err, rows[i].path);
        }
    }
}

TEST_ON(folder, test_a_file_that_is_not_shared) {
    assert_ok(write_file(f->file, 1, &err));
    HANDLE other = open_with(f, GENERIC_READ, 0);
    assert_true(read_file(f->file, &err) == -1);
    assert_int_equal(err.device_code, ERROR_SHARING_VIOLATION);
    assert_non_null(strstr(err.message, "has the file open"));
    assert_status(SB_ERR_IO, write_file(f->file, 2, &err));
    assert_true(CloseHandle(other));
    assert_true(read_file(f->file, &err) == 1);
    assert_int_equal(files_in(f->path), 1);
}

#define WRITERS 3
#define ROUNDS  20

struct writer {
    const char *path;
    int32_t refused;
};

static DWORD WINAPI write_over(void *arg) {
    struct writer *writer = arg;
    for (int i = 0; i < ROUNDS; i++)
        writer->refused += write_file(writer->path, 0, &err) != SB_OK;
    return 0;
}

TEST_ON(folder, test_writers_of_one_file_wait_for_each_other) {
    struct writer writers[WRITERS] = {{0}};
    HANDLE threads[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i].path = f->file;
        threads[i] = CreateThread(NULL, 0, write_over, &writers[i], 0, NULL);
        assert_non_null(threads[i]);
    }
    assert_int_equal(WaitForMultipleObjects(WRITERS, threads, TRUE, INFINITE), WAIT_OBJECT_0);
    for (int i = 0; i < WRITERS; i++) {
        assert_true(CloseHandle(threads[i]));
        assert_int_equal(writers[i].refused, 0);
    }
    assert_true(read_file(f->file, &err) == 0);
    assert_int_equal(files_in(f->path), 1);
}

TEST_ON(folder, test_a_hidden_file_stays_hidden) {
    const DWORD kept = FILE_ATTRIBUTE_HIDDEN | FILE_ATTRIBUTE_SYSTEM;
    assert_ok(write_file(f->file, 1, &err));
    assert_true(SetFileAttributesW(f->wide, kept));
    if ((GetFileAttributesW(f->wide) & kept) != kept) {
        print_message("skipped: this file system keeps no attributes\n");
        return;
    }
    assert_ok(write_file(f->file, 2, &err));
    assert_true(read_file(f->file, &err) == 2);
    assert_int_equal(GetFileAttributesW(f->wide) & kept, kept);
}

TEST_ON(folder, test_a_file_that_may_not_be_written_stays) {
    assert_ok(write_file(f->file, 1, &err));
    assert_true(SetFileAttributesW(f->wide, FILE_ATTRIBUTE_READONLY));
    assert_status(SB_ERR_IO, write_file(f->file, 2, &err));
    assert_int_equal(err.device_code, ERROR_ACCESS_DENIED);
    assert_non_null(strstr(err.message, "Permission denied"));
    assert_true(read_file(f->file, &err) == 1);
    assert_int_equal(files_in(f->path), 1);
}

TEST_ON(folder, test_a_file_that_changes_while_it_is_open) {
    sb_model *model;
    sb_blob *blob = new_blob(3, 0);
    FILETIME time = {.dwLowDateTime = 12345, .dwHighDateTime = 30000000};
    assert_ok(write_file(f->file, 1, &err));
    assert_ok(sb_model_open_file(NULL, SB_FORMAT_BLOB, f->file, 0, NULL, &model, &err));
    HANDLE other = open_with(f, GENERIC_READ | GENERIC_WRITE,
                             FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE);
    assert_true(SetFileTime(other, NULL, NULL, &time));
    assert_true(CloseHandle(other));
    assert_reports(SB_ERR_IO, sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err), "changed");
    sb_model_destroy(model);
}

TEST_ON(folder, test_a_handle_is_a_descriptor) {
    sb_source source = SB_SOURCE_INIT;
    sb_model *model;
    sb_blob *blob = new_blob(1, 0);
    const void *p;
    assert_ok(write_file(f->file, 11, &err));
    HANDLE handle = open_with(f, GENERIC_READ, FILE_SHARE_READ);
    assert_ok(sb_source_of_descriptor((int32_t)(intptr_t)handle, SB_SOURCE_CLOSES, &source, &err));
    assert_ok(sb_model_open_source(NULL, SB_FORMAT_BLOB, &source, NULL, NULL, &model, &err));
    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
    assert_ok(sb_blob_cpu(blob, SB_DATA, &p, &err));
    assert_true(*(const float *)p == 11);
    sb_model_destroy(model);
    assert_status(SB_ERR_IO, sb_source_of_descriptor(-1, 0, &source, &err));
}

TEST_ON(folder, test_offsets_beyond_4_gib) {
    const uint64_t offset = ((uint64_t)5 << 30) + 3;
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
    struct sb__file_info info;
    char found[8] = "";
    DWORD n;
    size_t got;
    sb__file file;
    file_write(f->file, "start", 5);
    HANDLE handle = open_with(f, GENERIC_WRITE, FILE_SHARE_READ);
    (void)DeviceIoControl(handle, FSCTL_SET_SPARSE, NULL, 0, NULL, 0, &n, NULL);
    assert_true(WriteFile(handle, "far", 3, &n, &at));
    assert_true(CloseHandle(handle));
    assert_int_equal(sb__file_open(f->file, &file), 0);
    assert_int_equal(sb__file_examine(file, &info), 0);
    assert_true(info.size == offset + 3 && !info.misfit);
    assert_int_equal(sb__file_read_at(file, offset, found, 8, &got), 0);
    assert_int_equal(got, 3);
    assert_memory_equal(found, "far", 3);
    assert_int_equal(sb__file_read_at(file, offset + 3, found, 8, &got), 0);
    assert_int_equal(got, 0);
    sb__file_close(file);
}
