/* Uses one copy of the library beside other copies in the same process. */
#include <syncblob/syncblob.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define JOIN(a, b) a##b
#define STEP(name) JOIN(step_of_, name)
#define CHECK(condition)                                                                           \
    ((condition) ? (void)0                                                                         \
                 : (void)(failures++,                                                              \
                          printf("%s, line %d: %s is false\n", __FILE__, __LINE__, #condition)))

static int failures;
static sb_blob *on_host, *on_device;
static sb_context *device;
static sb_mem *shared;

static sb_blob *new_blob(sb_context *context) {
    static const int64_t shape[] = {2, 3};
    sb_blob *blob = NULL;
    CHECK(sb_blob_create_shaped(context, SB_DTYPE_F32, shape, 2, &blob, NULL) == SB_OK);
    return blob;
}

static void begin(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    float *data = NULL;
    options.device = "sim:0";
    CHECK(sb_version() == SB_VERSION_NUMBER && SB_VERSION_MINOR == VERSION);
    CHECK(sb_context_create(&options, &device, NULL) == SB_OK);
    on_device = new_blob(device);
    on_host = new_blob(NULL);
    CHECK(sb_blob_mutable_cpu_f32(on_host, SB_DATA, &data, NULL) == SB_OK);
    for (int i = 0; data && i < 6; i++)
        data[i] = (float)i;
    CHECK(sb_blob_mutable_mem(on_host, SB_DATA, &shared, NULL) == SB_OK);
    shared = sb_mem_retain(shared);
}

static void use(void) {
    const void *there = NULL;
    char bytes[256];
    size_t size = 0;
    double sum = 0;
    CHECK(!sb_blob_context(on_host) && !sb_mem_context(shared));
    CHECK(sb_blob_context(on_device) == device && sb_context_has_device(device));
    CHECK(!sb_context_retain(NULL));
    sb_context_release(sb_context_retain(device));
    CHECK(sb_blob_copy_from(on_device, SB_DATA, on_host, 0, NULL) == SB_OK);
    CHECK(sb_blob_gpu(on_device, SB_DATA, &there, NULL) == SB_OK && there);
    CHECK(sb_blob_to_proto(on_device, 0, bytes, sizeof bytes, &size, NULL) == SB_OK);
    CHECK(sb_blob_from_proto(on_host, bytes, size, SB_PROTO_RESHAPE, NULL, NULL) == SB_OK);
    CHECK(sb_blob_asum(on_host, SB_DATA, &sum, NULL) == SB_OK && sum == 15);
    for (int i = 0; i < 3; i++) {
        float *data = NULL;
        sb_blob *blob = new_blob(NULL);
        CHECK(sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, NULL) == SB_OK);
        CHECK(sb_blob_share(blob, SB_DATA, on_host, NULL) == SB_OK);
        sb_blob_destroy(blob);
    }
}

static void end(void) {
    sb_blob_destroy(on_host);
    CHECK(sb_mem_size(shared) == 24);
    sb_mem_release(shared);
    sb_blob_destroy(on_device);
    sb_context_trim(device);
    sb_context_release(device);
}

static void look(void) {
    sb_stats stats = SB_STATS_INIT;
    sb_context_trim(NULL);
    CHECK(sb_context_stats(NULL, &stats, NULL) == SB_OK && stats.host_bytes == 0);
}

int STEP(USER)(int step);

int STEP(USER)(int step) {
    static void (*const steps[])(void) = {begin, use, end, look};
    failures = 0;
    steps[step]();
    return failures;
}

#ifdef PROGRAM
enum { STEPS = 4, MOST = 8 };

#define LOAD(name)                                                                                 \
    __typeof__(name) *name##_ = NULL;                                                              \
    *(void **)&name##_ = dlsym(library, #name)

/* A copy must report another copy's built-in context as NULL, and must not count its owners. */
static int cross(void *library) {
    LOAD(sb_version);
    LOAD(sb_blob_context);
    LOAD(sb_blob_destroy);
    LOAD(sb_blob_create_shaped);
    LOAD(sb_mem_context);
    failures = 0;
    if (!sb_version_ || sb_version_() != sb_version())
        return 0;
    for (int i = 0; i < 3; i++) { /* if a round wrongly frees the context, a later round fails */
        const int64_t shape[] = {2, 3};
        sb_blob *sharer = NULL, *blob = new_blob(NULL);
        sb_mem *mem = NULL;
        CHECK(sb_blob_mutable_mem(blob, SB_DATA, &mem, NULL) == SB_OK);
        CHECK(!sb_blob_context_(blob) && !sb_mem_context_(mem));
        CHECK(sb_blob_create_shaped_(NULL, SB_DTYPE_F32, shape, 2, &sharer, NULL) == SB_OK);
        sb_blob_destroy_(sharer);
        sb_blob_destroy_(blob);
    }
    return failures;
}

int main(int argc, char **argv) {
    int (*users[MOST])(int step) = {STEP(USER)};
    int failed = 0, count = 1;
    const int scope = strcmp(argv[1], "global") ? RTLD_LOCAL : RTLD_GLOBAL;
    for (int i = 2; i + 1 < argc && count < MOST; i += 2, count++) {
        char symbol[64];
        void *library = dlopen(argv[i + 1], RTLD_NOW | scope);
        (void)snprintf(symbol, sizeof symbol, "step_of_%s", argv[i]);
        if (library)
            *(void **)&users[count] = dlsym(library, symbol);
        if (!users[count])
            return printf("%s\n", dlerror()), 1;
        failed += cross(library);
    }
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < count; i++)
            failed += users[i](step);
    return failed != 0;
}
#endif
