/* A scene: a memory in any state of the state table. Tests make every call in every state. */
#ifndef SB_TESTS_SCENE_H
#define SB_TESTS_SCENE_H

#include "rig.h"
#include "state_table.h"

#include <syncblob/backend.h>

/* Values of the bytes in memories. */
#define CURRENT 0x11 /* the bytes of a current side */
#define STALE   0x22 /* the bytes of a side that is not current */
#define LENT    0x33 /* the bytes that the call under test lends */

struct start {
    int32_t head, cpu, gpu; /* SB_HEAD_*, then SB_STORAGE_* of both sides */
};

/* States that cover every head except LOST, and every kind of storage. */
enum { SCENE_STARTS = 14 };
extern const struct start scene_starts[SCENE_STARTS];

/* States with host-coherent memory: both sides share a storage, or one side's storage is lent. */
enum { SCENE_COHERENT_STARTS = 10 };
extern const struct start scene_coherent_starts[SCENE_COHERENT_STARTS];

struct scene {
    struct rig rig;
    sb_mem *mem;
    size_t bytes;
    struct lent cpu, gpu, extra; /* storage borrowed by the sides; `extra`: lent by a set call */
    void *cpu_ptr, *gpu_ptr;     /* the storage of a borrowed or current side, else NULL */
};

bool is_read_only(int32_t kind);
/* Returns whether the state can occur: a current side has storage, and no copy was made to a
   read-only side. */
bool is_reachable(const struct start *start);

/* Opens a context on sim:0, with pinned host memory if the host's storage in `start` is pinned, and
   a memory in the state `start`. Current sides hold CURRENT, other sides STALE. */
void scene_open(struct scene *scene, const struct start *start, size_t bytes);
/* Like scene_open, but "sim:0" is a device of `backend`; NULL means the built-in backend. */
void scene_open_on(struct scene *scene, const struct start *start, size_t bytes,
                   const sb_backend *backend);
/* Releases the memory and asserts that every loan has ended exactly once. */
void scene_close(struct scene *scene);
/* Brings scene->mem, which must be new, into the state. */
void scene_arrange(struct scene *scene, const struct start *start);
void scene_give(struct scene *scene, int32_t side, int32_t kind, int fill);
/* If `call` is SET_CPU or SET_GPU, creates the storage scene->extra, which the call will lend. */
void scene_lend_extra(struct scene *scene, enum call call);
/* Makes the call. Calls that take a stream use `stream`. */
sb_status scene_call(struct scene *scene, enum call call, sb_stream stream, void **out,
                     sb_error *err);

const void *read_cpu(const sb_mem *mem);
const void *read_gpu(const sb_mem *mem);

#endif
