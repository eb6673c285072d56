/* "first FILE" opens a model and loads its first blob. "first" creates a context on "sim:0". */
#include <syncblob/syncblob.h>

static sb_status load_first(const char *path) {
    sb_model *model;
    sb_blob *blob;
    sb_status st = sb_model_open_file(NULL, SB_FORMAT_AUTO, path, 0, NULL, &model, NULL);
    if (st == SB_OK)
        st = sb_blob_create(NULL, SB_DTYPE_F32, &blob, NULL);
    if (st != SB_OK)
        return st;
    st = SB_ERR_INDEX_OUT_OF_RANGE; /* of layers without blobs */
    for (int64_t i = 0; st == SB_ERR_INDEX_OUT_OF_RANGE && i < sb_model_num_layers(model); i++)
        st = sb_model_load_blob(model, i, 0, blob, NULL);
    return st;
}

int main(int argc, char **argv) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    options.device = "sim:0";
    const sb_status st =
        argc > 1 ? load_first(argv[1]) : sb_context_create(&options, &context, NULL);
    return st == SB_OK ? 0 : 1;
}
