#include "device.h"

#include <stdarg.h>
#include <stdio.h>

#define CODES(X)                                                                                   \
    X(CL_DEVICE_NOT_FOUND)                                                                         \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                     \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                   \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                            \
    X(CL_OUT_OF_RESOURCES)                                                                         \
    X(CL_OUT_OF_HOST_MEMORY)                                                                       \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                    \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                \
    X(CL_INVALID_VALUE)                                                                            \
    X(CL_INVALID_DEVICE)                                                                           \
    X(CL_INVALID_CONTEXT)                                                                          \
    X(CL_INVALID_COMMAND_QUEUE)                                                                    \
    X(CL_INVALID_MEM_OBJECT)                                                                       \
    X(CL_INVALID_KERNEL_ARGS)                                                                      \
    X(CL_INVALID_EVENT)                                                                            \
    X(CL_INVALID_OPERATION)                                                                        \
    X(CL_INVALID_BUFFER_SIZE)

static const char *name_of(cl_int code) {
    switch (code) {
#define NAME(code)                                                                                 \
    case code:                                                                                     \
        return #code;
        CODES(NAME)
#undef NAME
    case SB__OPENCL_NO_PLATFORM:
        return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
        return "code";
    }
}

static sb_status status_of(cl_int code) {
    switch (code) {
    case CL_SUCCESS:
        return SB_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE: /* the device cannot allocate so much at once */
        return SB_ERR_OUT_OF_MEMORY;
    case CL_DEVICE_NOT_FOUND:
    case SB__OPENCL_NO_PLATFORM:
        return SB_ERR_NO_DEVICE;
    case CL_DEVICE_NOT_AVAILABLE: /* the device was available when the library opened it */
        return SB_ERR_DEVICE_LOST;
    case CL_COMPILER_NOT_AVAILABLE:
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_INVALID_OPERATION:
        return SB_ERR_UNSUPPORTED;
    default:
        return SB_ERR_DEVICE_FAILURE;
    }
}

sb_status sb__opencl_fail(sb_error *err, sb_status status, cl_int code, const char *format, ...) {
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return sb_error_fill(err, status, code, message);
}

static sb_status report(const struct sb__opencl_device *device, sb_status st, cl_int result,
                        const char *call, sb_error *err) {
    return sb__opencl_fail(err, st, result, "opencl:%d: %s: %s (%d)", device->ordinal, call,
                           name_of(result), result);
}

sb_status sb__opencl_status(const struct sb__opencl_device *device, cl_int result, const char *call,
                            sb_error *err) {
    const sb_status st = status_of(result);
    return st == SB_OK ? st : report(device, st, result, call, err);
}

/* Returns `st` if it is SB_OK, DEVICE_LOST or `also`, else DEVICE_FAILURE. */
static sb_status narrow(sb_status st, sb_status also) {
    return st == SB_OK || st == SB_ERR_DEVICE_LOST || st == also ? st : SB_ERR_DEVICE_FAILURE;
}

sb_status sb__opencl_wait_status(const struct sb__opencl_device *device, cl_int result,
                                 const char *call, sb_error *err) {
    const sb_status st = narrow(status_of(result), SB_ERR_OUT_OF_MEMORY);
    return st == SB_OK ? st : report(device, st, result, call, err);
}

sb_status sb__opencl_work_status(const struct sb__opencl_device *device, cl_int failure,
                                 sb_error *err) {
    const sb_status st = narrow(status_of(failure), SB_OK);
    return st == SB_OK ? st : report(device, st, failure, "queued work", err);
}
