/* Tests the opening of the backend. The program runs itself for each scenario. */
#include "blobs.h"
#include "child.h"
#include "pointers.h"
#include "ranks.h"
#include "table.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <syncblob/nccl.h>

#define assert_failure(status, code, words, call)                                                  \
    do {                                                                                           \
        assert_status(status, call);                                                               \
        assert_true(fnmatch(words, err.message, 0) == 0 && err.device_code == (code));             \
    } while (0)

static sb_context *context;
static sb_blob *blob;

static sb_status open_context(const char *device) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = device;
    return sb_context_create(&options, &context, &err);
}

static bool is_loaded(const char *library) {
    return dlopen(library, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

static void make_blob(void) {
    assert_ok(open_context("cuda:0"));
    blob = blob_of_count(context, SB_DTYPE_F32, 3);
    fill_values(SB_DTYPE_F32, 3, -2, 0, blob_pointer(blob, SB_DATA, OVERWRITE_CPU));
    (void)blob_pointer(blob, SB_DATA, GPU_DATA);
}

static void end_blob(void) {
    sb_blob_destroy(blob);
    sb_context_release(context);
}

static void no_driver(int32_t code, const char *words) {
    for (int i = 0; i < 2; i++) { /* a failure is not cached */
        assert_failure(SB_ERR_NO_DEVICE, code, words, open_context("cuda:0"));
        assert_false(is_loaded("libcuda.so.1"));
    }
}

static void fewer_devices(int32_t code, const char *words) {
    assert_failure(SB_ERR_NO_DEVICE, code, words, open_context("cuda:2"));
}

static void no_cublas(int32_t code, const char *words) {
    double sum = -1;
    make_blob();
    for (int i = 0; i < 2; i++)
        assert_failure(SB_ERR_UNSUPPORTED, code, words, sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_true(sb_context_device_status(context) == SB_OK && sum == -1);
    assert_false(is_loaded("libcublas.so.13"));
    end_blob();
}

static void arithmetic_works(int32_t code, const char *words) {
    double sum;
    make_blob();
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 6 && is_loaded(words));
    end_blob();
}

static void one_cublas(int32_t code, const char *words) {
    arithmetic_works(code, words);
    assert_true(is_loaded("libcublas.so.12") != is_loaded("libcublas.so.13"));
}

/* Like PyTorch, loads cuBLAS from another folder before the library does. */
static void cublas_12_is_loaded(int32_t code, const char *words) {
    assert_non_null(dlopen(FAKE_FOLDER "/lib12/libcublas.so.12", RTLD_NOW | RTLD_LOCAL));
    one_cublas(code, words);
}

static void cublas_13_is_loaded(int32_t code, const char *words) {
    assert_non_null(dlopen(FAKE_FOLDER "/lib13/libcublas.so.13", RTLD_NOW | RTLD_LOCAL));
    arithmetic_works(code, words);
}

static void refuse_over(sb_comm *other, void *words) {
    sb_comm *comm = NULL;
    support_poison_error(&err);
    expect_status(SB_ERR_UNSUPPORTED, sb_nccl_comm_create_over(context, other, 0, &comm, &err));
    expect(fnmatch(words, err.message, 0) == 0 && err.offset == -1 && !comm);
}

static void no_nccl(int32_t code, const char *words) {
    unsigned char id[SB_NCCL_ID_BYTES];
    sb_comm *comm = NULL;
    assert_ok(open_context("cuda:0"));
    assert_failure(SB_ERR_UNSUPPORTED, code, words, sb_nccl_id_create(id, &err));
    assert_failure(SB_ERR_UNSUPPORTED, code, words,
                   sb_nccl_comm_create_all(&context, 1, 0, &comm, &err));
    ranks_run(2, NULL, refuse_over, (void *)(uintptr_t)words);
    assert_true(!comm && !is_loaded("libnccl.so.2"));
    sb_context_release(context);
}

static void nccl_works(int32_t code, const char *words) {
    double value = 3;
    sb_comm *comm = NULL;
    assert_ok(open_context("cuda:0"));
    assert_ok(sb_nccl_comm_create_all(&context, 1, 0, &comm, &err));
    assert_ok(sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err));
    assert_true(value == 3 && is_loaded(words));
    sb_comm_destroy(comm);
    sb_context_release(context);
}

static void loads_at_first_use(int32_t code, const char *words) {
    assert_ok(open_context(NULL));
    sb_context_release(context);
    assert_false(is_loaded(words));
    assert_ok(open_context("cuda:0"));
    assert_true(is_loaded(words) && !is_loaded("libcublas.so.13"));
    sb_context_release(context);
}

static void *function(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    return dlsym(library, name);
}

static int64_t (*calls)(const char *function);

static void use_in_child(void *words) {
    const void *in;
    void *device = NULL;
    const int64_t before = calls(NULL);
    assert_failure(SB_ERR_FORKED, 0, words, sb__cuda_backend.open(NULL, 0, &device, &err));
    assert_status(SB_ERR_FORKED, sb_blob_gpu(blob, SB_DATA, &in, &err));
    assert_status(SB_ERR_FORKED, sb_blob_cpu(blob, SB_DATA, &in, &err)); /* page-locked memory */
    assert_status(SB_ERR_FORKED, sb_context_synchronize(context, &err));
    sb_context_trim(context);
    end_blob();
    assert_int_equal(calls(NULL), before);
}

static void a_child_gets_a_status(int32_t code, const char *words) {
    make_blob();
    void *symbol = function("fake_calls");
    memcpy(&calls, &symbol, sizeof calls);
    in_child(use_in_child, (void *)(uintptr_t)words);
    end_blob();
}

static void open_in_child(void *words) {
    assert_failure(SB_ERR_FORKED, 3, words, open_context("cuda:0"));
}

/* In the parent process, another library initialises CUDA. */
static void a_child_of_others_cuda(int32_t code, const char *words) {
    unsigned int (*init)(unsigned int flags) = NULL;
    void *symbol = function("cuInit");
    memcpy(&init, &symbol, sizeof init);
    assert_int_equal(init(0), 0);
    in_child(open_in_child, (void *)(uintptr_t)words);
    arithmetic_works(0, "libcublas.so.13");
}

static int with_a_real_driver(void) {
    for (int i = 0; i < 2; i++) {
        const sb_status st = open_context("cuda:0");
        printf("%s: %s (%d)\n", sb_status_name(st), err.message, err.device_code);
        if (st == SB_OK)
            return 77;
        assert_true(st == SB_ERR_NO_DEVICE && err.device_code);
    }
    return 0;
}

/* Folders of `path`: `libw` has libraries without functions. `none` has files that are not
   libraries, and that hide the machine's libraries. */
static const struct scenario {
    const char *name;
    void (*run)(int32_t code, const char *words);
    int32_t code;
    const char *words, *path, *variable;
} scenarios[] = {
    {"no driver", no_driver, 0, "*there is no NVIDIA driver*install one*", "none", ""},
    {"an old driver", no_driver, 0, "*is made for CUDA 11.1; install*", "lib",
     "FAKE_VERSION=11010"},
    {"a driver that lacks functions", no_driver, 0,
     "*the NVIDIA driver lacks cuInit; install a driver for CUDA 12.0 or later*", "libw", ""},
    {"no device", no_driver, 100, "*CUDA_ERROR_NO_DEVICE; does nvidia-smi show a device*", "lib",
     "FAKE_INIT=100"},
    {"an error without a name", no_driver, 888,
     "*the NVIDIA driver does not start: an unknown error; does*", "lib", "FAKE_INIT=888"},
    {"no fabric manager", no_driver, 802, "*does NVIDIA's fabric manager run*", "lib",
     "FAKE_INIT=802"},
    {"fewer devices", fewer_devices, 0, "*there is no cuda:2: the driver reports 2 devices*", "lib",
     ""},
    {"no cuBLAS", no_cublas, 0,
     "*arithmetic needs cuBLAS (*install it, or name its folder in LD_LIBRARY_PATH*", "lib:none",
     ""},
    {"a cuBLAS that lacks functions", no_cublas, 0,
     "*cuBLAS lacks cublasCreate_v2; install version 12.0 or later*", "lib:libw", ""},
    {"cuBLAS 13 before 12", one_cublas, 0, "libcublas.so.13", "lib:lib13:lib12", ""},
    {"cuBLAS 12 where 13 is missing", one_cublas, 0, "libcublas.so.12", "lib:lib12:none", ""},
    {"cuBLAS 12 for a driver of CUDA 12", one_cublas, 0, "libcublas.so.12", "lib:lib13:lib12",
     "FAKE_VERSION=12000"},
    {"the cuBLAS that is loaded already", cublas_12_is_loaded, 0, "libcublas.so.12", "lib:lib13",
     ""},
    {"a cuBLAS that is too new is loaded", cublas_13_is_loaded, 0, "libcublas.so.12", "lib:lib12",
     "FAKE_VERSION=12000"},
    {"no NCCL", no_nccl, 0,
     "*this communicator needs NCCL (*libnccl.so.2: *install it, or name its folder in "
     "LD_LIBRARY_PATH*",
     "lib:none", ""},
    {"an NCCL that lacks functions", no_nccl, 0,
     "*NCCL lacks ncclGetUniqueId; install version 2.14 or later*", "lib:libw", ""},
    {"NCCL", nccl_works, 0, "libnccl.so.2", "lib:libn", ""},
    {"no library before the first use", loads_at_first_use, 0, "libcuda.so.1", "lib:lib13:lib12",
     ""},
    {"a forked child", a_child_gets_a_status, 0, "*forked*", "lib:lib13:lib12", ""},
    {"a forked child of others' CUDA", a_child_of_others_cuda, 0,
     "*CUDA was initialised before this process was forked*", "lib:lib13:lib12", ""},
};

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static void run_scenario(void **state) {
    const struct scenario *s = *state;
    char command[400], text[512];
    (void)snprintf(command, sizeof command,
                   "cd '" FAKE_FOLDER "' && LD_LIBRARY_PATH=%s ASAN_OPTIONS=detect_leaks=0 %s "
                   "/proc/%d/exe \"%s\" 2>&1",
                   s->path, s->variable, (int)getpid(), s->name);
    FILE *child = popen(command, "r");
    assert_non_null(child);
    text[fread(text, 1, sizeof text - 1, child)] = '\0';
    const int how = pclose(child);
    if (how != 0 || text[0])
        fail_with("%s ended with wait status %x and printed: %s", command, (unsigned)how, text);
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[SCENARIOS];
    if (argc == 2 && strcmp(argv[1], "--real-driver") == 0)
        return with_a_real_driver();
    for (int i = 0; i < SCENARIOS; i++) {
        const struct scenario *s = &scenarios[i];
        if (argc == 2 && strcmp(argv[1], s->name) == 0) {
            (void)alarm(CHILD_SECONDS);
            s->run(s->code, s->words);
            return 0;
        }
        tests[i] = (struct CMUnitTest){s->name, run_scenario, NULL, NULL, (void *)(uintptr_t)s};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
