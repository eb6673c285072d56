/* Files of a test, and sources, sinks and progress callbacks in memory that count calls and can
   fail. */
#ifndef SB_TESTS_FILES_H
#define SB_TESTS_FILES_H

#include "support.h"
#include "wire_builder.h"

#include <stdatomic.h>

struct wire wire_of_file(const char *path);
void file_write(const char *path, const void *bytes, size_t size);
void file_write_wire(const char *path, const struct wire *wire);
void assert_wire(const struct wire *found, const struct wire *expected);
int files_in(const char *folder);
bool file_holds(const char *path, const char *text);

/* Wine 8 and Windows before version 10 cannot replace open files. */
#ifdef _WIN32
bool file_is_replaced_while_open(void);
#else
static inline bool file_is_replaced_while_open(void) {
    return true;
}
#endif

/* Each call decrements `left`. The call that makes `left` 0 returns `status`. */
struct test_fault {
    _Atomic int left; /* 0: no call fails */
    sb_status status;
    bool silent; /* the call that fails does not fill the error */
};

struct test_source {
    const struct wire *wire;
    const struct wire *other;  /* [nullable] the bytes for read number fault.left and later reads */
    struct test_fault fault;   /* counts calls of read_at and, unless `other` is set, of version */
    _Atomic int reads, closes; /* numbers of calls */
    _Atomic uint64_t version;
    _Atomic size_t bytes;
    _Atomic size_t largest; /* the size of the largest read */
    bool outside;           /* a read requested 0 bytes, or bytes past the end */
};

/* Members of `s` that the test does not set must be 0. */
sb_source test_source_of(struct test_source *s, const struct wire *wire);

struct test_sink {
    struct wire got;
    struct test_fault fault;
    int writes;
    size_t largest;
    bool after_failure; /* a write followed a failure, or had no bytes */
};

sb_sink test_sink_of(struct test_sink *s);

struct test_progress {
    int cancels_at; /* number of the report that cancels, counted from 1 (0: no report) */
    _Atomic int reports;
    uint64_t done, total;
    uint64_t largest_step; /* largest increase of `done` */
    bool wrong;            /* a report was wrong, or came after the report that cancelled */
};

sb_progress test_progress_of(struct test_progress *p);

#endif
