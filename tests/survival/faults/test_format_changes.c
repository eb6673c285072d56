/* Bytes that change between one read of a source and the next: the call reports it. The fuzzers of
   files change any bytes into any others. */
#include "callbacks.h"

static const int64_t two[] = {2};

/* One V1 layer or several, then so much that the second walk over the file has to read it again. */
static struct wire net_of_layers(const unsigned char layers[6]) {
    static const unsigned char filling[40000];
    struct wire net = {0};
    wire_raw(&net, layers, 6);
    wire_bytes(&net, 2000, filling, sizeof filling);
    wire_number(&net, 2000, 1);
    return net;
}

/* Each name has the length that the model reports. */
static void check_names(const sb_model *model) {
    for (int64_t i = 0; i < sb_model_num_layers(model); i++) {
        sb_layer_info layer = SB_LAYER_INFO_INIT;
        assert_ok(sb_model_layer_info(model, i, &layer, &err));
        assert_int_equal(strlen(layer.name.bytes), layer.name.size);
    }
}

/* How often a net is refused, the n-th read and later ones finding another, for every n. */
static int refusals(const struct wire *before, const struct wire *after) {
    int refused = 0;
    bool fired = true;
    for (int n = 1; fired; n++) {
        struct test_source s = {.other = after, .fault = {.left = n}};
        const sb_source source = test_source_of(&s, before);
        sb_model *model = NULL;
        sb_error err = {.code = SB_OK};
        sb_status st =
            sb_model_open_source(NULL, SB_FORMAT_CAFFEMODEL, &source, NULL, NULL, &model, &err);
        fired = s.fault.left <= 1;
        if (st != SB_OK) {
            assert_int_equal(st, SB_ERR_IO);
            assert_non_null(strstr(err.message, "changed"));
            refused++;
        }
        check_names(model);
        sb_model_destroy(model);
    }
    return refused;
}

/* Of two looks at the layer the second finds what the first made no room for, or left room for. */
TEST(a_layer_that_changes_between_two_looks_is_refused) {
    static const unsigned char layers[6][6] = {
        {0x12, 4, 0x28, 4, 0x32, 0},    /* a type with a name, a blob */
        {0x12, 4, 0x28, 0x7f, 0x32, 0}, /* a type without */
        {0x12, 4, 0x28, 4, 0x3a, 0},    /* no blob */
        {0x12, 4, 0x22, 2, 'a', 'b'},   /* a name alone */
        {0x12, 4, 0x22, 0, 0x22, 0},    /* an empty one */
        {0x12, 0, 0x12, 0, 0x12, 0},    /* three layers */
    };
    struct wire nets[6];
    for (int i = 0; i < 6; i++)
        nets[i] = net_of_layers(layers[i]);
    assert_int_equal(refusals(&nets[0], &nets[0]), 0);
    assert_true(refusals(&nets[0], &nets[1]) > 0);
    assert_true(refusals(&nets[0], &nets[2]) > 0);
    assert_true(refusals(&nets[2], &nets[0]) > 0);
    assert_true(refusals(&nets[4], &nets[3]) > 0);
    assert_true(refusals(&nets[4], &nets[5]) > 0);
}

/* A solver state, the n-th read of which and later ones find another, saved with a new blob:
   whether the save has as many bytes as it reports, or is refused. */
static bool is_saved_whole(const struct wire *before, const struct wire *after, int n,
                           int *refused) {
    struct test_source s = {.other = after, .fault = {.left = n}};
    const sb_source source = test_source_of(&s, before);
    unsigned char out[64];
    sb_model *model = NULL;
    sb_blob *blob;
    size_t size = 0;
    sb_status st =
        sb_model_open_source(NULL, SB_FORMAT_SOLVERSTATE, &source, NULL, NULL, &model, &err);
    if (st != SB_OK)
        return st == SB_ERR_IO;
    memset(out, 0x5a, sizeof out);
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, two, 1, &blob, &err));
    assert_ok(sb_model_set_blob(model, SB_NO_LAYER, 0, blob, 0, &err));
    st = sb_model_save(model, out, sizeof out, &size, &err);
    *refused += st == SB_ERR_IO && strstr(err.message, "changed");
    sb_model_destroy(model);
    sb_blob_destroy(blob);
    return st == SB_OK ? out[size - 1] != 0x5a && out[size] == 0x5a : st == SB_ERR_IO;
}

/* The blob that the new one replaces is longer by now, and what follows on it shorter. */
TEST(a_save_is_as_long_as_it_was_measured) {
    static const char bytes[2][18] = {"\x08\5\x1a\2\x2a\0\xfa\1\x08",
                                      "\x08\5\x1a\6\x2a\4\0\0\0\0\xfa\1\4"};
    const struct wire before = {(unsigned char *)bytes[0], 17, 17};
    const struct wire after = {(unsigned char *)bytes[1], 17, 17};
    int refused = 0;
    for (int n = 1; n < 12; n++)
        assert_true(is_saved_whole(&before, &after, n, &refused));
    assert_true(refused > 0);
}
