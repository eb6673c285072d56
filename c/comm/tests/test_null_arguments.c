/* Every pointer that a header does not mark [nullable], NULL in turn: the call is refused and
   changes nothing. Queries without a status have an answer. */
#include "blobs.h"
#include "rig.h"

#include <syncblob/comm_engine.h>
#include <syncblob/nccl.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>

struct world {
    struct rig rig;
    sb_blob *blob;
};

static void world_open(struct world *w) {
    rig_open(&w->rig);
    w->blob = blob_of_count(w->rig.context, SB_DTYPE_F32, 4);
}

/* Nothing was touched. */
static void world_close(struct world *w) {
    assert_int_equal(w->rig.counting.buffer_calls, 0);
    sb_blob_destroy(w->blob);
    rig_close(&w->rig);
}

TEST_ON(world, calls_of_nccl) {
    unsigned char id[SB_NCCL_ID_BYTES] = {0};
    sb_comm *comm;
    sb_context *context = f->rig.context;
    assert_names_null("out", sb_nccl_id_create(NULL, &err));
    assert_names_null("id", sb_nccl_comm_create(context, NULL, 0, 1, 0, &comm, &err));
    assert_names_null("out", sb_nccl_comm_create(context, id, 0, 1, 0, NULL, &err));
    assert_names_null("context", sb_nccl_comm_create(NULL, id, 0, 1, 0, &comm, &err));
    assert_names_null("contexts", sb_nccl_comm_create_all(NULL, 1, 0, &comm, &err));
    assert_names_null("out", sb_nccl_comm_create_all(&context, 1, 0, NULL, &err));
    assert_names_null("other", sb_nccl_comm_create_over(context, NULL, 0, &comm, &err));
}

TEST_ON(world, calls_of_communicators) {
    sb_comm *comm;
    double value = 0;
    assert_names_null("out", sb_sim_comm_create(f->rig.context, 1, NULL, NULL, &err));
    assert_names_null("engine", sb_comm_create(f->rig.context, NULL, NULL, &comm, &err));
    const sb_comm_engine engine = {.struct_size = sizeof engine};
    assert_names_null("out", sb_comm_create(f->rig.context, &engine, NULL, NULL, &err));
    assert_ok(sb_sim_comm_create(f->rig.context, 1, NULL, &comm, &err));
    assert_names_null("out", sb_nccl_comm_create_over(f->rig.context, comm, 0, NULL, &err));
    assert_names_null("comm", sb_sim_comm_fail(NULL, 1, SB_SIM_COMM_STOP, &err));
    assert_names_null("comm", sb_comm_all_reduce(NULL, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err));
    assert_names_null("values", sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, NULL, &err));
    assert_names_null("comm", sb_comm_broadcast(NULL, 0, &value, 8, &err));
    assert_names_null("bytes", sb_comm_broadcast(comm, 0, NULL, 8, &err));
    assert_names_null("comm", sb_comm_barrier(NULL, &err));
    assert_names_null("comm",
                      sb_comm_all_reduce_blobs(NULL, &f->blob, 1, SB_DATA, SB_COMM_SUM, &err));
    assert_names_null("blobs", sb_comm_all_reduce_blobs(comm, NULL, 1, SB_DATA, SB_COMM_SUM, &err));
    assert_names_null("comm", sb_comm_broadcast_blobs(NULL, &f->blob, 1, SB_DATA, 0, &err));
    assert_names_null("blobs", sb_comm_broadcast_blobs(comm, NULL, 1, SB_DATA, 0, &err));
    sb_reducer *reducer = NULL;
    assert_names_null("comm", sb_reducer_create(NULL, NULL, 0, NULL, &reducer, &err));
    assert_names_null("out", sb_reducer_create(comm, NULL, 0, NULL, NULL, &err));
    assert_names_null("blobs", sb_reducer_create(comm, NULL, 1, NULL, &reducer, &err));
    assert_ok(sb_reducer_create(comm, NULL, 0, NULL, &reducer, &err));
    assert_names_null("reducer", sb_reducer_ready(NULL, f->blob, &err));
    assert_names_null("blob", sb_reducer_ready(reducer, NULL, &err));
    assert_names_null("reducer", sb_reducer_wait(NULL, &err));
    sb_reducer_destroy(NULL);
    sb_reducer_destroy(reducer);
    assert_int_equal(sb_comm_rank(NULL), -1);
    assert_int_equal(sb_comm_size(NULL), 0);
    sb_comm_destroy(NULL);
    sb_comm_destroy(comm);
}
