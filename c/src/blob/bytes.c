/* Applies the functions of mem.h to a blob's data and diff. */
#include "blob/blob.h"

#include "base/error.h"
#include "memory/clear.h"
#include "memory/mem.h"

static sb_status memory_for(const sb_blob *blob, sb_part part, const void *out, sb_mem **mem,
                            sb_error *err) {
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    sb_status st = sb__check_part(part, err);
    return st == SB_OK ? sb__blob_memory(blob, part, mem, err) : st;
}

#define ACCESS(function, blob_type, out_type, call)                                                \
    sb_status function(blob_type *blob, sb_part part, out_type *out, sb_error *err) {              \
        sb_mem *mem;                                                                               \
        sb_status st = memory_for(blob, part, out, &mem, err);                                     \
        return st == SB_OK ? call(mem, out, err) : st;                                             \
    }

#define ACCESS_ON(function, blob_type, out_type, call)                                             \
    sb_status function(blob_type *blob, sb_part part, sb_stream stream, out_type *out,             \
                       sb_error *err) {                                                            \
        sb_mem *mem;                                                                               \
        sb_status st = memory_for(blob, part, out, &mem, err);                                     \
        return st == SB_OK ? call(mem, stream, out, err) : st;                                     \
    }

/* Defines sb_blob_cpu and sb_blob_mutable_cpu, the most frequent calls. The general path is not
   inlined, so that the fast path need not save registers. */
#define FAST(function, blob_type, out_type, call, in_place)                                        \
    __attribute__((noinline)) static ACCESS(function##_anyhow, blob_type, out_type, call)          \
        sb_status                                                                                  \
        function(blob_type *blob, sb_part part, out_type *out, sb_error *err) {                    \
        if (blob && out) {                                                                         \
            const sb_mem *mem = sb__blob_memory_or_none(blob, part);                               \
            if (in_place(mem)) {                                                                   \
                *out = mem->side[SB_SIDE_CPU].ptr;                                                 \
                return SB_OK;                                                                      \
            }                                                                                      \
        }                                                                                          \
        return function##_anyhow(blob, part, out, err);                                            \
    }

FAST(sb_blob_cpu, const sb_blob, const void *, sb_mem_cpu, sb__is_read_at_host)
FAST(sb_blob_mutable_cpu, sb_blob, void *, sb_mem_mutable_cpu, sb__is_written_at_host)
ACCESS(sb_blob_overwrite_cpu, sb_blob, void *, sb_mem_overwrite_cpu)
ACCESS(sb_blob_gpu, const sb_blob, const void *, sb_mem_gpu)
ACCESS_ON(sb_blob_gpu_on, const sb_blob, const void *, sb_mem_gpu_on)
ACCESS(sb_blob_mutable_gpu, sb_blob, void *, sb_mem_mutable_gpu)
ACCESS_ON(sb_blob_mutable_gpu_on, sb_blob, void *, sb_mem_mutable_gpu_on)
ACCESS(sb_blob_overwrite_gpu, sb_blob, void *, sb_mem_overwrite_gpu)
ACCESS_ON(sb_blob_overwrite_gpu_on, sb_blob, void *, sb_mem_overwrite_gpu_on)

sb_status sb_blob_mem(const sb_blob *blob, sb_part part, const sb_mem **out, sb_error *err) {
    sb_mem *mem;
    sb_status st = memory_for(blob, part, out, &mem, err);
    if (st == SB_OK)
        *out = mem;
    return st;
}

sb_status sb_blob_mutable_mem(sb_blob *blob, sb_part part, sb_mem **out, sb_error *err) {
    return memory_for(blob, part, out, out, err);
}

int64_t sb_blob_capacity(const sb_blob *blob, sb_part part) {
    const sb_mem *mem = blob ? sb__blob_peek(blob, part) : NULL;
    return mem ? (int64_t)(mem->bytes / blob->element_size) : 0;
}

sb_status sb_blob_clear(sb_blob *blob, sb_part part, sb_error *err) {
    if (!blob)
        return sb__fail_null(err, "blob");
    struct sb__retired retired = {NULL, NULL};
    sb_status st = sb__check_part(part, err);
    if (st != SB_OK)
        return st;
    sb_mem *mem = sb__blob_peek(blob, part);
    if (mem)
        st = sb__mem_clear(mem, sb__blob_bytes(blob), &retired, err);
    sb__retired_end(&retired);
    return st;
}
