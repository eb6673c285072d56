/* System calls on files that fail as a test wants. The linker (--wrap) leads every reference in the
   program to __wrap_X. */
#ifndef SB_TESTS_SYSTEM_CALLS_H
#define SB_TESTS_SYSTEM_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In place of an errno: what a call does that does not fail with one. */
enum {
    SHORT = -1,   /* reads and writes take three bytes, or one less of fewer */
    NOTHING = -2, /* a write takes no byte */
    ENDS = -3,    /* a read finds the end of the file */
    KILLS = -4    /* the process ends, by SIGKILL */
};

/* Calls that fail: the nth to the last of `function`. Calls that know no SHORT, NOTHING or ENDS
   fail with EIO in their place. */
struct system_fault {
    const char *function; /* NULL: of any */
    int nth, last;        /* last 0: none fails */
    int error;            /* an errno, or one of the above */
    int then;             /* the same, of the call after the last; 0: it succeeds */
};

void fault_set(struct system_fault fault);
/* Ends the fault. Returns how many calls it has counted. */
int fault_end(void);
extern const char *fault_name; /* the function that failed last; "" for none since fault_set */

/* A file system that lacks calls, and whose other calls fail at random. */
struct world {
    const char *lacks[4]; /* these fail always, */
    int with;             /* with this error */
    int one_in;           /* of so many other calls one fails; 0: none */
    uint64_t random;
    bool one_mode;       /* every file has the mode 0777 */
    bool rename_is_lost; /* half of the renames that fail were made */
    /* What has happened: */
    int failed_unlinks;
    bool lost; /* a rename that was made was reported as failed */
};

extern struct world *world; /* NULL: none */
bool world_lacks(const char *function);

/* Of files that the program has opened. */
struct descriptors {
    int open;          /* and not yet closed */
    bool closed_twice; /* also a descriptor of nothing */
    bool inherited;    /* by another program */
    bool shown;        /* created for other users to see */
};

extern struct descriptors descriptors;

#endif
