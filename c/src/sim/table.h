/* The simulated device, "sim:N". */
#ifndef SB_SIM_TABLE_H
#define SB_SIM_TABLE_H

#include <syncblob/backend.h>

extern const sb_backend sb__sim_backend;

#endif
