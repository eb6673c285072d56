/* The memory of this process, as Linux counts it. */
#ifndef SB_TESTS_PROCESS_MEMORY_H
#define SB_TESTS_PROCESS_MEMORY_H

#include <stddef.h>

struct process_memory {
    size_t mapped, resident; /* bytes */
};

struct process_memory process_memory_now(void);

#endif
