/* Files as each system has them. What can fail returns 0 or the system's own number of the error:
   errno, on Windows that of GetLastError. Paths are bytes, on Windows UTF-8. */
#ifndef SB_PORT_FILES_H
#define SB_PORT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor; on Windows a handle. */
typedef intptr_t sb__file;

struct sb__file_info {
    uint64_t size;
    uint64_t version; /* of the size and the time of the last write */
    uint64_t changed; /* the time when the bytes, the permissions or a name changed; 0: not known */
    uint64_t names;   /* 0 once the file is removed or replaced */
    int misfit;       /* 0 for a regular file, else which error it is to be none */
};

/* For reading. It does not wait for a pipe, only for another process that holds a lease on the
   file. Others may write, rename and remove it. */
int sb__file_open(const char *path, sb__file *out);
int sb__file_examine(sb__file file, struct sb__file_info *out);
/* `*got` may be less than `bytes`, and is 0 at the end of the file. */
int sb__file_read_at(sb__file file, uint64_t offset, void *to, size_t bytes, size_t *got);
/* `bytes` > 0. The file may be closed before its map. */
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

/* A file written beside its place under another name, to be put there when it is whole. */
struct sb__replacement {
    sb__file file;             /* -1 once it is closed */
    sb__file folder;           /* the target's; -1 on a system that names it by its path */
    char shown[96];            /* how the path begins, in messages; where links lead, if any do */
    char path[SB__TARGET_MAX]; /* the target's, links resolved; without `folder`'s where that is */
    const char *name;          /* in `path`, after the folder */
    char temporary[64];        /* "": there is none */
};

/* `*what` is what went wrong, in words that follow the path. The target must be a regular file,
   whose permissions are kept, or not exist; a link is followed, to nothing too. */
int sb__replacement_begin(struct sb__replacement *replacement, const char *path, const char **what);
/* All bytes, or an error. */
int sb__replacement_write(struct sb__replacement *replacement, const void *bytes, size_t size);
/* Brings the bytes to the disk and puts the file in its place; ends the replacement in any case.
   An error with `*in_place` is one about what a power failure may do. */
int sb__replacement_commit(struct sb__replacement *replacement, bool *in_place);
/* The target stays as it was. */
void sb__replacement_cancel(struct sb__replacement *replacement);

#endif
