#include "support.h"

#include <pthread.h>
#include <unistd.h>

void counting_allocator_assert_clean(struct counting_allocator *counting) {
    assert_int_equal(counting->live_blocks, 0);
    assert_int_equal(counting->live_bytes, 0);
    assert_int_equal(counting->violations, 0);
}

void support_fail(const char *file, int line, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s\n", text);
    _fail(file, line);
    abort(); /* not reached: _fail jumps */
}

/* A message never contains this byte: messages are printable. */
#define ERROR_POISON 0xEE

_Thread_local sb_error err;

void support_poison_error(sb_error *err) {
    memset(err, ERROR_POISON, sizeof *err);
}

static bool holds_poison(const void *bytes, size_t size, bool all) {
    const unsigned char *p = bytes;
    size_t found = 0;
    for (size_t i = 0; i < size; i++)
        found += p[i] == ERROR_POISON;
    return all ? found == size : found > 0;
}

static const char *error_fault(const sb_error *err, sb_status status) {
    if (status == SB_OK)
        return holds_poison(err, sizeof *err, true) ? NULL : "the call succeeded but wrote err";
    if (holds_poison(err, sizeof *err, true))
        return "the call failed but did not write err";
    if (err->code != status)
        return "err.code is not the returned status";
    if (holds_poison(&err->device_code, sizeof err->device_code, true) ||
        holds_poison(&err->offset, sizeof err->offset, true))
        return "err.device_code or err.offset was not written";
    if (err->offset < -1)
        return "err.offset is below -1";
    if (holds_poison(err->message, sizeof err->message, false))
        return "err.message was written only in part";
    if (err->message[0] == '\0' || !memchr(err->message, 0, sizeof err->message))
        return "err.message is empty or not terminated";
    return NULL;
}

void support_check_status(sb_status expected, sb_status found, const sb_error *err,
                          const char *expression, const char *file, int line) {
    const char *fault = error_fault(err, found);
    if (found != expected)
        support_fail(file, line, "%s\n  expected %s, got %s: %.239s", expression,
                     sb_status_name(expected), sb_status_name(found),
                     found == SB_OK || (fault && found != SB_OK) ? "" : err->message);
    if (fault)
        support_fail(file, line, "%s\n  %s", expression, fault);
}

#ifndef SB_SOURCE_DIR
#define SB_SOURCE_DIR "."
#endif

const char *test_data_path(const char *name, char *buffer, size_t capacity) {
    const char *folder = getenv("SYNCBLOB_TEST_DATA");
    if (!folder || !*folder)
        folder = SB_SOURCE_DIR "/../shared/data";
    int length = snprintf(buffer, capacity, "%s/%s", folder, name);
    if (length > 0 && (size_t)length < capacity && access(buffer, R_OK) == 0)
        return buffer;
    print_message("skipped: no readable file %s in %s (SYNCBLOB_TEST_DATA names the folder)\n",
                  name, folder);
    return NULL;
}

uint64_t test_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bool is_on(const char *variable) {
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

bool test_is_quick(void) {
    return !is_on("SYNCBLOB_TEST_WHOLE") && !test_is_full();
}

bool test_is_full(void) {
    return is_on("SYNCBLOB_TEST_FULL");
}

struct owned {
    void *thing;
    void (*end)(void *thing);
    bool is_loan;
};

static pthread_mutex_t owned_lock = PTHREAD_MUTEX_INITIALIZER;
static struct owned *owned;
static size_t num_owned, room_for_owned;

static void add_owned(struct owned one) {
    pthread_mutex_lock(&owned_lock);
    if (num_owned == room_for_owned) {
        room_for_owned = 2 * room_for_owned + 16;
        owned = realloc(owned, room_for_owned * sizeof *owned);
        assert_non_null(owned);
    }
    owned[num_owned++] = one;
    pthread_mutex_unlock(&owned_lock);
}

void test_own(void *thing, void (*end)(void *thing)) {
    add_owned((struct owned){thing, end, false});
}

void test_own_loan(void *thing, void (*end)(void *thing)) {
    add_owned((struct owned){thing, end, true});
}

static struct owned remove_owned(const void *thing) {
    struct owned found = {0};
    pthread_mutex_lock(&owned_lock);
    size_t i = thing ? num_owned : 0;
    while (i > 0 && owned[i - 1].thing != thing)
        i--;
    if (i > 0) {
        found = owned[i - 1];
        for (num_owned--; i <= num_owned; i++)
            owned[i - 1] = owned[i];
    }
    pthread_mutex_unlock(&owned_lock);
    return found;
}

bool test_disown(const void *thing) {
    return remove_owned(thing).end != NULL;
}

void test_end(void *thing) {
    struct owned found = remove_owned(thing);
    assert_non_null(found.end);
    found.end(thing);
}

size_t test_num_owned(void) {
    return num_owned;
}

static void end_after(size_t first, bool loans) {
    for (size_t i = num_owned; i-- > first;)
        if (i < num_owned && owned[i].is_loan == loans)
            test_end(owned[i].thing);
}

void test_end_after(size_t first) {
    end_after(first, false);
    end_after(first, true);
}

static struct {
    void *fixture;
    void (*close)(void *fixture);
} open_fixture;

void test_open_fixture(void *fixture, void (*close)(void *fixture)) {
    open_fixture.fixture = fixture;
    open_fixture.close = close;
}

void test_close_fixture(void) {
    open_fixture.close(open_fixture.fixture);
    open_fixture.close = NULL;
}

void test_skip(void) {
    if (open_fixture.close)
        test_close_fixture();
    skip();
    abort(); /* not reached: skip jumps */
}

/* Forgets the fixture, which is still open after a failed test. */
int test_end_all(void **state) {
    open_fixture.close = NULL;
    test_end_after(0);
    return 0;
}

static struct CMUnitTest tests[64]; /* cmocka skips entries without a name */
static int lines[64], num_tests;

void test_add(const char *name, void (*function)(void **state), int line) {
    if ((size_t)num_tests == sizeof tests / sizeof *tests)
        abort();
    int at = num_tests++;
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = (struct CMUnitTest){name, function, NULL, test_end_all, NULL};
    lines[at] = line;
}

int run_all_tests(void) {
    const char *only = getenv("SYNCBLOB_TEST_ONLY");
    if (only)
        print_message("skipped: tests whose names do not match %s\n", only);
    cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
