/* Macros that show clang's analyzer which status sb__fail and similar functions return. */
#ifndef SB_TESTS_ANALYZER_H
#define SB_TESTS_ANALYZER_H

#include "base/error.h"
#include "memory/mem.h"

#include "../../../c/comm/src/error.h"

#define sb__fail(err, status, ...)            ((void)sb__fail(err, status, __VA_ARGS__), (status))
#define sb__fail_at(err, status, offset, ...) ((void)(offset), sb__fail(err, status, __VA_ARGS__))
#define sb__fail_reported(err, status, offset, reported, who)                                      \
    ((void)sb__fail_reported(err, status, offset, reported, who), (status))
#define sb__fail_null(err, what)    ((void)sb__fail_null(err, what), SB_ERR_INVALID_ARGUMENT)
#define sb__fail_memory(err, bytes) ((void)sb__fail_memory(err, bytes), SB_ERR_OUT_OF_MEMORY)
#define sb__fail_buffer(err, capacity, size, out_size)                                             \
    ((void)sb__fail_buffer(err, capacity, size, out_size), SB_ERR_BUFFER_TOO_SMALL)

#define sb__comm_fail(err, status, ...) ((void)sb__comm_fail(err, status, __VA_ARGS__), (status))
#define sb__comm_fail_slot(err, status, slot_err, engine)                                          \
    ((void)sb__comm_fail_slot(err, status, slot_err, engine), (status))
#define sb__comm_fail_null(err, what) ((void)sb__comm_fail_null(err, what), SB_ERR_INVALID_ARGUMENT)
#define sb__comm_fail_memory(err)     ((void)sb__comm_fail_memory(err), SB_ERR_OUT_OF_MEMORY)
#define sb_error_fill(err, status, code, message)                                                  \
    ((void)!sb_error_fill(err, status, code, message), (status))

#endif
