#include "coherent.h"

#include "sim/table.h"

const sb_backend *coherent_table(void) {
    static sb_backend table;
    table = sb__sim_backend;
    table.flags |= SB_BACKEND_HOST_COHERENT;
    table.user = &table;
    return &table;
}
