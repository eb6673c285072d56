/* Defines sb_model: an index of the opened bytes, which never change, and the program's edits. */
#ifndef SB_MODEL_MODEL_H
#define SB_MODEL_MODEL_H

#include "model/edits.h"
#include "model/index.h"
#include "model/texts.h"

/* The size of sb_solver_info in version 0.1. */
#define SB__FIRST_SOLVER_INFO_SIZE (offsetof(sb_solver_info, current_step) + sizeof(int32_t))

struct sb__own_text {
    char *bytes; /* an allocation of size + 1 bytes; NULL if the text was never set */
    size_t size;
};

struct sb_model {
    sb_context *context;
    int32_t format;
    sb_limits limits; /* limits for reading the model's bytes */
    struct sb__source source;
    sb_deleter deleter; /* frees the source's bytes; may be NULL */
    void *deleter_user;
    sb_progress progress; /* receives the progress of calls; `report` may be NULL */
    struct sb__model_index index;

    struct sb__edits edits;
    struct sb__layer *new_layers; /* layers that the program added, numbered after the index's
                                     layers, in one block with the slots of new_names */
    struct sb__names new_names;   /* the table of the names of new_layers */
    struct sb__texts new_texts;   /* names and types of new_layers, each with a NUL */
    int64_t num_new_layers, room_new_layers;
    size_t new_layers_bytes; /* the size of the block of new_layers */
    struct sb__own_text name;
    bool solver_set;
    sb_solver_info solver; /* solver.learned_net points to the bytes of learned_net */
    struct sb__own_text learned_net;
};

/* Returns the number of blobs of a layer or of SB_NO_LAYER, or 0 if the layer does not exist. */
int64_t sb__num_blobs(const sb_model *model, int64_t layer);
/* Returns whether the layer exists. Returns false for SB_NO_LAYER. */
bool sb__has_layer(const sb_model *model, int64_t layer);
/* Both functions return INDEX_OUT_OF_RANGE. sb__fail_layer reports a missing layer, and
   sb__fail_blob a missing blob or layer. */
sb_status sb__fail_layer(const sb_model *model, int64_t layer, sb_error *err);
sb_status sb__fail_blob(const sb_model *model, int64_t layer, int64_t index, sb_error *err);

void sb__edit_free(const struct sb__edit *edit, sb_context *context);
void sb__own_text_free(struct sb__own_text *text, sb_context *context);
void sb__new_layers_free(sb_model *model);

#endif
