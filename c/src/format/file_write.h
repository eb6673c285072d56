/* A file written atomically: beside its place under another name, brought to
   the disk, then renamed. Until then, and on any failure, the old file stays. */
#ifndef SB_FORMAT_FILE_WRITE_H
#define SB_FORMAT_FILE_WRITE_H

#include <syncblob/io.h>

#include <limits.h>

struct sb__file_write {
    int directory; /* the target's */
    int fd;
    char path[PATH_MAX]; /* links resolved */
    const char *name;    /* in `path`, after the directory */
    char temporary[64];
};

/* The target must be a regular file, whose permissions are kept, or not exist; a link is followed,
   to nothing too. IO. */
sb_status sb__file_write_begin(struct sb__file_write *file, const char *path, sb_error *err);
/* What writes the file between begin and commit. */
sb_sink sb__file_write_sink(struct sb__file_write *file);
/* Puts the file in its place; a failure cancels. IO. */
sb_status sb__file_write_commit(struct sb__file_write *file, sb_error *err);
void sb__file_write_cancel(struct sb__file_write *file);

#endif
