/* A call whose failure changes nothing for the test: SB_MUST_CHECK warns of a cast to void, too. */
#ifndef SB_TESTS_IGNORE_H
#define SB_TESTS_IGNORE_H

#include <syncblob/status.h>

static inline void ignore(sb_status status) {
    (void)status;
}

#endif
