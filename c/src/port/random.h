/* Random numbers that an attacker cannot predict. */
#ifndef SB_PORT_RANDOM_H
#define SB_PORT_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Returns false if the system cannot supply a number. On Linux and macOS errno has the reason. */
bool sb__random_number(uint64_t *out);

#endif
