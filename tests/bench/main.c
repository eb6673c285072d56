/* bench [--quick | --full] [--caffe LIBRARY] [--linked LIBRARY] [--json FILE] [--folder FOLDER]
         [CASE...]
   Times the library against others and judges the goals; README.md explains the figures. */
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
    bool apart; /* only where it is named */
} cases[] = {{"small", bench_small, false},           {"allocation", bench_allocation, false},
             {"messages", bench_messages, false},     {"files", bench_files, false},
             {"arithmetic", bench_arithmetic, false}, {"fillers", bench_fillers, false},
             {"growth", bench_growth, false},         {"readers", bench_readers, false},
             {"threads", bench_threads, true}};

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

static void open_caffe(const char *path) {
    bench.caffe = open_peer(path, "caffe_peer");
    bench.caffe_path = path;
}

/* malloc shall advise huge pages too, for those whose memory comes from there: glibc looks at this
   when a program starts. */
static void use_huge_pages(char **argv) {
    const char *setting = "glibc.malloc.hugetlb=1";
    const char *present = getenv("GLIBC_TUNABLES");
    if (present && strcmp(present, setting) == 0)
        return;
    setenv("GLIBC_TUNABLES", setting, 1);
    execv("/proc/self/exe", argv);
}

static void add_case(const char *name, unsigned *wanted) {
    for (size_t i = 0; i < NUM_CASES; i++)
        if (strcmp(cases[i].name, name) == 0) {
            *wanted |= 1U << i;
            return;
        }
    fail("there is no case ", name);
}

static const char *parse(int argc, char **argv, unsigned *wanted) {
    const char *json = NULL;
    bench.effort = NORMAL;
    bench.folder = "/tmp";
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--quick") == 0)
            bench.effort = QUICK;
        else if (strcmp(argv[i], "--full") == 0)
            bench.effort = FULL;
        else if (strcmp(argv[i], "--caffe") == 0)
            open_caffe(argv[++i] ? value : "");
        else if (strcmp(argv[i], "--linked") == 0)
            bench.linked = open_peer(argv[++i] ? value : "", "linked_peer");
        else if (strcmp(argv[i], "--json") == 0)
            json = argv[++i] ? value : NULL;
        else if (strcmp(argv[i], "--folder") == 0)
            bench.folder = argv[++i] ? value : "";
        else if (strcmp(argv[i], "--peak") == 0 && i + 2 < argc)
            exit(peak_memory(value, argv[i + 2]));
        else
            add_case(argv[i], wanted);
    }
    return json;
}

static void copy_list(FILE *to, const char *name, FILE *list) {
    char block[4096];
    size_t got;
    fprintf(to, "\"%s\": [", name);
    rewind(list);
    while ((got = fread(block, 1, sizeof block, list)) > 0)
        fwrite(block, 1, got, to);
    fputs("\n]", to);
}

static void write_json(const char *path) {
    FILE *f = fopen(path, "w");
    if (!f)
        fail("cannot write ", path);
    fprintf(f, "{\"compiler\": \"%s\", \"effort\": %d,\n", __VERSION__, (int)bench.effort);
    copy_list(f, "goals", bench.goals);
    fputs(",\n", f);
    copy_list(f, "contests", bench.contests);
    fputs("}\n", f);
    if (fclose(f) != 0)
        fail("cannot write ", path);
}

int main(int argc, char **argv) {
    unsigned wanted = 0;
    use_huge_pages(argv);
    const char *json = parse(argc, argv, &wanted);
    bench.contests = tmpfile();
    bench.goals = tmpfile();
    must(bench.contests && bench.goals ? 0 : -1);
    pin(0);
    printf("     best    median     limit  unit  threads            goal\n");
    for (size_t i = 0; i < NUM_CASES; i++)
        if (wanted ? wanted & 1U << i : !cases[i].apart)
            cases[i].run();
    printf("\n%d met, %d missed, %d not measured (without Caffe)\n", bench.met, bench.missed,
           bench.unmeasured);
    if (json)
        write_json(json);
    return 0;
}
