#include "kernels.h"

/* A kernel in PTX that adds elements in double and stores each thread's sum in sums[thread]. A
   thread adds the vectors of 16 bytes whose numbers are thread, thread + threads and so on. The
   thread adds four vectors at a time to four sums, so that four loads are in flight. The first
   threads also add the elements before the first aligned vector and after the last aligned vector.
   The driver compiles the kernels for its device. The fake driver interprets every instruction of
   these kernels. An element has 2^shift bytes, and a vector has 2^vector elements. */
#define STRING(name)  STRING_(name)
#define STRING_(name) #name
#define LINE(text)    "    " text ";\n"
/* clang-format off */
#define KERNEL(name, shift, vector, ALONE, ONE, FOUR, ADD)                                         \
    ".visible .entry " name "(\n"                                                                  \
    "    .param .u64 x, .param .u64 count, .param .u64 sums)\n"                                    \
    ".maxntid " STRING(SB__CUDA_THREADS) ", 1, 1\n"                                                \
    ".minnctapersm 4\n" /* leaves enough registers for all four loads */                           \
    "{\n"                                                                                          \
    LINE(".reg .pred %p<1>")                                                                       \
    LINE(".reg .b32 %r<4>")                                                                        \
    LINE(".reg .f32 %f<16>")                                                                       \
    LINE(".reg .f64 %d<13>")                                                                       \
    LINE(".reg .b64 %l<16>")                                                                       \
    LINE("ld.param.u64 %l0, [x]")                                                                  \
    LINE("ld.param.u64 %l1, [count]")                                                              \
    LINE("ld.param.u64 %l2, [sums]")                                                               \
    LINE("cvta.to.global.u64 %l0, %l0")                                                            \
    LINE("cvta.to.global.u64 %l2, %l2")                                                            \
    LINE("mov.u32 %r0, %ctaid.x")                                                                  \
    LINE("mov.u32 %r1, %ntid.x")                                                                   \
    LINE("mov.u32 %r2, %tid.x")                                                                    \
    LINE("mov.u32 %r3, %nctaid.x")                                                                 \
    LINE("mul.wide.u32 %l3, %r0, %r1")                                                             \
    LINE("cvt.u64.u32 %l4, %r2")                                                                   \
    LINE("add.s64 %l3, %l3, %l4") /* this thread */                                                \
    LINE("mul.wide.u32 %l4, %r3, %r1") /* all threads */                                           \
    LINE("mov.f64 %d0, 0d0000000000000000")                                                        \
    LINE("mov.f64 %d1, 0d0000000000000000")                                                        \
    LINE("mov.f64 %d2, 0d0000000000000000")                                                        \
    LINE("mov.f64 %d3, 0d0000000000000000")                                                        \
    LINE("neg.s64 %l5, %l0")                                                                       \
    LINE("and.b64 %l5, %l5, 15")                                                                   \
    LINE("shr.u64 %l5, %l5, " shift)                                                               \
    LINE("min.u64 %l5, %l5, %l1") /* elements before the first vector */                           \
    LINE("setp.ge.u64 %p0, %l3, %l5")                                                              \
    LINE("@%p0 bra vectors")                                                                       \
    LINE("shl.b64 %l6, %l3, " shift)                                                               \
    LINE("add.s64 %l6, %l0, %l6")                                                                  \
    ALONE(ADD)                                                                                     \
    "vectors:\n"                                                                                   \
    LINE("sub.s64 %l10, %l1, %l5")                                                                 \
    LINE("shr.u64 %l10, %l10, " vector) /* number of vectors */                                    \
    LINE("shl.b64 %l11, %l5, " shift)                                                              \
    LINE("add.s64 %l11, %l0, %l11")                                                                \
    LINE("shl.b64 %l6, %l3, 4")                                                                    \
    LINE("add.s64 %l6, %l11, %l6") /* this thread's first vector */                                \
    LINE("shl.b64 %l12, %l4, 4") /* bytes to this thread's next vector */                          \
    LINE("shl.b64 %l14, %l4, 1")                                                                   \
    LINE("add.s64 %l14, %l14, %l4")                                                                \
    LINE("mov.b64 %l13, %l3")                                                                      \
    "again:\n"                                                                                     \
    LINE("add.s64 %l15, %l13, %l14")                                                               \
    LINE("setp.ge.u64 %p0, %l15, %l10")                                                            \
    LINE("@%p0 bra single")                                                                        \
    LINE("add.s64 %l7, %l6, %l12")                                                                 \
    LINE("add.s64 %l8, %l7, %l12")                                                                 \
    LINE("add.s64 %l9, %l8, %l12")                                                                 \
    FOUR(ADD)                                                                                      \
    LINE("add.s64 %l6, %l9, %l12")                                                                 \
    LINE("add.s64 %l13, %l15, %l4")                                                                \
    LINE("bra again")                                                                              \
    "single:\n"                                                                                    \
    LINE("setp.ge.u64 %p0, %l13, %l10")                                                            \
    LINE("@%p0 bra last")                                                                          \
    ONE(ADD)                                                                                       \
    LINE("add.s64 %l6, %l6, %l12")                                                                 \
    LINE("add.s64 %l13, %l13, %l4")                                                                \
    LINE("bra single")                                                                             \
    "last:\n"                                                                                      \
    LINE("shl.b64 %l15, %l10, " vector)                                                            \
    LINE("add.s64 %l15, %l15, %l5")                                                                \
    LINE("add.s64 %l15, %l15, %l3")                                                                \
    LINE("setp.ge.u64 %p0, %l15, %l1")                                                             \
    LINE("@%p0 bra done")                                                                          \
    LINE("shl.b64 %l6, %l15, " shift)                                                              \
    LINE("add.s64 %l6, %l0, %l6")                                                                  \
    ALONE(ADD)                                                                                     \
    "done:\n"                                                                                      \
    LINE("add.f64 %d0, %d0, %d1")                                                                  \
    LINE("add.f64 %d2, %d2, %d3")                                                                  \
    LINE("add.f64 %d0, %d0, %d2")                                                                  \
    LINE("shl.b64 %l6, %l3, 3")                                                                    \
    LINE("add.s64 %l6, %l2, %l6")                                                                  \
    LINE("st.global.f64 [%l6], %d0")                                                               \
    LINE("ret")                                                                                    \
    "}\n"
