/* The calls of sb_mem on a blob's data and diff, the same for both. */
#include "blob/blob.h"

#include "base/error.h"
#include "memory/clear.h"
#include "memory/mem.h"

static sb_status memory_for(const sb_blob *blob, enum sb__side_name name, const void *out,
                            sb_mem **mem, sb_error *err) {
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    return sb__blob_memory(blob, name, mem, err);
}

#define ACCESS(function, blob_type, out_type, NAME, call)                                          \
    sb_status function(blob_type *blob, out_type *out, sb_error *err) {                            \
        sb_mem *mem;                                                                               \
        sb_status st = memory_for(blob, NAME, out, &mem, err);                                     \
        return st == SB_OK ? call(mem, out, err) : st;                                             \
    }

#define ACCESS_ON(function, blob_type, out_type, NAME, call)                                       \
    sb_status function(blob_type *blob, sb_stream stream, out_type *out, sb_error *err) {          \
        sb_mem *mem;                                                                               \
        sb_status st = memory_for(blob, NAME, out, &mem, err);                                     \
        return st == SB_OK ? call(mem, stream, out, err) : st;                                     \
    }

/* Reading and writing in place are what is called most: the general way is apart, so that they save
   no registers for it. */
#define FAST(function, blob_type, out_type, NAME, call, in_place)                                  \
    __attribute__((noinline)) static ACCESS(function##_anyhow, blob_type, out_type, NAME, call)    \
        sb_status                                                                                  \
        function(blob_type *blob, out_type *out, sb_error *err) {                                  \
        const sb_mem *mem = blob && out ? sb__blob_peek(blob, NAME) : NULL;                        \
        if (!mem || !in_place(mem))                                                                \
            return function##_anyhow(blob, out, err);                                              \
        *out = mem->side[SB_SIDE_CPU].ptr;                                                         \
        return SB_OK;                                                                              \
    }

#define FAST_READ(x, NAME)                                                                         \
    FAST(sb_blob_cpu_##x, const sb_blob, const void *, NAME, sb_mem_cpu_data, sb__is_read_at_host)
#define FAST_WRITE(x, NAME)                                                                        \
    FAST(sb_blob_mutable_cpu_##x, sb_blob, void *, NAME, sb_mem_mutable_cpu_data,                  \
         sb__is_written_at_host)
#define READ(x, NAME, call)  ACCESS(sb_blob_##x, const sb_blob, const void *, NAME, sb_mem_##call)
#define WRITE(x, NAME, call) ACCESS(sb_blob_##x, sb_blob, void *, NAME, sb_mem_##call)
#define READ_ON(x, NAME, call)                                                                     \
    ACCESS_ON(sb_blob_##x, const sb_blob, const void *, NAME, sb_mem_##call)
#define WRITE_ON(x, NAME, call) ACCESS_ON(sb_blob_##x, sb_blob, void *, NAME, sb_mem_##call)

#define ALL(x, NAME)                                                                               \
    FAST_READ(x, NAME)                                                                             \
    READ(gpu_##x, NAME, gpu_data)                                                                  \
    READ_ON(gpu_##x##_on, NAME, gpu_data_on)                                                       \
    FAST_WRITE(x, NAME)                                                                            \
    WRITE(mutable_gpu_##x, NAME, mutable_gpu_data)                                                 \
    WRITE_ON(mutable_gpu_##x##_on, NAME, mutable_gpu_data_on)                                      \
    WRITE(overwrite_cpu_##x, NAME, overwrite_cpu)                                                  \
    WRITE(overwrite_gpu_##x, NAME, overwrite_gpu)                                                  \
    WRITE_ON(overwrite_gpu_##x##_on, NAME, overwrite_gpu_on)

ALL(data, SB__DATA)
ALL(diff, SB__DIFF)

static sb_status give_memory(const sb_blob *blob, enum sb__side_name name, const sb_mem **out,
                             sb_error *err) {
    sb_mem *mem;
    sb_status st = memory_for(blob, name, out, &mem, err);
    if (st == SB_OK)
        *out = mem;
    return st;
}

sb_status sb_blob_data(const sb_blob *blob, const sb_mem **out, sb_error *err) {
    return give_memory(blob, SB__DATA, out, err);
}

sb_status sb_blob_diff(const sb_blob *blob, const sb_mem **out, sb_error *err) {
    return give_memory(blob, SB__DIFF, out, err);
}

sb_status sb_blob_mutable_data(sb_blob *blob, sb_mem **out, sb_error *err) {
    return memory_for(blob, SB__DATA, out, out, err);
}

sb_status sb_blob_mutable_diff(sb_blob *blob, sb_mem **out, sb_error *err) {
    return memory_for(blob, SB__DIFF, out, out, err);
}

static int64_t capacity(const sb_blob *blob, enum sb__side_name name) {
    const sb_mem *mem = blob ? sb__blob_peek(blob, name) : NULL;
    return mem ? (int64_t)(mem->bytes / blob->element_size) : 0;
}

int64_t sb_blob_data_capacity(const sb_blob *blob) {
    return capacity(blob, SB__DATA);
}

int64_t sb_blob_diff_capacity(const sb_blob *blob) {
    return capacity(blob, SB__DIFF);
}

static sb_status clear(sb_blob *blob, enum sb__side_name name, sb_error *err) {
    if (!blob)
        return sb__fail_null(err, "blob");
    struct sb__retired retired = {NULL, NULL};
    sb_mem *mem = sb__blob_peek(blob, name);
    sb_status st = mem ? sb__mem_clear(mem, sb__blob_bytes(blob), &retired, err) : SB_OK;
    sb__retired_end(&retired);
    return st;
}

sb_status sb_blob_clear_data(sb_blob *blob, sb_error *err) {
    return clear(blob, SB__DATA, err);
}

sb_status sb_blob_clear_diff(sb_blob *blob, sb_error *err) {
    return clear(blob, SB__DIFF, err);
}
