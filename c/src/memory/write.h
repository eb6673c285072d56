/* A write to a memory has two steps. Begin prepares one side: it allocates writable storage, waits
   for pending transfers and, if requested, makes the bytes current. Only commit, which moves the
   head to that side, changes what callers observe. The caller has exclusive access until the write
   ends. */
#ifndef SB_MEMORY_WRITE_H
#define SB_MEMORY_WRITE_H

#include "memory/retired.h"

#include <syncblob/mem.h>

struct sb__target; /* memory/mem.h */

enum sb__write_mode {
    SB__WRITE_KEEP,      /* begin makes the bytes current, as for a mutable call */
    SB__WRITE_OVERWRITE, /* the caller will write every byte */
    SB__WRITE_FILL /* only on the host: new memory may contain another context's bytes, because the
                      caller will write every byte before reading any byte */
};

struct sb__write {
    sb_mem *mem;
    int32_t side;
    void *ptr;
    const void *from;    /* host bytes that begin copies to `ptr`, or NULL */
    bool uncleared;      /* the bytes at `ptr` may belong to another context: see SB__WRITE_FILL */
    bool replaces;       /* commit replaces the side's storage by `fresh` */
    bool discards;       /* the old bytes are not needed */
    bool is_ordered;     /* on the device: the library's stream is ordered after default streams */
    uint64_t exposed_at; /* the earliest exposed_at of the operands that the target's stream has
                            written */
    struct sb__storage fresh;
    struct sb__retiree *place; /* the list entry for the storage that `fresh` replaces */
};

sb_status sb__write_begin(struct sb__write *write, sb_mem *mem, int32_t side,
                          enum sb__write_mode mode, sb_error *err);
/* Commits the write and adds replaced storage to `retired`. */
void sb__write_commit(struct sb__write *write, struct sb__retired *retired);
/* As sb__write_begin, for work that is queued on the stream of `target`. */
sb_status sb__write_begin_for(struct sb__write *write, sb_mem *mem, int32_t side,
                              enum sb__write_mode mode, const struct sb__target *target,
                              sb_error *err);
void sb__write_commit_for(struct sb__write *write, const struct sb__target *target,
                          struct sb__retired *retired);
/* Called after arithmetic has been queued on the stream of `target`. A later wait for the bytes
   then reports a failure of the arithmetic. If no event can be recorded, waits at once. */
sb_status sb__write_queued(struct sb__write *write, const struct sb__target *target, sb_error *err);
/* Ends a write that has written nothing. */
void sb__write_cancel(struct sb__write *write);
/* Waits for the work on the library's stream that writes the device side. A failure ends the write.
   If that work fails and overwrites current bytes in place, the device is lost. Otherwise failed
   work may still be running, and the next use of the storage is ordered after it. */
sb_status sb__write_wait(struct sb__write *write, sb_error *err);
/* Called if the backend's slot for the write has failed with `st` and queued nothing. If the device
   is lost and both sides share storage, the bytes are lost, too. */
void sb__write_refused(struct sb__write *write, sb_status st);
/* Ends a write during which the device failed. The head moves to the host if the host's bytes were
   current. Otherwise the memory is LOST. */
void sb__write_spoiled(struct sb__write *write);
/* Ends a write that may have written some bytes in place. The head moves to the other side if that
   side's bytes are current. */
void sb__write_half_done(struct sb__write *write);

#endif
