/* What kind of file bytes are. */
#ifndef SB_FORMAT_DETECT_H
#define SB_FORMAT_DETECT_H

#include "wire/wire.h"

/* SB_FORMAT_*, but for AUTO; MALFORMED if it is none. */
sb_status sb__detect_format(struct sb__reader *reader, int32_t *out, sb_error *err);

#endif
