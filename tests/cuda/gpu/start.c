/* Measures how long the first steps take: a context, the compilation of the kernels, a handle of
   cuBLAS and the first arithmetic. Prints Markdown. */
#include "../../survival/threads/team.h"
#include "gpu.h"

#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void print_since(const char *step, double start) {
    printf("| %s | %.3f |\n", step, (now() - start) * 1e3);
}

static void create_handle(void) {
    static const char *const files[] = {"libcublas.so.13", "libcublas.so.12"};
    sb__cublas_status (*create)(sb__cublas_handle * handle) = NULL;
    sb__cublas_handle handle;
    void *symbol = NULL;
    for (int i = 0; i < 2 && !symbol; i++) {
        void *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
        symbol = library ? dlsym(library, "cublasCreate_v2") : NULL;
    }
    memcpy(&create, &symbol, sizeof create);
    const double start = now();
    if (create && create(&handle) == SB__CUBLAS_STATUS_SUCCESS)
        print_since("cublasCreate", start);
    else
        printf("| cublasCreate | skipped: there is no cuBLAS |\n");
}

int main(void) {
    sb__cu_module module;
    double start = now();
    const sb_context_options options = CONTEXT_OPTIONS(.device = "cuda:0");
    sb_context *first = NULL;
    const sb_status st = sb_context_create(&options, &first, &err);
    const double first_ms = (now() - start) * 1e3;
    const int missing = gpu_begin();
    if (missing || st != SB_OK)
        return missing ? missing : 1;
    printf("\n| step | ms |\n|---|---|\n| the first context on cuda:0 | %.3f |\n", first_ms);
    start = now();
    sb_context *second = test_context_on("cuda:0");
    print_since("another context", start);
    enter();
    start = now();
    cu_ok(cuModuleLoadData(&module, sb__cuda_kernels));
    print_since("compilation of the kernels", start);
    create_handle();
    leave();
    start = now();
    assert_ok(sb_context_prepare_arithmetic(first, &err));
    print_since("preparation of arithmetic", start);
    test_end(second);
    sb_context_release(first);
    return 0;
}
