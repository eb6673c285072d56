/* Shared by the harnesses of the wire formats: a context whose memory is counted, snapshots of
   blobs, checks of errors and of their offsets. */
#ifndef SB_FUZZ_WATCHED_H
#define SB_FUZZ_WATCHED_H

#include "fuzz.h"

/* The name of a net. */
sb_text name_of(const sb_model *model);

/* A host-only context without caches over a counting allocator. */
struct watched {
    struct counting_allocator counting;
    sb_context *context;
    size_t before; /* live bytes at the last mark */
};

void watched_begin(struct watched *watched);
/* Ends it; everything made from it was given back. */
void watched_end(struct watched *watched);

/* From here on the peak is counted. */
void watched_mark(struct watched *watched);
/* Most bytes above the mark's since then. */
size_t watched_peak(const struct watched *watched);
/* Live bytes above the mark's now; negative when there are fewer. */
int64_t watched_growth(const struct watched *watched);

/* What can be seen of a blob without changing it: shape, heads and all bytes of its
   memories, those beyond the count too. */
struct snapshot {
    int32_t num_axes; /* -1: never shaped */
    int64_t dims[SB_MAX_AXES];
    struct snapshot_side {
        int32_t head;
        const void *ptr; /* where the bytes lay */
        size_t size;
        unsigned char *bytes;
    } part[2]; /* SB_DATA, SB_DIFF */
};

/* Makes the handles of the blob's memories if they are not there. */
struct snapshot snapshot_take(const sb_blob *blob);
void snapshot_free(struct snapshot *snapshot);
/* The blob is as it was, its bytes at the same place. */
void snapshot_check(const struct snapshot *snapshot, const sb_blob *blob, const char *story);

sb_blob *blob_new(sb_context *context, int32_t dtype);
/* Whether the part was ever written. */
bool blob_has(const sb_blob *blob, sb_part part);
/* The bytes of a host blob's part; NULL when its count is 0. */
const void *blob_at(const sb_blob *blob, sb_part part);
size_t blob_bytes(const sb_blob *blob);
/* Both have the same shape and, bit for bit, the same data and diff. */
void check_same_blob(const sb_blob *a, const sb_blob *b, const char *story);

/* A status that bytes alone may cause; the data's fault lies at an offset within `size` bytes
   which its text contains. */
void check_read_status(sb_status status, const sb_error *err, size_t size);

/* What bytes from elsewhere gave is what they gave from memory. */
void check_status(sb_status status, sb_status from_memory, const char *where);

/* `bytes` as a file without a name; its path is for as long as the file descriptor is open. */
struct scratch_file {
    int fd;
    char path[32];
};
struct scratch_file scratch_file_make(const void *bytes, size_t size);
void scratch_file_end(struct scratch_file *file);

/* What saves an object under a path. */
typedef sb_status save_call(const void *object, const char *path, sb_error *err);
/* A new file, then one that replaces it, holds the bytes; nothing else is left in their folder.
   Into a folder that is none nothing is saved. */
void check_saved_file(save_call *save, const void *object, const void *bytes, size_t size);

/* A number that is the input's own, for what is done to a share of inputs only. */
uint32_t input_lot(const uint8_t *bytes, size_t size);

#endif
