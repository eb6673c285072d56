/* The ways in which a harness reads an input: from memory, also with low limits or while
   allocations fail; from a file; and from a source whose n-th read fails, or whose reads from the
   n-th on return changed bytes. Also a sink whose n-th write can fail. */
#ifndef SB_FUZZ_WAYS_H
#define SB_FUZZ_WAYS_H

#include "watched.h"

enum trouble {
    TROUBLE_NONE,
    TROUBLE_FAILS,   /* only the n-th read fails */
    TROUBLE_CHANGES, /* from the n-th read on, each read returns one changed byte */
    TROUBLES
};

/* A way to read; the members that are not set have no effect. */
struct way {
    const char *path; /* the input as a file */
    uint32_t flags;   /* the flags of sb_model_open_file */
    const sb_limits *limits;
    int64_t fail_nth;        /* the n-th allocation fails */
    const sb_source *source; /* the input as a source; the next members describe its trouble */
    enum trouble trouble;
    const struct run *run;
    int left;       /* the read that decreases this number to 0 begins the trouble */
    uint32_t where; /* chooses the changed byte and its new value */
    int closed;
};

/* Reads the input into an object, compares the object with `expected`, and destroys the object.
   Returns the status. Calls way_begin and way_end before and after the call of the library. */
typedef sb_status read_way(const struct run *run, struct way *way, const void *expected);
void way_begin(const struct run *run, const struct way *way);
/* Checks the status, the offset of the error, and that a failure frees all memory. */
void way_end(const struct run *run, struct way *way, sb_status status);
/* Checks that a read in this way may return `status`: SB_ERR_IO only if the trouble has begun. */
void way_check(const struct way *way, sb_status status);

enum way_kind { FILE_WAY, MAPPED_WAY, LIMITS_WAY, SOURCE_WAY, REFUSALS_WAY, WAYS };
/* Reads the input in all ways of a kind. A read without a trouble must return `status` or, with
   `limits`, SB_ERR_DATA_LIMIT. The trouble begins at read 1, at read 1 + `step`, and so on. */
void check_way(const struct run *run, enum way_kind kind, read_way *read, const void *expected,
               sb_status status, const sb_limits *limits, int step);

/* A sink that checks that the bytes written are a prefix of `bytes`. */
struct drain {
    const uint8_t *bytes; /* NULL: accepts any bytes */
    size_t size, written;
    int left; /* the write that decreases this number to 0 fails; initially 0: no write fails */
};

sb_sink drain_sink(struct drain *drain);

#endif
