/* Writing to a memory in two steps: begin makes one side allocated, writable,
   current if asked, with nothing pending, and changes nothing that a caller
   can see; commit moves the head there. The caller has the exclusion that
   mutable calls need from begin to the end. */
#ifndef SB_MEMORY_WRITE_H
#define SB_MEMORY_WRITE_H

#include "memory/retired.h"

#include <syncblob/mem.h>

struct sb__target; /* memory/mem.h */

enum sb__write_mode {
    SB__WRITE_KEEP,      /* the bytes are made current first, as for a mutable call */
    SB__WRITE_OVERWRITE, /* every byte will be written */
    SB__WRITE_FILL       /* the same, before anybody sees one: new host bytes may be another's */
};

struct sb__write {
    sb_mem *mem;
    int32_t side;
    void *ptr;
    const void *from; /* host bytes that begin copies to `ptr`, or NULL */
    bool uncleared;   /* the bytes at `ptr` are new, and perhaps another's: see SB__WRITE_FILL */
    bool replaces;    /* `fresh` takes the place of the side's storage on commit */
    bool discards;    /* the bytes that there were are of no use */
    bool is_ordered;  /* on the device: the library's own stream comes after default streams */
    struct sb__storage fresh;
    struct sb__retiree *place; /* of what `fresh` replaces */
};

sb_status sb__write_begin(struct sb__write *write, sb_mem *mem, int32_t side,
                          enum sb__write_mode mode, sb_error *err);
/* What the write replaced goes to `retired`. */
void sb__write_commit(struct sb__write *write, struct sb__retired *retired);
/* The same for work that is queued for a target. */
sb_status sb__write_begin_for(struct sb__write *write, sb_mem *mem, int32_t side,
                              enum sb__write_mode mode, const struct sb__target *target,
                              sb_error *err);
void sb__write_commit_for(struct sb__write *write, const struct sb__target *target,
                          struct sb__retired *retired);
/* After arithmetic that was queued on the stream of `target`, whose `write` this is: the thread
   that waits for the bytes gets its failure. Where no event of it can be had, it is waited for
   here. */
sb_status sb__write_queued(struct sb__write *write, const struct sb__target *target, sb_error *err);
/* Nothing was written. */
void sb__write_cancel(struct sb__write *write);
/* Waits for work that was queued on the library's own stream into the device's side. If that fails,
   the write has ended: the device is lost where current bytes were being overwritten; elsewhere
   the next use of the storage comes after work that may still go on. */
sb_status sb__write_wait(struct sb__write *write, sb_error *err);
/* The device failed while it wrote: host bytes that were current become the head, else LOST. */
void sb__write_spoiled(struct sb__write *write);
/* What was written in place is unspecified: the other side is the head if it was current, too. */
void sb__write_half_done(struct sb__write *write);

#endif
