#include "base/checked.h"
#include "base/error.h"
#include "blob/blob.h"
#include "dlpack/export.h"
#include "dlpack/types.h"
#include "memory/lease.h"
#include "memory/mem.h"

/* The checked properties of a tensor to import. */
struct import {
    int32_t dtype;
    struct sb__shape shape;
    int32_t side;
    void *ptr;
    size_t bytes;
    uint32_t flags; /* the argument `flags` of sb_mem_set_cpu or sb_mem_set_gpu */
    sb_deleter deleter;
    void *tensor;
    struct sb__export *own; /* the struct of the tensor if this copy of the library has exported the
                               tensor, else NULL */
};

static void end_versioned(void *tensor, void *ptr) {
    sb_dl_managed_versioned *t = tensor;
    (void)ptr;
    if (t->deleter)
        t->deleter(t);
}

static void end_legacy(void *tensor, void *ptr) {
    sb_dl_managed *t = tensor;
    (void)ptr;
    if (t->deleter)
        t->deleter(t);
}

static sb_status read_dtype(const sb_dl_tensor *t, struct import *out, sb_error *err) {
    out->dtype = sb__dl_dtype(t->dtype);
    if (out->dtype)
        return SB_OK;
    return sb__fail(err, SB_ERR_UNSUPPORTED,
                    "no blob holds elements of type code %d with %d bits and %d lanes",
                    t->dtype.code, t->dtype.bits, t->dtype.lanes);
}

static sb_status check_strides(const sb_dl_tensor *t, const struct sb__shape *shape,
                               sb_error *err) {
    int64_t expected = 1; /* cannot overflow, because the count fits */
    if (!t->strides || !shape->count)
        return SB_OK;
    for (int32_t i = shape->num_axes - 1; i >= 0; i--) {
        if (shape->dims[i] != 1 && t->strides[i] != expected)
            return sb__fail(err, SB_ERR_UNSUPPORTED,
                            "axis %d has the stride %lld, row-major order needs %lld", i,
                            (long long)t->strides[i], (long long)expected);
        expected *= shape->dims[i];
    }
    return SB_OK;
}

static sb_status read_shape(const sb_dl_tensor *t, struct import *out, sb_error *err) {
    size_t size = sb_dtype_size(out->dtype);
    sb_status st = sb__shape_make(&out->shape, t->shape, t->ndim, size, err);
    if (st != SB_OK)
        return st;
    out->bytes = (size_t)out->shape.count * size; /* cannot overflow: sb__shape_make has checked */
    return check_strides(t, &out->shape, err);
}

/* Returns whether the tensor can exist in memory. Its offset plus its bytes must not exceed
   PTRDIFF_MAX, the largest size of an object. The last address must not overflow. */
static bool is_addressable(const sb_dl_tensor *t, size_t bytes) {
    size_t end;
    return t->byte_offset <= (size_t)PTRDIFF_MAX - bytes &&
           sb__add_size((uintptr_t)t->data, (size_t)t->byte_offset + bytes, &end);
}

static sb_status read_pointer(const sb_dl_tensor *t, struct import *out, sb_error *err) {
    if (!out->bytes) {
        out->ptr = out->own ? out->own->lease->storage.ptr : out->tensor; /* any address but NULL */
        return SB_OK;
    }
    if (!t->data)
        return sb__fail_null(err, "the tensor's data");
    if (!is_addressable(t, out->bytes))
        return sb__fail(err, SB_ERR_SIZE_OVERFLOW,
                        "%zu bytes at the offset %llu end beyond the address space", out->bytes,
                        (unsigned long long)t->byte_offset);
    out->ptr = (char *)t->data + t->byte_offset;
    if ((uintptr_t)out->ptr % sb_dtype_size(out->dtype))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the tensor's data is not aligned for %s",
                        sb_dtype_name(out->dtype));
    return SB_OK;
}

static sb_status read_device(const sb_context *context, const sb_dl_tensor *t, struct import *out,
                             sb_error *err) {
    sb_dl_device device = t->device;
    int32_t pinned = context->backend.dlpack_pinned;
    if (device.device_type == SB_DL_DEVICE_CPU || device.device_type == SB_DL_DEVICE_CUDA_HOST ||
        (pinned && device.device_type == pinned)) {
        out->side = SB_SIDE_CPU;
        return SB_OK;
    }
    sb_status st = sb__device_check(context, err);
    if (st != SB_OK)
        return st;
    if (device.device_type != context->backend.dlpack_device ||
        device.device_id != context->ordinal)
        return sb__fail(err, SB_ERR_WRONG_DEVICE,
                        "the tensor is on device %d of type %d, the context has %s",
                        device.device_id, device.device_type, context->device_name);
    out->side = SB_SIDE_GPU;
    return SB_OK;
}

static sb_status read_tensor(const sb_context *context, const sb_dl_tensor *t, struct import *out,
                             sb_error *err) {
    sb_status st = read_dtype(t, out, err);
    if (st == SB_OK)
        st = read_shape(t, out, err);
    if (st == SB_OK)
        st = read_pointer(t, out, err);
    if (st == SB_OK)
        st = read_device(context, t, out, err);
    return st;
}