/* clang-format on */

#define LOAD_F32(a, b, c, d, at)                                                                   \
    LINE("ld.global.v4.f32 {%f" a ", %f" b ", %f" c ", %f" d "}, [%l" at "]")
#define ADD_F32(ADD, a, b, c, d, sum) ADD(a, sum) ADD(b, sum) ADD(c, sum) ADD(d, sum)
#define ALONE_F32(ADD)                LINE("ld.global.f32 %f0, [%l6]") ADD("0", "0")
#define ONE_F32(ADD)                  LOAD_F32("0", "1", "2", "3", "6") ADD_F32(ADD, "0", "1", "2", "3", "0")
#define FOUR_F32(ADD)                                                                              \
    LOAD_F32("0", "1", "2", "3", "6")                                                              \
    LOAD_F32("4", "5", "6", "7", "7")                                                              \
    LOAD_F32("8", "9", "10", "11", "8")                                                            \
    LOAD_F32("12", "13", "14", "15", "9")                                                          \
    ADD_F32(ADD, "0", "1", "2", "3", "0")                                                          \
    ADD_F32(ADD, "4", "5", "6", "7", "1")                                                          \
    ADD_F32(ADD, "8", "9", "10", "11", "2")                                                        \
    ADD_F32(ADD, "12", "13", "14", "15", "3")

#define LOAD_F64(a, b, at) LINE("ld.global.v2.f64 {%d" a ", %d" b "}, [%l" at "]")
#define ALONE_F64(ADD)     LINE("ld.global.f64 %d4, [%l6]") ADD("4", "0")
#define ONE_F64(ADD)       LOAD_F64("4", "5", "6") ADD("4", "0") ADD("5", "0")
#define FOUR_F64(ADD)                                                                              \
    LOAD_F64("4", "5", "6")                                                                        \
    LOAD_F64("6", "7", "7")                                                                        \
    LOAD_F64("8", "9", "8")                                                                        \
    LOAD_F64("10", "11", "9")                                                                      \
    ADD("4", "0")                                                                                  \
    ADD("5", "0")                                                                                  \
    ADD("6", "1") ADD("7", "1") ADD("8", "2") ADD("9", "2") ADD("10", "3") ADD("11", "3")

/* These macros add the absolute value or the square of register x to a sum. */
#define ABSOLUTE_F32(x, sum) LINE("cvt.f64.f32 %d12, %f" x) ABSOLUTES("12", sum)
#define SQUARE_F32(x, sum)   LINE("cvt.f64.f32 %d12, %f" x) SQUARE_F64("12", sum)
#define ABSOLUTE_F64(x, sum) ABSOLUTES(x, sum)
#define ABSOLUTES(x, sum)                                                                          \
    LINE("abs.f64 %d12, %d" x)                                                                     \
    LINE("add.f64 %d" sum ", %d" sum ", %d12")
#define SQUARE_F64(x, sum) LINE("fma.rn.f64 %d" sum ", %d" x ", %d" x ", %d" sum)

/* .target is the oldest device that CUDA 12 supports; .version is a PTX version for this device. */
/* clang-format off */
__extension__ /* allows the length of the string */
const char sb__cuda_kernels[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    KERNEL("sb_asum_f32", "2", "2", ALONE_F32, ONE_F32, FOUR_F32, ABSOLUTE_F32)
    KERNEL("sb_asum_f64", "3", "1", ALONE_F64, ONE_F64, FOUR_F64, ABSOLUTE_F64)
    KERNEL("sb_sumsq_f32", "2", "2", ALONE_F32, ONE_F32, FOUR_F32, SQUARE_F32)
    KERNEL("sb_sumsq_f64", "3", "1", ALONE_F64, ONE_F64, FOUR_F64, SQUARE_F64);
/* clang-format on */
