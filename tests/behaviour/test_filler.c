/* Tests fillers: refused parameters, the written side, scales, and FillerParameter messages. */
#include "blobs.h"
#include "wire_builder.h"

#include <float.h>
#include <math.h>

struct refusal {
    const char *part;
    sb_filler filler;
    const int64_t *misfit;
    int32_t axes;
};

#define F(...)                                                                                     \
    { .struct_size = sizeof(sb_filler), .max = 1, .std = 1, .sparse = -1, __VA_ARGS__ }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#endif
static const int64_t wide[] = {2, 3, 4, 5, 1};
static const struct refusal refusals[] = {
    {"type is 7", F(.type = 7)},
    {"type is -1", F(.type = -1)},
    {"value is", F(.value = NAN)},
    {"min is nan", F(.type = SB_FILLER_UNIFORM, .min = NAN)},
    {"max is inf", F(.type = SB_FILLER_UNIFORM, .max = INFINITY)},
    {"min is 1.5, which is above max, 1", F(.type = SB_FILLER_UNIFORM, .min = 1.5)},
    {"beyond the range", F(.type = SB_FILLER_UNIFORM, .min = -DBL_MAX, .max = DBL_MAX)},
    {"mean is nan", F(.type = SB_FILLER_GAUSSIAN, .mean = NAN)},
    {"std is nan", F(.type = SB_FILLER_GAUSSIAN, .std = NAN)},
    {"std is -0.5, which is negative", F(.type = SB_FILLER_GAUSSIAN, .std = -0.5)},
    {"sparse is -2", F(.type = SB_FILLER_GAUSSIAN, .sparse = -2)},
    {"sparse is 3, which is above the first dimension, 2",
     F(.type = SB_FILLER_GAUSSIAN, .sparse = 3)},
    {"at least one axis", F(.type = SB_FILLER_POSITIVE_UNITBALL), wide, 0},
    {"the blob's are 4 x 5", F(.type = SB_FILLER_BILINEAR), wide, 4},
};

static const char message[] = "1:'gaussian' 2:f0.1 3:f-3 4:f4 5:f5 6:f6 7:7 8:2";
static const sb_filler described =
    F(.type = SB_FILLER_GAUSSIAN, .value = (double)0.1F, .min = -3, .max = 4, .mean = 5, .std = 6,
      .sparse = 7, .variance_norm = SB_VARIANCE_AVERAGE);
#pragma GCC diagnostic pop

static const int64_t shape[] = {2, 3, 4, 4};

static sb_blob *counting_up(int32_t num_axes, const int64_t *dims) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, num_axes, dims);
    float *data = host_to_write(blob, SB_DATA);
    fill_values(SB_DTYPE_F32, sb_blob_count(blob), 1, 1, data);
    return blob;
}

static void assert_counting_up(const sb_blob *blob, const char *what) {
    const float *data = host_of(blob, SB_DATA);
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        if (data[i] != (float)(i + 1))
            fail_with("%s: element %lld was written", what, (long long)i);
}

TEST(wrong_parameters_and_shapes_change_nothing) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *row = &refusals[i];
        sb_blob *blob = row->misfit ? counting_up(row->axes, row->misfit) : counting_up(4, shape);
        assert_status(row->misfit ? SB_ERR_SHAPE_MISMATCH : INVALID,
                      sb_blob_fill(blob, &row->filler, 1, &err));
        if (!strstr(err.message, row->part))
            fail_with("\"%s\" is not in \"%s\"", row->part, err.message);
        assert_counting_up(blob, row->part);
    }
    sb_filler sparse = filler_of(SB_FILLER_GAUSSIAN);
    sparse.sparse = 1; /* the first dimension of a scalar counts as 1 */
    assert_ok(sb_blob_fill(test_blob(NULL, SB_DTYPE_F32, 0, NULL), &sparse, 1, &err));
}

