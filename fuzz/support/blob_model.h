/* The plain model of blobs: a shape, and two arrays that blobs may share. What
   a call does to where the bytes are follows from tests/support/state_table.h. */
#ifndef SB_FUZZ_BLOB_MODEL_H
#define SB_FUZZ_BLOB_MODEL_H

#include "fuzz.h"
#include "state_table.h"

/* Counts are small or absurd, nothing between, so that it is known what fits. */
#define SMALL_COUNT  512
#define ABSURD_COUNT ((int64_t)1 << 24)
#define MEMORY_CAP   ((size_t)16 << 20) /* of host and device: less than anything absurd */

enum { DATA = SB_DATA, DIFF = SB_DIFF };

/* Where memories live. */
struct plain_context {
    bool has_device;
    int32_t host_kind; /* SB_STORAGE_* of host memory of the library's */
};

struct plain_memory {
    const struct plain_context *context;
    struct memory_state state;
    int owners;
    unsigned char *value; /* state.bytes of them, as a reader is to see them; NULL: absurd */
    /* what was seen of it last; NULL: nothing yet */
    const sb_mem *handle;
    const void *at[2];
};

struct plain_blob {
    const struct plain_context *context;
    int32_t dtype;
    int32_t num_axes; /* -1: never shaped */
    int64_t dims[SB_MAX_AXES];
    int64_t count;
    struct plain_memory *memory[2]; /* NULL: not made yet */
};

/* --- shapes ---------------------------------------------------------------------- */

struct plain_shape {
    int32_t num_axes;
    int64_t dims[SB_MAX_AXES + 1]; /* one more than is allowed */
    int64_t count;                 /* of a shape that fits */
};

/* Fills in the count; what sb_blob_reshape gives for the shape. */
sb_status plain_shape_check(struct plain_shape *shape, size_t element_size);
struct plain_shape plain_shape_of(const struct plain_blob *blob);
bool plain_shape_same(const struct plain_blob *a, const struct plain_blob *b);
/* Lets go of memories that are too small; SB_REALLOCATED_* bits. */
uint32_t plain_take_shape(struct plain_blob *blob, const struct plain_shape *shape);

size_t plain_bytes(const struct plain_blob *blob);
bool plain_has_arithmetic(const struct plain_blob *blob);

/* --- memories -------------------------------------------------------------------- */

struct plain_memory *plain_memory_new(const struct plain_context *context, size_t bytes);
/* The blob's, made now if need be. */
struct plain_memory *plain_memory_of(struct plain_blob *blob, int which);
/* Puts `memory` (owned, may be NULL) in place; the last owner's loans are due. */
void plain_replace(struct plain_blob *blob, int which, struct plain_memory *memory);

/* What a call of mem.h gives, and what it does if that is SB_OK. */
sb_status plain_check(const struct plain_memory *memory, enum call call);
sb_status plain_do(struct plain_memory *memory, enum call call);
void plain_adopt(struct plain_memory *memory, enum call call, struct loan *loan);

bool plain_is_written(const struct plain_memory *memory); /* NULL: no */
/* Where the head is; SYNCED counts as the device. */
int32_t plain_side(const struct plain_memory *memory);

/* Element i of an array; of F16 nothing is known. */
double plain_at(const unsigned char *bytes, size_t i, int32_t dtype);
void plain_put(unsigned char *bytes, size_t i, int32_t dtype, double value);
/* Whole elements of small numbers that floats hold exactly. */
void plain_fill(unsigned char *out, size_t bytes, int32_t dtype, unsigned seed);
/* Equal as bytes, or as numbers where there is arithmetic. */
bool plain_equal(const void *seen, const unsigned char *value, size_t bytes, int32_t dtype);

#endif
