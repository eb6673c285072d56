/* The memory of this process, as Linux counts it. */
#ifndef SB_TESTS_PROCESS_MEMORY_H
#define SB_TESTS_PROCESS_MEMORY_H

#include "port/pages.h"
#include "support.h"

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