TEST(values_that_no_type_may_have_are_refused_for_every_type) {
    sb_blob *blob = counting_up(4, shape);
    for (int32_t type = SB_FILLER_CONSTANT; type <= SB_FILLER_BILINEAR; type++) {
        sb_filler below = filler_of(type), above = below, reserved = below, sparse = below;
        below.variance_norm = SB_VARIANCE_FAN_IN - 1;
        above.variance_norm = SB_VARIANCE_AVERAGE + 1;
        reserved.reserved = 1;
        sparse.sparse = 0;
        assert_status(INVALID, sb_blob_fill(blob, &below, 1, &err));
        assert_non_null(strstr(err.message, "variance_norm is -1"));
        assert_status(INVALID, sb_blob_fill(blob, &above, 1, &err));
        assert_status(INVALID, sb_blob_fill(blob, &reserved, 1, &err));
        assert_non_null(strstr(err.message, "reserved"));
        if (type != SB_FILLER_GAUSSIAN) {
            assert_status(INVALID, sb_blob_fill(blob, &sparse, 1, &err));
            assert_non_null(strstr(err.message, "only gaussian"));
        }
        assert_counting_up(blob, sb_filler_type_name(type));
    }
}

TEST(defaults_and_names) {
    static const char *const names[] = {
        [SB_FILLER_CONSTANT] = "constant", [SB_FILLER_UNIFORM] = "uniform",
        [SB_FILLER_GAUSSIAN] = "gaussian", [SB_FILLER_POSITIVE_UNITBALL] = "positive_unitball",
        [SB_FILLER_XAVIER] = "xavier",     [SB_FILLER_MSRA] = "msra",
        [SB_FILLER_BILINEAR] = "bilinear",
    };
    const sb_filler expected = SB_FILLER_INIT;
    sb_filler filler;
    sb_filler_init(&filler, sizeof filler);
    assert_memory_equal(&filler, &expected, sizeof filler);
    for (int32_t type = SB_FILLER_CONSTANT; type <= SB_FILLER_BILINEAR; type++)
        assert_string_equal(sb_filler_type_name(type), names[type]);
    assert_string_equal(sb_filler_type_name(-1), "unknown");
    assert_string_equal(sb_filler_type_name(7), "unknown");
}

TEST(storage_types_are_refused) {
    const sb_filler filler = SB_FILLER_INIT;
    const sb_dtype dtypes[] = {SB_DTYPE_INTEGER_LIST(DTYPE_ITEM, )
                                   SB_DTYPE_HALF_LIST(DTYPE_ITEM, )};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        sb_blob *blob = test_vector(NULL, dtypes[i], 4);
        assert_status(SB_ERR_UNSUPPORTED, sb_blob_fill(blob, &filler, 1, &err));
        assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_UNINITIALIZED);
    }
}

TEST_ON(rig, fills_on_the_host_without_a_transfer) {
    sb_filler filler = SB_FILLER_INIT;
    filler.value = 2.5;
    for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++) {
        const float before[] = {1, 2, 3, 4}, after[] = {2.5F, 2.5F, 2.5F, 2.5F};
        rig_reopen_on(f, "sim:0", 0);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 4);
        mem_place(data_of(blob), head, before, sizeof before);
        const struct tally tally = rig_tally(f);
        assert_ok(sb_blob_fill(blob, &filler, 1, &err));
        const struct tally since = rig_since(f, &tally);
        assert_int_equal(since.uploads + since.downloads + since.host_copies, 0);
        assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_AT_CPU);
        assert_true(mem_holds(data_of(blob), after, sizeof after));
    }
}

struct fan {
    int32_t num_axes;
    int64_t shape[5];
    double in, out;
};

/* As in Caffe, fan-in is count / first dimension, and fan-out is count / second dimension. */
static const struct fan fans[] = {
    {1, {7}, 1, 7},
    {2, {5, 7}, 7, 5},
    {3, {5, 7, 3}, 21, 15},
    {4, {5, 7, 3, 2}, 42, 30},
    {5, {5, 7, 3, 2, 4}, 168, 120},
};

