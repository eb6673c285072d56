/* What the state table of SyncedMemory has to keep, written down a second time: which side holds
   the newest bytes, what each work does to that, and what each call is for. Held against the table
   by tests/behaviour/test_state_table.c and, by induction, tests/survival/proofs/state.c. */
#ifndef SB_TESTS_STATE_RULES_H
#define SB_TESTS_STATE_RULES_H

#include "memory/state.h"

#include <stdbool.h>
#include <syncblob/mem.h>

/* Who holds the newest bytes: bit 0 the host, bit 1 the device. 0: nobody has any. */
typedef unsigned state_newest;

enum { STATE_NOBODY, STATE_HOST, STATE_DEVICE, STATE_BOTH };

enum state_purpose { STATE_READ, STATE_WRITE, STATE_SET, STATE_OVERWRITE, STATE_MOVE, STATE_EVICT };

static inline enum state_purpose state_purpose(enum sb__call call) {
    return call <= SB__WRITE_GPU       ? (call % 2 ? STATE_WRITE : STATE_READ)
           : call <= SB__SET_GPU       ? STATE_SET
           : call <= SB__OVERWRITE_GPU ? STATE_OVERWRITE
           : call <= SB__PULL          ? STATE_MOVE
                                       : STATE_EVICT;
}

/* The side that a call is about. */
static inline state_newest state_side(enum sb__call call) {
    switch (call) {
    case SB__READ_CPU:
    case SB__WRITE_CPU:
    case SB__SET_CPU:
    case SB__OVERWRITE_CPU:
    case SB__PULL:
    case SB__EVICT_CPU:
        return STATE_HOST;
    default:
        return STATE_DEVICE;
    }
}

/* What a head says: NOBODY of UNINITIALIZED, whose bytes are still to come, and of LOST. */
static inline state_newest state_said(int32_t head) {
    return head == SB_HEAD_AT_CPU   ? STATE_HOST
           : head == SB_HEAD_AT_GPU ? STATE_DEVICE
           : head == SB_HEAD_SYNCED ? STATE_BOTH
                                    : STATE_NOBODY;
}

/* Who holds the newest bytes after a work and the call's own doing. */
static inline state_newest state_after(state_newest newest, enum sb__call call, uint8_t work) {
    const state_newest side = state_side(call);
    const enum state_purpose purpose = state_purpose(call);
    if (work == SB__REFUSE)
        return newest;
    if (work == SB__TRANSFER) /* what the other side has, be it newest or not */
        newest = newest & ~side ? newest | side : STATE_NOBODY;
    else if (work == SB__ZERO)
        newest = newest == STATE_NOBODY ? side : newest & ~side;
    else if (work != SB__NOTHING)
        newest &= ~side;
    /* The caller's bytes, or what he is about to write, are the newest from now on. */
    if ((purpose == STATE_SET && work == SB__ADOPT) || purpose == STATE_OVERWRITE)
        return side;
    return purpose == STATE_WRITE ? newest & side : newest;
}

/* The work that a call needs where `newest` hold the newest bytes. */
static inline uint8_t state_needed(int32_t head, state_newest newest, enum sb__call call) {
    const bool is_there = newest & state_side(call), is_new = head == SB_HEAD_UNINITIALIZED;
    switch (state_purpose(call)) {
    case STATE_SET:
        return SB__ADOPT;
    case STATE_OVERWRITE:
        return is_there ? SB__NOTHING : SB__ALLOC;
    case STATE_EVICT: /* never the only newest bytes */
        return head == SB_HEAD_LOST || newest == state_side(call) ? SB__REFUSE : SB__FREE;
    case STATE_MOVE: /* from the other side, which has to hold them */
        return newest == STATE_BOTH                 ? SB__NOTHING
               : newest == STATE_NOBODY || is_there ? SB__REFUSE
                                                    : SB__TRANSFER;
    default:
        return head == SB_HEAD_LOST ? SB__REFUSE
               : is_new             ? SB__ZERO
               : is_there           ? SB__NOTHING
                                    : SB__TRANSFER;
    }
}

/* Whether a cell may stand in the table: it does the work that is needed, and its head says then
   who holds the newest bytes. */
static inline bool state_accepts(int32_t head, enum sb__call call, struct sb__cell cell) {
    const state_newest newest = state_said(head);
    if (cell.work != state_needed(head, newest, call))
        return false;
    const state_newest after = state_after(newest, call, cell.work);
    return after == STATE_NOBODY ? cell.head == head : state_said(cell.head) == after;
}

#endif
