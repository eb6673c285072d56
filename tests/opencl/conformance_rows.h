/* The rows of the conformance table for OpenCL. */
#include <syncblob/opencl.h>

static void prepare(void *device) {
    assert_ok(sb_opencl_backend()->prepare_arithmetic(device, &err));
}

/* Each kind of memory. Shared virtual memory has no check of pointers. */
static int32_t kinds[] = {SB_OPENCL_SVM, SB_OPENCL_USM, SB_OPENCL_BUFFERS};
static sb_backend tables[3];

__attribute__((constructor)) static void make_tables(void) {
    for (int i = 0; i < 3; i++) {
        tables[i] = *sb_opencl_backend();
        tables[i].user = &kinds[i];
    }
    tables[0].check_pointer = NULL;
}

#define CONFORMANCE_ROWS                                                                           \
    {"host", &host_backend, NULL}, {"svm", &tables[0], prepare}, {"usm", &tables[1], prepare}, {   \
        "buffers", &tables[2], prepare                                                             \
    }
