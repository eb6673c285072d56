/* Tensors of DLPack on a device and in page-locked memory. */
#include "gpu.h"

#include <string.h>
#include <syncblob/dlpack.h>

#define COUNT 1024
#define BYTES (COUNT * sizeof(float))

static sb_blob *blob_filled(sb_context *context, int value) {
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, COUNT);
    host_fill(data_of(blob), value);
    return blob;
}

static sb_dl_managed_versioned *exported(const sb_blob *blob, int32_t side) {
    sb_dl_managed_versioned *tensor;
    assert_ok(sb_blob_to_dlpack(blob, SB_DATA, side, &tensor, &err));
    return tensor;
}

static void expect_device(const sb_dl_managed_versioned *tensor, int32_t type, int32_t number) {
    assert_int_equal(tensor->dl_tensor.device.device_type, type);
    assert_int_equal(tensor->dl_tensor.device.device_id, number);
}

TEST_ON(stage, tensors_say_where_they_are) {
    sb_blob *blob = blob_filled(f->context, 0x21);
    sb_dl_managed_versioned *host = exported(blob, SB_SIDE_CPU);
    sb_dl_managed_versioned *device = exported(blob, SB_SIDE_GPU);
    expect_device(host, SB_DL_DEVICE_CUDA_HOST, 0);
    expect_device(device, SB_DL_DEVICE_CUDA, 0);
    assert_true(bytes_are(host->dl_tensor.data, BYTES, 0x21));
    assert_true(device_holds(device->dl_tensor.data, BYTES, 0x21));
    host->deleter(host);
    device->deleter(device);
}

TEST_ON(stage, ordinary_memory_is_the_hosts) {
    sb_context_options options = stage_options();
    options.flags = SB_CONTEXT_NO_PINNED;
    stage_reopen(f, &options);
    sb_blob *blob = blob_filled(f->context, 1);
    sb_dl_managed_versioned *tensor = exported(blob, SB_SIDE_CPU);
    expect_device(tensor, SB_DL_DEVICE_CPU, 0);
    tensor->deleter(tensor);
}

/* Blob and context end first; the bytes stay until the deleter. */
TEST_ON(stage, a_tensor_keeps_device_memory) {
    void *data;
    sb_blob *blob = blob_filled(f->context, 0x33);
    sb_dl_managed_versioned *tensor = exported(blob, SB_SIDE_GPU);
    assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &data, &err));
    assert_ok(sb_mem_evict_gpu(data_of(blob), &err));
    test_end(blob);
    sb_context_trim(f->context);
    sb_blob *another = blob_filled(f->context, 0x44);
    assert_ok(sb_blob_mutable_gpu(another, SB_DATA, &data, &err));
    assert_ptr_not_equal(data, tensor->dl_tensor.data);
    assert_true(device_holds(tensor->dl_tensor.data, BYTES, 0x33));
    assert_int_equal(rig_stats(&f->rig).device_bytes, 2 * BYTES);
    tensor->deleter(tensor);
    assert_int_equal(rig_stats(&f->rig).device_bytes, BYTES);
}

/* --- tensors of others ----------------------------------------------------------------------- */

struct foreign {
    sb_dl_managed_versioned tensor;
    int64_t shape, stride;
    int ended;
};

static void count_end(sb_dl_managed_versioned *self) {
    struct foreign *foreign = self->manager_ctx;
    foreign->ended++;
}

static void foreign_make(struct foreign *foreign, void *data, int32_t type) {
    *foreign = (struct foreign){.shape = COUNT, .stride = 1};
    foreign->tensor = (sb_dl_managed_versioned){
        .version = {1, 0},
        .manager_ctx = foreign,
        .deleter = count_end,
        .dl_tensor = {.data = data,
                      .device = {.device_type = type},
                      .ndim = 1,
                      .dtype = {SB_DL_CODE_FLOAT, 32, 1},
                      .shape = &foreign->shape,
                      .strides = &foreign->stride},
    };
}

TEST_ON(stage, anothers_device_memory_is_used_in_place) {
    struct foreign foreign;
    sb_blob *blob;
    const void *in;
    void *out;
    void *theirs = device_make(BYTES);
    queue_fill(NULL, theirs, 0x3F, BYTES); /* the legacy default stream's work is waited for */
    foreign_make(&foreign, theirs, SB_DL_DEVICE_CUDA);
    assert_ok(sb_blob_create_from_dlpack(f->context, &foreign.tensor, &blob, &err));
    assert_ok(sb_blob_cpu(blob, SB_DATA, &in, &err));
    assert_true(bytes_are(in, BYTES, 0x3F));
    assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, &err));
    assert_ptr_equal(out, theirs);
    queue_pause(NULL);
    queue_fill(NULL, out, 0x41, BYTES);
    sb_blob_destroy(blob);
    assert_int_equal(foreign.ended, 1);
    assert_true(device_holds(theirs, BYTES, 0x41));
}

TEST_ON(stage, page_locked_memory_of_others_is_the_hosts) {
    struct foreign foreign;
    sb_blob *blob;
    sb_blob *lender = blob_filled(f->context, 0x29);
    sb_dl_managed_versioned *host = exported(lender, SB_SIDE_CPU);
    foreign_make(&foreign, host->dl_tensor.data, SB_DL_DEVICE_CUDA_HOST);
    assert_ok(sb_blob_create_from_dlpack(f->context, &foreign.tensor, &blob, &err));
    sb_mem *mem;
    assert_ok(sb_blob_mutable_mem(blob, SB_DATA, &mem, &err));
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_BORROWED);
    assert_true(device_holds(gpu_pointer(mem), BYTES, 0x29));
    sb_blob_destroy(blob);
    assert_int_equal(foreign.ended, 1);
    host->deleter(host);
}

TEST_ON(stage, what_is_not_on_the_device_is_refused) {
    struct foreign foreign;
    sb_blob *blob = NULL;
    static float host[COUNT];
    foreign_make(&foreign, host, SB_DL_DEVICE_CUDA);
    assert_status(SB_ERR_WRONG_DEVICE,
                  sb_blob_create_from_dlpack(f->context, &foreign.tensor, &blob, &err));
    void *theirs = device_make(BYTES);
    foreign_make(&foreign, theirs, SB_DL_DEVICE_CUDA);
    foreign.tensor.dl_tensor.device.device_id = 1;
    assert_status(SB_ERR_WRONG_DEVICE,
                  sb_blob_create_from_dlpack(f->context, &foreign.tensor, &blob, &err));
    foreign.tensor.dl_tensor.device.device_id = 0;
    foreign.shape = COUNT + 1; /* beyond what was allocated */
    assert_status(SB_ERR_WRONG_DEVICE,
                  sb_blob_create_from_dlpack(f->context, &foreign.tensor, &blob, &err));
    assert_status(SB_ERR_NO_DEVICE, sb_blob_create_from_dlpack(NULL, &foreign.tensor, &blob, &err));
    assert_null(blob);
    assert_int_equal(foreign.ended, 0);
}
