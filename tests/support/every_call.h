/* A list of calls of the libraries' functions on one set of objects, the world. */
#ifndef SB_TESTS_EVERY_CALL_H
#define SB_TESTS_EVERY_CALL_H

#include "blobs.h"

#include <syncblob/reducer.h>

struct world;

/* The callbacks that call `visit`. */
enum world_visit {
    WORLD_LOADS,    /* in a source or a progress callback, while a blob or a model is read */
    WORLD_WRITES,   /* in a sink, while a blob or a model is saved: no object may change */
    WORLD_COMPUTES, /* in a parallel_for, while a call may be writing both blobs */
};

/* The member of an object becomes NULL when a call destroys the object. */
struct world {
    struct rig rig;      /* only the allocator and the context are used */
    sb_context *context; /* a context of a simulated device */
    sb_stream stream;
    sb_blob *blob, *other;
    sb_model *model;
    sb_comm *comm; /* a communicator of one rank */
    sb_reducer *reducer;
    char path[64];
    void (*callback)(struct world *); /* called by a source's `close`, and last by each deleter */
    void (*visit)(struct world *, enum world_visit);
    int depth;         /* nesting of callbacks; only the test uses this member */
    bool keeps;        /* the test makes no calls that destroy objects */
    int lent, deleted; /* how many pieces were lent, and how many were freed */
    sb_status status;  /* the first failure since the test set SB_OK */
    bool has_output;   /* a failed call has stored a result */
    sb_status bug;     /* a status that only a bug can cause, or SB_OK */
    uint64_t random;
};

enum world_storage {
    WORLD_HOST_READ_ONLY,   /* head at the host */
    WORLD_HOST_OUTDATED,    /* read-only, head at the device */
    WORLD_HOST_WRITABLE,    /* head at the host */
    WORLD_DEVICE_READ_ONLY, /* head at the device */
    WORLD_DEVICE_OUTDATED,  /* read-only, head at the host */
    WORLD_STORAGES
};

/* If `has_room`, the capacity of the blobs exceeds their count. `flags` are SB_CONTEXT_*. */
void world_open(struct world *world, enum world_storage storage, bool has_room, int64_t columns,
                uint32_t flags);
/* Reads and writes both blobs and saves the model, so that a sanitizer can report an invalid
   access. Asserts that no blob's count exceeds its capacity. */
void world_use(struct world *world);
/* Destroys the objects. Asserts that a deleter has run for each lent piece. */
void world_close(struct world *world);

struct every_call {
    const char *name;
    void (*run)(struct world *world);
    bool ends;     /* destroys an object of the world */
    bool is_const; /* changes no object of the world */
};

extern struct every_call every_call[];
extern int every_call_count;
/* Names of the functions that every_call[] leaves out, ended by NULL. */
extern const char *const not_in_every_call[];

#endif
