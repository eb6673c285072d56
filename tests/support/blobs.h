/* Creates blobs and memories; sets and reads their contents and heads. */
#ifndef SB_TESTS_BLOBS_H
#define SB_TESTS_BLOBS_H

#include "rig.h"

/* Copies `bytes` bytes of `values` to the memory and moves its head to `head`. Does nothing if
   `head` is UNINITIALIZED. */
void mem_place(sb_mem *mem, int32_t head, const void *values, size_t bytes);
/* Creates a memory whose host bytes are all `fill`. */
sb_mem *mem_filled(sb_context *context, size_t bytes, int fill);
/* Creates a memory like mem_filled; the test owns the memory. */
sb_mem *test_filled(sb_context *context, size_t bytes, int fill);
/* Copies the first `bytes` bytes of a current side to `out`, without moving the head. */
void mem_look(const sb_mem *mem, void *out, size_t bytes);
bool mem_holds(const sb_mem *mem, const void *values, size_t bytes);
/* Queues a copy of the memory, whose head is at the device, to the host. Makes every wait for the
   copy fail. The schedule is SB_SIM_LAZY afterwards. */
void mem_fail_wait(const sb_mem *mem);

sb_blob *blob_of(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape);
/* Creates a blob of one axis. */
sb_blob *blob_of_count(sb_context *context, int32_t dtype, int64_t count);
/* These create blobs that the test owns: of any shape, of one axis, and without a shape. */
sb_blob *test_blob(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape);
sb_blob *test_vector(sb_context *context, int32_t dtype, int64_t count);
sb_blob *test_unshaped(sb_context *context, int32_t dtype);
/* SB_DTYPE_LIST(DTYPE_ITEM) expands to the constants of all element types, each with a comma. */
#define DTYPE_ITEM(NAME, number, name, type, kind, with) SB_DTYPE_##NAME,

/* Returns a filler of the type with default parameters. */
sb_filler filler_of(int32_t type);
sb_mem *mem_of(sb_blob *blob, sb_part part);
sb_mem *data_of(sb_blob *blob);
sb_mem *diff_of(sb_blob *blob);
/* Asserts that the blob's shape string is `expected`, such as "2 3 (6)". */
void assert_shape_is(const sb_blob *blob, const char *expected);
/* Asserts that the blob's `count` values of F32 or F64 are first, first + 1, ... */
void assert_values(const sb_blob *blob, sb_part part, int64_t count, double first);
/* These return a pointer to a part's host bytes: host_of for reading, host_to_write for writing. */
const void *host_of(const sb_blob *blob, sb_part part);
void *host_to_write(sb_blob *blob, sb_part part);
/* Writes `count` values of F32 or F64: start, start + step, ... */
void fill_values(int32_t dtype, int64_t count, double start, double step, void *out);
double value_at(int32_t dtype, const void *values, int64_t i);

#endif