static sb_status read_versioned(const sb_context *context, sb_dl_managed_versioned *t,
                                struct import *out, sb_error *err) {
    const uint64_t known = SB_DL_READ_ONLY | SB_DL_IS_COPIED | SB_DL_SUBBYTE_PADDED;
    if (!t)
        return sb__fail_null(err, "tensor");
    if (t->version.major != SB_DL_MAJOR_VERSION)
        return sb__fail(err, SB_ERR_ABI_MISMATCH, "the tensor is of DLPack %u, not %d",
                        t->version.major, SB_DL_MAJOR_VERSION);
    if (t->flags & ~known)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "the tensor has unknown flags 0x%llx",
                        (unsigned long long)(t->flags & ~known));
    *out = (struct import){.deleter = end_versioned, .tensor = t, .own = sb__export_of(t)};
    if (t->flags & SB_DL_READ_ONLY)
        out->flags = SB_READ_ONLY;
    return read_tensor(context, &t->dl_tensor, out, err);
}

static sb_status read_legacy(const sb_context *context, sb_dl_managed *t, struct import *out,
                             sb_error *err) {
    if (!t)
        return sb__fail_null(err, "tensor");
    *out = (struct import){.deleter = end_legacy, .tensor = t, .own = sb__export_of_legacy(t)};
    return read_tensor(context, &t->dl_tensor, out, err);
}

static sb_status check_fits(const sb_blob *blob, sb_part part, const struct import *in,
                            uint32_t flags, sb_error *err) {
    if (!sb__is_part(part))
        return sb__check_part(part, err);
    if (flags & ~(uint32_t)SB_DLPACK_RESHAPE)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "unknown flags 0x%x", flags);
    if (in->dtype != blob->dtype)
        return sb__fail(err, SB_ERR_DTYPE_MISMATCH, "the tensor holds %s, the blob holds %s",
                        sb_dtype_name(in->dtype), sb_dtype_name(blob->dtype));
    if (!(flags & SB_DLPACK_RESHAPE) && !sb__shape_same(&in->shape, &blob->shape))
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH, "the shapes of tensor and blob differ");
    return SB_OK;
}

/* Sets the memory's storage. If this copy of the library has exported the tensor, keeps the lease
   of the storage instead of the tensor. Otherwise a blob that is exported and imported repeatedly
   would keep all its tensors alive. */
static sb_status set_memory(sb_mem *mem, const struct import *in, sb_error *err) {
    if (in->own)
        return sb__mem_join(mem, in->side, in->ptr, in->flags, in->own->lease, err);
    if (in->side == SB_SIDE_CPU)
        return sb_mem_set_cpu(mem, in->ptr, in->bytes, in->flags, in->deleter, in->tensor, err);
    return sb_mem_set_gpu(mem, in->ptr, in->bytes, in->flags, in->deleter, in->tensor, err);
}

/* Imports into a new memory, so that blobs that share the old memory continue to use it. */
static sb_status adopt(sb_blob *blob, sb_part part, const struct import *in, uint32_t flags,
                       sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    sb_mem *mem;
    sb_status st = check_fits(blob, part, in, flags, err);
    if (st == SB_OK)
        st = sb_mem_create(sb__context_public(blob->context), in->bytes, &mem, err);
    if (st != SB_OK)
        return st;
    st = set_memory(mem, in, err);
    if (st != SB_OK) {
        sb_mem_release(mem);
        return st;
    }
    if (in->own)
        sb__export_free(in->own);
    (void)sb__blob_take_shape(blob, &in->shape, &retired);
    sb__swap(&blob->memory[part], mem, &retired);
    sb__retired_end(&retired);
    return SB_OK;
}

sb_status sb_blob_from_dlpack(sb_blob *blob, sb_part part, sb_dl_managed_versioned *tensor,
                              uint32_t flags, sb_error *err) {
    struct import in;
    if (!blob)
        return sb__fail_null(err, "blob");
    sb_status st = read_versioned(blob->context, tensor, &in, err);
    return st == SB_OK ? adopt(blob, part, &in, flags, err) : st;
}

sb_status sb_blob_from_legacy_dlpack(sb_blob *blob, sb_part part, sb_dl_managed *tensor,
                                     uint32_t flags, sb_error *err) {
    struct import in;
    if (!blob)
        return sb__fail_null(err, "blob");
    sb_status st = read_legacy(blob->context, tensor, &in, err);
    return st == SB_OK ? adopt(blob, part, &in, flags, err) : st;
}

static sb_status create(sb_context *context, const struct import *in, sb_blob **out,
                        sb_error *err) {
    sb_blob *blob;
    sb_status st = sb_blob_create(context, in->dtype, &blob, err);
    if (st != SB_OK)
        return st;
    st = adopt(blob, SB_DATA, in, SB_DLPACK_RESHAPE, err);
    if (st == SB_OK)
        *out = blob;
    else
        sb_blob_destroy(blob);
    return st;
}

sb_status sb_blob_create_from_dlpack(sb_context *context, sb_dl_managed_versioned *tensor,
                                     sb_blob **out, sb_error *err) {
    struct import in;
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = read_versioned(sb__context(context), tensor, &in, err);
    return st == SB_OK ? create(context, &in, out, err) : st;
}

sb_status sb_blob_create_from_legacy_dlpack(sb_context *context, sb_dl_managed *tensor,
                                            sb_blob **out, sb_error *err) {
    struct import in;
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = read_legacy(sb__context(context), tensor, &in, err);
    return st == SB_OK ? create(context, &in, out, err) : st;
}
