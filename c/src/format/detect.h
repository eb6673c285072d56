#ifndef SB_FORMAT_DETECT_H
#define SB_FORMAT_DETECT_H

#include "wire/wire.h"

/* Sets `*out` to an SB_FORMAT_* other than AUTO; fails with MALFORMED if no format matches. */
sb_status sb__detect_format(struct sb__reader *reader, int32_t *out, sb_error *err);

#endif
