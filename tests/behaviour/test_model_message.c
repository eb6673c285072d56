/* Tests messages of layers, offsets of values, and reads of ranges of values. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

static struct wire message_of(const sb_model *model, int64_t layer) {
    struct wire got = {0};
    sb_status st = sb_model_layer_message(model, layer, NULL, 0, &got.size, &err);
    if (st == SB_OK)
        return got;
    assert_int_equal(st, SB_ERR_BUFFER_TOO_SMALL);
    got.bytes = malloc(got.size);
    got.room = got.size;
    assert_non_null(got.bytes);
    test_own_loan(got.bytes, free);
    assert_status(SB_ERR_BUFFER_TOO_SMALL,
                  sb_model_layer_message(model, layer, got.bytes, got.size - 1, NULL, &err));
    assert_ok(sb_model_layer_message(model, layer, got.bytes, got.size, &got.size, &err));
    assert_int_equal(got.size, got.room);
    return got;
}

static void assert_layer_message(const sb_model *model, int64_t layer, const char *expected) {
    const struct wire got = message_of(model, layer), wanted = wire_of("%s", expected);
    assert_wire(&got, &wanted);
}

TEST(messages_of_the_oldest_layers_omit_the_blobs_of_the_inner_layer) {
    const struct wire net = wire_of("2:{3:'top' 1:{1:'conv' 50:{[2]1} 2:'conv'} 2:'bottom'}");
    sb_model *model = test_model_of(&net, SB_FORMAT_CAFFEMODEL);
    assert_int_equal(num_blobs(model, 0), 1);
    assert_layer_message(model, 0, "3:'top' 1:{1:'conv' 2:'conv'} 2:'bottom'");
}

TEST(edits_are_in_the_messages) {
    const struct wire net = small_net(SB_LAYER_CURRENT);
    int64_t layer;
    sb_model *model = test_model_of(&net, SB_FORMAT_CAFFEMODEL);
    assert_ok(sb_model_set_name(model, "other", 5, &err));
    assert_ok(sb_model_add_layer(model, "ip", 2, "InnerProduct", 12, &layer, &err));
    assert_ok(sb_model_add_blob(model, layer, test_vector(NULL, SB_DTYPE_F32, 3), 0, &err));
    assert_layer_message(model, layer, "1:'ip' 2:'InnerProduct'");
    assert_layer_message(model, SB_NO_LAYER, "1:'other'");
}

#define LAYERS 20
#define VALUES 50000

TEST(topology_and_ranges_cost_a_few_kilobytes_of_reading) {
    struct wire net = {0};
    struct test_source counted = {0};
    sb_model *model;
    for (int i = 0; i < LAYERS; i++)
        wire_write(&net, "100:{1:'a layer' 7:{[%d]%d} 2:'InnerProduct'}", VALUES, i);
    const sb_source source = test_source_of(&counted, &net);
    assert_ok(sb_model_open_source(NULL, SB_FORMAT_CAFFEMODEL, &source, NULL, NULL, &model, &err));
    counted.bytes = 0;
    for (int64_t layer = SB_NO_LAYER; layer < LAYERS; layer++)
        (void)message_of(model, layer);
    assert_true(net.size > (size_t)LAYERS * VALUES * 4);
    assert_true(counted.bytes < (size_t)1 << 20); /* for each layer a few reads of 4 KiB */
    counted.bytes = 0;
    float values[10];
    assert_ok(sb_model_read_values(model, 7, 0, SB_DATA, VALUES - 10, 10, SB_DTYPE_F32, values,
                                   sizeof values, &err));
    assert_true(values[0] == 7 + VALUES - 10 && values[9] == 7 + VALUES - 1);
    assert_true(counted.bytes <= (size_t)8 * 4096);
    sb_model_destroy(model);
}

#define BYTES_OF(s) s, sizeof s - 1

