#include "dlpack/export.h"

#include "base/checked.h"
#include "base/error.h"
#include "blob/blob.h"
#include "dlpack/types.h"
#include "memory/lease.h"
#include "memory/mem.h"

void sb__export_free(struct sb__export *e) {
    sb_context *context = e->context;
    sb__object_free(context, e, e->bytes);
    sb_context_release(context);
}

static void end(struct sb__export *e) {
    struct sb__lease *lease = e->lease;
    sb__export_free(e);
    sb__lease_release(lease, 0);
}

static void end_versioned(sb_dl_managed_versioned *self) {
    end(self->manager_ctx);
}

static void end_legacy(sb_dl_managed *self) {
    end(self->manager_ctx);
}

struct sb__export *sb__export_of(const sb_dl_managed_versioned *tensor) {
    return tensor->deleter == end_versioned ? tensor->manager_ctx : NULL;
}

struct sb__export *sb__export_of_legacy(const sb_dl_managed *tensor) {
    return tensor->deleter == end_legacy ? tensor->manager_ctx : NULL;
}

static sb_status check(const sb_blob *blob, sb_part part, int32_t side, const void *out,
                       sb_error *err) {
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    if (side != SB_SIDE_CPU && side != SB_SIDE_GPU)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%d is not a side", side);
    if (!sb__is_part(part))
        return sb__check_part(part, err);
    if (!sb_blob_is_shaped(blob))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the blob was never shaped");
    if (side == SB_SIDE_CPU)
        return SB_OK;
    sb_status st = sb__device_check(blob->context, err);
    if (st == SB_OK && !blob->context->backend.dlpack_device)
        st = sb__fail(err, SB_ERR_UNSUPPORTED, "%s has no device type in DLPack",
                      blob->context->device_name);
    return st;
}

/* Makes the bytes on `side` current and, if `for_writing`, moves the head to `side`. */
static sb_status make_current(sb_mem *mem, int32_t side, bool for_writing, void **out,
                              struct sb__retired *retired, sb_error *err) {
    const void *read = NULL;
    if (for_writing)
        return sb__write_side(mem, side, out, retired, err);
    sb_status st = sb__read_side(mem, side, &read, retired, err);
    *out = (void *)read;
    return st;
}

static sb_dl_device device_of(const struct sb__lease *lease, int32_t side) {
    const sb_context *context = lease->context;
    sb_dl_device device = {.device_type = SB_DL_DEVICE_CPU};
    if (side == SB_SIDE_GPU) {
        device.device_type = context->backend.dlpack_device;
        device.device_id = context->ordinal;
    } else if (lease->storage.kind == SB_STORAGE_PINNED && context->backend.dlpack_pinned) {
        device.device_type = context->backend.dlpack_pinned;
    }
    return device;
}

/* Fills in row-major strides. In a shape without elements a product may overflow: the stride is
   then the last product that fits. */
static void fill_dims(const struct sb__shape *shape, int64_t *dims, int64_t *strides) {
    int64_t stride = 1;
    for (int32_t i = shape->num_axes - 1; i >= 0; i--) {
        int64_t next;
        dims[i] = shape->dims[i];
        strides[i] = stride;
        if (dims[i] > 1 && sb__mul_i64(stride, dims[i], &next))
            stride = next;
    }
}

static sb_dl_tensor describe(const sb_blob *blob, struct sb__export *e, void *data) {
    int32_t axes = blob->shape.num_axes;
    fill_dims(&blob->shape, e->dims, e->dims + axes);
    return (sb_dl_tensor){
        .data = blob->shape.count ? data : NULL,
        .device = device_of(e->lease, e->side),
        .ndim = axes,
        .dtype = sb__dl_type_of(blob->dtype),
        .shape = e->dims,
        .strides = e->dims + axes,
    };
}

/* Allocates the export, makes the bytes current on `side` and takes a lease of the storage. All
   other steps that can fail come first, because making the bytes current moves the head. */
static sb_status acquire(const sb_blob *blob, sb_part part, int32_t side, bool for_writing,
                         struct sb__export **out, void **data, struct sb__retired *retired,
                         sb_error *err) {
    size_t bytes = sizeof(struct sb__export) + 2 * (size_t)blob->shape.num_axes * sizeof(int64_t);
    struct sb__lease *lease = NULL;
    void *object;
    sb_mem *mem;
    sb_status st = sb__object_alloc(blob->context, bytes, &object, err);
    if (st != SB_OK)
        return st;
    st = sb__blob_memory(blob, part, &mem, err);
    if (st == SB_OK)
        st = sb__lease_prepare(mem, &lease, err);
    if (st == SB_OK)
        st = make_current(mem, side, for_writing, data, retired, err);
    if (st != SB_OK) {
        if (lease)
            sb__lease_discard(lease);
        sb__object_free(blob->context, object, bytes);
        return st;
    }
    struct sb__export *e = object;
    e->bytes = bytes;
    e->context = sb_context_retain(blob->context);
    e->lease = sb__lease_take(mem, side, lease);
    e->side = side;
    *out = e;
    return SB_OK;
}

static sb_status to_versioned(const sb_blob *blob, sb_part part, int32_t side, bool for_writing,
                              sb_dl_managed_versioned **out, sb_error *err) {
    struct sb__export *e;
    struct sb__retired retired = {NULL, NULL};
    void *data;
    sb_status st = check(blob, part, side, out, err);
    if (st == SB_OK)
        st = acquire(blob, part, side, for_writing, &e, &data, &retired, err);
    if (st != SB_OK)
        return st;
    e->tensor.versioned = (sb_dl_managed_versioned){
        .version = {SB_DL_MAJOR_VERSION, SB_DL_MINOR_VERSION},
        .manager_ctx = e,
        .deleter = end_versioned,
        .flags = for_writing ? 0 : SB_DL_READ_ONLY,
        .dl_tensor = describe(blob, e, data),
    };
    *out = &e->tensor.versioned;
    sb__retired_end(&retired);
    return SB_OK;
}

sb_status sb_blob_to_dlpack(const sb_blob *blob, sb_part part, sb_side side,
                            sb_dl_managed_versioned **out, sb_error *err) {
    return to_versioned(blob, part, side, false, out, err);
}

sb_status sb_blob_to_mutable_dlpack(sb_blob *blob, sb_part part, sb_side side,
                                    sb_dl_managed_versioned **out, sb_error *err) {
    return to_versioned(blob, part, side, true, out, err);
}

sb_status sb_blob_to_legacy_dlpack(sb_blob *blob, sb_part part, sb_side side, sb_dl_managed **out,
                                   sb_error *err) {
    struct sb__export *e;
    struct sb__retired retired = {NULL, NULL};
    void *data;
    sb_status st = check(blob, part, side, out, err);
    if (st == SB_OK)
        st = acquire(blob, part, side, true, &e, &data, &retired, err);
    if (st != SB_OK)
        return st;
    e->tensor.legacy = (sb_dl_managed){
        .dl_tensor = describe(blob, e, data),
        .manager_ctx = e,
        .deleter = end_legacy,
    };
    *out = &e->tensor.legacy;
    sb__retired_end(&retired);
    return SB_OK;
}
