/* The backend with one kind of memory: OpenCL's devices here have several, and a program gets the
   best one. */
#ifndef SB_TESTS_OPENCL_MODES_H
#define SB_TESTS_OPENCL_MODES_H

#include <syncblob/opencl.h>

/* Returns the table for SB_OPENCL_SVM to SB_OPENCL_BUFFERS. The table is static. */
const sb_backend *opencl_backend(int32_t memory);

#endif
