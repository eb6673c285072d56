/* Numbers and layouts that never change, written out a second time: callers
   were compiled with them. A line here is only ever added. */
#include <syncblob/backend.h>
#include <syncblob/dlpack.h>
#include <syncblob/sim.h>
#include <syncblob/syncblob.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct number {
    const char *name;
    int64_t expected, found;
};

#define ROW(name, number)                                                                          \
    { #name, number, name }
#define SIZE(type, bytes)                                                                          \
    { "sizeof " #type, bytes, sizeof(type) }
#define OFFSET(type, member, bytes)                                                                \
    { #type "." #member, bytes, offsetof(type, member) }

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
    ROW(SB_DLPACK_DIFF, 1),
    ROW(SB_DLPACK_RESHAPE, 2),

    SIZE(sb_dl_tensor, 48),
    OFFSET(sb_dl_tensor, device, 8),
    OFFSET(sb_dl_tensor, ndim, 16),
    OFFSET(sb_dl_tensor, dtype, 20),
    OFFSET(sb_dl_tensor, shape, 24),
    OFFSET(sb_dl_tensor, strides, 32),
    OFFSET(sb_dl_tensor, byte_offset, 40),
    SIZE(sb_dl_managed, 64),
    OFFSET(sb_dl_managed, manager_ctx, 48),
    OFFSET(sb_dl_managed, deleter, 56),
    SIZE(sb_dl_managed_versioned, 80),
    OFFSET(sb_dl_managed_versioned, manager_ctx, 8),
    OFFSET(sb_dl_managed_versioned, deleter, 16),
    OFFSET(sb_dl_managed_versioned, flags, 24),
    OFFSET(sb_dl_managed_versioned, dl_tensor, 32),

    SIZE(sb_error, 256),
    OFFSET(sb_error, code, 0),
    OFFSET(sb_error, device_code, 4),
    OFFSET(sb_error, offset, 8),
    OFFSET(sb_error, message, 16),
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
