#include "mem_calls.h"

const struct call_kind call_kinds[CALLS] = {
    [CPU_DATA] = {"cpu_data", READ, SB_SIDE_CPU, false, true},
    [MUTABLE_CPU] = {"mutable_cpu_data", WRITE, SB_SIDE_CPU, false, true},
    [OVERWRITE_CPU] = {"overwrite_cpu", OVERWRITE, SB_SIDE_CPU, false, true},
    [GPU_DATA] = {"gpu_data", READ, SB_SIDE_GPU, false, true},
    [GPU_DATA_ON] = {"gpu_data_on", READ, SB_SIDE_GPU, true, true},
    [MUTABLE_GPU] = {"mutable_gpu_data", WRITE, SB_SIDE_GPU, false, true},
    [MUTABLE_GPU_ON] = {"mutable_gpu_data_on", WRITE, SB_SIDE_GPU, true, true},
    [OVERWRITE_GPU] = {"overwrite_gpu", OVERWRITE, SB_SIDE_GPU, false, true},
    [OVERWRITE_GPU_ON] = {"overwrite_gpu_on", OVERWRITE, SB_SIDE_GPU, true, true},
    [SET_CPU] = {"set_cpu", SET, SB_SIDE_CPU, false, false},
    [SET_GPU] = {"set_gpu", SET, SB_SIDE_GPU, false, false},
    [ASYNC_PUSH] = {"async_gpu_push", MOVE, SB_SIDE_GPU, true, false},
    [ASYNC_PULL] = {"async_cpu_pull", MOVE, SB_SIDE_CPU, true, false},
    [PREFETCH_CPU] = {"prefetch_cpu", READ, SB_SIDE_CPU, true, false},
    [PREFETCH_GPU] = {"prefetch_gpu", READ, SB_SIDE_GPU, true, false},
    [EVICT_CPU] = {"evict_cpu", EVICT, SB_SIDE_CPU, false, false},
    [EVICT_GPU] = {"evict_gpu", EVICT, SB_SIDE_GPU, false, false},
    [CLEAR] = {"clear", WIPE, SB_SIDE_CPU, false, false},
    [SYNCHRONIZE] = {"synchronize", WAIT, SB_SIDE_CPU, false, false},
};

bool call_is_about_device(enum call call) {
    const struct call_kind *kind = &call_kinds[call];
    return kind->purpose == MOVE || (kind->side == SB_SIDE_GPU && kind->purpose != EVICT);
}

static sb_status call_for_pointer(sb_mem *mem, enum call call, sb_stream stream, void **out,
                                  sb_error *err) {
    const void **in = (const void **)out;
    switch (call) {
    case CPU_DATA:
        return sb_mem_cpu(mem, in, err);
    case MUTABLE_CPU:
        return sb_mem_mutable_cpu(mem, out, err);
    case OVERWRITE_CPU:
        return sb_mem_overwrite_cpu(mem, out, err);
    case GPU_DATA:
        return sb_mem_gpu(mem, in, err);
    case GPU_DATA_ON:
        return sb_mem_gpu_on(mem, stream, in, err);
    case MUTABLE_GPU:
        return sb_mem_mutable_gpu(mem, out, err);
    case MUTABLE_GPU_ON:
        return sb_mem_mutable_gpu_on(mem, stream, out, err);
    case OVERWRITE_GPU:
        return sb_mem_overwrite_gpu(mem, out, err);
    default:
        return sb_mem_overwrite_gpu_on(mem, stream, out, err);
    }
}

sb_status mem_call(sb_mem *mem, enum call call, const struct call_arguments *a, void **out,
                   sb_error *err) {
    switch (call) {
    case SET_CPU:
        return sb_mem_set_cpu(mem, a->ptr, a->bytes, a->flags, a->deleter, a->user, err);
    case SET_GPU:
        return sb_mem_set_gpu(mem, a->ptr, a->bytes, a->flags, a->deleter, a->user, err);
    case ASYNC_PUSH:
        return sb_mem_async_gpu_push(mem, a->stream, err);
    case ASYNC_PULL:
        return sb_mem_async_cpu_pull(mem, a->stream, err);
    case PREFETCH_CPU:
        return sb_mem_prefetch_cpu(mem, a->stream, err);
    case PREFETCH_GPU:
        return sb_mem_prefetch_gpu(mem, a->stream, err);
    case EVICT_CPU:
        return sb_mem_evict_cpu(mem, err);
    case EVICT_GPU:
        return sb_mem_evict_gpu(mem, err);
    case CLEAR:
        return sb_mem_clear(mem, err);
    case SYNCHRONIZE:
        return sb_mem_synchronize(mem, err);
    default:
        return call_for_pointer(mem, call, a->stream, out, err);
    }
}

static sb_status blob_call_on(sb_blob *blob, sb_part part, enum call call, sb_stream stream,
                              void **out, sb_error *err) {
    const void **in = (const void **)out;
    switch (call) {
    case GPU_DATA_ON:
        return sb_blob_gpu_on(blob, part, stream, in, err);
    case MUTABLE_GPU_ON:
        return sb_blob_mutable_gpu_on(blob, part, stream, out, err);
    default:
        return sb_blob_overwrite_gpu_on(blob, part, stream, out, err);
    }
}

sb_status blob_call(sb_blob *blob, sb_part part, enum call call, sb_stream stream, void **out,
                    sb_error *err) {
    const void **in = (const void **)out;
    switch (call) {
    case CPU_DATA:
        return sb_blob_cpu(blob, part, in, err);
    case MUTABLE_CPU:
        return sb_blob_mutable_cpu(blob, part, out, err);
    case OVERWRITE_CPU:
        return sb_blob_overwrite_cpu(blob, part, out, err);
    case GPU_DATA:
        return sb_blob_gpu(blob, part, in, err);
    case MUTABLE_GPU:
        return sb_blob_mutable_gpu(blob, part, out, err);
    case OVERWRITE_GPU:
        return sb_blob_overwrite_gpu(blob, part, out, err);
    default:
        return blob_call_on(blob, part, call, stream, out, err);
    }
}
