/* Tests DLPack tensors on a device and in page-locked memory. */
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

TEST_ON(stage, tensors_have_the_device_of_their_memory) {
    sb_blob *blob = blob_filled(f->context, 0x21);
    for (int i = 0; i < 2; i++) {
        sb_dl_managed_versioned *tensor = exported(blob, i ? SB_SIDE_GPU : SB_SIDE_CPU);
        assert_int_equal(tensor->dl_tensor.device.device_type,
                         i ? SB_DL_DEVICE_CUDA : SB_DL_DEVICE_CUDA_HOST);
        assert_int_equal(tensor->dl_tensor.device.device_id, 0);
        assert_true(i ? device_holds(tensor->dl_tensor.data, BYTES, 0x21)
                      : bytes_are(tensor->dl_tensor.data, BYTES, 0x21));
        tensor->deleter(tensor);
    }
}

TEST_ON(stage, ordinary_memory_is_the_hosts) {
    sb_context *context =
        test_context(CONTEXT_OPTIONS(.device = "cuda:0", .flags = SB_CONTEXT_NO_PINNED));
    sb_dl_managed_versioned *tensor = exported(blob_filled(context, 1), SB_SIDE_CPU);
    assert_int_equal(tensor->dl_tensor.device.device_type, SB_DL_DEVICE_CPU);
    tensor->deleter(tensor);
}

/* The tensor's bytes remain until the deleter runs, even after the device copy is evicted and the
   blob is destroyed. */
TEST_ON(stage, a_tensor_keeps_device_memory) {
    sb_blob *blob = blob_filled(f->context, 0x33);
    sb_dl_managed_versioned *tensor = exported(blob, SB_SIDE_GPU);
    void *data = blob_pointer(blob, SB_DATA, MUTABLE_CPU);
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

/* --- tensors of other programs --------------------------------------------------------------- */

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

TEST_ON(stage, device_memory_of_others_is_used_in_place) {
    struct foreign foreign;
    sb_blob *blob;
    void *theirs = device_make(BYTES);
    queue_fill(NULL, theirs, 0x3F, BYTES); /* the library waits for the legacy default stream */
    foreign_make(&foreign, theirs, SB_DL_DEVICE_CUDA);
    assert_ok(sb_blob_create_from_dlpack(f->context, &foreign.tensor, &blob, &err));
    assert_true(bytes_are(blob_pointer(blob, SB_DATA, CPU_DATA), BYTES, 0x3F));
    void *out = blob_pointer(blob, SB_DATA, MUTABLE_GPU);
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
    assert_true(device_holds(mem_pointer(mem, GPU_DATA), BYTES, 0x29));
    sb_blob_destroy(blob);
    assert_int_equal(foreign.ended, 1);
    host->deleter(host);
}

/* Memory that consists of several mapped pages, like PyTorch's expandable segments. */
struct mapped {
    sb__cu_ptr ptr;
    size_t page;
};

static void end_mapped(void *user) {
    const struct mapped *mapped = user;
    cu_ok(cuMemUnmap(mapped->ptr, 2 * mapped->page));
    cu_ok(cuMemAddressFree(mapped->ptr, 3 * mapped->page));
}

/* Maps two pages; the addresses behind them are only reserved. */
static void map(struct mapped *mapped) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    prop.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    cu_ok(cuMemGetAllocationGranularity(&mapped->page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    cu_ok(cuMemAddressReserve(&mapped->ptr, 3 * mapped->page, 0, 0, 0));
    for (size_t i = 0; i < 2; i++) {
        CUmemGenericAllocationHandle handle;
        cu_ok(cuMemCreate(&handle, mapped->page, &prop, 0));
        cu_ok(cuMemMap(mapped->ptr + i * mapped->page, mapped->page, 0, handle, 0));
        cu_ok(cuMemRelease(handle));
    }
    cu_ok(cuMemSetAccess(mapped->ptr, 2 * mapped->page, &access, 1));
    test_own_loan(mapped, end_mapped);
}

TEST_ON(stage, mapped_memory_is_used_in_place) {
    static struct mapped mapped;
    void *out;
    map(&mapped);
    for (size_t pages = 1; pages <= 2; pages++) { /* first across the mappings, then beyond them */
        char *at = (char *)(uintptr_t)mapped.ptr + pages * mapped.page - BYTES / 2;
        sb_mem *mem = test_mem(f->context, BYTES);
        const sb_status st = sb_mem_set_gpu(mem, at, BYTES, 0, NULL, NULL, &err);
        assert_int_equal(st, pages == 1 ? SB_OK : SB_ERR_WRONG_DEVICE);
        if (st != SB_OK)
            continue;
        assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
        assert_ptr_equal(out, at);
        queue_fill(NULL, out, 0x17, BYTES);
        assert_true(host_holds(mem, 0x17));
        test_end(mem);
    }
}
