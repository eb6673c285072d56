/* Every call of the libraries on the objects of one small world, for tests whose callbacks call the
   library: the storage that the world lends frees itself in its deleter, and then makes a call. The
   calls of libsyncblob-comm are here, too, since its writes run deleters of the core's memories,
   and a deleter of the core's may call it. */
#ifndef SB_TESTS_EVERY_CALL_H
#define SB_TESTS_EVERY_CALL_H

#include "support.h"

#include <syncblob/reducer.h>

struct world;

/* Where else than in deleters the world's callbacks run. */
enum world_visit {
    WORLD_LOADS,    /* in a reader or a progress: the blob is being loaded, the model read */
    WORLD_WRITES,   /* in a sink: nothing may change */
    WORLD_COMPUTES, /* in a parallel_for: both blobs may be written */
};

struct world {
    sb_context *context; /* of a simulated device; all objects are NULL once they are destroyed */
    sb_stream stream;
    sb_blob *blob, *other;
    sb_model *model;
    sb_comm *comm; /* of one rank */
    sb_reducer *reducer;
    char path[64];                    /* of a file */
    void (*callback)(struct world *); /* what a deleter calls, once it has freed its storage */
    void (*visit)(struct world *, enum world_visit);
    int depth;         /* of callbacks: the test's */
    bool keeps;        /* the test makes no call that ends an object */
    int lent, deleted; /* pieces of storage */
    sb_status bug;     /* a status of an error in the library, or SB_OK */
    uint64_t random;
};

/* What the blobs' memories borrow. */
enum world_storage {
    WORLD_HOST_READ_ONLY,   /* head at the host */
    WORLD_HOST_OUTDATED,    /* read-only, head at the device */
    WORLD_HOST_WRITABLE,    /* head at the host */
    WORLD_DEVICE_READ_ONLY, /* head at the device */
    WORLD_DEVICE_OUTDATED,  /* read-only, head at the host */
    WORLD_STORAGES
};

/* Blobs of 2 x `columns`; `has_room`: for more elements than they have. The context has no other
   user. */
void world_open(struct world *world, enum world_storage storage, bool has_room, int64_t columns);
/* Reads and writes all that is there, on both sides: bytes that are not there show in a sanitizer,
   a count beyond the capacity by itself. */
void world_use(struct world *world);
/* Destroys what is there; all deleters have run, once each. */
void world_close(struct world *world);

struct every_call {
    const char *name; /* of the exported function */
    void (*run)(struct world *world);
    bool ends;     /* one of the objects */
    bool is_const; /* changes none of them */
};

extern struct every_call every_call[];
extern int every_call_count;
/* Exported functions that no callback can disturb, with the reason. */
extern const char *const not_in_every_call[];

#endif
