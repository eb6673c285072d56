/* As client.c, with the structs of libsyncblob-comm: comm older|same|newer. */
#include "place.h"

#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>

/* What each struct had in version 0.1. */
enum { FIRST_SIM_COMM_OPTIONS = 24, FIRST_REDUCER_OPTIONS = 24, FIRST_COMM_ENGINE = 56 };

static sb_status create_ranks(const sb_sim_comm_options *options) {
    sb_comm *comm = NULL;
    const sb_status status = sb_sim_comm_create(NULL, 1, options, &comm, NULL);
    sb_comm_destroy(comm);
    return status;
}

static void sim_comm_options(void) {
    sb_sim_comm_options options = SB_SIM_COMM_OPTIONS_INIT;
    CHECK(create_ranks(placed(&options, sizeof options)) == SB_OK);
    CHECK(create_ranks(placed(&options, FIRST_SIM_COMM_OPTIONS)) == SB_OK);
    CHECK(create_ranks(placed(&options, FIRST_SIM_COMM_OPTIONS - 8)) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    options.later = 1;
    CHECK(create_ranks(placed(&options, sizeof options)) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
}

static sb_status create_reducer(const sb_reducer_options *options) {
    sb_comm *comm = NULL;
    sb_reducer *reducer = NULL;
    if (sb_sim_comm_create(NULL, 1, NULL, &comm, NULL))
        abort();
    const sb_status status = sb_reducer_create(comm, NULL, 0, options, &reducer, NULL);
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
    return status;
}

static void reducer_options(void) {
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    CHECK(create_reducer(placed(&options, sizeof options)) == SB_OK);
    CHECK(create_reducer(placed(&options, FIRST_REDUCER_OPTIONS)) == SB_OK);
    CHECK(create_reducer(placed(&options, FIRST_REDUCER_OPTIONS - 8)) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    options.later = 1;
    CHECK(create_reducer(placed(&options, sizeof options)) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
}

static sb_status engine_open(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                             sb_error *err) {
    (void)user, (void)err;
    *out = NULL;
    *out_rank = 0;
    *out_size = 1;
    return SB_OK;
}

static void engine_close(void *comm, int32_t failed) {
    (void)comm, (void)failed;
}

static sb_status engine_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                               sb_error *err) {
    (void)comm, (void)op, (void)buffer, (void)err;
    return SB_OK;
}

static sb_status engine_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    (void)comm, (void)root, (void)buffer, (void)err;
    return SB_OK;
}

static sb_status create_comm(const sb_comm_engine *engine) {
    sb_comm *comm = NULL;
    const sb_status status = sb_comm_create(NULL, engine, NULL, &comm, NULL);
    CHECK(status != SB_OK || sb_comm_barrier(comm, NULL) == SB_OK);
    sb_comm_destroy(comm);
    return status;
}

static void comm_engine(void) {
    sb_comm_engine engine = {.abi_version = SB_COMM_ENGINE_ABI_VERSION,
                             .name = "mine",
                             .open = engine_open,
                             .close = engine_close,
                             .all_reduce = engine_reduce,
                             .broadcast = engine_broadcast};
    CHECK(create_comm(placed(&engine, sizeof engine)) == SB_OK);
    CHECK(create_comm(placed(&engine, FIRST_COMM_ENGINE)) == SB_OK);
    CHECK(create_comm(placed(&engine, FIRST_COMM_ENGINE - 8)) == SB_ERR_ABI_MISMATCH);
#ifdef SB_LATER
    engine.later = 1;
    CHECK(create_comm(placed(&engine, sizeof engine)) ==
          (library_is_older ? SB_ERR_UNSUPPORTED : SB_OK));
#endif
}

int main(int argc, char **argv) {
    begin(argc, argv);
    sim_comm_options();
    reducer_options();
    comm_engine();
    return failures != 0;
}
