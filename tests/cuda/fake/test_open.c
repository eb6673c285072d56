/* Opening: what is missing is a status with a sentence, nothing is printed; and
   forks. Each scenario is this program run again, on what its environment
   shows it. It is not linked with the fakes, whose functions it looks up. */
#include "ranks.h"
#include "rig.h"
#include "table.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT 30

/* In a scenario, which has no cmocka around it. */
#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(2);                                                                              \
        }                                                                                          \
    } while (0)

static sb_context *context;
static sb_mem *mem;

static sb_status open_context(const char *device, sb_error *err) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = device;
    return sb_context_create(&options, &context, err);
}

static bool is_loaded(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    return handle != NULL;
}

static void told(const sb_error *err, int32_t code, const char *words) {
    if (!strstr(err->message, words))
        fprintf(stderr, "\"%s\" lacks \"%s\"\n", err->message, words);
    need(strstr(err->message, words) && err->device_code == code);
}

static void refused(const char *device, sb_status status, int32_t code, const char *words) {
    need(open_context(device, &err) == status);
    told(&err, code, words);
}

/* Nothing of the driver stays in the process. */
static void has_no_driver(int32_t code, const char *words) {
    refused("cuda:0", SB_ERR_NO_DEVICE, code, words);
    need(!is_loaded("libcuda.so.1"));
}

static void *function(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

/* --- what is missing ------------------------------------------------------------------------- */

static void no_driver(void) {
    has_no_driver(0, "there is no NVIDIA driver");
    has_no_driver(0, "install one");
}

static void old_driver(void) {
    has_no_driver(0, "is made for CUDA 11.1; update it");
}

static void another_driver(void) {
    has_no_driver(0, "the NVIDIA driver lacks cuInit; update it to one for CUDA 12.0 or later");
}

static void no_device(void) {
    has_no_driver(100, "CUDA_ERROR_NO_DEVICE; does nvidia-smi show a device");
}

static void no_reason(void) {
    has_no_driver(888, "the NVIDIA driver does not start: an unknown error; does");
}

static void fewer_devices(void) {
    refused("cuda:2", SB_ERR_NO_DEVICE, 0, "there is no cuda:2: the driver shows 2 devices");
}

/* Memory works, arithmetic says what to do. */
static void no_arithmetic(const char *words) {
    const int64_t shape[] = {3};
    float *x;
    double sum = -1;
    sb_blob *blob;
    const void *in;
    need(open_context("cuda:0", &err) == SB_OK);
    need(sb_blob_create_shaped(context, SB_DTYPE_F32, shape, 1, &blob, &err) == SB_OK);
    need(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err) == SB_OK);
    memset(x, 0, 12);
    need(sb_blob_gpu(blob, SB_DATA, &in, &err) == SB_OK);
    need(sb_blob_asum(blob, SB_DATA, &sum, &err) == SB_ERR_UNSUPPORTED);
    told(&err, 0, words);
    need(sb_blob_scale(blob, SB_DATA, 2, &err) == SB_ERR_UNSUPPORTED);
    need(sb_context_device_status(context) == SB_OK);
    need(sb_mem_head(NULL) == SB_HEAD_UNINITIALIZED && sum == -1);
    sb_blob_destroy(blob);
    sb_context_release(context);
}

static void no_cublas(void) {
    no_arithmetic("arithmetic needs cuBLAS (");
    no_arithmetic("install it, or name its folder in LD_LIBRARY_PATH");
}

static void another_cublas(void) {
    no_arithmetic("cuBLAS lacks cublasCreate_v2; install version 12.0 or later");
    need(!is_loaded("libcublas.so.13"));
}

static void arithmetic_works(void) {
    const int64_t shape[] = {3};
    float *x;
    double sum;
    sb_blob *blob;
    const void *in;
    need(open_context("cuda:0", &err) == SB_OK);
    need(sb_blob_create_shaped(context, SB_DTYPE_F32, shape, 1, &blob, &err) == SB_OK);
    need(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err) == SB_OK);
    for (int i = 0; i < 3; i++)
        x[i] = -2;
    need(sb_blob_gpu(blob, SB_DATA, &in, &err) == SB_OK);
    need(sb_blob_asum(blob, SB_DATA, &sum, &err) == SB_OK && sum == 6);
    sb_blob_destroy(blob);
    sb_context_release(context);
}

static void refuse_over(sb_comm *other, void *words) {
    sb_comm *comm = NULL;
    support_poison_error(&err);
    expect_status(SB_ERR_UNSUPPORTED, sb_nccl_comm_create_over(context, other, 0, &comm, &err));
    expect(strstr(err.message, words) && err.offset == -1 && !comm);
}

