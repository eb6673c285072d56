/* The bytes of a source change between two reads: calls that have measured other bytes fail. The
   fuzz targets blob_proto and model_file make every call while single bytes change. */
#include "blobs.h"
#include "files.h"
#include "nets.h"
#include "pointers.h"

/* Opens a model of `format`. Its n-th and later reads return the bytes of `after`. */
static sb_status open_changing(struct test_source *s, int32_t format, const struct wire *before,
                               const struct wire *after, int n, sb_model **out) {
    *s = (struct test_source){.other = after, .fault = {.left = n}};
    *out = NULL;
    err = (sb_error){.code = SB_OK};
    const sb_source source = test_source_of(s, before);
    return sb_model_open_source(NULL, format, &source, NULL, NULL, out, &err);
}

static bool reports_change(sb_status st) {
    return st == SB_ERR_IO && strstr(err.message, "changed") != NULL;
}

/* Appends so many bytes that the second pass over the file must read the layers again. */
static void pad(struct wire *net) {
    static const unsigned char filling[40000];
    wire_bytes(net, 2000, filling, sizeof filling);
    wire_write(net, "2000:1");
}

/* Checks that each name has the length that the model reports. */
static void check_names(const sb_model *model) {
    for (int64_t i = 0; i < sb_model_num_layers(model); i++) {
        sb_layer_info layer = SB_LAYER_INFO_INIT;
        assert_ok(sb_model_layer_info(model, i, &layer, &err));
        assert_int_equal(strlen(layer.name.bytes), layer.name.size);
    }
}

/* Opens a net whose n-th and later reads return `after`, for every n. Returns how often the open is
   refused. */
static int refusals(const struct wire *before, const struct wire *after) {
    int refused = 0;
    bool fired = true;
    for (int n = 1; fired; n++) {
        struct test_source s;
        sb_model *model;
        const sb_status st = open_changing(&s, SB_FORMAT_CAFFEMODEL, before, after, n, &model);
        fired = s.fault.left <= 1;
        assert_true(st == SB_OK || reports_change(st));
        refused += st != SB_OK;
        check_names(model);
        sb_model_destroy(model);
    }
    return refused;
}

/* The second read of a layer finds more or fewer bytes than the first read has counted. */
TEST(a_layer_that_changes_between_two_reads_is_refused) {
    static const char *const layers[] = {
        "2:{5:4 6:{}}",   /* a type with a name, a blob */
        "2:{5:127 6:{}}", /* a type without a name */
        "2:{5:4 7:{}}",   /* no blob */
        "2:{4:'ab'}",     /* only a name */
        "2:{4:'' 4:''}",  /* two empty names */
        "2:{} 2:{} 2:{}",
    };
    static const char bottom[6000];
    struct wire nets[6];
    for (int i = 0; i < 6; i++) {
        nets[i] = wire_of("%s", layers[i]);
        pad(&nets[i]);
    }
    assert_int_equal(refusals(&nets[0], &nets[0]), 0);
    assert_true(refusals(&nets[0], &nets[1]) > 0);
    assert_true(refusals(&nets[0], &nets[2]) > 0);
    assert_true(refusals(&nets[2], &nets[0]) > 0);
    assert_true(refusals(&nets[4], &nets[3]) > 0);
    assert_true(refusals(&nets[4], &nets[5]) > 0);
    assert_true(refusals(&nets[5], &nets[4]) > 0);
    struct wire few = {0}, many = {0}, no_blobs = {0}, blobs = wire_of("2:'b'");
    wire_bytes(&no_blobs, 2, bottom, sizeof bottom);
    for (size_t i = 0; i < sizeof bottom / 2; i++)
        wire_write(&blobs, "6:{}");
    wire_message(&few, 2, &no_blobs);
    wire_message(&many, 2, &blobs);
    pad(&few);
    pad(&many);
    assert_true(refusals(&few, &many) > 0);
}

/* Two solver states: `after` has a longer blob and a shorter last field than `before`. */
static const struct wire before = W("\x08\5\x1a\2\x2a\0\xfa\1\x08\0\0\0\0\0\0\0\0");
static const struct wire after = W("\x08\5\x1a\6\x2a\4\0\0\0\0\xfa\1\4\0\0\0\0");

/* Saves a solver state with a new blob; the n-th and later reads of its source return `after`.
   Returns whether the save is refused or writes as many bytes as it reports. */
static bool is_saved_whole(int n, int *refused) {
    struct test_source s;
    unsigned char out[64];
    sb_model *model;
    size_t size = 0;
    sb_status st = open_changing(&s, SB_FORMAT_SOLVERSTATE, &before, &after, n, &model);
    if (st != SB_OK)
        return st == SB_ERR_IO;
    memset(out, 0x5a, sizeof out);
    assert_ok(
        sb_model_set_blob(model, SB_NO_LAYER, 0, test_vector(NULL, SB_DTYPE_F32, 2), 0, &err));
    st = sb_model_save(model, out, sizeof out, &size, &err);
    *refused += reports_change(st);
    sb_model_destroy(model);
    return st == SB_OK ? out[size - 1] != 0x5a && out[size] == 0x5a : st == SB_ERR_IO;
}

TEST(a_save_is_as_long_as_it_was_measured) {
    int refused = 0;
    for (int n = 1; n < 12; n++)
        assert_true(is_saved_whole(n, &refused));
    assert_true(refused > 0);
}

TEST(a_message_is_as_long_as_it_was_measured) {
    int refused = 0;
    for (int n = 1; n < 12; n++) {
        struct test_source s;
        unsigned char out[64];
        sb_model *model;
        size_t size;
        if (open_changing(&s, SB_FORMAT_SOLVERSTATE, &before, &after, n, &model) != SB_OK)
            continue;
        refused += reports_change(
            sb_model_layer_message(model, SB_NO_LAYER, out, sizeof out, &size, &err));
        sb_model_destroy(model);
    }
    assert_true(refused > 0);
}
