/* bench [--quick] [--caffe LIBRARY] [--out FOLDER] [CASE...] compares the library with other
   contestants. Appends the results to FOLDER/goals.csv and FOLDER/times.csv. */
#include "harness.h"

#include <dlfcn.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"allocation", bench_allocation}, {"messages", bench_messages},
             {"files", bench_files},           {"arithmetic", bench_arithmetic},
             {"fillers", bench_fillers},       {"growth", bench_growth}};

#define NUM_CASES (sizeof cases / sizeof *cases)

static _Noreturn void fail(const char *what, const char *which) {
    fprintf(stderr, "bench: %s%s\n", what, which);
    exit(2);
}

static void open_caffe(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    bench.caffe = library ? dlsym(library, "caffe_peer") : NULL;
    if (!bench.caffe)
        fail("", dlerror());
}

void team_run(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    (void)user;
#pragma omp parallel for num_threads(2) schedule(dynamic)
    for (int64_t i = 0; i < tasks; i++)
        task(arg, i);
}

/* Makes malloc use huge pages, and makes waiting threads spin as the threads of a BLAS do. */
static void restart_with_settings(char **argv) {
    const char *setting = "glibc.malloc.hugetlb=1";
    const char *present = getenv("GLIBC_TUNABLES");
    if (present && strcmp(present, setting) == 0)
        return;
    setenv("GLIBC_TUNABLES", setting, 1);
    setenv("GOMP_SPINCOUNT", "50000", 1);
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

static unsigned case_of(const char *name) {
    for (size_t i = 0; i < NUM_CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return 1U << i;
    fail("there is no case ", name);
}

static unsigned parse(int argc, char **argv) {
    static const struct option options[] = {{"quick", no_argument, NULL, 'q'},
                                            {"caffe", required_argument, NULL, 'c'},
                                            {"out", required_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    unsigned wanted = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'q')
            bench.quick = true;
        else if (option == 'c')
            open_caffe(optarg);
        else if (option == 'o')
            set_folder(optarg);
        else
            exit(2); /* getopt_long has printed why */
    }
    while (optind < argc)
        wanted |= case_of(argv[optind++]);
    return wanted;
}

int main(int argc, char **argv) {
    restart_with_settings(argv);
    bench.folder = "/tmp";
    unsigned wanted = parse(argc, argv);
    pin(0); /* the first call of pin reads the processors that the process may use */
#pragma omp parallel for num_threads(2) schedule(static, 1)
    for (int i = 0; i < 2; i++)
        pin(i);
    printf("     best    median     limit  unit  threads    goal\n");
    for (size_t i = 0; i < NUM_CASES; i++)
        if (!wanted || wanted & 1U << i)
            cases[i].run();
    printf("\n%d met, %d missed, %d not measured (without Caffe)\n", bench.met, bench.missed,
           bench.unmeasured);
    return 0;
}