static void no_communicator(const char *words) {
    unsigned char id[SB_NCCL_ID_BYTES];
    sb_comm *comm = NULL;
    need(open_context("cuda:0", &err) == SB_OK);
    need(sb_nccl_id_create(id, &err) == SB_ERR_UNSUPPORTED);
    told(&err, 0, words);
    need(sb_nccl_comm_create_all(&context, 1, 0, &comm, &err) == SB_ERR_UNSUPPORTED && !comm);
    told(&err, 0, words);
    ranks_run(2, NULL, refuse_over, (void *)words);
    sb_context_release(context);
}

static void no_nccl(void) {
    no_communicator("this communicator needs NCCL (");
    no_communicator("libnccl.so.2: "); /* the loader's reason */
    no_communicator("install it, or name its folder in LD_LIBRARY_PATH");
}

static void another_nccl(void) {
    no_communicator("NCCL lacks ncclGetUniqueId; install version 2.14 or later");
    need(!is_loaded("libnccl.so.2"));
}

static void nccl_works(void) {
    double value = 3;
    sb_comm *comm = NULL;
    need(open_context("cuda:0", &err) == SB_OK);
    need(sb_nccl_comm_create_all(&context, 1, 0, &comm, &err) == SB_OK);
    need(sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err) == SB_OK);
    need(value == 3);
    sb_comm_destroy(comm);
    sb_context_release(context);
}

static void newest_cublas(void) {
    arithmetic_works();
    need(is_loaded("libcublas.so.13") && !is_loaded("libcublas.so.12"));
}

static void older_cublas(void) {
    arithmetic_works();
    need(is_loaded("libcublas.so.12") && !is_loaded("libcublas.so.13"));
}

/* As PyTorch does, from its own folder. */
static void what_is_loaded_already(void) {
    need(dlopen(FAKE_FOLDER "/lib12/libcublas.so.12", RTLD_NOW | RTLD_LOCAL));
    older_cublas();
}

/* It wants a newer driver. */
static void what_is_loaded_is_too_new(void) {
    need(dlopen(FAKE_FOLDER "/lib13/libcublas.so.13", RTLD_NOW | RTLD_LOCAL));
    arithmetic_works();
    need(is_loaded("libcublas.so.12"));
}

static void asleep_until_asked(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    need(sb_context_create(&options, &context, &err) == SB_OK);
    sb_context_release(context);
    need(!is_loaded("libcuda.so.1"));
    need(open_context("cuda:0", &err) == SB_OK);
    need(is_loaded("libcuda.so.1") && !is_loaded("libcublas.so.13"));
    sb_context_release(context);
}

/* --- forks -------------------------------------------------------------------------- */

static void make_pending(void) {
    sb_stream stream;
    void *out;
    need(open_context("cuda:0", &err) == SB_OK);
    need(sb_context_stream(context, &stream, &err) == SB_OK);
    need(sb_mem_create(context, 100000, &mem, &err) == SB_OK);
    need(sb_mem_overwrite_cpu(mem, &out, &err) == SB_OK);
    memset(out, 1, 100000);
    need(sb_mem_async_gpu_push(mem, stream, &err) == SB_OK);
}

static void release(void) {
    sb_mem_release(mem);
    sb_context_release(context);
}

static void a_forked_child_is_told(void) {
    const void *in;
    void *device = NULL;
    make_pending();
    need(sb_mem_synchronize(mem, &err) == SB_OK);
    int64_t (*calls)(const char *) = NULL;
    void *symbol = function("fake_calls");
    memcpy(&calls, &symbol, sizeof calls);
    pid_t child = fork();
    if (child == 0) {
        int64_t before = calls(NULL);
        need(sb__cuda_backend.open(NULL, 0, &device, &err) == SB_ERR_FORKED);
        told(&err, 0, "forked");
        need(sb_mem_gpu(mem, &in, &err) == SB_ERR_FORKED);
        need(sb_mem_cpu(mem, &in, &err) == SB_ERR_FORKED); /* page-locked */
        release();
        need(calls(NULL) == before);
        _exit(0);
    }
    int how = -1;
    need(waitpid(child, &how, 0) == child && how == 0);
    release();
}

/* By another library of the process; ours sees CUDA for the first time in the child. */
static void a_child_of_others_cuda_is_told(void) {
    unsigned int (*init)(unsigned int flags) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    need(library);
    void *symbol = dlsym(library, "cuInit");
    memcpy(&init, &symbol, sizeof init);
    need(init && init(0) == 0);
    pid_t child = fork();
    if (child == 0) {
        refused("cuda:0", SB_ERR_FORKED, 3, "CUDA was initialised before this process was forked");
        _exit(0);
    }
    int how = -1;
    need(waitpid(child, &how, 0) == child && how == 0);
    arithmetic_works();
}

