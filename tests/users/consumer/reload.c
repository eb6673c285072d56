/* A plug-in host: loads the library, works with it and unloads it, over and over: reload PATH.
   Memory, mappings, threads, open files and what the C library keeps for each library stay as
   many. OpenBLAS is held all the time: what it keeps when it is unloaded is its own. */
#include <syncblob/syncblob.h>

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARM_UP = 100,
    RELOADS = 1100, /* more than the C library has keys of threads */
    ALLOWED_KIB = 512
};

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition);                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The library's function of this name, as a local variable. */
#define LOAD(name)                                                                                 \
    __typeof__(name) *name##_ = NULL;                                                              \
    *(void **)&name##_ = dlsym(library, #name);                                                    \
    CHECK(name##_)

struct usage {
    long resident_kib, threads, mappings, files;
};

static long count_lines(const char *path) {
    FILE *file = fopen(path, "r");
    long lines = 0;
    CHECK(file);
    for (int c; (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}

static long count_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    long files = 0;
    CHECK(folder);
    while (readdir(folder))
        files++;
    closedir(folder);
    return files;
}

static struct usage measure(void) {
    struct usage usage = {0};
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status);
    while (fgets(line, sizeof line, status)) {
        (void)sscanf(line, "VmRSS: %ld", &usage.resident_kib);
        (void)sscanf(line, "Threads: %ld", &usage.threads);
    }
    fclose(status);
    usage.mappings = count_lines("/proc/self/maps");
    usage.files = count_files();
    return usage;
}

/* Sums, messages and memory that the context's cache keeps. */
static void work(void *library, sb_context *context) {
    LOAD(sb_blob_create_shaped);
    LOAD(sb_blob_mutable_cpu);
    LOAD(sb_blob_asum);
    LOAD(sb_blob_proto_size);
    LOAD(sb_blob_to_proto);
    LOAD(sb_blob_destroy);
    const int64_t shape[] = {1 << 18};
    sb_blob *blob = NULL;
    void *data = NULL, *bytes = NULL;
    size_t size = 0;
    double sum = 0;

    CHECK(sb_blob_create_shaped_(context, SB_DTYPE_F32, shape, 1, &blob, NULL) == SB_OK);
    CHECK(sb_blob_mutable_cpu_(blob, SB_DATA, &data, NULL) == SB_OK);
    for (int i = 0; i < 1 << 18; i += 1 << 10)
        ((float *)data)[i] = -1.0F;
    CHECK(sb_blob_asum_(blob, SB_DATA, &sum, NULL) == SB_OK && sum == 256);
    CHECK(sb_blob_proto_size_(blob, 0, &size, NULL) == SB_OK && size > 1 << 20);
    CHECK((bytes = malloc(size)) != NULL);
    CHECK(sb_blob_to_proto_(blob, 0, bytes, size, NULL, NULL) == SB_OK);
    free(bytes);
    sb_blob_destroy_(blob);
}

static void load_and_unload(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    LOAD(sb_context_create);
    LOAD(sb_context_trim);
    LOAD(sb_context_release);
    sb_context *context = NULL;

    CHECK(sb_context_create_(NULL, &context, NULL) == SB_OK);
    work(library, context);
    sb_context_release_(context);
    work(library, NULL);
    sb_context_trim_(NULL); /* the built-in context is never released: its cache is let go of */
    CHECK(dlclose(library) == 0);
    CHECK(!dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

static void keep_openblas(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    (void)dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    CHECK(dlclose(library) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    keep_openblas(argv[1]);
    for (int i = 0; i < WARM_UP; i++)
        load_and_unload(argv[1]);
    const struct usage before = measure();
    for (int i = 0; i < RELOADS; i++)
        load_and_unload(argv[1]);
    const struct usage after = measure();
    printf("%d times: resident %ld to %ld KiB, mappings %ld to %ld, threads %ld to %ld, files %ld "
           "to %ld\n",
           RELOADS, before.resident_kib, after.resident_kib, before.mappings, after.mappings,
           before.threads, after.threads, before.files, after.files);
    CHECK(after.resident_kib <= before.resident_kib + ALLOWED_KIB);
    CHECK(after.mappings == before.mappings);
    CHECK(after.threads == before.threads && after.files == before.files);
    return 0;
}
