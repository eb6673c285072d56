/* Ignores a status whose failure does not matter to the test: a cast to void does not silence the
   warning of SB_MUST_CHECK. */
#ifndef SB_TESTS_IGNORE_H
#define SB_TESTS_IGNORE_H

#include <syncblob/status.h>

static inline void ignore(sb_status status) {
    (void)status;
}

#endif