TEST(encodings_and_offsets_of_values_are_reported) {
    enum { LITTLE = SB_ENCODING_LITTLE_ENDIAN, NONE = SB_ENCODING_NONE };
    static const struct {
        const char *values; /* three values, as floats or doubles */
        size_t size;
        sb_encoding data, diff;
        sb_dtype dtype;
    } rows[] = {
        {BYTES_OF("\x2a\14-+*/-*+.-./+"), LITTLE, NONE, SB_DTYPE_F32},
        {BYTES_OF("\x42\30-+*/-*+.-./+*/-+./*-+/-*\x4a\30/-*+./+-*/+-.*/+-./*-+/*"), LITTLE, LITTLE,
         SB_DTYPE_F64},
        /* one row with a field per value, one row with two packed fields */
        {BYTES_OF("\x2d-+*/\x2d-*+.\x2d-./+"), SB_ENCODING_SCATTERED, NONE, SB_DTYPE_F32},
        {BYTES_OF("\x2a\4-+*/\x2a\10-*+.-./+"), SB_ENCODING_SCATTERED, NONE, SB_DTYPE_F32},
        /* raw_data; no values; a packed field between two empty packed fields */
        {BYTES_OF("\x50\1\x62\14-+*/-*+.-./+"), LITTLE, NONE, SB_DTYPE_F32},
        {BYTES_OF(""), NONE, NONE, SB_DTYPE_F32},
        {BYTES_OF("\x2a\0\x2a\14-+*/-*+.-./+\x2a\0"), LITTLE, NONE, SB_DTYPE_F32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire blob = wire_of("99:{} 7:{1:3}");
        wire_raw(&blob, rows[i].values, rows[i].size);
        sb_model *model = test_model_of(&blob, SB_FORMAT_BLOB);
        const sb_blob_info info = blob_info_of(model, SB_NO_LAYER, 0);
        assert_int_equal(info.data_encoding, rows[i].data);
        assert_int_equal(info.diff_encoding, rows[i].diff);
        assert_int_equal(info.dtype, rows[i].dtype);
        assert_int_equal(info.data_offset >= 0, rows[i].data == SB_ENCODING_LITTLE_ENDIAN);
        assert_int_equal(info.diff_offset >= 0, rows[i].diff == SB_ENCODING_LITTLE_ENDIAN);
        if (info.data_offset >= 0)
            assert_memory_equal(blob.bytes + info.data_offset, "-+*/", 4);
        if (info.diff_offset >= 0)
            assert_memory_equal(blob.bytes + info.diff_offset, "/-*+", 4);
    }
}

TEST(every_range_in_every_type_equals_a_load) {
    static const sb_dtype dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64, SB_DTYPE_I32, SB_DTYPE_U32,
                                      SB_DTYPE_I64};
    for (int scattered = 0; scattered < 3; scattered++) {
        static const float floats[] = {0, 1, 2, 3, 4, 5, 6};
        struct wire blob = {0};
        wire_shape(&blob, (int64_t[]){7}, 1);
        if (scattered == 0)
            wire_floats(&blob, 5, floats, 7);
        for (int k = 0; scattered == 1 && k < 7; k++)
            wire_float(&blob, 5, floats[k]);
        if (scattered == 2) {
            wire_floats(&blob, 5, floats, 3);
            wire_floats(&blob, 5, floats + 3, 4);
        }
        sb_model *model = test_model_of(&blob, SB_FORMAT_BLOB);
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (int64_t first = 0; first <= 7; first++)
                for (int64_t count = 0; first + count <= 7; count++) {
                    unsigned char some[7 * 8 + 1];
                    const size_t size = sb_dtype_size(dtypes[d]), bytes = (size_t)count * size;
                    memset(some, 0xee, sizeof some);
                    assert_ok(sb_model_read_values(model, SB_NO_LAYER, 0, SB_DATA, first, count,
                                                   dtypes[d], some, bytes, &err));
                    assert_int_equal(some[bytes], 0xee);
                    sb_blob *loaded = test_unshaped(NULL, dtypes[d]);
                    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 0, loaded, &err));
                    const char *all = host_of(loaded, SB_DATA);
                    assert_memory_equal(some, all + (size_t)first * size, bytes);
                }
    }
}

