/* The list of the tests of a program, and the objects that the running test owns. */
#include "support.h"

#include <pthread.h>

/* --- objects that the running test owns ----------------------------------------------------- */

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

/* Removes the latest entry with this address from the list. */
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

/* --- the fixture of the running test --------------------------------------------------------- */

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

/* --- the tests of the program ----------------------------------------------------------------- */

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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
