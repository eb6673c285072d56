/* Simulates two ranks. The second rank sends the same values as the first. A sum is twice the data
   sent, and each broadcast byte is `fill`. */
#ifndef SB_TESTS_MIRROR_H
#define SB_TESTS_MIRROR_H

#include "blobs.h"

#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>

#define MIRROR_MOST   64
#define MIRROR_BLOBS  6
#define MIRROR_VALUES (1 << 17) /* the most values of a blob */

struct mirror_sent {
    sb_comm_buffer buffer;
    sb_comm_op op;
    bool in_flight;
};

struct mirror {
    int32_t takes_device; /* the engine accepts device memory */
    int64_t fail_begin;   /* the n-th all_reduce, broadcast or start fails; 0: no call fails */
    int64_t fail_end;     /* the n-th wait fails; 0: no call fails */
    int64_t fail_test;    /* the n-th test fails; 0: no call fails */
    sb_status failure;    /* if IO or COMM_FAILURE, also overwrites the buffer */
    bool tests_are_done; /* `test` reports that a request is done; else only `wait` ends requests */
    bool keeps;          /* an abandoned request may still write to its memory */
    int fill;            /* the byte that the second rank sends */
    /* The calls since the last mirror_forget. `closed` and `closed_failed` count all calls. */
    struct mirror_sent sent[MIRROR_MOST];
    int64_t num_sent, begins, ends, tests, flying, most_flying, abandoned, spoiled;
    int64_t second; /* calls of `start` while another request was in flight */
    int64_t closed, closed_failed;
};

extern const sb_comm_engine mirror_engine;         /* the engine has requests */
extern const sb_comm_engine mirror_engine_at_once; /* the engine has no requests */
extern const char *const mirror_cause; /* the message of each failure; the device code is 7 */

void mirror_forget(struct mirror *mirror);

struct mirrored {
    struct rig rig;
    struct mirror mirror;
    sb_comm *comm;
    sb_blob *blobs[MIRROR_BLOBS];
    int64_t num_blobs;
    sb_reducer *reducer;
    bool is_broken; /* the communicator is unusable at the end of the test */
};

/* Opens the fixture on "sim:0", with an engine that does not accept memory of the device. */
void mirrored_open(struct mirrored *m);
void mirrored_close(struct mirrored *m);
void mirrored_reopen(struct mirrored *m, const sb_comm_engine *engine, int32_t takes_device);

/* Adds a blob whose data is start, start + 1, ... with the given head. */
void mirrored_add(struct mirrored *m, sb_dtype dtype, int64_t count, double start, int32_t head);
void mirrored_put(struct mirrored *m, int64_t i, double start, int32_t head);
/* Returns whether the data of blob i is start, start + step, ... Does not move the head. */
bool mirrored_holds(struct mirrored *m, int64_t i, double start, double step);
void mirrored_register(struct mirrored *m, sb_comm_op op, size_t bucket_bytes);

#endif
