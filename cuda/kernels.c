#include "kernels.h"

/* Thread i adds x[i], x[i + threads] and so on in double, and stores its sum at sums[i]. The driver
   compiles the kernels for its device. The fake driver interprets every instruction used here. */
#define KERNEL(name, load, add)                                                                    \
    ".visible .entry " name "(\n"                                                                  \
    "    .param .u64 x, .param .u64 count, .param .u64 sums)\n"                                    \
    "{\n"                                                                                          \
    "    .reg .pred %p<1>;\n"                                                                      \
    "    .reg .b32 %r<4>;\n"                                                                       \
    "    .reg .f32 %f<1>;\n"                                                                       \
    "    .reg .f64 %d<2>;\n"                                                                       \
    "    .reg .b64 %l<8>;\n"                                                                       \
    "    ld.param.u64 %l0, [x];\n"                                                                 \
    "    ld.param.u64 %l1, [count];\n"                                                             \
    "    ld.param.u64 %l2, [sums];\n"                                                              \
    "    cvta.to.global.u64 %l0, %l0;\n"                                                           \
    "    cvta.to.global.u64 %l2, %l2;\n"                                                           \
    "    mov.u32 %r0, %ctaid.x;\n"                                                                 \
    "    mov.u32 %r1, %ntid.x;\n"                                                                  \
    "    mov.u32 %r2, %tid.x;\n"                                                                   \
    "    mov.u32 %r3, %nctaid.x;\n"                                                                \
    "    mul.wide.u32 %l3, %r0, %r1;\n"                                                            \
    "    cvt.u64.u32 %l4, %r2;\n"                                                                  \
    "    add.s64 %l3, %l3, %l4;\n"      /* this thread */                                          \
    "    mul.wide.u32 %l4, %r3, %r1;\n" /* all threads */                                          \
    "    mov.b64 %l5, %l3;\n"                                                                      \
    "    mov.f64 %d0, 0d0000000000000000;\n"                                                       \
    "again:\n"                                                                                     \
    "    setp.ge.u64 %p0, %l5, %l1;\n"                                                             \
    "    @%p0 bra done;\n" load add "    add.s64 %l5, %l5, %l4;\n"                                 \
    "    bra again;\n"                                                                             \
    "done:\n"                                                                                      \
    "    shl.b64 %l7, %l3, 3;\n"                                                                   \
    "    add.s64 %l7, %l2, %l7;\n"                                                                 \
    "    st.global.f64 [%l7], %d0;\n"                                                              \
    "    ret;\n"                                                                                   \
    "}\n"

#define LOAD_F32                                                                                   \
    "    shl.b64 %l6, %l5, 2;\n"                                                                   \
    "    add.s64 %l6, %l0, %l6;\n"                                                                 \
    "    ld.global.f32 %f0, [%l6];\n"                                                              \
    "    cvt.f64.f32 %d1, %f0;\n"
#define LOAD_F64                                                                                   \
    "    shl.b64 %l6, %l5, 3;\n"                                                                   \
    "    add.s64 %l6, %l0, %l6;\n"                                                                 \
    "    ld.global.f64 %d1, [%l6];\n"
#define ADD_ABSOLUTE                                                                               \
    "    abs.f64 %d1, %d1;\n"                                                                      \
    "    add.f64 %d0, %d0, %d1;\n"
#define ADD_SQUARE "    fma.rn.f64 %d0, %d1, %d1, %d0;\n"

/* The oldest devices of CUDA 12. */
const char sb__cuda_kernels[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n" KERNEL("sb_asum_f32", LOAD_F32, ADD_ABSOLUTE)
        KERNEL("sb_asum_f64", LOAD_F64, ADD_ABSOLUTE) KERNEL("sb_sumsq_f32", LOAD_F32, ADD_SQUARE)
            KERNEL("sb_sumsq_f64", LOAD_F64, ADD_SQUARE);
