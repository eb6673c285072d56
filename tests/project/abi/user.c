/* A user of one copy of the library, compiled into a shared library or into the program host.c,
   which runs the steps of several users alternately. USER is this user's name, VERSION the minor
   version of its copy. */
#include <syncblob/syncblob.h>

#include <stdio.h>
#include <string.h>

#define JOIN(a, b)  a##b
#define STEP(name)  JOIN(step_of_, name)
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s, line %d: %s is false\n", TEXT(USER), __LINE__, #condition);                \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static sb_blob *on_host, *on_device;
static sb_context *device;
static sb_mem *shared;

static const int64_t shape[] = {2, 3};

static void begin(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    float *data = NULL;
    options.device = "sim:0";
    CHECK(sb_version() == SB_VERSION_NUMBER && SB_VERSION_MINOR == VERSION);
    CHECK(sb_context_create(&options, &device, NULL) == SB_OK);
    CHECK(sb_blob_create_shaped(device, SB_DTYPE_F32, shape, 2, &on_device, NULL) == SB_OK);
    CHECK(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, 2, &on_host, NULL) == SB_OK);
    CHECK(sb_blob_mutable_cpu_f32(on_host, SB_DATA, &data, NULL) == SB_OK);
    for (int i = 0; data && i < 6; i++)
        data[i] = (float)i;
    CHECK(sb_blob_mutable_mem(on_host, SB_DATA, &shared, NULL) == SB_OK);
    shared = sb_mem_retain(shared);
}

static void replace_memory(void) {
    sb_blob *blob = NULL;
    float *data = NULL;
    CHECK(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, 2, &blob, NULL) == SB_OK);
    CHECK(sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, NULL) == SB_OK);
    CHECK(sb_blob_share(blob, SB_DATA, on_host, NULL) == SB_OK);
    sb_blob_destroy(blob);
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
    for (int i = 0; i < 3; i++)
        replace_memory();
}

static void end(void) {
    sb_blob_destroy(on_host);
    CHECK(sb_mem_size(shared) == 24);
    sb_mem_release(shared);
    sb_blob_destroy(on_device);
    sb_context_trim(device);
    sb_context_release(device);
}

/* Checks for leaks; runs after every user of the copy has released its objects. */
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
