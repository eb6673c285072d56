/* System calls on files that fail as a test wants. The definitions here come before those of libc,
   so that the library calls these. */
#ifndef SB_TESTS_SYSTEM_CALLS_H
#define SB_TESTS_SYSTEM_CALLS_H

#include <stdbool.h>

enum system_mode {
    FAILS,       /* with EIO */
    INTERRUPTED, /* with EINTR, once: the call is to be made again */
    SHORT,       /* reads and writes one byte less than asked, where there are two */
    ENDS,        /* a read finds the end of the file */
    NOTHING,     /* a write takes nothing and says so */
    KILLS        /* the process ends there, by SIGKILL */
};

struct system_fault {
    bool armed, fired;
    int left; /* the call at which this reaches 0 */
    enum system_mode mode;
    const char *name; /* of the call that failed */
};
extern struct system_fault system_fault;

/* The call of fsync at which this reaches 0 says EINVAL. */
extern int refused_fsync;
/* Random numbers are all 0. */
extern bool no_luck;

void arm_system_call(enum system_mode mode, int n);
/* Whether it came to the n-th call. */
bool disarm_system_call(void);

#endif
