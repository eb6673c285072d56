/* Edits of a message. Each edit writes a copy of the message with one change. */
#ifndef SB_FUZZ_EDITS_H
#define SB_FUZZ_EDITS_H

#include "message.h"

/* Writes the message with a random edit; returns false if the edit is impossible. */
bool edit_message(const struct message *message, uint64_t *dice, struct buffer *out);

#endif
