/* Opens a source as a Caffe message. Refuses more bytes than a message can have. The error then
   describes the kind of the file if the library recognises the bytes. */
#ifndef SB_FORMAT_OPEN_H
#define SB_FORMAT_OPEN_H

#include "wire/source.h"

/* Makes a source of bytes in memory. `bytes` may be NULL if size is 0. Fails with INVALID_ARGUMENT
   or DATA_LIMIT. */
sb_status sb__source_of_bytes(struct sb__source *out, const void *bytes, size_t size,
                              sb_error *err);
/* Wraps the caller's source without owning it. Fails with INVALID_ARGUMENT, UNSUPPORTED,
   ABI_MISMATCH, DATA_LIMIT or a status of the source's functions. */
sb_status sb__source_of(struct sb__source *out, const sb_source *theirs, sb_error *err);
/* Opens a regular file. Fails with IO or DATA_LIMIT. */
sb_status sb__source_open(struct sb__source *out, const char *path, bool mapped, sb_error *err);

#endif
