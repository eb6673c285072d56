/* The ways in which a harness reads an input: from memory, from a file, and from a source that may
   fail. */
#ifndef SB_FUZZ_WAYS_H
#define SB_FUZZ_WAYS_H

#include "watched.h"

enum trouble {
    TROUBLE_NONE,
    TROUBLE_FAILS,   /* only the n-th read fails */
    TROUBLE_CHANGES, /* each read from the n-th on returns one changed byte */
    TROUBLES
};

/* One way to read the input. A member that is 0 or NULL has no effect. */
struct way {
    const char *path; /* a file that contains the input */
    uint32_t flags;
    const sb_limits *limits;
    int64_t fail_nth;        /* the n-th allocation fails */
    const sb_source *source; /* a source of the input, which causes `trouble` */
    enum trouble trouble;
    const struct run *run;
    int left;       /* the read that decreases `left` to 0 begins the trouble */
    uint32_t where; /* chooses the changed byte and its new value */
    int closed;
};

/* Reads the input into an object that must equal `expected`. Calls way_begin and way_end around the
   read. */
typedef sb_status read_way(const struct run *run, struct way *way, const void *expected);
void way_begin(const struct run *run, const struct way *way);
/* Checks the status, the offset of the error, and that a failed read frees all memory. */
void way_end(const struct run *run, struct way *way, sb_status status);
/* The status may be SB_ERR_IO only if the trouble has begun. */
void way_check(const struct way *way, sb_status status);

enum way_kind { FILE_WAY, MAPPED_WAY, LIMITS_WAY, SOURCE_WAY, REFUSALS_WAY, WAYS };
/* In SOURCE_WAY the trouble begins at read 1, then at read 1 + `step`, and so on. Other reads must
   return `status` or, with `limits`, SB_ERR_DATA_LIMIT. */
void check_way(const struct run *run, enum way_kind kind, read_way *read, const void *expected,
               sb_status status, const sb_limits *limits, int step);

/* A sink that checks that the bytes written are a prefix of `bytes`. */
struct drain {
    const uint8_t *bytes; /* if NULL, the sink accepts any bytes */
    size_t size, written;
    int left; /* the write that decreases `left` to 0 fails; initially 0: no write fails */
};

sb_sink drain_sink(struct drain *drain);

#endif
