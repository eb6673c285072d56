/* sb__shape_make: fails, or the count is the product of the dimensions (0 if a dimension is 0) and
   the size in bytes fits.
   --unwind 4: three axes; the code treats all axes in the same way, and two axes can overflow
   planted: "        if (dims[i] < 0)\n"
        -> "        if (dims[i] < -1)\n"
   planted: "        if (dims[i] == 0)\n"
        -> "        if (dims[i] == 0 && i == 0)\n"
   planted: "if (!sb__mul_i64(count, dims[i], &count))"
        -> "if (count *= dims[i], false)"
   planted: "if (!sb__bytes_of(count, element_size, &bytes))"
        -> "if (bytes = 0, false)" */
#include "proof.h"

#include "blob/shape.c"

extern int64_t dims[3];
extern struct sb__shape shape;

void shape_make(void) {
    const int32_t axes = any_i32();
    const size_t element_size = any_bool() ? 4 : 8;
    bool is_empty = false, is_negative = false;
    assume(axes <= 3 || axes > SB_MAX_AXES);
    const sb_status st = sb__shape_make(&shape, dims, axes, element_size, NULL);
    for (int i = 0; i < 3; i++)
        if (i < axes) {
            is_empty |= dims[i] == 0;
            is_negative |= dims[i] < 0;
        }
    if (st != SB_OK) {
        claim(st == last_failure);
        claim(st != SB_ERR_SIZE_OVERFLOW || !is_empty);
        return;
    }
    claim(axes >= 0 && axes <= SB_MAX_AXES && !is_negative);
    claim(shape.num_axes == axes && shape.count >= 0);
    claim((size_t)shape.count <= PTRDIFF_MAX / element_size);
    claim((shape.count == 0) == is_empty);
    claim(is_empty || axes == 0 || shape.count >= dims[0]);
    for (int i = 0; i < 3; i++)
        claim(i >= axes || shape.dims[i] == dims[i]);
}
