/* Copies structs from and to callers that were compiled with another version of the library. */
#ifndef SB_BASE_OPTIONS_H
#define SB_BASE_OPTIONS_H

#include <syncblob/status.h>

/* Checks that `given` can be the size of the struct in some version of the library. The first
   version's struct had `first` bytes. Rejects most uninitialised sizes. A valid size is a multiple
   of sizeof(size_t), so that the struct does not end within a member. Errors: ABI_MISMATCH. */
sb_status sb__check_struct(size_t given, size_t first, const char *what, sb_error *err);

/* Copies the caller's struct of `given` bytes over the library's struct of `known` bytes, which
   holds the defaults. An older caller's struct may be smaller. In a newer caller's struct, members
   unknown to this library must be zero. Errors: ABI_MISMATCH, UNSUPPORTED. */
sb_status sb__adopt_struct(void *ours, size_t known, size_t first, const void *theirs, size_t given,
                           const char *what, sb_error *err);

/* Fills the caller's struct of `given` bytes from the library's struct of `known` bytes and sets
   struct_size to `given`. Writes at most `given` bytes. Unknown members of a newer caller's struct
   become zero. */
void sb__give_struct(void *theirs, size_t given, const void *ours, size_t known);

#endif
