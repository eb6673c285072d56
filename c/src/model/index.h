/* The index of an opened file: offsets of its layers and blobs, and its texts. The index is one
   allocation of the exact size. */
#ifndef SB_MODEL_INDEX_H
#define SB_MODEL_INDEX_H

#include "context/context.h"
#include "format/layout.h"
#include "model/names.h"

#include <syncblob/model.h>

struct sb__layer {
    const char *name, *type; /* end with a NUL; a file's texts are in the block or static */
    uint32_t name_size, type_size;
    uint32_t offset;          /* the file offset of the layer's tag */
    uint32_t first_blob : 30; /* position in sb__model_index.blobs, always below 2^30 */
    uint32_t generation : 2;  /* SB_LAYER_* */
};

struct sb__model_index {
    void *block;
    size_t block_bytes;
    struct sb__layer *layers; /* in file order */
    struct sb__names names;
    int64_t num_layers;
    uint32_t *blobs; /* offsets of the blobs' tags, in file order; NULL for a blob file */
    int64_t num_blobs;
    sb_text name;
    sb_solver_info solver;
    bool recognised; /* the file has a field that its format defines */
};

/* A check that runs before the index is allocated. If the check fails, no index is built. */
typedef sb_status sb__index_check(const struct sb__model_index *counted, const void *user,
                                  sb_error *err);

/* Checks and indexes the whole source. The caller's objects hold `held` bytes, which count towards
   limits->max_memory. */
sb_status sb__model_index_build(struct sb__model_index *out, sb_context *context, int32_t format,
                                struct sb__reader *reader, const sb_limits *limits, size_t held,
                                sb__index_check *check, const void *user, sb_error *err);
void sb__model_index_free(struct sb__model_index *index, sb_context *context);

/* Returns the number of blobs of a layer or of SB_NO_LAYER, or 0 if the layer does not exist. Sets
   `*first` to the position of the first of these blobs in index->blobs. */
int64_t sb__model_index_blobs(const struct sb__model_index *index, int32_t format, int64_t layer,
                              int64_t *first);

#endif
