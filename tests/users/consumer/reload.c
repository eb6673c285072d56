/* A plug-in host: reload LIBRARY PLUGIN. Repeatedly loads the library and a plug-in that uses the
   library (tests/project/abi/copies.c), calls the plug-in, and unloads both. Memory, mappings,
   threads, open files and the C library's resources must not grow. OpenBLAS stays loaded. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STEPS = 4,
    WARM_UP = 100,
    RELOADS = 1100, /* more than the number of thread keys that the C library has */
    ALLOWED_KIB = 512
};

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition);                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct usage {
    long resident_kib, threads, mappings, files;
};

static long count_entries(const char *path) {
    DIR *folder = opendir(path);
    long entries = 0;
    CHECK(folder);
    while (readdir(folder))
        entries++;
    closedir(folder);
    return entries;
}

static struct usage measure(void) {
    struct usage usage = {.threads = count_entries("/proc/self/task"),
                          .files = count_entries("/proc/self/fd")};
    FILE *memory = fopen("/proc/self/statm", "r"), *maps = fopen("/proc/self/maps", "r");
    CHECK(memory && maps && fscanf(memory, "%*d %ld", &usage.resident_kib) == 1);
    usage.resident_kib *= 4;
    for (int c; (c = fgetc(maps)) != EOF;)
        usage.mappings += c == '\n';
    fclose(memory);
    fclose(maps);
    return usage;
}

static void load_and_unload(char **paths) {
    int (*step)(int) = NULL;
    void *plugin = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin);
    *(void **)&step = dlsym(plugin, "step_of_plugin");
    CHECK(step);
    for (int i = 0; i < STEPS; i++)
        CHECK(step(i) == 0);
    CHECK(dlclose(plugin) == 0 && !dlopen(paths[0], RTLD_NOW | RTLD_NOLOAD));
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    (void)dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    CHECK(dlclose(library) == 0);
    for (int i = 0; i < WARM_UP; i++)
        load_and_unload(argv + 1);
    const struct usage before = measure();
    for (int i = 0; i < RELOADS; i++)
        load_and_unload(argv + 1);
    const struct usage after = measure();
    printf("resident %ld to %ld KiB, mappings %ld to %ld, threads %ld to %ld, files %ld to %ld\n",
           before.resident_kib, after.resident_kib, before.mappings, after.mappings, before.threads,
           after.threads, before.files, after.files);
    CHECK(after.resident_kib <= before.resident_kib + ALLOWED_KIB);
    CHECK(after.mappings == before.mappings);
    CHECK(after.threads == before.threads && after.files == before.files);
    return 0;
}
