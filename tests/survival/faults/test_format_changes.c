/* The bytes of a source change between two reads. Each call must return an error or the result for
   one of the two versions; no access may be out of bounds. */
#include "blobs.h"
#include "callbacks.h"
#include "nets.h"
#include "pointers.h"

static bool is_fair(sb_status st) {
    return st == SB_OK || st == SB_ERR_IO || (st <= SB_ERR_MALFORMED && st >= SB_ERR_DATA_LIMIT);
}

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

/* --- each file replaced by each other file during a call ------------------------------------- */

enum { IMAGES = 12, IMAGE_BYTES = 40000 };

/* Makes a file of one kind. All kinds have one size, but other numbers of layers and values. */
static struct wire image(int kind) {
    struct wire wire = {0}, layer = {0}, blob = {0};
    static char name[30000];
    static const float zeros[2500];
    switch (kind) {
    case 0: /* many layers */
        for (int i = 0; i < 3000; i++)
            wire_write(&wire, "100:{1:'n'}");
        break;
    case 1: /* one layer, many blobs */
        for (int i = 0; i < 3000; i++)
            wire_write(&layer, "7:{[]1}");
        break;
    case 2: /* a long name */
        memset(name, 'n', sizeof name);
        wire_bytes(&layer, 1, name, sizeof name);
        wire_bytes(&wire, 1, name, 3000);
        break;
    case 3: /* a large blob */
        wire_write(&layer, "7:{[5000]1}");
        break;
    case 4: /* the same blob with fewer values */
        wire_write(&blob, "5:{}");
        wire_bytes(&blob, 12, name, 20004); /* fills up to the same length */
        break;
    case 5: /* V1 layers whose types have no names */
        for (int i = 0; i < 3000; i++)
            wire_write(&wire, "2:{5:%d}", INT32_MAX);
        break;
    case 6: /* half of the values of case 3, in a message of the same length */
        wire_floats(&blob, 5, zeros, 2500);
        wire_bytes(&blob, 12, name, 10010);
        wire_write(&blob, "7:{1:2500}"); /* beyond the reader's window */
        break;
    case 7: /* a field with number 1 begins at every offset */
        memset(name, 1 << 3, sizeof name);
        wire_raw(&wire, name, sizeof name);
        break;
    case 9:  /* raw half-precision values */
    case 10: /* more raw half-precision values at the same offset */
        wire_write(&blob, "10:2");
        wire_bytes(&blob, 12, zeros, kind == 10 ? 10000 : 5000);
        wire_bytes(&blob, 14, name, 20000);
        wire_write(&blob, "7:{1:2500}");
        break;
    case 11: /* unpacked floats at the same offset */
        wire_write(&blob, "10:2");
        for (int i = 0; i < 5000; i++)
            wire_float(&blob, 12, 1);
        break;
    default: /* unpacked values */
        for (int i = 0; i < 5000; i++)
            wire_float(&blob, 5, 1);
        wire_write(&blob, "7:{1:5000}");
        break;
    }
    if (blob.size > 0)
        wire_message(&layer, 7, &blob);
    if (layer.size > 0)
        wire_message(&wire, 100, &layer);
    wire_tag(&wire, 2000, 2);
    wire_overlong(&wire, IMAGE_BYTES - wire.size - 5, 5);
    char *rest = calloc(1, IMAGE_BYTES);
    wire_raw(&wire, rest, IMAGE_BYTES - wire.size);
    free(rest);
    return wire;
}

/* Makes every call on a net; from the n-th read on, the source returns `other`. Returns whether
   the calls read at least n times. */
