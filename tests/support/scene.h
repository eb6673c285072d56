/* A scene: a memory in any state of the state table. Tests make every call in every state. */
#ifndef SB_TESTS_SCENE_H
#define SB_TESTS_SCENE_H

#include "blobs.h"
#include "state_table.h"

#define CURRENT 0x11 /* the bytes of a current side */
#define STALE   0x22 /* the bytes of a side that is not current */
#define LENT    0x33 /* the bytes that the call under test lends */

struct start {
    int32_t head, cpu, gpu; /* SB_HEAD_*, then SB_STORAGE_* of both sides */
    bool is_coherent;       /* if both sides have SB_STORAGE_OWNED, they are one storage */
};

/* States that cover every head except LOST, and every kind of storage. */
enum { SCENE_STARTS = 24 };
extern const struct start scene_starts[SCENE_STARTS];

struct scene {
    struct rig rig;
    sb_mem *mem;
    size_t bytes;
    struct lent cpu, gpu, extra; /* storage borrowed by the sides; `extra`: lent by a set call */
};

bool is_read_only(int32_t kind);

/* The context has pinned host memory if the state needs it. Current sides hold CURRENT, other sides
   STALE. */
void scene_open(struct scene *scene, const struct start *start, size_t bytes);
void scene_close(struct scene *scene);

#endif
