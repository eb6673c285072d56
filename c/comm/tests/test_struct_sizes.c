/* Passes structs of all sizes to libsyncblob-comm. The file must compile with headers of other
   versions. */
#include "struct_sizes.h"

#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>

static sb_status sim_comm_options(void *given) {
    sb_comm *comm = NULL;
    const sb_status status = sb_sim_comm_create(NULL, 1, given, &comm, NULL);
    sb_comm_destroy(comm);
    return status;
}

static sb_status reducer_options(void *given) {
    sb_comm *comm = NULL;
    sb_reducer *reducer = NULL;
    assert_int_equal(sb_sim_comm_create(NULL, 1, NULL, &comm, NULL), SB_OK);
    const sb_status status = sb_reducer_create(comm, NULL, 0, given, &reducer, NULL);
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
    return status;
}

static sb_status alone(void *user, void **out, int32_t *rank, int32_t *size, sb_error *err) {
    *out = user;
    *rank = 0;
    *size = 1;
    return SB_OK;
}

static void end_alone(void *comm, int32_t failed) {
}

static sb_status reduce_alone(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                              sb_error *err) {
    return SB_OK;
}

static sb_status broadcast_alone(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                 sb_error *err) {
    return SB_OK;
}

static sb_status engine(void *given) {
    sb_comm *comm = NULL;
    const sb_status status = sb_comm_create(NULL, given, NULL, &comm, NULL);
    sb_comm_destroy(comm);
    return status;
}

TEST(a_struct_is_read_up_to_its_size) {
    skip_on_32_bits("the sizes in this test are those of 64-bit hosts");
    static const sb_sim_comm_options ranks = SB_SIM_COMM_OPTIONS_INIT;
    static const sb_reducer_options reducer = SB_REDUCER_OPTIONS_INIT;
    static const sb_comm_engine table = {.abi_version = SB_COMM_ENGINE_ABI_VERSION,
                                         .name = "alone",
                                         .open = alone,
                                         .close = end_alone,
                                         .all_reduce = reduce_alone,
                                         .broadcast = broadcast_alone};
    const struct sized rows[] = {
        {"sb_sim_comm_options", sim_comm_options, &ranks, 24, sizeof ranks},
        {"sb_reducer_options", reducer_options, &reducer, 24, sizeof reducer},
        {"sb_comm_engine", engine, &table, 56, sizeof table},
    };
    check_struct_sizes(rows, sizeof rows / sizeof *rows);
}
