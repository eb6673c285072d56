/* Replaces _exit, because gcov would lose the counts of a forked child that calls _exit. */
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);

void _exit(int status) {
    __gcov_dump();
    for (;;)
        (void)syscall(SYS_exit_group, status);
}
