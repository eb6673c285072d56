/* What was refused, in words behind those that say why. */
#ifndef SB_FORMAT_REFUSAL_H
#define SB_FORMAT_REFUSAL_H

#include "format/wire.h"

/* Appends "; this is ..." to the message of a reader that refused all of `reader`'s source as
   `wanted` (SB_FORMAT_*), if it is certain what the bytes are. Nothing else changes; a failure
   that is not the data's stays as it is. `err` may be NULL. */
void sb__refusal_explain(sb_status status, int32_t wanted, struct sb__reader *reader,
                         sb_error *err);

#endif
