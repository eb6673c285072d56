/* Writes a file atomically: a temporary file in the same folder is written, synced and renamed to
   the target. On a failure before the rename the old file remains. */
#ifndef SB_WIRE_FILE_WRITE_H
#define SB_WIRE_FILE_WRITE_H

#include "port/files.h"

#include <syncblob/io.h>

/* Creates the temporary file as sb__replacement_begin does. Fails with IO. */
sb_status sb__file_write_begin(struct sb__replacement *file, const char *path, sb_error *err);
/* Returns a sink for the file, valid until sb__file_write_commit or sb__replacement_cancel. */
sb_sink sb__file_write_sink(struct sb__replacement *file);
/* Syncs and renames the file; ends the replacement, also on failure. Fails with IO. */
sb_status sb__file_write_commit(struct sb__replacement *file, sb_error *err);

#endif
