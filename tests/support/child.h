/* Runs code in child processes, where child_wants replaces cmocka's assertions. */
#ifndef SB_TESTS_CHILD_H
#define SB_TESTS_CHILD_H

#include "port/pages.h"
#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 30 }; /* alarm() kills a child that runs longer */

/* Ends the child if `condition` is false. */
#define child_wants(condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            child_fails(#condition, __LINE__);                                                     \
    } while (0)

static inline void child_fails(const char *condition, int line) {
    char text[256];
    int length = snprintf(text, sizeof text, "child, line %d: %s\n", line, condition);
    _exit(write(2, text, (size_t)length) == length ? 1 : 3);
}

static inline void assert_child_status(int status) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_with("the child ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Runs task(arg) in a child and returns the status that waitpid stores. */
static inline int status_in_child(void (*task)(void *arg), void *arg) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(CHILD_SECONDS);
        task(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static inline void in_child(void (*task)(void *arg), void *arg) {
    assert_child_status(status_in_child(task, arg));
}

struct process_memory {
    size_t mapped, resident; /* bytes */
};

static inline struct process_memory process_memory_now(void) {
    size_t mapped = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &mapped, &resident), 2);
    (void)fclose(file);
    return (struct process_memory){mapped * sb__page_size(), resident * sb__page_size()};
}

#endif
