/* Passes every struct with a struct_size to libsyncblob-comm, with each size up to a few bytes more
   than the current size. */
#include "mirror.h"
#include "struct_sizes.h"

#include <syncblob/sim_comm.h>

static sb_status sim_comm_options(void *given) {
    sb_comm *comm = NULL;
    const sb_status status = sb_sim_comm_create(NULL, 1, given, &comm, NULL);
    sb_comm_destroy(comm);
    return status;
}

static sb_status options_of_reducer(void *given) {
    sb_comm *comm = NULL;
    sb_reducer *reducer = NULL;
    assert_int_equal(sb_sim_comm_create(NULL, 1, NULL, &comm, NULL), SB_OK);
    const sb_status status = sb_reducer_create(comm, NULL, 0, given, &reducer, NULL);
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
    return status;
}

static sb_status engine(void *given) {
    struct mirror mirror = {.closed = 0};
    sb_comm *comm = NULL;
    const sb_status status = sb_comm_create(NULL, given, &mirror, &comm, NULL);
    sb_comm_destroy(comm);
    return status;
}

TEST(a_struct_is_read_up_to_its_size) {
    skip_on_32_bits("the sizes in this test are those of 64-bit hosts");
    static const sb_sim_comm_options ranks = SB_SIM_COMM_OPTIONS_INIT;
    static const sb_reducer_options reducer = SB_REDUCER_OPTIONS_INIT;
    const struct sized rows[] = {
        {"sb_sim_comm_options", sim_comm_options, &ranks, 24, sizeof ranks},
        {"sb_reducer_options", options_of_reducer, &reducer, 24, sizeof reducer},
        {"sb_comm_engine", engine, &mirror_engine_at_once, 56, sizeof(sb_comm_engine)},
    };
    check_struct_sizes(rows, sizeof rows / sizeof *rows);
}
