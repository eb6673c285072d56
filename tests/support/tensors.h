/* A DLPack tensor whose memory the test lends; other programs pass such tensors to the library. The
   tensor's deleters count their calls. */
#ifndef SB_TESTS_TENSORS_H
#define SB_TESTS_TENSORS_H

#include "rig.h"

#include <syncblob/dlpack.h>

struct tensor {
    sb_dl_managed_versioned versioned;
    sb_dl_managed legacy; /* the same tensor */
    int64_t shape[SB_MAX_AXES + 1], strides[SB_MAX_AXES + 1];
    struct lent lent;
    int deleted; /* number of calls of both structs' deleters */
};

/* Makes a tensor of 2 x 3 floats 1, 2, ... on the host, writable, with strides. */
void tensor_make(struct tensor *tensor);
/* Makes a tensor of 2 x 3 floats in memory of device 0 of `device_type`; all bytes are `fill`. */
void tensor_make_on(struct tensor *tensor, sb_context *context, int32_t device_type, int fill);
/* Copies the test's changes in `versioned` to `legacy`. */
void tensor_match(struct tensor *tensor);

/* Calls after which the host bytes of a blob's data are retired: the bytes are not current, or they
   no longer exist. */
enum { RETIRINGS = 5 };
extern void (*const retirings[RETIRINGS])(sb_blob *blob);

#endif
