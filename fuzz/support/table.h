/* The reference of SyncedMemory: the state table as the design writes it, and
   the rules for storage that is missing or read-only. It shares nothing with
   the library but the public numbers. */
#ifndef SB_FUZZ_TABLE_H
#define SB_FUZZ_TABLE_H

#include <stdbool.h>
#include <syncblob/mem.h>

struct loan;

/* The columns of the table, and clear, which follows from them. */
enum column {
    CPU_DATA,
    MUTABLE_CPU,
    GPU_DATA,
    MUTABLE_GPU,
    SET_CPU,
    SET_GPU,
    OVERWRITE_CPU,
    OVERWRITE_GPU,
    ASYNC_PUSH,
    ASYNC_PULL,
    EVICT_CPU,
    EVICT_GPU,
    CLEAR,
    COLUMNS
};

struct side {
    int32_t kind;      /* SB_STORAGE_* */
    struct loan *loan; /* of borrowed storage */
};

struct memory_state {
    size_t bytes;
    int32_t head;
    struct side side[2];
};

/* What a call has to do to a memory in a state. */
struct plan {
    sb_status status; /* SB_OK, or why the table refuses; then nothing else is set */
    int32_t head;     /* afterwards */
    int32_t side;     /* that the call is about */
    bool allocates;   /* storage of the library's own comes to that side */
    bool copies;      /* from the other side */
    bool moves;       /* current bytes leave read-only storage, within the side */
    bool zeroes;
    bool drops; /* what the side was stored in is given up */
    bool adopts;
};

struct plan table_plan(const struct memory_state *state, enum column call);

/* The plan is done; `fresh` is the new storage where it allocates or adopts. A loan that was
   dropped is due to have ended. */
void table_commit(struct memory_state *state, const struct plan *plan, struct side fresh);

bool table_is_current(int32_t head, int32_t side);
bool table_is_borrowed(int32_t kind);

#endif
