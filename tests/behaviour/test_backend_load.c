/* Tests that a program can register backends, load backends from libraries, and open devices by
   name. Backends remain registered until the process ends, so each test uses different names. */
#include "blobs.h"
#include "plain.h"
#include "pointers.h"

#include "port/libraries.h"

#ifndef _WIN32
#include "child.h"

#include <sys/stat.h>
#endif
#include <unistd.h>

#define LIBRARY(kind) SB_BACKEND_LIBRARIES "/" kind ".so"

#define LONGEST_NAME         "abcdefghijklmnopqrstuvwxyz012"
#define LONGEST_NAME_AND_ONE "abcdefghijklmnopqrstuvwxyz0123"

static void use_device(const char *device) {
    sb_context *context = test_context_on(device);
    sb_mem *mem = test_filled(context, 512, 0x31);
    void *there = mem_pointer(mem, MUTABLE_GPU);
    assert_true(bytes_are(there, 512, 0x31));
    memset(there, 0x32, 512);
    assert_true(bytes_are(mem_pointer(mem, CPU_DATA), 512, 0x32));
    test_end(mem);
    test_end(context);
}

static struct plain plain;

TEST(a_registered_backend_opens_by_its_name) {
    static sb_backend table, other;
    table = other = plain_backend(&plain);
    table.name = other.name = "first";
    assert_error(SB_ERR_UNSUPPORTED, try_device(NULL, "first:0", &err),
                 "no backend is named \"first\"; load its library first (sb_backend_load)");
    assert_ok(sb_backend_register(&table, &err));
    assert_ok(sb_backend_register(&table, &err));
    use_device("first:7");
    assert_int_equal(plain.ordinal, 7);
    assert_int_equal(plain.live, 0);
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "firs:0", &err));
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "first1:0", &err));
    assert_error(INVALID, sb_backend_register(&other, &err), "another backend is named \"first\"");
    other.name = "firs";
    assert_ok(sb_backend_register(&other, &err));
}

TEST(a_backend_of_the_options_precedes_a_registered_one) {
    static sb_backend registered;
    struct plain own = {0};
    sb_backend table = plain_backend(&own);
    registered = plain_backend(&plain);
    registered.name = table.name = "twofold";
    assert_ok(sb_backend_register(&registered, &err));
    assert_ok(try_device(&table, "twofold:0", &err));
    assert_int_equal(own.opened, 1);
    table.name = "other";
    assert_error(SB_ERR_UNSUPPORTED, try_device(&table, "twofold:0", &err),
                 "no backend is named \"twofold\"");
}

TEST(names_that_no_device_can_have_are_refused) {
    static const char *const names[] = {NULL,   "",
                                        "cpu",  "sim",
                                        "cuda", "a:0",
                                        "a b",  "gr\xc3\xbc\xc3\x9f",
                                        "a\n",  LONGEST_NAME_AND_ONE};
    static sb_backend table, longest;
    table = longest = plain_backend(&plain);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        table.name = names[i];
        assert_status(INVALID, sb_backend_register(&table, &err));
        assert_non_null(strstr(err.message, "name"));
    }
    assert_ok(try_device(NULL, "sim:0", &err));
    longest.name = LONGEST_NAME;
    assert_ok(sb_backend_register(&longest, &err));
    use_device(LONGEST_NAME ":7");
}

TEST(tables_that_no_context_accepts_are_not_registered) {
    static sb_backend table;
    table = plain_backend(&plain);
    table.name = "faulty";
    table.abi_version++;
    assert_status(SB_ERR_ABI_MISMATCH, sb_backend_register(&table, &err));
    table.abi_version--;
    table.upload = NULL;
    assert_status(INVALID, sb_backend_register(&table, &err));
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "faulty:0", &err));
}

TEST(libraries_without_a_usable_backend_are_refused) {
    static const struct {
        const char *path;
        sb_status status;
        const char *words;
    } rows[] = {
        {LIBRARY("without_entry"), SB_ERR_NOT_FOUND, "does not export syncblob_backend"},
        {LIBRARY("null_table"), SB_ERR_UNSUPPORTED, "returned NULL"},
        {LIBRARY("with_a_hole"), INVALID, "lacks the slot"},
        {LIBRARY("missing"), SB_ERR_IO, "No such file or directory"},
        {"/missing/good.so", SB_ERR_IO, "\"/missing/good.so\" cannot be opened: "},
        {SB_BACKEND_LIBRARIES, SB_ERR_IO, "cannot be opened: "},
        {__FILE__, SB_ERR_IO, "cannot be opened: "},
        {"", SB_ERR_IO, "\"\" cannot be opened: "},
        {"esc\x1b[2J", SB_ERR_IO, "\"esc\\x1b[2J\" cannot be opened: "},
    };
    const sb_backend *const untouched = (const sb_backend *)&rows;
    const sb_backend *backend = untouched;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_status(rows[i].status, sb_backend_load(rows[i].path, &backend, &err));
        if (!strstr(err.message, rows[i].words) || strstr(err.message, "\x1b"))
            fail_with("%s: %s", rows[i].path, err.message);
        if (strstr(rows[i].words, "No such file or directory"))
            assert_int_equal(err.device_code, 2); /* ENOENT; on Windows, ERROR_FILE_NOT_FOUND */
        assert_ptr_equal(backend, untouched);
        if (rows[i].status != SB_ERR_IO)
            assert_null(sb__library_loaded(rows[i].path));
    }
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "loaded:0", &err));
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "hole:0", &err));
}

