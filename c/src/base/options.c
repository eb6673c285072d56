#include "base/options.h"

#include "base/error.h"

#include <string.h>

/* An upper bound for the size of a struct of any version. */
#define MAX_STRUCT_SIZE 4096

sb_status sb__check_struct(size_t given, size_t first, const char *what, sb_error *err) {
    if (given < first || given > MAX_STRUCT_SIZE)
        return sb__fail(err, SB_ERR_ABI_MISMATCH, "%s has %zu bytes or more, struct_size is %zu",
                        what, first, given);
    if (given % sizeof given)
        return sb__fail(err, SB_ERR_ABI_MISMATCH, "%s ends within a member, struct_size is %zu",
                        what, given);
    return SB_OK;
}

sb_status sb__adopt_struct(void *ours, size_t known, size_t first, const void *theirs, size_t given,
                           const char *what, sb_error *err) {
    sb_status st = sb__check_struct(given, first, what, err);
    if (st != SB_OK)
        return st;
    for (size_t i = known; i < given; i++)
        if (((const unsigned char *)theirs)[i])
            return sb__fail(err, SB_ERR_UNSUPPORTED,
                            "%s sets a member at byte %zu that this version does not know", what,
                            i);
    memcpy(ours, theirs, given < known ? given : known);
    return SB_OK;
}

void sb__give_struct(void *theirs, size_t given, const void *ours, size_t known) {
    const size_t shared = given < known ? given : known;
    if (given < sizeof given)
        return;
    memcpy(theirs, ours, shared);
    memset((char *)theirs + shared, 0, given - shared);
    memcpy(theirs, &given, sizeof given);
}
