/* A tensor of DLPack as another program would give it: on host memory of its
   own, with a deleter that counts. */
#ifndef SB_TESTS_TENSORS_H
#define SB_TESTS_TENSORS_H

#include "rig.h"

#include <syncblob/dlpack.h>

struct tensor {
    sb_dl_managed_versioned versioned;
    sb_dl_managed legacy; /* the same */
    int64_t shape[SB_MAX_AXES + 1], strides[SB_MAX_AXES + 1];
    struct lent lent;
    int deleted; /* of either struct */
};

/* 2 x 3 floats 1, 2, ... on the host, writable, with strides. */
void tensor_make(struct tensor *tensor);
/* The same on a device's memory, number 0 of `device_type`, its bytes all `fill`. */
void tensor_make_on(struct tensor *tensor, sb_context *context, int32_t device_type, int fill);
/* Copies what a test has changed in `versioned` to `legacy`. */
void tensor_match(struct tensor *tensor);
void tensor_free(struct tensor *tensor);

/* Calls after which the memory of a blob's data does not use, or has no more, the bytes that the
   host had. */
enum { RETIRINGS = 5 };
extern void (*const retirings[RETIRINGS])(sb_blob *blob);

#endif
