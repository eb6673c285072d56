/* Sources, sinks and progress of a test's own: over memory, counted, failing at
   the n-th call as the test wants. */
#ifndef SB_TESTS_CALLBACKS_H
#define SB_TESTS_CALLBACKS_H

#include "support.h"

#include "wire_builder.h"

#include <stdatomic.h>

/* The call at which `left` reaches 0 returns `status`. */
struct test_fault {
    _Atomic int left; /* 0: none fails */
    sb_status status;
    bool silent; /* leaves the error alone */
};

struct test_source {
    const struct wire *wire;
    const struct wire *other;  /* what the reads from fault.left on find, if not NULL */
    struct test_fault fault;   /* of reads and versions, in their order */
    _Atomic int reads, closes; /* calls */
    _Atomic uint64_t version;
    _Atomic size_t largest; /* read */
    bool outside;           /* bytes were asked for that are not there */
};

/* A source of `wire`'s bytes; `s` is zero but for what the test set. */
sb_source test_source_of(struct test_source *s, const struct wire *wire);

struct test_sink {
    struct wire got;
    struct test_fault fault;
    int writes;
    size_t largest;
    bool after_failure; /* was written to after a failure, or nothing was written */
};

sb_sink test_sink_of(struct test_sink *s);

struct test_progress {
    int cancels_at; /* the report, from 1; 0: none */
    _Atomic int reports;
    uint64_t done, total;
    uint64_t largest_step; /* of `done` */
    bool wrong; /* `done` fell or is beyond `total`, `total` changed once known, or the call
                   went on after it was cancelled */
};

sb_progress test_progress_of(struct test_progress *p);

#endif
