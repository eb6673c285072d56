/* The contestant of linked.h. */
#include "linked.h"

#include "../harness.h"
#include "caffe.h"

#include <syncblob/syncblob.h>

#include <stdlib.h>

static void *create(void) {
    sb_blob *blob;
    void *data;
    if (sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 3, 4, 5, &blob, NULL) != SB_OK)
        return NULL;
    if (sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL) == SB_OK)
        return blob;
    sb_blob_destroy(blob);
    return NULL;
}

static void destroy(void *blob) {
    sb_blob_destroy(blob);
}

static void access_data(void *blob) {
    const void *data;
    for (int i = 0; i < CALLS; i++) {
        if (sb_blob_cpu(blob, SB_DATA, &data, NULL) != SB_OK)
            abort();
        keep(data);
    }
}

/* The only export: see linked.map. */
__attribute__((visibility("default"))) extern const struct linked_peer linked_peer;
const struct linked_peer linked_peer = {create, destroy, access_data};
