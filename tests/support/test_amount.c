/* Tests how much memory is free, on machines that are simulated by files. */
#include "files.h"
#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

struct file {
    const char *path, *text;
};

#define PROC    "/proc/meminfo"
#define FIRST   "/sys/fs/cgroup/memory"
#define SECOND  "/sys/fs/cgroup"
#define MEMINFO "MemTotal:  9 kB\nMemFree:  1 kB\nMemAvailable:   102400 kB\n" /* 100 MiB */

static const struct {
    const char *claim;
    size_t free;
    struct file files[5];
} machines[] = {
    {"no file reports free memory", SIZE_MAX, {{NULL, NULL}}},
    {"no memory is free", 0, {{PROC, "MemAvailable: 0 kB\n"}}},
    {"no limit",
     100 * MIB,
     {{PROC, MEMINFO}, {SECOND "/memory.max", "max\n"}, {SECOND "/memory.current", "1\n"}}},
    {"a group whose cache counts as free",
     60 * MIB,
     {{PROC, MEMINFO},
      {SECOND "/memory.max", "67108864\n"},
      {SECOND "/memory.current", "12582912\n"},
      {SECOND "/memory.stat", "anon 7\ninactive_file 8388608\n"}}},
    {"version 1 of groups, above its limit",
     0,
     {{PROC, MEMINFO},
      {FIRST "/memory.limit_in_bytes", "4096\n"},
      {FIRST "/memory.usage_in_bytes", "12288\n"},
      {FIRST "/memory.stat", "inactive_file 12288\ntotal_inactive_file 4096\n"}}},
};

static void make_file(const char *root, const struct file *file) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s", root, file->path);
    for (char *end = path + strlen(root) + 1; (end = strchr(end, '/')); end++) {
        *end = 0;
        (void)mkdir(path, 0700);
        *end = '/';
    }
    file_write(path, file->text, strlen(file->text));
}

TEST(free_memory_is_the_least_that_kernel_and_groups_report) {
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        char root[] = "/tmp/syncblob-amount-XXXXXX", command[64];
        assert_non_null(mkdtemp(root));
        for (const struct file *file = machines[i].files; file->path; file++)
            make_file(root, file);
        const size_t found = test_free_memory(root);
        (void)snprintf(command, sizeof command, "rm -r %s", root);
        assert_int_equal(system(command), 0);
        if (found != machines[i].free)
            fail_with("%s: %zu bytes, not %zu", machines[i].claim, found, machines[i].free);
    }
}

TEST(this_machine_reports_its_free_memory) {
    assert_true(test_free_memory("") < SIZE_MAX);
    assert_true(test_has_memory(0, 0));
}
