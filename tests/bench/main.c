/* bench [--quick | --full] [--caffe LIBRARY] [--out FOLDER] [CASE...]
   Measures the library and others, and checks the goals. Appends the goals to FOLDER/goals.csv and
   all times to FOLDER/times.csv. */
#include "cases.h"
#include "harness.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*run)(void);
    bool apart; /* runs only if the command names it */
} cases[] = {{"allocation", bench_allocation, false}, {"messages", bench_messages, false},
             {"files", bench_files, false},           {"arithmetic", bench_arithmetic, false},
             {"fillers", bench_fillers, false},       {"growth", bench_growth, false},
             {"readers", bench_readers, false},       {"threads", bench_threads, true}};

#define NUM_CASES (sizeof cases / sizeof *cases)

static void fail(const char *what, const char *which) {
    fprintf(stderr, "bench: %s%s\n", what, which);
    exit(2);
}

static const void *open_peer(const char *path, const char *name) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *peer = library ? dlsym(library, name) : NULL;
    if (!peer)
        fail("", dlerror());
    return peer;
}

/* Restarts the program with a setting of glibc that makes malloc use huge pages. */
static void use_huge_pages(char **argv) {
    const char *setting = "glibc.malloc.hugetlb=1";
    const char *present = getenv("GLIBC_TUNABLES");
    if (present && strcmp(present, setting) == 0)
        return;
    setenv("GLIBC_TUNABLES", setting, 1);
    execv("/proc/self/exe", argv);
}

static FILE *open_results(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", bench.folder, name);
    FILE *file = fopen(path, "a");
    if (!file)
        fail("cannot write ", path);
    return file;
}

static void set_folder(const char *folder) {
    bench.folder = folder;
    bench.goals = open_results("goals.csv");
    bench.times = open_results("times.csv");
}

static void add_case(const char *name, unsigned *wanted) {
    for (size_t i = 0; i < NUM_CASES; i++)
        if (strcmp(cases[i].name, name) == 0) {
            *wanted |= 1U << i;
            return;
        }
    fail("there is no case ", name);
}

static void parse(char **argv, unsigned *wanted) {
    while (*++argv) {
        const char *value = argv[1] ? argv[1] : "";
        if (strcmp(*argv, "--quick") == 0) {
            bench.effort = QUICK;
        } else if (strcmp(*argv, "--full") == 0) {
            bench.effort = FULL;
        } else if (strncmp(*argv, "--", 2) != 0) {
            add_case(*argv, wanted);
        } else if (!*value) {
            fail("no value for ", *argv);
        } else if (strcmp(*argv, "--caffe") == 0) {
            bench.caffe_path = *++argv;
            bench.caffe = open_peer(value, "caffe_peer");
        } else if (strcmp(*argv, "--out") == 0) {
            set_folder(*++argv);
        } else if (strcmp(*argv, "--peak") == 0 && argv[2]) {
            exit(peak_memory(value, argv[2]));
        } else {
            fail("there is no ", *argv);
        }
    }
}

int main(int argc, char **argv) {
    unsigned wanted = 0;
    (void)argc;
    use_huge_pages(argv);
    bench.effort = NORMAL;
    bench.folder = "/tmp";
    parse(argv, &wanted);
    pin(0);
    printf("     best    median     limit  unit  threads    goal\n");
    for (size_t i = 0; i < NUM_CASES; i++)
        if (wanted ? wanted & 1U << i : !cases[i].apart)
            cases[i].run();
    printf("\n%d met, %d missed, %d not measured (without Caffe)\n", bench.met, bench.missed,
           bench.unmeasured);
    return 0;
}
