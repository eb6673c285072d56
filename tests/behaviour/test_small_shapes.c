/* Tests every small shape. The elements must have the offsets of row-major order. Other indices
   must be refused, except that a legacy index may equal its dimension. */
#include "blobs.h"

#define MAX_AXES 4
#define DIMS     4 /* dimensions 0 to 3 */

struct shape {
    int32_t axes;
    int64_t dims[MAX_AXES], count;
};

/* Sets `out` to the shape number `number` with `axes` axes; returns false after the last shape. */
static bool shape_of(int32_t axes, int number, struct shape *out) {
    *out = (struct shape){.axes = axes, .count = 1};
    for (int32_t i = 0; i < axes; i++, number /= DIMS) {
        out->dims[i] = number % DIMS;
        out->count *= out->dims[i];
    }
    return number == 0;
}

/* Sets `out` to the tuple number `number`, in row-major order, of indices from -1 to 3. Returns
   whether the shape has an element at these indices. As in Caffe, missing axes have dimension 1. */
static bool tuple_of(const struct shape *shape, int number, int64_t out[MAX_AXES]) {
    bool is_inside = shape->count > 0;
    for (int32_t i = MAX_AXES; i-- > 0; number /= DIMS + 1) {
        out[i] = number % (DIMS + 1) - 1;
        is_inside &= out[i] >= 0 && out[i] < (i < shape->axes ? shape->dims[i] : 1);
    }
    return is_inside;
}

static sb_blob *blob_with(const struct shape *shape) {
    sb_blob *blob = blob_of(NULL, SB_DTYPE_F32, shape->axes, shape->dims);
    assert_int_equal(sb_blob_count(blob), shape->count);
    return blob;
}

static void check_answer(sb_status st, const int64_t *found, bool is_inside, int64_t expected) {
    assert_int_equal(st, is_inside ? SB_OK : SB_ERR_INDEX_OUT_OF_RANGE);
    assert_int_equal(*found, is_inside ? expected : -7);
}

/* An index of a legacy offset may equal its dimension; an index of an element may not. */
static void check_legacy(const sb_blob *blob, const struct shape *shape, const int64_t i[MAX_AXES],
                         bool is_inside) {
    int64_t found = -7, expected = 0;
    float element;
    bool is_address = true;
    for (int axis = 0; axis < MAX_AXES; axis++) {
        const int64_t extent = axis < shape->axes ? shape->dims[axis] : 1;
        is_address &= i[axis] >= 0 && i[axis] <= extent;
        expected = expected * extent + i[axis];
    }
    check_answer(sb_blob_offset_legacy(blob, i[0], i[1], i[2], i[3], &found, NULL), &found,
                 is_address, expected);
    assert_int_equal(sb_blob_data_at_legacy(blob, i[0], i[1], i[2], i[3], &element, NULL),
                     is_inside ? SB_OK : SB_ERR_INDEX_OUT_OF_RANGE);
}

/* Visits the elements in row-major order, so that the offset must grow by 1 with each element. */
static void check_offsets(const struct shape *shape) {
    const int tuples = (DIMS + 1) * (DIMS + 1) * (DIMS + 1) * (DIMS + 1);
    sb_blob *blob = blob_with(shape);
    int64_t next = 0, i[MAX_AXES];
    for (int number = 0; number < tuples; number++) {
        const bool is_inside = tuple_of(shape, number, i);
        int64_t offset = -7;
        check_legacy(blob, shape, i, is_inside);
        bool rest_is_0 = true; /* so that each element is checked once */
        for (int32_t axis = shape->axes; axis < MAX_AXES; axis++)
            rest_is_0 &= i[axis] == 0;
        if (rest_is_0)
            check_answer(sb_blob_offset(blob, i, shape->axes, &offset, NULL), &offset, is_inside,
                         next);
        next += is_inside;
    }
    assert_int_equal(next, shape->count);
    sb_blob_destroy(blob);
}

/* Missing indices count as 0; more indices than axes are refused. */
static void check_fewer_indices(const struct shape *shape) {
    sb_blob *blob = blob_with(shape);
    for (int32_t given = -1; given <= shape->axes + 1; given++) {
        const int64_t last[MAX_AXES + 1] = {shape->dims[0] - 1, shape->dims[1] - 1,
                                            shape->dims[2] - 1, shape->dims[3] - 1};
        int64_t offset = -7, expected = 0;
        for (int32_t i = 0; i < shape->axes; i++)
            expected = expected * shape->dims[i] + (i < given ? last[i] : 0);
        check_answer(sb_blob_offset(blob, last, given, &offset, NULL), &offset,
                     shape->count > 0 && given >= 0 && given <= shape->axes, expected);
    }
    sb_blob_destroy(blob);
}

static void check_never_shaped(void) {
    const struct shape none = {.axes = 0};
    const int64_t zeros[MAX_AXES] = {0};
    int64_t offset = -7;
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    check_answer(sb_blob_offset(blob, NULL, 0, &offset, NULL), &offset, false, 0);
    check_answer(sb_blob_offset(blob, zeros, 1, &offset, NULL), &offset, false, 0);
    check_legacy(blob, &none, zeros, false);
}

TEST(every_element_has_its_offset) {
    struct shape shape;
    check_never_shaped();
    for (int32_t axes = 0; axes <= MAX_AXES; axes++)
        for (int number = 0; shape_of(axes, number, &shape); number++) {
            check_offsets(&shape);
            check_fewer_indices(&shape);
        }
}
