/* A source of the input's bytes. Its n-th read can fail, or its reads from the n-th on can return
   changed bytes. Also a sink whose n-th write can fail. */
#ifndef SB_FUZZ_UNSTEADY_H
#define SB_FUZZ_UNSTEADY_H

#include "fuzz.h"

enum trouble {
    TROUBLE_NONE,
    TROUBLE_FAILS,   /* only the n-th read fails */
    TROUBLE_CHANGES, /* from the n-th read on, each read returns one changed byte */
    TROUBLES
};

struct unsteady {
    const uint8_t *bytes;
    size_t size;
    enum trouble trouble;
    int left;       /* counts reads down; the read that makes `left` 0 begins the trouble */
    uint32_t where; /* chooses the changed byte and its new value */
    int closed;
};

sb_source unsteady_source(struct unsteady *unsteady);
/* Returns whether the n-th read has happened. */
bool unsteady_struck(const struct unsteady *unsteady);
/* Checks that the last call may return `status`, because of the trouble or of the input bytes. */
void unsteady_check(const struct unsteady *unsteady, sb_status status);

/* A sink that checks that the bytes written are a prefix of `bytes`. */
struct drain {
    const uint8_t *bytes; /* NULL: accepts any bytes */
    size_t size, written;
    int left; /* counts down; the write that makes `left` 0 fails; initially 0: no write fails */
};

sb_sink drain_sink(struct drain *drain);

#endif