static bool use_while_changing(const struct wire *bytes, const struct wire *other, int n) {
    struct test_source s;
    sb_model *model;
    sb_blob *blob = blob_of_count(NULL, SB_DTYPE_F32, 2);
    size_t size = 1;
    sb_status st = open_changing(&s, SB_FORMAT_CAFFEMODEL, bytes, other, n, &model);
    assert_true(is_fair(st));
    const int64_t layer = sb_model_num_layers(model) > 0 ? 0 : SB_NO_LAYER;
    if (st == SB_OK && num_blobs(model, layer) > 0) {
        float value;
        st = sb_model_load_blob(model, layer, 0, blob, &err);
        assert_true(is_fair(st));
        if (st != SB_OK)
            assert_int_equal(sb_blob_count(blob), 2);
        assert_true(is_fair(sb_model_read_values(model, layer, 0, SB_DATA, 0, 1, SB_DTYPE_F32,
                                                 &value, sizeof value, &err)));
        assert_true(is_fair(sb_model_set_blob(model, layer, 0, blob, 0, &err)));
    }
    if (model) {
        st = sb_model_size(model, &size, &err);
        assert_true(is_fair(st));
        /* If the source changes after the model returned `size`, the save may need more bytes. */
        unsigned char *buffer = malloc(size);
        if (st == SB_OK)
            st = sb_model_save(model, buffer, size, NULL, &err);
        assert_true(is_fair(st) || st == SB_ERR_BUFFER_TOO_SMALL);
        free(buffer);
    }
    sb_model_destroy(model);
    sb_blob_destroy(blob);
    assert_false(s.outside);
    return s.fault.left <= 1;
}

TEST(calls_survive_bytes_that_change) {
    for (int i = 0; i < IMAGES; i++) {
        struct wire before = image(i);
        assert_int_equal(before.size, IMAGE_BYTES);
        for (int k = 0; k < (test_is_quick() ? 1 : test_is_full() ? IMAGES : 5); k++) {
            struct wire after = image((i + k + 1) % IMAGES);
            for (int n = 1; use_while_changing(&before, &after, n); n++)
                ;
            wire_free(&after);
        }
        wire_free(&before);
    }
}

/* --- a second read that differs from the first ----------------------------------------------- */

/* Makes V1 layers followed by so many bytes that the second pass over the file must read the layers
   again. */
static struct wire net_of_layers(const char *layers) {
    static const unsigned char filling[40000];
    struct wire net = wire_of("%s", layers);
    wire_bytes(&net, 2000, filling, sizeof filling);
    wire_write(&net, "2000:1");
    return net;
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
    struct wire nets[6];
    for (int i = 0; i < 6; i++)
        nets[i] = net_of_layers(layers[i]);
    assert_int_equal(refusals(&nets[0], &nets[0]), 0);
    assert_true(refusals(&nets[0], &nets[1]) > 0);
    assert_true(refusals(&nets[0], &nets[2]) > 0);
    assert_true(refusals(&nets[2], &nets[0]) > 0);
    assert_true(refusals(&nets[4], &nets[3]) > 0);
    assert_true(refusals(&nets[4], &nets[5]) > 0);
    assert_true(refusals(&nets[5], &nets[4]) > 0);
}

enum { COUNT = 5000 };

/* Loads a blob of COUNT floats from a source whose n-th and later reads return `after`, for each n.
   Returns how many loads report the change. A failed load leaves the blob's values unchanged. */
static int stopped_loads(const struct wire *before, const struct wire *after) {
    int stopped = 0;
    for (int n = 1; n < 12; n++) {
        struct test_source s;
        sb_model *model;
        if (open_changing(&s, SB_FORMAT_BLOB, before, after, n, &model) != SB_OK)
            continue;
        sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, COUNT);
        sb_status st = sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err);
        stopped += reports_change(st);
        const float *values = blob_pointer(blob, SB_DATA, CPU_DATA);
        assert_true(st == SB_OK || values[COUNT - 1] == 0);
        sb_model_destroy(model);
    }
    return stopped;
}

/* The file changes between the pass over the message and the copy of the values. The values are in
   two fields, which exceed the reader's window. */
TEST(values_that_become_fewer_or_more_are_refused) {
    static const size_t counts[] = {COUNT, COUNT - 1, COUNT + 1};
    static const unsigned char filler[8 * COUNT];
    struct wire files[3] = {{0}};
    float values[COUNT + 1];
    for (size_t i = 0; i < COUNT + 1; i++)
        values[i] = (float)i;
    for (int i = 0; i < 3; i++) {
        wire_shape(&files[i], (int64_t[]){COUNT}, 1);
        wire_floats(&files[i], 5, values, COUNT / 2);
        wire_floats(&files[i], 5, values + COUNT / 2, counts[i] - COUNT / 2);
        wire_bytes(&files[i], 12, filler, (2 * COUNT - counts[i]) * sizeof *values);
    }
    assert_int_equal(stopped_loads(&files[0], &files[0]), 0);
    assert_true(stopped_loads(&files[0], &files[1]) > 0);
    assert_true(stopped_loads(&files[0], &files[2]) > 0);
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
