/* Support for the harnesses that read files. */
#ifndef SB_FUZZ_WATCHED_H
#define SB_FUZZ_WATCHED_H

#include "fuzz.h"

sb_text name_of(const sb_model *model);
bool same_text(sb_text a, sb_text b);

/* A host-only context without caches, with a counting allocator. */
struct watched {
    struct counting_allocator counting;
    sb_context *context;
    size_t before; /* live bytes at the last call of watched_mark */
};

struct run {
    const uint8_t *bytes;
    size_t size;
    uint32_t lot;
    struct watched *watched;
};

void watched_begin(struct watched *watched);
void watched_end(struct watched *watched);

void watched_mark(struct watched *watched);
/* Returns the growth of the peak of live bytes since the last call of watched_mark. */
size_t watched_peak(const struct watched *watched);
/* Returns the growth of live bytes since the last call of watched_mark. */
int64_t watched_growth(const struct watched *watched);

sb_blob *blob_new(sb_context *context, int32_t dtype);
bool blob_has(const sb_blob *blob, sb_part part);
/* Returns the bytes of data or diff on the host, or NULL if the count is 0. */
const void *blob_at(const sb_blob *blob, sb_part part);
size_t blob_bytes(const sb_blob *blob);
void check_same_blob(const sb_blob *a, const sb_blob *b);

/* Checks that a read of an input may return `status`, and that the error's offset is at most
   `size`. */
void check_read_status(sb_status status, size_t size);

/* A file in a new folder, in memory if possible. */
struct scratch_file {
    char folder[32], path[48];
};
struct scratch_file scratch_file_make(const void *bytes, size_t size);
/* Removes the file and the folder. Returns false if the folder has other files. */
bool scratch_file_end(const struct scratch_file *file);

typedef sb_status save_call(const void *object, const char *path, sb_error *err);
/* Saves an object into an empty folder, which must then contain only one file with `bytes`. */
void check_saved_file(save_call *save, const void *object, const void *bytes, size_t size);

/* Returns a hash of the input. Harnesses run slow checks only for some values of the hash. */
uint32_t input_lot(const uint8_t *bytes, size_t size);

#endif
