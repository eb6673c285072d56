/* An engine of two ranks, where the other rank does the same as this rank: a sum is twice the data
   sent, and the bytes that the other rank broadcasts all have one value. The engine accepts memory
   of the host and of "sim:N", records its arguments, and fails when the test requests it. */
#ifndef SB_TESTS_MIRROR_H
#define SB_TESTS_MIRROR_H

#include "rig.h"

#include <syncblob/comm_engine.h>

#define MIRROR_MOST 64

struct mirror_sent {
    sb_comm_buffer buffer;
    sb_comm_op op;
    bool in_flight;
};

struct mirror {
    bool takes_device;   /* the engine accepts memory of devices */
    int64_t fail_begin;  /* the n-th all_reduce, broadcast or start fails; 0: no call fails */
    int64_t fail_end;    /* the n-th wait fails; 0: no call fails */
    int64_t fail_test;   /* the n-th test fails; 0: no call fails */
    sb_status failure;   /* the status of a failure */
    bool tests_are_done; /* `test` reports that a request is done; else only `wait` ends requests */
    int fill;            /* the byte that the other rank sends */
    /* Counts since the last mirror_forget. */
    struct mirror_sent sent[MIRROR_MOST];
    int64_t num_sent, begins, ends, tests, flying, most_flying, abandoned;
    int64_t second; /* calls of `start` while another request was in flight */
    int64_t closed, closed_failed;
};

extern const sb_comm_engine mirror_engine;         /* with requests */
extern const sb_comm_engine mirror_engine_at_once; /* without requests */
extern const char *const mirror_cause; /* the message of a failure; its device code is 7 */

/* Clears the records and the counts, and disarms failures. */
void mirror_forget(struct mirror *mirror);

#endif
