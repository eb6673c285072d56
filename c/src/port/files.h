/* File operations of each system. Functions that can fail return 0 or the system's error number:
   errno, or on Windows the number of GetLastError. Paths are byte strings, in UTF-8 on Windows. */
#ifndef SB_PORT_FILES_H
#define SB_PORT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file descriptor, or on Windows a handle. */
typedef intptr_t sb__file;

struct sb__file_info {
    uint64_t size;
    uint64_t version; /* a hash of size and mtime */
    uint64_t changed; /* ctime, or 0 if unknown */
    uint64_t names;   /* number of hard links: 0 once the file is removed or replaced */
    int misfit;       /* 0 for a regular file, else an error number */
};

/* Opens a file for reading. Does not block on a pipe, but waits if another process holds a lease
   (fcntl) on the file. Other processes may write, rename and remove the file. */
int sb__file_open(const char *path, sb__file *out);
int sb__file_examine(sb__file file, struct sb__file_info *out);
/* Reads up to `bytes` at `offset`. `*got` is 0 at the end of the file. */
int sb__file_read_at(sb__file file, uint64_t offset, void *to, size_t bytes, size_t *got);
/* Maps the first `bytes` (> 0) of a file. The file may be closed before the map is unmapped. */
int sb__file_map(sb__file file, size_t bytes, const void **out);
void sb__file_unmap(const void *map, size_t bytes);
void sb__file_close(sb__file file);

/* --- replacing a file ------------------------------------------------------------------- */

#define SB__PATH_MAX 4096
#ifdef _WIN32
#define SB__TARGET_MAX SB__PATH_MAX
#else
#define SB__TARGET_MAX 1024
#endif

/* A temporary file in the folder of its target. sb__replacement_commit renames the file to the
   target. */
struct sb__replacement {
    sb__file file;             /* -1 after the file is closed */
    sb__file folder;           /* the target's folder, or -1 on systems without openat */
    char shown[96];            /* the beginning of the resolved path, for messages */
    char path[SB__TARGET_MAX]; /* the target's path with links resolved, and relative to `folder`
                                  unless `folder` is -1 */
    const char *name;          /* the target's name: a pointer into `path` */
    char temporary[64];        /* the temporary file's name; "" if there is no file */
};

/* Creates the temporary file. On failure `*what` is a text to append to the path in the error
   message. The target must be a regular file or not exist. The new file keeps the permissions of an
   old file. Follows links, even dangling links. */
int sb__replacement_begin(struct sb__replacement *replacement, const char *path, const char **what);
/* Writes all bytes, or fails. */
int sb__replacement_write(struct sb__replacement *replacement, const void *bytes, size_t size);
/* Syncs the file and renames it to the target. Ends the replacement in any case. If the call fails
   but sets `*in_place`, the file is in place, but a power failure may undo the rename. */
int sb__replacement_commit(struct sb__replacement *replacement, bool *in_place);
/* Ends the replacement. The target is unchanged. */
void sb__replacement_cancel(struct sb__replacement *replacement);

#endif
