/* How much a test does, and what the machine has for it. */
#include "support.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define PATH 4096

typedef unsigned long long number;

/* The number behind `word` in a file of words and numbers, or its first, without a word. */
static bool read_number(const char *folder, const char *name, const char *word, number *found) {
    char path[2 * PATH + 64], line[128], end;
    bool is_found = false;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
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

/* The names of a control group's files. */
struct group_files {
    const char *limit, *used, *stat, *cache;
};

/* What one group still gives: files that it has read take memory until somebody needs it. */
static number room_of_group(const char *folder, const struct group_files *files) {
    number limit, used, cache = 0;
    if (!read_number(folder, files->limit, "", &limit) ||
        !read_number(folder, files->used, "", &used))
        return UINT64_MAX;
    (void)read_number(folder, files->stat, files->cache, &cache);
    used -= cache < used ? cache : used;
    return used < limit ? limit - used : 0;
}

/* The least of a group and of those around it. A container may see itself as the outermost. */
static number room_of_groups(const char *mount, const char *group,
                             const struct group_files *files) {
    char folder[2 * PATH];
    number least = UINT64_MAX;
    (void)snprintf(folder, sizeof folder, "%s%s", mount, group);
    for (char *end = folder + strlen(folder); end && end >= folder + strlen(mount);
         end = strrchr(folder, '/')) {
        *end = 0;
        const number room = room_of_group(folder, files);
        least = room < least ? room : least;
    }
    return least;
}

/* Both versions of control groups name those of a process: "0::/GROUP", "4:memory:/GROUP". */
static number room_of_process(const char *root) {
    static const struct group_files first = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                             "memory.stat", "total_inactive_file "},
                                    second = {"memory.max", "memory.current", "memory.stat",
                                              "inactive_file "};
    char path[PATH], mount[PATH], line[PATH];
    number least = UINT64_MAX;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *memory = strstr(line, ":memory:");
        const bool is_second = strncmp(line, "0::", 3) == 0;
        if (!memory && !is_second)
            continue;
        line[strcspn(line, "\n")] = 0;
        (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, is_second ? "" : "/memory");
        const number room =
            room_of_groups(mount, is_second ? line + 3 : memory + strlen(":memory:"),
                           is_second ? &second : &first);
        least = room < least ? room : least;
    }
    if (file)
        (void)fclose(file);
    return least;
}

size_t test_free_memory(const char *root) {
    char folder[PATH];
    number kib;
    number least = room_of_process(root);
    (void)snprintf(folder, sizeof folder, "%s/proc", root);
    if (read_number(folder, "meminfo", "MemAvailable:", &kib) && kib << 10 < least)
        least = kib << 10;
    return (size_t)least;
}

/* What ThreadSanitizer and AddressSanitizer document: four bytes for each, and one for eight. */
static size_t sanitizer_bytes(size_t addresses) {
    return IS_TSAN ? addresses * 4 : IS_ASAN ? addresses / 8 : 0;
}

bool test_has_memory(size_t bytes, size_t addresses) {
    const size_t needed = bytes + sanitizer_bytes(addresses), free = test_free_memory("");
    if (free / 4 * 3 > needed)
        return true;
    print_message(
        "skipped: needs %zu MiB of memory, %zu MiB of them the sanitizer's; %zu MiB are free\n",
        needed >> 20, sanitizer_bytes(addresses) >> 20, free >> 20);
    return false;
}
