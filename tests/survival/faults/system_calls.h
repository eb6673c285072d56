/* Makes system calls on files fail as a test chooses, through the linker option --wrap. */
#ifndef SB_TESTS_SYSTEM_CALLS_H
#define SB_TESTS_SYSTEM_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SHORT = -1,   /* a read or write transfers at most 3 bytes */
    NOTHING = -2, /* a write transfers 0 bytes */
    ENDS = -3,    /* a read reports the end of the file */
    KILLS = -4    /* SIGKILL ends the process */
};

/* The calls `nth` to `last` of `function` fail. */
struct system_fault {
    const char *function; /* NULL: any function */
    int nth, last;        /* last 0: no call fails */
    int error;
    int then; /* the error of the call after `last`, or 0 */
};

void fault_set(struct system_fault fault);
int fault_end(void);
extern const char *failed_function;

/* A simulated file system that lacks some system calls. */
struct world {
    const char *lacks[4]; /* functions that always fail */
    int with;             /* the errno of the functions in `lacks` */
    int one_in;           /* any other call fails with probability 1 / `one_in`; 0: never */
    uint64_t random;
    bool one_mode;       /* every file has the mode 0777 */
    bool rename_is_lost; /* half of the failing renames nevertheless replace the file */
    int failed_unlinks;
    bool lost; /* a rename replaced the file but reported a failure */
};

extern struct world *world;
bool world_lacks(const char *function);

struct descriptors {
    int open;
    bool closed_twice; /* close was called on a number that was not an open descriptor */
    bool inherited;    /* a descriptor was opened without O_CLOEXEC */
    bool shown;        /* a file was created readable by other users */
};

extern struct descriptors descriptors;

/* Removes the temporary files of failed saves from a folder; returns their number. */
int remove_leftovers(const char *folder);

#endif