TEST(ranges_that_are_refused) {
    static const struct {
        int64_t layer, index;
        sb_part part;
        int64_t first, count;
        sb_dtype dtype;
        size_t capacity;
        sb_status status;
    } rows[] = {
        {0, 0, SB_DATA, 0, 7, SB_DTYPE_F32, 28, SB_ERR_INDEX_OUT_OF_RANGE},
        {0, 0, SB_DATA, 6, 1, SB_DTYPE_F32, 28, SB_ERR_INDEX_OUT_OF_RANGE},
        {0, 0, SB_DATA, -1, 1, SB_DTYPE_F32, 28, SB_ERR_INDEX_OUT_OF_RANGE},
        {0, 0, SB_DATA, 0, -1, SB_DTYPE_F32, 28, SB_ERR_INDEX_OUT_OF_RANGE},
        {0, 0, SB_DATA, INT64_MAX, INT64_MAX, SB_DTYPE_F32, SIZE_MAX, SB_ERR_INDEX_OUT_OF_RANGE},
        {0, 0, SB_DATA, 0, INT64_MAX, SB_DTYPE_F64, SIZE_MAX, SB_ERR_BUFFER_TOO_SMALL},
        {0, 0, SB_DATA, 0, 6, SB_DTYPE_F32, 23, SB_ERR_BUFFER_TOO_SMALL},
        {0, 0, SB_DIFF, 0, 1, SB_DTYPE_F32, 28, SB_ERR_LENGTH_MISMATCH},
        {0, 0, 2, 0, 1, SB_DTYPE_F32, 28, SB_ERR_INVALID_ARGUMENT},
        {0, 0, SB_DATA, 0, 1, SB_DTYPE_BF16, 28, SB_ERR_UNSUPPORTED},
        {0, 0, SB_DATA, 0, 1, 99, 28, SB_ERR_UNSUPPORTED},
        {0, 0, SB_DATA, 0, 1, SB_DTYPE_F16, 28, SB_ERR_DTYPE_MISMATCH},
        {0, 2, SB_DATA, 0, 1, SB_DTYPE_F32, 28, SB_ERR_INDEX_OUT_OF_RANGE},
        {5, 0, SB_DATA, 0, 1, SB_DTYPE_F32, 28, SB_ERR_INDEX_OUT_OF_RANGE},
    };
    const struct wire net = small_net(SB_LAYER_CURRENT);
    sb_model *model = test_model_of(&net, SB_FORMAT_CAFFEMODEL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float values[7];
        assert_status(rows[i].status,
                      sb_model_read_values(model, rows[i].layer, rows[i].index, rows[i].part,
                                           rows[i].first, rows[i].count, rows[i].dtype, values,
                                           rows[i].capacity, &err));
    }
    float two[2];
    assert_error(
        SB_ERR_INDEX_OUT_OF_RANGE,
        sb_model_read_values(model, 0, 0, SB_DATA, 5, 2, SB_DTYPE_F32, two, sizeof two, &err),
        "values 5 to 7 were requested of 6");
    assert_ok(sb_model_read_values(model, 0, 0, SB_DATA, 6, 0, SB_DTYPE_F32, NULL, 0, &err));
}

TEST(messages_that_are_refused) {
    static const int64_t layers[] = {-2, 2, INT64_MAX, INT64_MIN};
    const struct wire blob = wire_of("[2]1"), net = small_net(SB_LAYER_CURRENT);
    size_t size = 77;
    sb_model *model = test_model_of(&net, SB_FORMAT_CAFFEMODEL);
    assert_status(SB_ERR_UNSUPPORTED, sb_model_layer_message(test_model_of(&blob, SB_FORMAT_BLOB),
                                                             SB_NO_LAYER, NULL, 0, &size, &err));
    for (int i = 0; i < 4; i++)
        assert_status(SB_ERR_INDEX_OUT_OF_RANGE,
                      sb_model_layer_message(model, layers[i], NULL, 0, &size, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_model_layer_message(model, 0, NULL, 1, &size, &err));
    assert_int_equal(size, 77);
}

TEST(values_of_edits) {
    const struct wire net = small_net(SB_LAYER_CURRENT);
    float *data, values[2] = {0};
    sb_model *model = test_model_of(&net, SB_FORMAT_CAFFEMODEL);
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 2);
    assert_ok(sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, &err));
    data[1] = 9;
    assert_ok(sb_model_set_blob(model, 0, 1, blob, 0, &err));
    data[1] = 0;
    sb_blob_info info = blob_info_of(model, 0, 1);
    assert_int_equal(info.data_encoding, SB_ENCODING_MEMORY);
    assert_int_equal(info.data_offset, -1);
    assert_ok(sb_model_read_values(model, 0, 1, SB_DATA, 1, 1, SB_DTYPE_F32, values, sizeof values,
                                   &err));
    assert_true(values[0] == 9);
    assert_ok(sb_model_announce_blob(model, 0, blob, &err));
    info = blob_info_of(model, 0, 2);
    assert_int_equal(info.data_encoding, SB_ENCODING_NONE);
    assert_int_equal(info.data_offset, -1);
    assert_reports(
        SB_ERR_UNSUPPORTED,
        sb_model_read_values(model, 0, 2, SB_DATA, 0, 1, SB_DTYPE_F32, values, sizeof values, &err),
        "blob 2 of layer 0");
}
