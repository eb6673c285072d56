/* A simple model of a blob, which has a shape and two arrays; blobs may share arrays. The table in
   tests/support/state_table.h determines on which side each call leaves the bytes. */
#ifndef SB_FUZZ_BLOB_MODEL_H
#define SB_FUZZ_BLOB_MODEL_H

#include "fuzz.h"
#include "state_table.h"

/* Blobs have few or absurdly many elements: the model can predict whether memory suffices. */
#define SMALL_COUNT  512
#define ABSURD_COUNT ((int64_t)1 << 24)
#define MEMORY_CAP   ((size_t)16 << 20) /* of host or device; blobs of absurd counts need more */

enum { DATA = SB_DATA, DIFF = SB_DIFF };

/* The model of a context. */
struct plain_context {
    bool has_device;
    int32_t host_kind; /* SB_STORAGE_* of host memory that the library allocates */
};

struct plain_memory {
    const struct plain_context *context;
    struct memory_state state;
    int owners;
    unsigned char *value; /* the expected contents; NULL if they exceed MEMORY_CAP */
    /* The library's handle and pointers at the last comparison, or NULL. */
    const sb_mem *handle;
    const void *at[2];
};

struct plain_blob {
    const struct plain_context *context;
    int32_t dtype;
    int32_t num_axes; /* -1: never shaped */
    int64_t dims[SB_MAX_AXES];
    int64_t count;
    struct plain_memory *memory[2]; /* NULL: not created yet */
};

/* --- shapes ---------------------------------------------------------------------- */

struct plain_shape {
    int32_t num_axes;
    int64_t dims[SB_MAX_AXES + 1]; /* an invalid shape may have one axis too many */
    int64_t count;                 /* valid only if plain_shape_check succeeds */
};

/* Sets shape->count; returns the status that sb_blob_reshape must return for this shape. */
sb_status plain_shape_check(struct plain_shape *shape, size_t element_size);
/* Returns the number of axes; 0 if the blob was never shaped. */
int32_t plain_axes(const struct plain_blob *blob);
struct plain_shape plain_shape_of(const struct plain_blob *blob);
bool plain_shape_same(const struct plain_blob *a, const struct plain_blob *b);
/* Sets the shape and releases memories that are too small; returns SB_REALLOCATED_* bits. */
uint32_t plain_take_shape(struct plain_blob *blob, const struct plain_shape *shape);

size_t plain_bytes(const struct plain_blob *blob);
bool plain_has_arithmetic(const struct plain_blob *blob);

/* --- memories -------------------------------------------------------------------- */

struct plain_memory *plain_memory_new(const struct plain_context *context, size_t bytes);
/* Returns the blob's memory; creates it if needed. */
struct plain_memory *plain_memory_of(struct plain_blob *blob, int which);
/* Replaces the blob's memory by `memory` ([owned], may be NULL). If no other blob has the old
   memory, marks its loans as due: their deleters must have run. */
void plain_replace(struct plain_blob *blob, int which, struct plain_memory *memory);

/* These return the status that the library must return. plain_do also updates the model. */
sb_status plain_check(const struct plain_memory *memory, enum call call);
sb_status plain_do(struct plain_memory *memory, enum call call);
void plain_adopt(struct plain_memory *memory, enum call call, struct loan *loan);

bool plain_is_written(const struct plain_memory *memory); /* NULL: false */
/* Returns the side that has the current bytes, or the device if both sides have them. */
int32_t plain_side(const struct plain_memory *memory);

/* Returns element i of an array of F32 or F64. */
double plain_at(const unsigned char *bytes, size_t i, int32_t dtype);
void plain_put(unsigned char *bytes, size_t i, int32_t dtype, double value);
/* Fills whole elements with small integers, which floats represent exactly. */
void plain_fill(unsigned char *out, size_t bytes, int32_t dtype, unsigned seed);
/* Compares bytes; elements of F32 and F64 may also be equal as numbers. */
bool plain_equal(const void *seen, const unsigned char *value, size_t bytes, int32_t dtype);

#endif
