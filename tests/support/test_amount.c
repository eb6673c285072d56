/* A test does as much as it is told to, and as the machine has memory for. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

TEST(variables_are_off_where_they_are_empty_or_0) {
    static const struct {
        const char *whole, *full;
        bool is_quick, is_full;
    } rows[] = {{NULL, NULL, true, false},
                {"0", "", true, false},
                {"1", "0", false, false},
                {"", "1", false, true},
                {"0", "1", false, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(unsetenv("SYNCBLOB_TEST_WHOLE") | unsetenv("SYNCBLOB_TEST_FULL"), 0);
        if (rows[i].whole)
            assert_int_equal(setenv("SYNCBLOB_TEST_WHOLE", rows[i].whole, 1), 0);
        if (rows[i].full)
            assert_int_equal(setenv("SYNCBLOB_TEST_FULL", rows[i].full, 1), 0);
        assert_int_equal(test_is_quick(), rows[i].is_quick);
        assert_int_equal(test_is_full(), rows[i].is_full);
    }
}

/* --- a machine of files --------------------------------------------------------- */

struct file {
    const char *path, *text;
};

#define PROC    "/proc/meminfo"
#define GROUPS  "/proc/self/cgroup"
#define FIRST   "/sys/fs/cgroup/memory"
#define SECOND  "/sys/fs/cgroup"
#define MEMINFO "MemTotal:  9 kB\nMemFree:  1 kB\nMemAvailable:   102400 kB\n" /* 100 MiB */

static const struct {
    const char *claim;
    size_t free;
    struct file files[8];
} machines[] = {
    {"nothing says", SIZE_MAX, {{GROUPS, "0::/\n"}}},
    {"none is free", 0, {{PROC, "MemAvailable: 0 kB\n"}}},
    {"the kernel", 100 * MIB, {{PROC, MEMINFO}, {GROUPS, "0::/a\n"}}},
    {"no limit",
     100 * MIB,
     {{PROC, MEMINFO},
      {GROUPS, "0::/a\n"},
      {SECOND "/a/memory.max", "max\n"},
      {SECOND "/a/memory.current", "1\n"}}},
    {"a group, whose cache is free",
     60 * MIB,
     {{PROC, MEMINFO},
      {GROUPS, "0::/a\n"},
      {SECOND "/a/memory.max", "67108864\n"},
      {SECOND "/a/memory.current", "12582912\n"},
      {SECOND "/a/memory.stat", "anon 7\ninactive_file 8388608\n"}}},
    {"a group around it",
     40 * MIB,
     {{PROC, MEMINFO},
      {GROUPS, "0::/a/b\n"},
      {SECOND "/a/memory.max", "41943040\n"},
      {SECOND "/a/memory.current", "0\n"},
      {SECOND "/a/b/memory.max", "67108864\n"},
      {SECOND "/a/b/memory.current", "0\n"}}},
    {"a container, whose own group is the outermost",
     30 * MIB,
     {{PROC, MEMINFO},
      {GROUPS, "0::/not/here\n"},
      {SECOND "/memory.max", "31457280\n"},
      {SECOND "/memory.current", "0\n"}}},
    {"the first version, above its limit",
     0,
     {{PROC, MEMINFO},
      {GROUPS, "9:name=x:/\n4:memory:/a\n0::/\n"},
      {FIRST "/a/memory.limit_in_bytes", "4096\n"},
      {FIRST "/a/memory.usage_in_bytes", "12288\n"},
      {FIRST "/a/memory.stat", "inactive_file 12288\ntotal_inactive_file 4096\n"}}},
    {"the first version, whose limit is none",
     100 * MIB,
     {{PROC, MEMINFO},
      {GROUPS, "4:memory:/\n"},
      {FIRST "/memory.limit_in_bytes", "9223372036854771712\n"},
      {FIRST "/memory.usage_in_bytes", "12288\n"}}},
};

static void make_file(const char *root, const struct file *file) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s", root, file->path);
    for (char *end = path + strlen(root) + 1; (end = strchr(end, '/')); end++) {
        *end = 0;
        (void)mkdir(path, 0700);
        *end = '/';
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(file->text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

TEST(free_memory_is_the_least_of_kernel_and_groups) {
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

TEST(this_machine_says_how_much_is_free) {
    assert_true(test_free_memory("") < SIZE_MAX);
    assert_true(test_has_memory(0, 0));
}
