/* The layout of every struct of the public headers, written out a second time: callers were
   compiled with it. It is checked by compiling this file; check_layouts.py sees that nothing is
   missing. How a struct may grow: c/abi/README.md. */
#include <syncblob/backend.h>
#include <syncblob/comm_engine.h>
#include <syncblob/cuda_device.h>
#include <syncblob/dlpack.h>
#include <syncblob/net.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>
#include <syncblob/sim_device.h>
#include <syncblob/syncblob.h>

#include <stddef.h>

#define STRUCT(type, bytes, alignment)                                                             \
    _Static_assert(sizeof(type) == (bytes), "size of " #type);                                     \
    _Static_assert(_Alignof(type) == (alignment), "alignment of " #type)
#define MEMBER(type, member, from, bytes)                                                          \
    _Static_assert(offsetof(type, member) == (from), "offset of " #type "." #member);              \
    _Static_assert(sizeof(((type *)0)->member) == (bytes), "size of " #type "." #member)

STRUCT(sb_backend, 256, 8);
MEMBER(sb_backend, struct_size, 0, 8);
MEMBER(sb_backend, abi_version, 8, 4);
MEMBER(sb_backend, flags, 12, 4);
MEMBER(sb_backend, name, 16, 8);
MEMBER(sb_backend, user, 24, 8);
MEMBER(sb_backend, open, 32, 8);
MEMBER(sb_backend, close, 40, 8);
MEMBER(sb_backend, alloc, 48, 8);
MEMBER(sb_backend, free, 56, 8);
MEMBER(sb_backend, zero, 64, 8);
MEMBER(sb_backend, upload, 72, 8);
MEMBER(sb_backend, download, 80, 8);
MEMBER(sb_backend, copy, 88, 8);
MEMBER(sb_backend, alloc_pinned, 96, 8);
MEMBER(sb_backend, free_pinned, 104, 8);
MEMBER(sb_backend, check_pointer, 112, 8);
MEMBER(sb_backend, own_stream, 120, 8);
MEMBER(sb_backend, check_stream, 128, 8);
MEMBER(sb_backend, stream_synchronize, 136, 8);
MEMBER(sb_backend, event_record, 144, 8);
MEMBER(sb_backend, stream_wait, 152, 8);
MEMBER(sb_backend, event_wait, 160, 8);
MEMBER(sb_backend, event_destroy, 168, 8);
MEMBER(sb_backend, prepare_arithmetic, 176, 8);
MEMBER(sb_backend, axpy, 184, 8);
MEMBER(sb_backend, scale, 192, 8);
MEMBER(sb_backend, asum, 200, 8);
MEMBER(sb_backend, sumsq, 208, 8);
MEMBER(sb_backend, dlpack_device, 216, 4);
MEMBER(sb_backend, dlpack_pinned, 220, 4);
MEMBER(sb_backend, trim, 224, 8);
MEMBER(sb_backend, after_default, 232, 8);
MEMBER(sb_backend, event_query, 240, 8);
MEMBER(sb_backend, extension, 248, 8);

STRUCT(sb_allocator, 24, 8);
MEMBER(sb_allocator, alloc, 0, 8);
MEMBER(sb_allocator, free, 8, 8);
MEMBER(sb_allocator, user, 16, 8);

STRUCT(sb_limits, 48, 8);
MEMBER(sb_limits, struct_size, 0, 8);
MEMBER(sb_limits, max_memory, 8, 8);
MEMBER(sb_limits, max_layers, 16, 8);
MEMBER(sb_limits, max_blobs, 24, 8);
MEMBER(sb_limits, max_name_bytes, 32, 8);
MEMBER(sb_limits, max_axes, 40, 8);

STRUCT(sb_context_options, 112, 8);
MEMBER(sb_context_options, struct_size, 0, 8);
MEMBER(sb_context_options, flags, 8, 4);
MEMBER(sb_context_options, reserved, 12, 4);
MEMBER(sb_context_options, device, 16, 8);
MEMBER(sb_context_options, backend, 24, 8);
MEMBER(sb_context_options, allocator, 32, 24);
MEMBER(sb_context_options, limits, 56, 8);
MEMBER(sb_context_options, max_host_bytes, 64, 8);
MEMBER(sb_context_options, max_device_bytes, 72, 8);
MEMBER(sb_context_options, max_pinned_bytes, 80, 8);
MEMBER(sb_context_options, max_cache_bytes, 88, 8);
MEMBER(sb_context_options, parallel_for, 96, 8);
MEMBER(sb_context_options, parallel_for_user, 104, 8);

STRUCT(sb_stats, 152, 8);
MEMBER(sb_stats, struct_size, 0, 8);
MEMBER(sb_stats, host_bytes, 8, 8);
MEMBER(sb_stats, host_peak, 16, 8);
MEMBER(sb_stats, pinned_bytes, 24, 8);
MEMBER(sb_stats, pinned_peak, 32, 8);
MEMBER(sb_stats, device_bytes, 40, 8);
MEMBER(sb_stats, device_peak, 48, 8);
MEMBER(sb_stats, borrowed_bytes, 56, 8);
MEMBER(sb_stats, cached_bytes, 64, 8);
MEMBER(sb_stats, uploads, 72, 8);
MEMBER(sb_stats, upload_bytes, 80, 8);
MEMBER(sb_stats, downloads, 88, 8);
MEMBER(sb_stats, download_bytes, 96, 8);
MEMBER(sb_stats, device_copies, 104, 8);
MEMBER(sb_stats, device_copy_bytes, 112, 8);
MEMBER(sb_stats, host_copies, 120, 8);
MEMBER(sb_stats, host_copy_bytes, 128, 8);
MEMBER(sb_stats, quarantined_bytes, 136, 8);
MEMBER(sb_stats, leaked_bytes, 144, 8);

STRUCT(sb_dl_version, 8, 4);
MEMBER(sb_dl_version, major, 0, 4);
MEMBER(sb_dl_version, minor, 4, 4);

STRUCT(sb_dl_device, 8, 4);
MEMBER(sb_dl_device, device_type, 0, 4);
MEMBER(sb_dl_device, device_id, 4, 4);

STRUCT(sb_dl_data_type, 4, 2);
MEMBER(sb_dl_data_type, code, 0, 1);
MEMBER(sb_dl_data_type, bits, 1, 1);
MEMBER(sb_dl_data_type, lanes, 2, 2);

STRUCT(sb_dl_tensor, 48, 8);
MEMBER(sb_dl_tensor, data, 0, 8);
MEMBER(sb_dl_tensor, device, 8, 8);
MEMBER(sb_dl_tensor, ndim, 16, 4);
MEMBER(sb_dl_tensor, dtype, 20, 4);
MEMBER(sb_dl_tensor, shape, 24, 8);
MEMBER(sb_dl_tensor, strides, 32, 8);
MEMBER(sb_dl_tensor, byte_offset, 40, 8);

STRUCT(sb_dl_managed_versioned, 80, 8);
MEMBER(sb_dl_managed_versioned, version, 0, 8);
MEMBER(sb_dl_managed_versioned, manager_ctx, 8, 8);
MEMBER(sb_dl_managed_versioned, deleter, 16, 8);
MEMBER(sb_dl_managed_versioned, flags, 24, 8);
MEMBER(sb_dl_managed_versioned, dl_tensor, 32, 48);

STRUCT(sb_dl_managed, 64, 8);
MEMBER(sb_dl_managed, dl_tensor, 0, 48);
MEMBER(sb_dl_managed, manager_ctx, 48, 8);
MEMBER(sb_dl_managed, deleter, 56, 8);

STRUCT(sb_filler, 64, 8);
MEMBER(sb_filler, struct_size, 0, 8);
MEMBER(sb_filler, type, 8, 4);
MEMBER(sb_filler, variance_norm, 12, 4);
MEMBER(sb_filler, value, 16, 8);
MEMBER(sb_filler, min, 24, 8);
MEMBER(sb_filler, max, 32, 8);
MEMBER(sb_filler, mean, 40, 8);
MEMBER(sb_filler, std, 48, 8);
MEMBER(sb_filler, sparse, 56, 4);
MEMBER(sb_filler, reserved, 60, 4);

STRUCT(sb_source, 48, 8);
MEMBER(sb_source, struct_size, 0, 8);
MEMBER(sb_source, user, 8, 8);
MEMBER(sb_source, size, 16, 8);
MEMBER(sb_source, read_at, 24, 8);
MEMBER(sb_source, version, 32, 8);
MEMBER(sb_source, close, 40, 8);

STRUCT(sb_sink, 24, 8);
MEMBER(sb_sink, struct_size, 0, 8);
MEMBER(sb_sink, user, 8, 8);
MEMBER(sb_sink, write, 16, 8);

STRUCT(sb_progress, 24, 8);
MEMBER(sb_progress, struct_size, 0, 8);
MEMBER(sb_progress, user, 8, 8);
MEMBER(sb_progress, report, 16, 8);

STRUCT(sb_span, 16, 8);
MEMBER(sb_span, bytes, 0, 8);
MEMBER(sb_span, size, 8, 8);

STRUCT(sb_text, 16, 8);
MEMBER(sb_text, bytes, 0, 8);
MEMBER(sb_text, size, 8, 8);

STRUCT(sb_layer_info, 56, 8);
MEMBER(sb_layer_info, struct_size, 0, 8);
MEMBER(sb_layer_info, name, 8, 16);
MEMBER(sb_layer_info, type, 24, 16);
MEMBER(sb_layer_info, num_blobs, 40, 8);
MEMBER(sb_layer_info, generation, 48, 4);
MEMBER(sb_layer_info, reserved, 52, 4);

STRUCT(sb_blob_info, 344, 8);
MEMBER(sb_blob_info, struct_size, 0, 8);
MEMBER(sb_blob_info, count, 8, 8);
MEMBER(sb_blob_info, data_count, 16, 8);
MEMBER(sb_blob_info, diff_count, 24, 8);
MEMBER(sb_blob_info, offset, 32, 8);
MEMBER(sb_blob_info, size, 40, 8);
MEMBER(sb_blob_info, dtype, 48, 4);
MEMBER(sb_blob_info, legacy, 52, 4);
MEMBER(sb_blob_info, num_axes, 56, 4);
MEMBER(sb_blob_info, diff_dtype, 60, 4);
MEMBER(sb_blob_info, data_offset, 64, 8);
MEMBER(sb_blob_info, diff_offset, 72, 8);
MEMBER(sb_blob_info, data_encoding, 80, 4);
MEMBER(sb_blob_info, diff_encoding, 84, 4);
MEMBER(sb_blob_info, shape, 88, 256);

STRUCT(sb_solver_info, 32, 8);
MEMBER(sb_solver_info, struct_size, 0, 8);
MEMBER(sb_solver_info, learned_net, 8, 16);
MEMBER(sb_solver_info, iter, 24, 4);
MEMBER(sb_solver_info, current_step, 28, 4);

STRUCT(sb_error, 256, 8);
MEMBER(sb_error, code, 0, 4);
MEMBER(sb_error, device_code, 4, 4);
MEMBER(sb_error, offset, 8, 8);
MEMBER(sb_error, message, 16, 240);

STRUCT(sb_comm_buffer, 32, 8);
MEMBER(sb_comm_buffer, ptr, 0, 8);
MEMBER(sb_comm_buffer, count, 8, 8);
MEMBER(sb_comm_buffer, dtype, 16, 4);
MEMBER(sb_comm_buffer, reserved, 20, 4);
MEMBER(sb_comm_buffer, context, 24, 8);

STRUCT(sb_comm_engine, 104, 8);
MEMBER(sb_comm_engine, struct_size, 0, 8);
MEMBER(sb_comm_engine, abi_version, 8, 4);
MEMBER(sb_comm_engine, flags, 12, 4);
MEMBER(sb_comm_engine, name, 16, 8);
MEMBER(sb_comm_engine, open, 24, 8);
MEMBER(sb_comm_engine, close, 32, 8);
MEMBER(sb_comm_engine, all_reduce, 40, 8);
MEMBER(sb_comm_engine, broadcast, 48, 8);
MEMBER(sb_comm_engine, barrier, 56, 8);
MEMBER(sb_comm_engine, takes, 64, 8);
MEMBER(sb_comm_engine, start, 72, 8);
MEMBER(sb_comm_engine, test, 80, 8);
MEMBER(sb_comm_engine, wait, 88, 8);
MEMBER(sb_comm_engine, abandon, 96, 8);

STRUCT(sb_sim_fault, 16, 8);
MEMBER(sb_sim_fault, op, 0, 4);
MEMBER(sb_sim_fault, mode, 4, 4);
MEMBER(sb_sim_fault, countdown, 8, 8);

STRUCT(sb_cuda_device, 8, 8);
MEMBER(sb_cuda_device, ordinal, 0, 8);

STRUCT(sb_sim_device, 96, 8);
MEMBER(sb_sim_device, struct_size, 0, 8);
MEMBER(sb_sim_device, lock, 8, 8);
MEMBER(sb_sim_device, unlock, 16, 8);
MEMBER(sb_sim_device, set_schedule, 24, 8);
MEMBER(sb_sim_device, faults, 32, 8);
MEMBER(sb_sim_device, calls, 40, 8);
MEMBER(sb_sim_device, stream_create, 48, 8);
MEMBER(sb_sim_device, stream_destroy, 56, 8);
MEMBER(sb_sim_device, launch, 64, 8);
MEMBER(sb_sim_device, alloc, 72, 8);
MEMBER(sb_sim_device, free, 80, 8);
MEMBER(sb_sim_device, address, 88, 8);

STRUCT(sb_sim_comm_options, 24, 8);
MEMBER(sb_sim_comm_options, struct_size, 0, 8);
MEMBER(sb_sim_comm_options, seed, 8, 8);
MEMBER(sb_sim_comm_options, delay_microseconds, 16, 4);
MEMBER(sb_sim_comm_options, limit_milliseconds, 20, 4);

STRUCT(sb_reducer_options, 24, 8);
MEMBER(sb_reducer_options, struct_size, 0, 8);
MEMBER(sb_reducer_options, part, 8, 4);
MEMBER(sb_reducer_options, op, 12, 4);
MEMBER(sb_reducer_options, bucket_bytes, 16, 8);

STRUCT(sb_net_blob, 32, 8);
MEMBER(sb_net_blob, name, 0, 16);
MEMBER(sb_net_blob, shape, 16, 8);
MEMBER(sb_net_blob, num_axes, 24, 4);
MEMBER(sb_net_blob, reserved, 28, 4);

STRUCT(sb_net_options, 80, 8);
MEMBER(sb_net_options, struct_size, 0, 8);
MEMBER(sb_net_options, inputs, 8, 8);
MEMBER(sb_net_options, num_inputs, 16, 8);
MEMBER(sb_net_options, stages, 24, 8);
MEMBER(sb_net_options, num_stages, 32, 8);
MEMBER(sb_net_options, batch, 40, 8);
MEMBER(sb_net_options, level, 48, 4);
MEMBER(sb_net_options, max_depth, 52, 4);
MEMBER(sb_net_options, max_bytes, 56, 8);
MEMBER(sb_net_options, max_layers, 64, 8);
MEMBER(sb_net_options, max_fields, 72, 8);

STRUCT(sb_net_summary, 80, 8);
MEMBER(sb_net_summary, struct_size, 0, 8);
MEMBER(sb_net_summary, name, 8, 16);
MEMBER(sb_net_summary, inputs, 24, 8);
MEMBER(sb_net_summary, num_inputs, 32, 8);
MEMBER(sb_net_summary, outputs, 40, 8);
MEMBER(sb_net_summary, num_outputs, 48, 8);
MEMBER(sb_net_summary, warnings, 56, 8);
MEMBER(sb_net_summary, num_warnings, 64, 8);
MEMBER(sb_net_summary, num_layers, 72, 8);

STRUCT(sb_net_layer, 72, 8);
MEMBER(sb_net_layer, struct_size, 0, 8);
MEMBER(sb_net_layer, name, 8, 16);
MEMBER(sb_net_layer, type, 24, 16);
MEMBER(sb_net_layer, bottoms, 40, 8);
MEMBER(sb_net_layer, num_bottoms, 48, 8);
MEMBER(sb_net_layer, tops, 56, 8);
MEMBER(sb_net_layer, num_tops, 64, 8);

STRUCT(sb_onnx_entry, 32, 8);
MEMBER(sb_onnx_entry, key, 0, 16);
MEMBER(sb_onnx_entry, value, 16, 16);

STRUCT(sb_net_problem, 56, 8);
MEMBER(sb_net_problem, struct_size, 0, 8);
MEMBER(sb_net_problem, layer, 8, 16);
MEMBER(sb_net_problem, type, 24, 16);
MEMBER(sb_net_problem, reason, 40, 16);

STRUCT(sb_onnx_options, 136, 8);
MEMBER(sb_onnx_options, struct_size, 0, 8);
MEMBER(sb_onnx_options, outputs, 8, 8);
MEMBER(sb_onnx_options, num_outputs, 16, 8);
MEMBER(sb_onnx_options, batch, 24, 16);
MEMBER(sb_onnx_options, mean, 40, 8);
MEMBER(sb_onnx_options, num_mean, 48, 8);
MEMBER(sb_onnx_options, mean_height, 56, 8);
MEMBER(sb_onnx_options, mean_width, 64, 8);
MEMBER(sb_onnx_options, scale, 72, 4);
MEMBER(sb_onnx_options, swap_rb, 76, 4);
MEMBER(sb_onnx_options, half, 80, 4);
MEMBER(sb_onnx_options, custom, 84, 4);
MEMBER(sb_onnx_options, shapes, 88, 8);
MEMBER(sb_onnx_options, num_shapes, 96, 8);
MEMBER(sb_onnx_options, metadata, 104, 8);
MEMBER(sb_onnx_options, num_metadata, 112, 8);
MEMBER(sb_onnx_options, report, 120, 8);
MEMBER(sb_onnx_options, user, 128, 8);
