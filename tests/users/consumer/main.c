/* Uses the installed library. The argument is the package's version. */
#include <syncblob/syncblob.h>

#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition);                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int shared_and_saved(sb_context *context) {
    const int64_t shape[] = {2, 3};
    sb_blob *blob = NULL, *copy = NULL;
    float *x = NULL;
    const float *y = NULL;
    sb_error err;

    CHECK(sb_blob_create_shaped(context, SB_DTYPE_F32, shape, 2, &blob, &err) == SB_OK);
    CHECK(sb_blob_create(context, SB_DTYPE_F32, &copy, NULL) == SB_OK);
    CHECK(sb_blob_mutable_cpu_t(blob, SB_DATA, &x, &err) == SB_OK);
    for (int i = 0; i < 6; i++)
        x[i] = (float)i;
    CHECK(sb_blob_save_file(blob, "blob.binaryproto", 0, &err) == SB_OK);
    CHECK(sb_blob_load_file(copy, "blob.binaryproto", SB_PROTO_RESHAPE, NULL, &err) == SB_OK);
    CHECK(sb_blob_shape_equals(blob, copy));
    CHECK(sb_blob_cpu_t(copy, SB_DATA, &y, &err) == SB_OK);
    CHECK(memcmp(x, y, 6 * sizeof *x) == 0);
    sb_blob_destroy(copy);
    sb_blob_destroy(blob);
    return 0;
}

int main(int argc, char **argv) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    sb_error err;

    CHECK(argc == 2 && strcmp(argv[1], sb_version_string()) == 0);
    CHECK(sb_version() == SB_VERSION_NUMBER);
    options.device = "sim:0";
    CHECK(sb_context_create(&options, &context, &err) == SB_OK);
    CHECK(shared_and_saved(context) == 0);
    CHECK(shared_and_saved(NULL) == 0);
    sb_context_release(context);
    return 0;
}
