/* Saves the texts and numbers that the program has changed. */
#ifndef SB_MODEL_SAVE_H
#define SB_MODEL_SAVE_H

#include "model/model.h"
#include "proto/pack.h"

/* Writes the net's name, and the fields of the solver, if the program has set them. */
void sb__save_head(const sb_model *model, struct sb__sink *sink);
/* Returns whether sb__save_head replaces this field of the file. */
bool sb__save_is_in_head(const sb_model *model, const struct sb__layout *layout,
                         const struct sb__field *field);

#endif
