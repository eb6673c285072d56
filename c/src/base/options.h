/* Option structs of callers that were compiled with another version of the library. */
#ifndef SB_BASE_OPTIONS_H
#define SB_BASE_OPTIONS_H

#include <syncblob/status.h>

/* Checks that `given` can be the size of a struct of some version; the first version had `first`
   bytes. Refuses most uninitialised sizes. A size is a multiple of sizeof(size_t), so that the
   struct does not end within a member. Errors: ABI_MISMATCH. */
sb_status sb__check_struct(size_t given, size_t first, const char *what, sb_error *err);

/* Copies the caller's struct of `given` bytes over the library's struct of `known` bytes, which
   holds the defaults. An older caller's struct is smaller; in a newer caller's struct, unknown
   members must be zero. Errors: ABI_MISMATCH, UNSUPPORTED. */
sb_status sb__adopt_struct(void *ours, size_t known, size_t first, const void *theirs, size_t given,
                           const char *what, sb_error *err);

/* Fills the caller's struct of `given` bytes from the library's struct of `known` bytes and sets
   struct_size to `given`. Writes at most `given` bytes; unknown members of a newer caller's struct
   become zero. */
void sb__give_struct(void *theirs, size_t given, const void *ours, size_t known);

#endif
