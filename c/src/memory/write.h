/* Writes to a memory in two steps. Begin makes one side allocated, writable, current if requested
   and free of pending transfers, but changes nothing observable. Commit moves the head to that
   side. The caller has exclusive access from begin until the write ends, as for mutable calls. */
#ifndef SB_MEMORY_WRITE_H
#define SB_MEMORY_WRITE_H

#include "memory/retired.h"

#include <syncblob/mem.h>

struct sb__target; /* memory/mem.h */

enum sb__write_mode {
    SB__WRITE_KEEP,      /* begin makes the bytes current, as for a mutable call */
    SB__WRITE_OVERWRITE, /* every byte will be written */
    SB__WRITE_FILL /* every byte will be written before any is read: new host memory may contain
                      another context's bytes */
};

struct sb__write {
    sb_mem *mem;
    int32_t side;
    void *ptr;
    const void *from; /* host bytes that begin copies to `ptr`, or NULL */
    bool uncleared;   /* the bytes at `ptr` may belong to another context: see SB__WRITE_FILL */
    bool replaces;    /* commit replaces the side's storage by `fresh` */
    bool discards;    /* the old bytes are not needed */
    bool is_ordered;  /* device: the library's stream is ordered after default streams */
    struct sb__storage fresh;
    struct sb__retiree *place; /* for the storage that `fresh` replaces */
};

sb_status sb__write_begin(struct sb__write *write, sb_mem *mem, int32_t side,
                          enum sb__write_mode mode, sb_error *err);
/* Adds replaced storage to `retired`. */
void sb__write_commit(struct sb__write *write, struct sb__retired *retired);
/* As sb__write_begin, for work that is queued on the stream of `target`. */
sb_status sb__write_begin_for(struct sb__write *write, sb_mem *mem, int32_t side,
                              enum sb__write_mode mode, const struct sb__target *target,
                              sb_error *err);
void sb__write_commit_for(struct sb__write *write, const struct sb__target *target,
                          struct sb__retired *retired);
/* Call after queueing arithmetic on the stream of `target`, so that a later wait for the bytes
   reports a failure of the arithmetic. Waits at once if no event can be recorded. */
sb_status sb__write_queued(struct sb__write *write, const struct sb__target *target, sb_error *err);
/* Ends a write that has written nothing. */
void sb__write_cancel(struct sb__write *write);
/* Waits for work that was queued on the library's stream into the device's side. A failure ends the
   write: the device is lost if current bytes were overwritten in place; else the next use of the
   storage is ordered after work that may still be running. */
sb_status sb__write_wait(struct sb__write *write, sb_error *err);
/* Call after a slot that writes in place has failed with `st` and queued nothing. If the device is
   lost and both sides share storage, the bytes are lost, too. */
void sb__write_refused(struct sb__write *write, sb_status st);
/* Ends a write during which the device failed: the head moves to the host if the host's bytes were
   current, else the memory is LOST. */
void sb__write_spoiled(struct sb__write *write);
/* Ends a write that leaves bytes written in place unspecified: the head moves to the other side if
   that side was current. */
void sb__write_half_done(struct sb__write *write);

#endif
