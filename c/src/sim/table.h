/* The simulated device, "sim:N". */
#ifndef SB_SIM_TABLE_H
#define SB_SIM_TABLE_H

#include <syncblob/backend.h>

/* A test passes a copy with SB_BACKEND_HOST_COHERENT and any `user`: then the device's memory is
   host-coherent. */
extern const sb_backend sb__sim_backend;

#endif
