/* Numbers that never change, written out a second time: callers were compiled with them. A line
   here is only ever added; check_layouts.py sees that none is missing. */
#include <syncblob/backend.h>
#include <syncblob/comm_engine.h>
#include <syncblob/dlpack.h>
#include <syncblob/nccl.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>
#include <syncblob/sim_device.h>
#include <syncblob/syncblob.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct number {
    const char *name;
    int64_t expected, found;
};

#define ROW(name, number)                                                                          \
    { #name, number, name }

static const struct number numbers[] = {
    ROW(SB_OK, 0),
    ROW(SB_ERR_INVALID_ARGUMENT, -1),
    ROW(SB_ERR_INDEX_OUT_OF_RANGE, -2),
    ROW(SB_ERR_DTYPE_MISMATCH, -3),
    ROW(SB_ERR_SHAPE_MISMATCH, -4),
    ROW(SB_ERR_UNINITIALIZED, -5),
    ROW(SB_ERR_UNSUPPORTED, -6),
    ROW(SB_ERR_WRONG_DEVICE, -7),
    ROW(SB_ERR_SHARED, -8),
    ROW(SB_ERR_SIZE_OVERFLOW, -9),
    ROW(SB_ERR_OVER_LIMIT, -10),
    ROW(SB_ERR_BUFFER_TOO_SMALL, -11),
    ROW(SB_ERR_NOT_FOUND, -12),
    ROW(SB_ERR_MALFORMED, -100),
    ROW(SB_ERR_LENGTH_MISMATCH, -101),
    ROW(SB_ERR_BAD_SHAPE, -102),
    ROW(SB_ERR_DATA_OVERFLOW, -103),
    ROW(SB_ERR_DATA_LIMIT, -104),
    ROW(SB_ERR_OUT_OF_MEMORY, -200),
    ROW(SB_ERR_CAP_REACHED, -201),
    ROW(SB_ERR_NO_DEVICE, -202),
    ROW(SB_ERR_DEVICE_FAILURE, -203),
    ROW(SB_ERR_DEVICE_LOST, -204),
    ROW(SB_ERR_FORKED, -205),
    ROW(SB_ERR_IO, -206),
    ROW(SB_ERR_ABI_MISMATCH, -207),
    ROW(SB_ERR_CANCELLED, -208),
    ROW(SB_ERR_COMM_FAILURE, -209),
    ROW(SB_ERR_INTERNAL, -901),

    ROW(SB_DTYPE_F32, 1),
    ROW(SB_DTYPE_F64, 2),
    ROW(SB_DTYPE_I32, 3),
    ROW(SB_DTYPE_U32, 4),
    ROW(SB_DTYPE_F16, 5),
    ROW(SB_DTYPE_BF16, 6),
    ROW(SB_DTYPE_I8, 7),
    ROW(SB_DTYPE_U8, 8),
    ROW(SB_DTYPE_I64, 9),

    ROW(SB_HEAD_UNINITIALIZED, 0),
    ROW(SB_HEAD_AT_CPU, 1),
    ROW(SB_HEAD_AT_GPU, 2),
    ROW(SB_HEAD_SYNCED, 3),
    ROW(SB_HEAD_LOST, 4),

    ROW(SB_FILLER_CONSTANT, 0),
    ROW(SB_FILLER_UNIFORM, 1),
    ROW(SB_FILLER_GAUSSIAN, 2),
    ROW(SB_FILLER_POSITIVE_UNITBALL, 3),
    ROW(SB_FILLER_XAVIER, 4),
    ROW(SB_FILLER_MSRA, 5),
    ROW(SB_FILLER_BILINEAR, 6),
    ROW(SB_VARIANCE_FAN_IN, 0),
    ROW(SB_VARIANCE_FAN_OUT, 1),
    ROW(SB_VARIANCE_AVERAGE, 2),

    ROW(SB_DL_MAJOR_VERSION, 1),
    ROW(SB_DL_DEVICE_CPU, 1),
    ROW(SB_DL_DEVICE_CUDA, 2),
    ROW(SB_DL_DEVICE_CUDA_HOST, 3),
    ROW(SB_DL_DEVICE_EXTENSION, 12),
    ROW(SB_DL_CODE_INT, 0),
    ROW(SB_DL_CODE_UINT, 1),
    ROW(SB_DL_CODE_FLOAT, 2),
    ROW(SB_DL_CODE_BFLOAT, 4),
    ROW(SB_DL_READ_ONLY, 1),
    ROW(SB_DL_IS_COPIED, 2),
    ROW(SB_DL_SUBBYTE_PADDED, 4),
    ROW(SB_DLPACK_RESHAPE, 64),

    ROW(SB_ALLOC_ZEROED, 1),
    ROW(SB_ALLOC_OBJECT, 2),

    ROW(SB_BACKEND_PINNED_NOT_IN_CHILD, 1),

    ROW(SB_CONTEXT_NO_PINNED, 256),
    ROW(SB_CONTEXT_NO_HOST_CACHE, 512),

    ROW(SB_COPY_RESHAPE, 2),

    ROW(SB_DATA, 0),
    ROW(SB_DIFF, 1),

    ROW(SB_ENCODING_NONE, 0),
    ROW(SB_ENCODING_LITTLE_ENDIAN, 1),
    ROW(SB_ENCODING_SCATTERED, 2),
    ROW(SB_ENCODING_MEMORY, 3),

    ROW(SB_FEATURE_OPENBLAS, 1),
    ROW(SB_FEATURE_SIM, 2),
    ROW(SB_FEATURE_CUDA, 4),

    ROW(SB_FORMAT_AUTO, 0),
    ROW(SB_FORMAT_BLOB, 1),
    ROW(SB_FORMAT_CAFFEMODEL, 2),
    ROW(SB_FORMAT_SOLVERSTATE, 3),
    ROW(SB_FORMAT_BLOB_VECTOR, 4),

    ROW(SB_LAYER_V0, 0),
    ROW(SB_LAYER_V1, 1),
    ROW(SB_LAYER_CURRENT, 2),

    ROW(SB_NO_LAYER, -1),
    ROW(SB_OPEN_MAPPED, 128),
    ROW(SB_SOURCE_CLOSES, 1024),
    ROW(SB_READ_ONLY, 1),
    ROW(SB_WRITE_OVERWRITE, 2048),
    ROW(SB_WRITE_QUEUED, 4096),
    ROW(SB_WRITE_DONE, 0),
    ROW(SB_WRITE_SPOILED, 1),
    ROW(SB_WRITE_ABANDONED, 2),
    ROW(SB_MAX_AXES, 32),

    ROW(SB_PROTO_RESHAPE, 8),
    ROW(SB_PROTO_WRITE_DIFF, 16),

    ROW(SB_REALLOCATED_DATA, 1),
    ROW(SB_REALLOCATED_DIFF, 2),

    ROW(SB_SIDE_CPU, 0),
    ROW(SB_SIDE_GPU, 1),

    ROW(SB_SIM_ANY, -1),
    ROW(SB_SIM_ALLOC, 0),
    ROW(SB_SIM_ZERO, 1),
    ROW(SB_SIM_UPLOAD, 2),
    ROW(SB_SIM_DOWNLOAD, 3),
    ROW(SB_SIM_COPY, 4),
    ROW(SB_SIM_ALLOC_PINNED, 5),
    ROW(SB_SIM_CHECK_POINTER, 6),
    ROW(SB_SIM_CHECK_STREAM, 7),
    ROW(SB_SIM_STREAM_SYNCHRONIZE, 8),
    ROW(SB_SIM_EVENT_RECORD, 9),
    ROW(SB_SIM_STREAM_WAIT, 10),
    ROW(SB_SIM_EVENT_WAIT, 11),
    ROW(SB_SIM_PREPARE_ARITHMETIC, 12),
    ROW(SB_SIM_AXPY, 13),
    ROW(SB_SIM_SCALE, 14),
    ROW(SB_SIM_ASUM, 15),
    ROW(SB_SIM_SUMSQ, 16),

    ROW(SB_SIM_FAIL_NOW, 0),
    ROW(SB_SIM_FAIL_LATER, 1),
    ROW(SB_SIM_FAIL_STICKY, 2),

    ROW(SB_SIM_EAGER, 0),
    ROW(SB_SIM_LAZY, 1),
    ROW(SB_SIM_RANDOM, 2),

    ROW(SB_STORAGE_NONE, 0),
    ROW(SB_STORAGE_OWNED, 1),
    ROW(SB_STORAGE_PINNED, 2),
    ROW(SB_STORAGE_BORROWED, 3),
    ROW(SB_STORAGE_BORROWED_READ_ONLY, 4),

    ROW(SB_COMM_SUM, 0),
    ROW(SB_COMM_MEAN, 1),
    ROW(SB_COMM_MIN, 2),
    ROW(SB_COMM_MAX, 3),
    ROW(SB_NCCL_ID_BYTES, 128),
    ROW(SB_COMM_ENGINE_ABI_VERSION, 1),
    ROW(SB_COMM_ENGINE_HALF, 1),
    ROW(SB_SIM_COMM_MAX, 4096),
    ROW(SB_SIM_COMM_FAIL_NOW, 0),
    ROW(SB_SIM_COMM_STOP, 1),
};

static void stable_numbers_are_what_callers_were_compiled_with(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].found != numbers[i].expected)
            fail_msg("%s is %lld, not %lld", numbers[i].name, (long long)numbers[i].found,
                     (long long)numbers[i].expected);
    }
}

static void every_status_of_the_list_is_pinned_here(void **state) {
    (void)state;
    static const sb_status listed[] = {
#define LISTED(name, number, text) SB_##name,
        SB_STATUS_LIST(LISTED)
#undef LISTED
    };
    size_t pinned = 0;
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
        for (size_t j = 0; j < sizeof listed / sizeof listed[0]; j++)
            pinned += numbers[j].expected == listed[i];
    }
    assert_int_equal(pinned, sizeof listed / sizeof listed[0]);
}

static void each_status_lies_in_its_band(void **state) {
    (void)state;
#define BAND(name, number, text)                                                                   \
    assert_true((number) == 0 || ((number) <= -1 && (number) >= -99) ||                            \
                ((number) <= -100 && (number) >= -199) ||                                          \
                ((number) <= -200 && (number) >= -299) || (number) < -900);
    SB_STATUS_LIST(BAND)
#undef BAND
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stable_numbers_are_what_callers_were_compiled_with),
        cmocka_unit_test(every_status_of_the_list_is_pinned_here),
        cmocka_unit_test(each_status_lies_in_its_band),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
