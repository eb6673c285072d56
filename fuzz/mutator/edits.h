/* Edits of a message. Each edit writes a copy of the message with one change. */
#ifndef SB_FUZZ_EDITS_H
#define SB_FUZZ_EDITS_H

#include "message.h"

/* Writes the message with a random edit; returns false if the edit is impossible. */
bool edit_message(const struct message *message, struct dice *dice, struct buffer *out);

/* put_before writes the fields before `field`; put_from writes `field` and all bytes after it. */
void put_before(const struct message *message, size_t field, struct buffer *out);
void put_from(const struct message *message, size_t field, struct buffer *out);

#endif
