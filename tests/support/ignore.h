/* Ignores a status that does not matter to the test. A cast to void would not silence the warning
   of SB_MUST_CHECK. */
#ifndef SB_TESTS_IGNORE_H
#define SB_TESTS_IGNORE_H

#include <syncblob/status.h>

static inline void ignore(sb_status status) {
    (void)status;
}

#endif
