/* Option structs of other versions of the library. */
#ifndef SB_BASE_OPTIONS_H
#define SB_BASE_OPTIONS_H

#include <syncblob/status.h>

/* Whether a caller's struct of `given` bytes is one of any version, the first having had `first`.
   One that was never initialised is mostly none. Each begins with a size_t, so that its bytes are a
   multiple of that one's: a member is there whole or not at all. ABI_MISMATCH. */
sb_status sb__check_struct(size_t given, size_t first, const char *what, sb_error *err);

/* Copies a caller's struct of `given` bytes over one of ours of `known` bytes, which holds the
   defaults. An older caller's is smaller; of a newer one, what we do not know must be zero.
   ABI_MISMATCH, UNSUPPORTED. */
sb_status sb__adopt_struct(void *ours, size_t known, size_t first, const void *theirs, size_t given,
                           const char *what, sb_error *err);

/* Fills a caller's struct of `given` bytes, which become its struct_size, from one of ours of
   `known` bytes: an older caller's gets no more than it holds, what a newer one has beyond ours
   becomes zero. */
void sb__give_struct(void *theirs, size_t given, const void *ours, size_t known);

#endif
