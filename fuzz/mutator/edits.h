/* What can be done to one message: each edit writes it anew with one thing changed. */
#ifndef SB_FUZZ_EDITS_H
#define SB_FUZZ_EDITS_H

#include "message.h"

/* The message with a random edit; false where the one that was drawn does not apply. */
bool edit_message(const struct message *message, struct dice *dice, struct buffer *out);

/* The fields before `field`, and those behind it with what is no field. */
void put_before(const struct message *message, size_t field, struct buffer *out);
void put_from(const struct message *message, size_t field, struct buffer *out);

#endif
