#include "arithmetic.h" /* IWYU pragma: keep */

/* An operand is passed as a pointer and an offset in elements. Fused multiply-adds are off, so that
   all devices have the same results. Sums are computed in double: work item i adds the vectors
   i * span, i * span + step, … below i * span + reach, and stores one number. */
/* clang-format off */
__extension__ /* C17 guarantees only shorter strings */
const char sb__opencl_source[] =
    "#ifdef DOUBLES\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#endif\n"
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "\n"
    "kernel void axpy(ulong count, T alpha, global T *y, ulong y0, global const T *x, ulong x0) {\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < count)\n"
    "        y[y0 + i] += alpha * x[x0 + i];\n"
    "}\n"
    "\n"
    "kernel void scale(ulong count, T alpha, global T *x, ulong x0) {\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < count)\n"
    "        x[x0 + i] *= alpha;\n"
    "}\n"
    "\n"
    "#ifdef DOUBLES\n"
    "#define SUM(name, VALUE)                                                                 \\\n"
    "    kernel void name(ulong count, ulong span, ulong reach, ulong step,                   \\\n"
    "                     global const T *x, ulong x0, global double *sums) {                 \\\n"
    "        ulong item = get_global_id(0), first = item * span;                              \\\n"
    "        ulong end = min(first + reach, count / 8);                                       \\\n"
    "        double8 sum = 0;                                                                 \\\n"
    "        for (ulong at = first; at < end; at += step) {                                   \\\n"
    "            double8 v = convert_double8(vload8(at, x + x0));                             \\\n"
    "            sum += VALUE(v);                                                             \\\n"
    "        }                                                                                \\\n"
    "        double4 half_sum = sum.lo + sum.hi;                                              \\\n"
    "        double all = (half_sum.x + half_sum.y) + (half_sum.z + half_sum.w);              \\\n"
    "        ulong rest = count / 8 * 8 + item;                                               \\\n"
    "        if (rest < count && item < 8) {                                                  \\\n"
    "            double v = x[x0 + rest];                                                     \\\n"
    "            all += VALUE(v);                                                             \\\n"
    "        }                                                                                \\\n"
    "        sums[item] = all;                                                                \\\n"
    "    }\n"
    "#define SQUARE(v) ((v) * (v))\n"
    "SUM(asum, fabs)\n"
    "SUM(sumsq, SQUARE)\n"
    "#endif\n";
/* clang-format on */
