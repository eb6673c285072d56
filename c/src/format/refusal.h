/* What was refused, in words behind the reason. */
#ifndef SB_FORMAT_REFUSAL_H
#define SB_FORMAT_REFUSAL_H

#include "wire/wire.h"

/* Appends "; this is ..." to the message of a reader that refused all of `reader`'s source as
   `wanted` (SB_FORMAT_*), if it is certain what the bytes are. Nothing else changes; a failure
   that is not the data's stays as it is. `err` may be NULL. */
void sb__refusal_explain(sb_status status, int32_t wanted, struct sb__reader *reader,
                         sb_error *err);

/* The same of `total` bytes, more than a message can have, of which `first` has as many as one
   can. */
void sb__refusal_explain_size(const struct sb__source *first, uint64_t total, sb_error *err);

/* Whether a source is certainly a message of somebody else's, which protobuf's rules allow to be
   read as one of Caffe's. Fails only where the source does. */
sb_status sb__refusal_is_foreign(const struct sb__source *source, bool *out, sb_error *err);

/* MALFORMED if a source that can be read as a blob is another message: with `is_doubtful` one of
   another of Caffe's formats, for which it is taken where the caller does not name the format;
   without values another program's. */
sb_status sb__refusal_check_blob(const struct sb__source *source, bool has_values, bool is_doubtful,
                                 sb_error *err);

/* MALFORMED: of a source that is somebody else's message. */
sb_status sb__refusal_of_foreign(sb_error *err);

/* Whether a source is certainly of another of Caffe's formats than `wanted` (SB_FORMAT_*), whose
   message protobuf's rules allow to be read as one of these. Fails only where the source does. */
sb_status sb__refusal_is_of_another(const struct sb__source *source, int32_t wanted, bool *out,
                                    sb_error *err);

#endif
