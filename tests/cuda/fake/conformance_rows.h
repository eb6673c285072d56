/* The rows of the conformance table for NVIDIA's driver or the fakes. */
static void prepare(void *device) {
    assert_ok(sb__cuda_backend.prepare_arithmetic(device, &err));
}

#define CONFORMANCE_ROWS                                                                           \
    {"host", &host_backend, NULL}, {                                                               \
        "cuda", &sb__cuda_backend, prepare                                                         \
    }