static void assert_same_fill(const struct fan *fan, int32_t dtype, const sb_filler *a,
                             const sb_filler *b) {
    sb_blob *left = test_blob(NULL, dtype, fan->num_axes, fan->shape);
    sb_blob *right = test_blob(NULL, dtype, fan->num_axes, fan->shape);
    assert_ok(sb_blob_fill(left, a, 3, &err));
    assert_ok(sb_blob_fill(right, b, 3, &err));
    if (memcmp(host_of(left, SB_DATA), host_of(right, SB_DATA),
               (size_t)sb_blob_count(left) * sb_dtype_size(dtype)) != 0)
        fail_with("%s of %d axes, variance_norm %d: wrong scale", sb_filler_type_name(a->type),
                  fan->num_axes, a->variance_norm);
}

TEST(scales_follow_from_the_shape) {
    for (size_t i = 0; i < sizeof fans / sizeof *fans; i++)
        for (int32_t norm = SB_VARIANCE_FAN_IN; norm <= SB_VARIANCE_AVERAGE; norm++) {
            const double n = norm == SB_VARIANCE_FAN_IN    ? fans[i].in
                             : norm == SB_VARIANCE_FAN_OUT ? fans[i].out
                                                           : (fans[i].in + fans[i].out) / 2;
            sb_filler xavier = filler_of(SB_FILLER_XAVIER), msra = filler_of(SB_FILLER_MSRA);
            sb_filler uniform = filler_of(SB_FILLER_UNIFORM),
                      normal = filler_of(SB_FILLER_GAUSSIAN);
            xavier.variance_norm = msra.variance_norm = norm;
            uniform.max = sqrt(3 / n);
            uniform.min = -uniform.max;
            normal.std = sqrt(2 / n);
            for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) {
                assert_same_fill(&fans[i], dtype, &xavier, &uniform);
                assert_same_fill(&fans[i], dtype, &msra, &normal);
            }
        }
}

static void assert_parses(const char *text, const sb_filler *expected) {
    const struct wire w = wire_of("%s", text);
    sb_filler out = SB_FILLER_INIT;
    out.value = out.min = out.std = 99;
    assert_ok(sb_filler_parse(w.bytes, w.size, &out, &err));
    assert_memory_equal(&out, expected, sizeof out);
}

TEST(messages_set_every_member) {
    const sb_filler constant = SB_FILLER_INIT;
    assert_parses("", &constant);
    for (int32_t type = SB_FILLER_CONSTANT; type <= SB_FILLER_BILINEAR; type++) {
        const sb_filler expected = filler_of(type);
        char text[40];
        (void)snprintf(text, sizeof text, "1:'%s'", sb_filler_type_name(type));
        assert_parses(text, &expected);
    }
    assert_parses(message, &described);
}

TEST(wrong_messages_name_field_and_offset) {
    static const struct {
        const char *message, *part;
        int64_t offset;
        size_t cut; /* bytes removed from the message's end */
    } rows[] = {
        {"2:f1 1:'xavier\n'", "type: there is no filler \"xavier\\x0a\"", 5, 0},
        {"1:''", "type: there is no filler \"\"", 0, 0},
        {"1:'positive_unitball_of_more_than_one_dimension'",
         "type: there is no filler \"positive_unitball_of_mor\"...", 0, 0},
        {"1:'positive_unitball_of_mor'", "type: there is no filler \"positive_unitball_of_mor\" at",
         0, 0},
        {"1:'msra' 8:3", "variance_norm: variance_norm is 3", 6, 0},
        {"1:'uniform' 4:f-1", "max: min is 0, which is above max, -1", 9, 0},
        {"1:'uniform' 3:f2", "min: min is 2, which is above max, 1", 9, 0},
        {"1:'gaussian' 6:f-1", "std: std is -1", 10, 0},
        {"2:fnan", "value: value is", 0, 0},
        {"3:f0", "min: 1 byte is missing", 4, 1},
        {"3:f0", "min: 4 bytes are missing", 1, 4},
        {"8:300", "variance_norm: 1 byte is missing", 2, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct wire w = wire_of("%s", rows[i].message);
        sb_filler out = filler_of(SB_FILLER_MSRA);
        const sb_filler before = out;
        assert_reports(SB_ERR_MALFORMED, sb_filler_parse(w.bytes, w.size - rows[i].cut, &out, &err),
                       rows[i].part);
        assert_int_equal(err.offset, rows[i].offset);
        assert_memory_equal(&out, &before, sizeof out);
    }
}
