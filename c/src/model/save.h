/* What a save writes anew, for those who write a part of it. */
#ifndef SB_MODEL_SAVE_H
#define SB_MODEL_SAVE_H

#include "model/model.h"
#include "proto/pack.h"

/* The net's name and a solver's figures, where they were set. */
void sb__save_head(const sb_model *model, struct sb__sink *sink);
/* A text or number of the file that sb__save_head writes anew. */
bool sb__save_is_in_head(const sb_model *model, const struct sb__layout *layout,
                         const struct sb__field *field);

#endif