TEST(a_library_that_registers_its_backend_stays_open) {
    static char variable[48]; /* putenv keeps a pointer to this array */
    sb_status (*const function)(const sb_backend *, sb_error *) = sb_backend_register;
    void *pointer;
    memcpy(&pointer, &function, sizeof pointer);
    (void)snprintf(variable, sizeof variable, "REGISTER=%p", pointer);
    assert_int_equal(putenv(variable), 0);
    assert_status(SB_ERR_UNSUPPORTED, sb_backend_load(LIBRARY("registering"), NULL, &err));
    assert_ok(try_device(NULL, "registered:0", &err));
}

TEST(the_loader_s_reason_follows_a_long_path) {
    char path[512] = SB_SOURCE_DIR;
    for (int i = 0; i < 80; i++)
        strcat(path, "/.");
    strcat(path, "/CMakeLists.txt");
    assert_status(SB_ERR_IO, sb_backend_load(path, NULL, &err));
    assert_int_equal(err.device_code, 0);
    const char *reason = strstr(err.message, "...\" cannot be opened: ");
    assert_non_null(reason);
    assert_null(strstr(reason, "/./."));
#ifdef __linux__
    assert_non_null(strstr(reason, "invalid ELF header"));
#endif
}

TEST(a_path_without_a_folder_is_in_the_current_folder) {
    static const char *const names[] = {"libc.so.6", "msvcrt.dll", "good.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_status(SB_ERR_IO, sb_backend_load(names[i], NULL, &err));
    assert_int_equal(chdir(SB_BACKEND_LIBRARIES), 0);
    assert_status(SB_ERR_NOT_FOUND, sb_backend_load("without_entry.so", NULL, &err));
}

#ifndef _WIN32
static void load_and_open(void *arg) {
    child_wants(sb_backend_load(LIBRARY("good"), NULL, NULL) == SB_OK);
    child_wants(try_device(NULL, "loaded:0", NULL) == SB_OK);
}

TEST(a_child_loads_a_library_that_its_parent_has_not_loaded) {
    in_child(load_and_open, NULL);
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "loaded:0", &err));
}

TEST_ON(rig, a_pipe_is_refused_at_once) {
    const char *pipe = rig_path(f, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_status(SB_ERR_IO, sb_backend_load(pipe, NULL, &err)); /* dlopen blocks on a pipe */
}
#endif

TEST(a_loaded_backend_opens_by_its_name) {
    const sb_backend *backend = NULL, *again = NULL;
    assert_ok(sb_backend_load(LIBRARY("good"), &backend, &err));
    assert_string_equal(backend->name, "loaded");
    use_device("loaded:3");
    assert_ok(sb_backend_load(LIBRARY("good"), &again, &err));
    assert_ptr_equal(again, backend);
    assert_error(INVALID, sb_backend_load(LIBRARY("same_name"), NULL, &err),
                 "another backend is named \"loaded\"");
    use_device("loaded:4");
}

/* This test must be the last: after it the library accepts no more backends. */
TEST(the_number_of_backends_is_limited) {
    static sb_backend tables[64];
    static char names[64][4];
    int registered = 0;
    sb_status st = SB_OK;
    for (int i = 0; i < 64; i++) {
        tables[i] = plain_backend(&plain);
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        tables[i].name = names[i];
        if ((st = sb_backend_register(&tables[i], &err)) != SB_OK)
            break;
        registered++;
    }
    assert_int_equal(st, SB_ERR_OVER_LIMIT);
    assert_true(registered > 50);
    assert_ok(sb_backend_register(&tables[0], &err));
    use_device("n0:0");
    assert_status(SB_ERR_UNSUPPORTED, try_device(NULL, "missing:0", &err));
    assert_ok(sb_backend_load(LIBRARY("good"), NULL, &err)); /* is registered already */
}
