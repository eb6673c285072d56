/* An engine of two ranks, of which the other does as this one: a sum is twice what is sent, and
   what it sends are bytes of one kind. It takes memory of the host and of "sim:N", records what it
   is given, and fails when told. */
#ifndef SB_TESTS_MIRROR_H
#define SB_TESTS_MIRROR_H

#include "rig.h"

#include <syncblob/comm_engine.h>

#define MIRROR_MOST 64

struct mirror_sent {
    sb_comm_buffer buffer;
    sb_comm_op op;
    bool flies;
};

struct mirror {
    bool takes_device;   /* said of every device */
    int64_t fail_begin;  /* the n-th of what begins fails, all_reduce, broadcast, start; 0: none */
    int64_t fail_end;    /* the n-th wait */
    int64_t fail_test;   /* the n-th test */
    sb_status failure;   /* with which status */
    bool tests_are_done; /* `test` says that a request is done, else `wait` alone ends it */
    int fill;            /* the bytes that the other rank sends */
    /* Since the last mirror_forget. */
    struct mirror_sent sent[MIRROR_MOST];
    int64_t num_sent, begins, ends, tests, flying, most_flying, abandoned;
    int64_t second; /* starts while another request flew */
    int64_t closed, closed_failed;
};

extern const sb_comm_engine mirror_engine;         /* with requests */
extern const sb_comm_engine mirror_engine_at_once; /* without them */
extern const char *const mirror_story;             /* of a failure; its device code is 7 */

/* What was recorded is forgotten, and counts begin anew; nothing fails. */
void mirror_forget(struct mirror *mirror);

#endif
