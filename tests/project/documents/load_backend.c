/* load_backend PATH: loads the guide's backend and computes a sum on its device. */
#include <syncblob/backend.h>
#include <syncblob/typed.h>

#include <stdio.h>

int main(int argc, char **argv) {
    const int64_t shape[] = {2, 3};
    const void *on_device;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    sb_blob *blob = NULL;
    double sum = 0;
    float *data;
    sb_error err;
    options.device = "plain:0";
    if (argc != 2 || sb_context_create(&options, &context, NULL) != SB_ERR_UNSUPPORTED)
        return 2;
    if (sb_backend_load(argv[1], NULL, &err) || sb_context_create(&options, &context, &err) ||
        sb_blob_create_shaped(context, SB_DTYPE_F32, shape, 2, &blob, &err) ||
        sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, &err))
        goto failed;
    for (int i = 0; i < 6; i++)
        data[i] = -1.5F;
    if (sb_blob_gpu(blob, SB_DATA, &on_device, &err) || sb_blob_asum(blob, SB_DATA, &sum, &err))
        goto failed;
    sb_blob_destroy(blob);
    sb_context_release(context);
    return sum == 9 ? 0 : 1;

failed:
    fprintf(stderr, "%s: %s\n", sb_status_name(err.code), err.message);
    return 1;
}
