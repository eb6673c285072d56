/* The reference of SyncedMemory's state table: what each call is for, who holds the newest bytes,
   and the rules for storage that is missing or read-only. It shares nothing with the library but
   the public numbers. */
#ifndef SB_TESTS_STATE_TABLE_H
#define SB_TESTS_STATE_TABLE_H

#include "mem_calls.h"

/* --- cells: a head before, a call ---------------------------------------------------------- */

/* Who holds the newest bytes: bit 0 the host, bit 1 the device. NOBODY of UNINITIALIZED, whose
   bytes are still to come, and of LOST. */
typedef unsigned state_newest;
enum { NOBODY, HOST, DEVICE, BOTH_SIDES };

enum work {
    NOTHING,
    ZERO,  /* a zero-filled allocation on the call's side */
    ALLOC, /* storage of unspecified contents on the call's side */
    COPY,  /* one transfer to the call's side */
    ADOPT, /* the caller's storage on the call's side */
    FREE,  /* the call's side is given up */
    REFUSE
};

struct state_cell {
    enum work work;
    int32_t head; /* afterwards */
};

state_newest state_said(int32_t head);
/* Who holds them after a work and the call's own doing. */
state_newest state_after(state_newest newest, enum call call, enum work work);
/* Of any call but CLEAR and SYNCHRONIZE. */
struct state_cell state_cell(int32_t head, enum call call);

/* --- plans: the storage of both sides, too --------------------------------------------------- */

struct loan; /* the caller's own */

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

struct plan table_plan(const struct memory_state *state, enum call call);

/* The plan is done; `fresh` is the new storage where it allocates or adopts. Gives the loan that
   has ended, or NULL. */
struct loan *table_commit(struct memory_state *state, const struct plan *plan, struct side fresh);

bool table_is_current(int32_t head, int32_t side);
bool table_is_borrowed(int32_t kind);

#endif