/* --- running them ---------------------------------------------------------------------------- */

/* Folders of the search path: d the driver, 2 and 3 the cuBLAS, n NCCL, w a library with none of
   their functions under each of the names; - files that cannot be opened come first, so that what
   is installed here is not found. */
static const struct scenario {
    const char *name;
    void (*run)(void);
    const char *shows, *variable, *value;
} scenarios[] = {
    {"no driver", no_driver, "-", NULL, NULL},
    {"an old driver", old_driver, "d", "FAKE_VERSION", "11010"},
    {"a driver that lacks functions", another_driver, "w", NULL, NULL},
    {"no device", no_device, "d", "FAKE_INIT", "100"},
    {"an error without a name", no_reason, "d", "FAKE_INIT", "888"},
    {"fewer devices", fewer_devices, "d", NULL, NULL},
    {"no cuBLAS", no_cublas, "d-", NULL, NULL},
    {"a cuBLAS that lacks functions", another_cublas, "dw", NULL, NULL},
    {"cuBLAS 13 before 12", newest_cublas, "d32", NULL, NULL},
    {"cuBLAS 12 where 13 is missing", older_cublas, "d2-", NULL, NULL},
    {"cuBLAS 12 for a driver of CUDA 12", older_cublas, "d32", "FAKE_VERSION", "12000"},
    {"the cuBLAS that is loaded already", what_is_loaded_already, "d3", NULL, NULL},
    {"a cuBLAS that is too new is loaded", what_is_loaded_is_too_new, "d2", "FAKE_VERSION",
     "12000"},
    {"no NCCL", no_nccl, "d-", NULL, NULL},
    {"an NCCL that lacks functions", another_nccl, "dw", NULL, NULL},
    {"NCCL", nccl_works, "dn", NULL, NULL},
    {"asleep until asked", asleep_until_asked, "d32", NULL, NULL},
    {"a forked child", a_forked_child_is_told, "d32", NULL, NULL},
    {"a forked child of others' CUDA", a_child_of_others_cuda_is_told, "d32", NULL, NULL},
};

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static char broken[] = "/tmp/syncblob-fake-XXXXXX";

static const char *const names[] = {"libcuda.so.1", "libcublas.so.12", "libcublas.so.13",
                                    "libnccl.so.2"};

static void make_broken(void) {
    char path[256];
    assert_non_null(mkdtemp(broken));
    for (int i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", broken, names[i]);
        int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(file >= 0);
        (void)close(file);
    }
}

static void remove_broken(void) {
    char path[256];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", broken, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(broken);
}

static void search_path(char *path, size_t capacity, const char *shows) {
    size_t length = 0;
    path[0] = '\0';
    for (const char *s = shows; *s; s++) {
        if (*s == '-')
            length += (size_t)snprintf(path + length, capacity - length, "%s:", broken);
        else
            length += (size_t)snprintf(path + length, capacity - length, "%s/lib%s:", FAKE_FOLDER,
                                       *s == 'd'   ? ""
                                       : *s == 'n' ? "n"
                                       : *s == 'w' ? "w"
                                       : *s == '2' ? "12"
                                                   : "13");
        assert_true(length < capacity);
    }
}

static void run_child(const struct scenario *s, int output) {
    char path[2048];
    search_path(path, sizeof path, s->shows);
    (void)setenv("LD_LIBRARY_PATH", path, 1);
    if (s->variable)
        (void)setenv(s->variable, s->value, 1);
    (void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    (void)dup2(output, 1);
    (void)dup2(output, 2);
    (void)execl("/proc/self/exe", "open", s->name, (char *)NULL);
    _exit(3);
}

static void run_scenario(void **state) {
    const struct scenario *s = *state;
    char text[512];
    int ends[2], how = -1;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_child(s, ends[1]);
    (void)close(ends[1]);
    ssize_t printed = read(ends[0], text, sizeof text - 1);
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    text[printed > 0 ? printed : 0] = '\0';
    if (how != 0 || printed != 0)
        fail_with("ended with %x and printed: %s", (unsigned)how, text);
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[SCENARIOS];
    for (int i = 0; i < SCENARIOS; i++) {
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            (void)alarm(LIMIT);
            scenarios[i].run();
            return 0;
        }
        tests[i] = (struct CMUnitTest){scenarios[i].name, run_scenario, NULL, NULL,
                                       (void *)(uintptr_t)&scenarios[i]};
    }
    make_broken();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_broken();
    return failed;
}
