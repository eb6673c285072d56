/* Recognises bytes of another format or program, to refuse them or to describe them in the error of
   a read. */
#ifndef SB_FORMAT_REFUSAL_H
#define SB_FORMAT_REFUSAL_H

#include "wire/wire.h"

/* Call after a read of the bytes of `reader` as `wanted` (SB_FORMAT_*) has failed with `status`. If
   the data caused the failure and the bytes are recognised, appends "; this is ..." to
   err->message. `err` may be NULL. */
void sb__refusal_explain(sb_status status, int32_t wanted, struct sb__reader *reader,
                         sb_error *err);

/* Appends the text of sb__refusal_explain for `total` bytes, which are too many for a message.
   `first` contains the first of these bytes. */
void sb__refusal_explain_size(const struct sb__source *first, uint64_t total, sb_error *err);

/* Sets `*out` to whether a source, which protobuf can read as a message of Caffe, is recognised as
   another program's message. Fails, with `*out` false, only if the source fails. */
sb_status sb__refusal_is_foreign(const struct sb__source *source, bool *out, sb_error *err);

/* Returns MALFORMED if a source that can be read as a blob is recognised as another message. If the
   blob has no values, looks for messages of other programs. If `is_doubtful`, looks for Caffe's
   other formats, as format AUTO does. */
sb_status sb__refusal_check_blob(const struct sb__source *source, bool has_values, bool is_doubtful,
                                 sb_error *err);

/* Fails with MALFORMED, because the data is a message of another program. */
sb_status sb__refusal_of_foreign(sb_error *err);

/* Sets `*out` to whether a source, which protobuf can read as `wanted` (SB_FORMAT_*), is recognised
   as another format of Caffe. Fails, with `*out` false, only if the source fails. */
sb_status sb__refusal_is_of_another(const struct sb__source *source, int32_t wanted, bool *out,
                                    sb_error *err);

#endif
