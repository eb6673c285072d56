/* A second implementation of SyncedMemory's state table, as a reference for tests. */
#ifndef SB_TESTS_STATE_TABLE_H
#define SB_TESTS_STATE_TABLE_H

#include "mem_calls.h"

/* The sides that hold the newest bytes. NOBODY if the head is UNINITIALIZED or LOST. */
typedef unsigned state_newest;
enum { NOBODY, HOST, DEVICE, BOTH_SIDES };

enum work {
    NOTHING,
    ZERO,  /* a zero-filled allocation on the call's side */
    ALLOC, /* storage of unspecified contents on the call's side */
    COPY,  /* one transfer to the call's side */
    ADOPT, /* the caller's storage on the call's side */
    FREE,
    REFUSE
};

struct state_cell {
    enum work work;
    int32_t head;
};

state_newest sides_of_head(int32_t head);
state_newest state_after(state_newest newest, enum call call, enum work work);
/* `call` must not be CLEAR or SYNCHRONIZE. */
struct state_cell state_cell(int32_t head, enum call call);

struct loan; /* each file that includes this header defines struct loan */

struct side {
    int32_t kind; /* SB_STORAGE_* */
    struct loan *loan;
};

struct memory_state {
    size_t bytes;
    int32_t head;
    struct side side[2];
    bool is_coherent; /* both sides are one storage, unless a side is lent */
    bool is_apart;    /* the host has separate storage, because the sides could not share storage */
};

struct plan {
    sb_status status; /* SB_OK, or the reason why the table refuses the call */
    int32_t head;
    int32_t side;
    bool allocates;
    bool on_device; /* the allocated storage is memory of the device */
    bool copies;
    bool waits; /* the call waits instead of copying, because both sides are one storage */
    bool moves; /* current bytes move from the side's read-only storage to new storage */
    bool zeroes;
    bool drops; /* the side no longer uses its old storage */
    bool adopts;
};

struct plan table_plan(const struct memory_state *state, enum call call);

/* `fresh` is the new storage if the plan allocates or adopts. Returns the loan that has ended, or
   NULL. */
struct loan *table_commit(struct memory_state *state, const struct plan *plan, struct side fresh);

bool table_is_one(const struct memory_state *state);
bool table_is_current(int32_t head, int32_t side);
bool table_is_borrowed(int32_t kind);

#endif
