#include "tensors.h"

#include "blobs.h"
#include "pointers.h"

static void count_versioned(sb_dl_managed_versioned *self) {
    struct tensor *tensor = self->manager_ctx;
    tensor->deleted += self == &tensor->versioned ? 1 : 1000;
}

static void count_legacy(sb_dl_managed *self) {
    struct tensor *tensor = self->manager_ctx;
    tensor->deleted += self == &tensor->legacy ? 1 : 1000;
}

void tensor_match(struct tensor *tensor) {
    tensor->legacy = (sb_dl_managed){
        .dl_tensor = tensor->versioned.dl_tensor, .manager_ctx = tensor, .deleter = count_legacy};
}

static void describe(struct tensor *tensor, struct lent lent, int32_t device_type) {
    *tensor = (struct tensor){.shape = {2, 3}, .strides = {3, 1}, .lent = lent};
    tensor->versioned = (sb_dl_managed_versioned){
        .version = {1, 0},
        .manager_ctx = tensor,
        .deleter = count_versioned,
        .dl_tensor = {.data = lent.ptr,
                      .device = {.device_type = device_type},
                      .ndim = 2,
                      .dtype = {SB_DL_CODE_FLOAT, 32, 1},
                      .shape = tensor->shape,
                      .strides = tensor->strides},
    };
    tensor_match(tensor);
}

void tensor_make(struct tensor *tensor) {
    struct lent lent = lend_host(256, 0);
    for (int i = 0; i < 6; i++)
        ((float *)lent.ptr)[i] = (float)(i + 1);
    describe(tensor, lent, SB_DL_DEVICE_CPU);
}

void tensor_make_on(struct tensor *tensor, sb_context *context, int32_t device_type, int fill) {
    describe(tensor, lend_device(context, 24, fill), device_type);
}

static void reshape_grows(sb_blob *blob) {
    assert_ok(sb_blob_reshape(blob, (int64_t[]){4000}, 1, NULL, &err));
}

static void set_lends(sb_blob *blob) {
    static float other[4];
    assert_ok(sb_mem_set_cpu(data_of(blob), other, sizeof other, 0, NULL, NULL, &err));
}

static void evict_frees(sb_blob *blob) {
    (void)blob_pointer(blob, SB_DATA, GPU_DATA);
    assert_ok(sb_mem_evict_cpu(data_of(blob), &err));
}

static void reads_from_the_device_again(sb_blob *blob) {
    evict_frees(blob);
    (void)blob_pointer(blob, SB_DATA, CPU_DATA);
}

static void device_writes(sb_blob *blob) {
    device_fill(sb_blob_context(blob), blob_pointer(blob, SB_DATA, MUTABLE_GPU), 16, 0);
}

void (*const retirings[RETIRINGS])(sb_blob *) = {reshape_grows, set_lends, evict_frees,
                                                 reads_from_the_device_again, device_writes};
