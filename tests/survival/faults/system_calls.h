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

/* The calls `nth` to `last` of `function` fail. A call to which SHORT, NOTHING or ENDS does not
   apply fails with EIO. */
struct system_fault {
    const char *function; /* NULL stands for any function */
    int nth, last;        /* no call fails if `last` is 0 */
    int error;            /* an errno, or SHORT, NOTHING, ENDS or KILLS */
    int then;             /* the error of the next call after `last`, or 0 */
};

void fault_set(struct system_fault fault);
/* Ends the fault. Returns the number of calls of the fault's function since fault_set. */
int fault_end(void);
extern const char *failed_function; /* the last function that failed since fault_set, or "" */

/* A simulated file system that lacks some system calls. */
struct world {
    const char *lacks[4]; /* functions that always fail */
    int with;             /* the errno of the functions in `lacks` */
    int one_in;           /* any other call fails with probability 1 / `one_in` (0: never) */
    uint64_t random;
    bool one_mode;       /* every file has the mode 0777 */
    bool rename_is_lost; /* half of the failing renames nevertheless replace the file */
    int failed_unlinks;
    bool lost; /* a rename replaced the file but reported a failure */
};

extern struct world *world; /* NULL if the real file system is used */
bool world_lacks(const char *function);

struct descriptors {
    int open;
    bool closed_twice; /* close was called on a number that was not an open descriptor */
    bool inherited;    /* a descriptor was opened without O_CLOEXEC */
    bool shown;        /* a new file was readable by other users */
};

extern struct descriptors descriptors;

/* Removes a folder's temporary files of failed saves. Returns the number of removed files. */
int remove_leftovers(const char *folder);

#endif
