/**
 * The backend for devices of OpenCL 2.0 or newer. The backend is a separate library,
 * libsyncblob-opencl, so that libsyncblob does not depend on OpenCL. To open a device, set
 * `backend` of sb_context_options to sb_opencl_backend() and `device` to "opencl:0".
 *
 * "opencl:N" is device N, counted from 0 over all platforms in the order of clGetPlatformIDs and
 * clGetDeviceIDs (clinfo -l prints that order). Each sb_context has a separate cl_context with that
 * one device.
 *
 * The library uses the first kind of memory among SB_OPENCL_FINE_SVM, SB_OPENCL_USM, SB_OPENCL_SVM
 * and SB_OPENCL_BUFFERS that the device has. SB_OPENCL_FINE_SVM is host-coherent: both sides of a
 * memory are one storage (mem.h). The host must not access the other kinds directly, even if the
 * device allows it.
 *
 * A stream (sb_stream) is an in-order cl_command_queue of the library's cl_context
 * (sb_opencl_device::context). OpenCL has no default queue, so a NULL stream is the library's own
 * queue. Pass your queue to the `_on` calls, or wait for your queue before other calls.
 *
 * The backend has no page-locked host memory and does not support DLPack, which represents OpenCL
 * memory by cl_mem objects. On a device without cl_khr_fp64 the library returns UNSUPPORTED for
 * 64-bit arithmetic, and computes sums of 32-bit values on the host.
 *
 * An OpenCL queue does not record failures. If a command of the program fails before the library
 * next uses the command's queue, no call reports the failure. Wait for the events of your kernels.
 * After a failed kernel, overwrite the memories that the queue's kernels wrote. In pocl, a command
 * fails as soon as an event in its wait list fails. Earlier commands of the queue may still run.
 * The library may then release memory that the earlier commands use. Call clFinish before you
 * release or overwrite such memory.
 *
 * A wait may return a failure to a thread that has not queued the failed work. The library then
 * keeps the failure for the thread that has queued the work: one failure for each thread and queue.
 * If the library must keep more than 64 failures, the device counts as lost.
 *
 * The library cannot check pointers to shared virtual memory (SB_OPENCL_SVM, SB_OPENCL_FINE_SVM):
 * it accepts any address as lent device memory.
 *
 * sb_error.device_code is OpenCL's error code. After a fork the child process cannot open a
 * device if its parent has used OpenCL through this library.
 */
#ifndef SYNCBLOB_OPENCL_H
#define SYNCBLOB_OPENCL_H

#include <syncblob/backend.h>

/** The version of OpenCL that CL/cl.h declares, unless the program has defined the macro. */
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 200
#endif
#include <CL/cl.h>

SB_BEGIN_DECLS

/** Returns the backend "opencl". @return [borrowed] a constant */
SB_API const sb_backend *sb_opencl_backend(void);

/** Kinds of device memory. The text after each colon states how to pass the memory to a kernel. */
enum {
    SB_OPENCL_SVM = 1,     /**< coarse-grained shared virtual memory: clSetKernelArgSVMPointer */
    SB_OPENCL_USM = 2,     /**< device memory of Intel's unified shared memory:
                                clSetKernelArgMemPointerINTEL */
    SB_OPENCL_BUFFERS = 3, /**< cl_mem objects, to which the library assigns addresses: pass a
                                kernel the result of sb_opencl_device::buffer. Only memory that the
                                library has allocated can be lent to a blob */
    SB_OPENCL_FINE_SVM = 4 /**< fine-grained shared virtual memory of a device that shares the
                                host's memory (CL_DEVICE_HOST_UNIFIED_MEMORY):
                                clSetKernelArgSVMPointer. Coarse-grained memory can also be lent to
                                a blob */
};

/** The name of the table sb_opencl_device, for sb_context_extension. */
#define SB_OPENCL_DEVICE "sb_opencl_device"

/** The functions that a program needs to create queues and kernels for a device. `device` is the
 *  pointer that sb_context_extension returns. The struct never grows. */
typedef struct sb_opencl_device {
    /** Returns the cl_context. @return [borrowed] lives as long as the sb_context */
    cl_context (*context)(const void *device);
    /** Returns the OpenCL device. */
    cl_device_id (*id)(const void *device);
    /** Returns the kind of the device's memory, SB_OPENCL_*. */
    int32_t (*memory)(const void *device);
    /** Returns the cl_mem of SB_OPENCL_BUFFERS that holds `ptr`, and sets `*out_offset` to the
     *  offset of `ptr` in bytes. Returns NULL if `ptr` is not in such memory.
     *  @return [borrowed] as long as the memory at `ptr` is allocated */
    cl_mem (*buffer)(void *device, const void *ptr, size_t *out_offset);
} sb_opencl_device;

SB_END_DECLS

#endif
