/* The simulated device, "sim:N". */
#ifndef SB_SIM_TABLE_H
#define SB_SIM_TABLE_H

#include <syncblob/backend.h>

/* If a test passes a copy of this table with SB_BACKEND_HOST_COHERENT and a non-NULL `user`, the
   device's memory is host-coherent. */
extern const sb_backend sb__sim_backend;

#endif
