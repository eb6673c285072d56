/* Functions that select the cases that a test runs, and that measure free memory. */
#include "support.h"

#include <stdint.h>

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

/* --- memory --------------------------------------------------------------------- */

typedef unsigned long long number;

/* Finds the first line that begins with `word` and a number, and stores the number in `found`. */
static bool read_number(const char *path, const char *word, number *found) {
    char line[128], end;
    bool is_found = false;
    FILE *file = fopen(path, "r");
    while (file && !is_found && fgets(line, sizeof line, file)) {
        const size_t skipped = strlen(word);
        is_found =
            strncmp(line, word, skipped) == 0 && sscanf(line + skipped, "%llu%c", found, &end) == 2;
    }
    if (file)
        (void)fclose(file);
    return is_found;
}

/* The files that describe a container's outermost control group, for versions 2 and 1 of groups. */
static const struct {
    const char *limit, *used, *stat, *cache;
} groups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
     "inactive_file "},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file "},
};

/* Returns the smallest number of free bytes that the kernel or the outermost control group reports,
   or SIZE_MAX if neither reports a number. */
static size_t free_memory(void) {
    number least = SIZE_MAX, kib, limit, used;
    if (read_number("/proc/meminfo", "MemAvailable:", &kib))
        least = kib << 10;
    for (int i = 0; i < 2; i++) {
        number cache = 0; /* page cache, which the kernel frees when memory is needed */
        if (!read_number(groups[i].limit, "", &limit) || !read_number(groups[i].used, "", &used))
            continue;
        (void)read_number(groups[i].stat, groups[i].cache, &cache);
        used -= cache < used ? cache : used;
        const number room = used < limit ? limit - used : 0;
        least = room < least ? room : least;
    }
    return (size_t)least;
}

/* Returns the size of the shadow memory that the sanitizer needs for `addresses` bytes:
   ThreadSanitizer needs four bytes per byte, AddressSanitizer one byte per eight bytes. */
static size_t sanitizer_bytes(size_t addresses) {
    return IS_TSAN ? addresses * 4 : IS_ASAN ? addresses / 8 : 0;
}

bool test_has_memory(size_t bytes, size_t addresses) {
    const size_t needed = bytes + sanitizer_bytes(addresses), free = free_memory();
    if (free / 4 * 3 > needed)
        return true;
    print_message(
        "skipped: needs %zu MiB of memory (sanitizer: %zu MiB), but only %zu MiB are free\n",
        needed >> 20, sanitizer_bytes(addresses) >> 20, free >> 20);
    return false;
}
