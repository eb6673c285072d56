/* Tests calls on a source whose bytes change between two reads. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

/* Messages of equal size with different contents. */
static const char *const layers[] = {
    "2:{5:4 6:{}}",   /* a type with a name, a blob */
    "2:{5:127 6:{}}", /* a type without a name */
    "2:{5:4 7:{}}",   /* no blob */
    "2:{4:'ab'}",     /* only a name */
    "2:{4:'' 4:''}",  /* two empty names */
    "2:{} 2:{} 2:{}", "2:{6:{} 6:{}}",
};
static const char *const states[] = {"1:5 3:{5:''} 31:'        '", "1:5 3:{5:'----'} 31:'    '"};

static bool reports_change(sb_status st) {
    return st == SB_ERR_IO && strstr(err.message, "changed") != NULL;
}

static int is_refused(sb_status st, const unsigned char *out, size_t size) {
    if (st != SB_OK)
        assert_int_equal(st, SB_ERR_IO);
    else
        assert_true((size == 0 || out[size - 1] != 0x5a) && out[size] == 0x5a);
    return reports_change(st);
}

/* The n-th and later reads of the model return `after`. */
static void change(const struct wire *before, const struct wire *after, int32_t format,
                   int refused[3]) {
    bool fired = true;
    for (int n = 1; fired; n++) {
        static unsigned char out[100000];
        struct test_source s = {.other = after, .fault = {.left = n}};
        const sb_source source = test_source_of(&s, before);
        const int64_t layer = format == SB_FORMAT_SOLVERSTATE ? SB_NO_LAYER : 0;
        sb_model *model = NULL;
        size_t size = 0;
        sb_status st = sb_model_open_source(NULL, format, &source, NULL, NULL, &model, &err);
        assert_true(st == SB_OK || reports_change(st));
        refused[0] += st != SB_OK;
        for (int64_t i = 0; i < sb_model_num_layers(model); i++) {
            const sb_text name = layer_of(model, i).name;
            assert_int_equal(strlen(name.bytes), name.size);
        }
        if (model) {
            memset(out, 0x5a, sizeof out);
            st = sb_model_layer_message(model, layer, out, sizeof out, &size, &err);
            refused[1] += is_refused(st, out, size);
            sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 2);
            assert_ok(num_blobs(model, layer) > 0
                          ? sb_model_set_blob(model, layer, 0, blob, 0, &err)
                          : sb_model_add_blob(model, layer, blob, 0, &err));
            memset(out, 0x5a, sizeof out);
            st = sb_model_save(model, out, sizeof out, &size, &err);
            refused[2] += is_refused(st, out, size);
        }
        assert_false(s.outside);
        fired = s.fault.left <= 1;
        sb_model_destroy(model);
    }
}

TEST(a_source_that_changes_between_two_reads_is_refused) {
    enum { LAYERS = sizeof layers / sizeof *layers };
    static const char filling[40000]; /* larger than a window, so the model must be read twice */
    struct wire nets[LAYERS];
    int refused[3] = {0}, pairs = 0;
    for (int i = 0; i < LAYERS; i++) {
        nets[i] = wire_of("%s", layers[i]);
        wire_bytes(&nets[i], 2000, filling, sizeof filling);
        wire_write(&nets[i], "2000:1");
    }
    for (int i = 0; i < LAYERS * LAYERS; i++) {
        const int before = refused[0];
        change(&nets[i / LAYERS], &nets[i % LAYERS], SB_FORMAT_CAFFEMODEL, refused);
        pairs += refused[0] > before;
        assert_true(refused[0] == before || i / LAYERS != i % LAYERS);
    }
    for (int i = 0; i < 4; i++) {
        const struct wire before = wire_of("%s", states[i / 2]),
                          after = wire_of("%s", states[i % 2]);
        change(&before, &after, SB_FORMAT_SOLVERSTATE, refused);
    }
    assert_true(pairs >= 37 && refused[1] > 0 && refused[2] > 0);
}

TEST(values_that_change_before_a_load_copies_them_are_refused) {
    /* The values are larger than a window, so that the load reads the message again. */
    const struct wire states_of_one_size[] = {
        wire_of("1:5 3:{[2000]1}"),
        wire_of("1:5 3:{[1990]1 31:'                                     '}")};
    int refused = 0;
    for (int i = 0; i < 8; i++) {
        struct test_source s = {.other = &states_of_one_size[i % 2], .fault = {.left = 1000}};
        const sb_source source = test_source_of(&s, &states_of_one_size[1 - i % 2]);
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
        sb_model *model;
        assert_ok(
            sb_model_open_source(NULL, SB_FORMAT_SOLVERSTATE, &source, NULL, NULL, &model, &err));
        s.fault.left = 1 + i / 2; /* this read and later reads return the other message */
        refused += reports_change(sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
        sb_model_destroy(model);
    }
    assert_true(refused >= 2);
}
