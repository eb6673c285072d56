/* A memory in any state of the table, and any call on it: for tests that go
   through them all. */
#ifndef SB_TESTS_SCENE_H
#define SB_TESTS_SCENE_H

#include "rig.h"
#include "state_table.h"

/* What fills memories. */
#define CURRENT 0x11 /* the bytes that the head promises */
#define STALE   0x22 /* what a side holds that is not current */
#define LENT    0x33 /* what is lent by the call under test */

struct start {
    int32_t head, cpu, gpu; /* SB_HEAD_*, SB_STORAGE_* twice */
};

/* States that differ in what calls have to do: every head, every kind of storage. */
enum { SCENE_STARTS = 14 };
extern const struct start scene_starts[SCENE_STARTS];

struct scene {
    struct rig rig;
    sb_mem *mem;
    size_t bytes;
    struct lent cpu, gpu, extra; /* what the sides borrow; what a set call lends */
    void *cpu_ptr, *gpu_ptr;     /* of sides whose pointer is known without a call */
};

bool is_read_only(int32_t kind);
/* A head needs storage behind it; a read-only side cannot have been copied to. */
bool is_reachable(const struct start *start);

/* A context on sim:0 (host memory pinned if it is in `start`) and a memory in that state: current
   sides hold CURRENT, others STALE. */
void scene_open(struct scene *scene, const struct start *start, size_t bytes);
/* Every loan must have ended, once, with the release. */
void scene_close(struct scene *scene);
/* Brings scene->mem, fresh, into the state. */
void scene_arrange(struct scene *scene, const struct start *start);
void scene_give(struct scene *scene, int32_t side, int32_t kind, int fill);
/* Makes scene->extra for a set call. */
void scene_lend_extra(struct scene *scene, enum call call);
/* `stream` is for the calls that take one. */
sb_status scene_call(struct scene *scene, enum call call, sb_stream stream, void **out,
                     sb_error *err);

const void *read_cpu(const sb_mem *mem);
const void *read_gpu(const sb_mem *mem);

#endif
