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

#define CALL_FOR_POINTER(noun, ...)                                                                \
    const void **in = (const void **)out;                                                          \
    switch (call) {                                                                                \
    case CPU_DATA:                                                                                 \
        return sb_##noun##_cpu(__VA_ARGS__, in, err);                                              \
    case MUTABLE_CPU:                                                                              \
        return sb_##noun##_mutable_cpu(__VA_ARGS__, out, err);                                     \
    case OVERWRITE_CPU:                                                                            \
        return sb_##noun##_overwrite_cpu(__VA_ARGS__, out, err);                                   \
    case GPU_DATA:                                                                                 \
        return sb_##noun##_gpu(__VA_ARGS__, in, err);                                              \
    case GPU_DATA_ON:                                                                              \
        return sb_##noun##_gpu_on(__VA_ARGS__, stream, in, err);                                   \
    case MUTABLE_GPU:                                                                              \
        return sb_##noun##_mutable_gpu(__VA_ARGS__, out, err);                                     \
    case MUTABLE_GPU_ON:                                                                           \
        return sb_##noun##_mutable_gpu_on(__VA_ARGS__, stream, out, err);                          \
    case OVERWRITE_GPU:                                                                            \
        return sb_##noun##_overwrite_gpu(__VA_ARGS__, out, err);                                   \
    default:                                                                                       \
        return sb_##noun##_overwrite_gpu_on(__VA_ARGS__, stream, out, err);                        \
    }

static sb_status call_for_pointer(sb_mem *mem, enum call call, sb_stream stream, void **out,
                                  sb_error *err){CALL_FOR_POINTER(mem, mem)}

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

sb_status blob_call(sb_blob *blob, sb_part part, enum call call, sb_stream stream, void **out,
                    sb_error *err) {
    CALL_FOR_POINTER(blob, blob, part)
}
