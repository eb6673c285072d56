/* A file written atomically: beside its place under another name, brought to
   the disk, then renamed. Until then, and on any failure, the old file stays. */
#ifndef SB_WIRE_FILE_WRITE_H
#define SB_WIRE_FILE_WRITE_H

#include "port/files.h"

#include <syncblob/io.h>

/* The target must be a regular file, whose permissions are kept, or not exist; a link is followed,
   to nothing too. IO. */
sb_status sb__file_write_begin(struct sb__replacement *file, const char *path, sb_error *err);
/* What writes the file between begin and commit; sb__replacement_cancel ends it instead. */
sb_sink sb__file_write_sink(struct sb__replacement *file);
/* Puts the file in its place; a failure cancels. IO. */
sb_status sb__file_write_commit(struct sb__replacement *file, sb_error *err);

#endif
