#include "tasks.h"

#include "halves.h"
#include "port/threads.h"

#include <sched.h>

#define MOST 2500 /* more than two of the blocks in which sim_combine.c reduces */

/* --- host memory ----------------------------------------------------------------------------- */

void reduce_values(sb_comm *comm, void *arg) {
    static const sb_dtype dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64, SB_DTYPE_F16, SB_DTYPE_BF16};
    static const int64_t counts[] = {0, 1, 5, MOST};
    const int32_t rank = sb_comm_rank(comm), size = sb_comm_size(comm);
    for (sb_comm_op op = SB_COMM_SUM; op <= SB_COMM_MAX; op++)
        for (int t = 0; t < 16; t++) {
            const sb_dtype dtype = dtypes[t / 4];
            const int64_t count = counts[t % 4];
            double values[MOST];
            int64_t held = 0;
            for (int64_t i = 0; i < count; i++)
                put_value(dtype, values, i, value_of_rank(dtype, rank, 0, i));
            expect_ok(sb_comm_all_reduce(comm, op, dtype, count, values, &err));
            for (int64_t i = 0; i < count; i++)
                held += is_combined(get_value(dtype, values, i), dtype, op, 0, size, 0, i);
            expect(held == count);
        }
}

/* Ranks 2 and above do not change the result; they make an engine choose other algorithms. */
void reduce_halves(sb_comm *comm, void *arg) {
    const int32_t rank = sb_comm_rank(comm), size = sb_comm_size(comm);
    for (int i = 0; i < HALF_ROWS && size > 1; i++) {
        const struct half_row *row = &half_rows[i];
        uint16_t values[MOST];
        int held = 0;
        if (row->op == SB_COMM_MEAN && size != 2)
            continue;
        for (int j = 0; j < MOST; j++)
            values[j] = rank == 0                ? row->one
                        : rank == 1              ? row->other
                        : row->op == SB_COMM_SUM ? 0
                                                 : row->one;
        expect_ok(sb_comm_all_reduce(comm, row->op, row->dtype, MOST, values, &err));
        for (int j = 0; j < MOST; j++)
            held += half_row_holds(row, values[j]);
        expect(held == MOST);
    }
}

void broadcast_bytes(sb_comm *comm, void *arg) {
    const int32_t rank = sb_comm_rank(comm), size = sb_comm_size(comm);
    char bytes[MOST], expected[MOST];
    for (int32_t root = 0; root < size; root++) {
        memset(bytes, rank + 1, MOST);
        memset(expected, root + 1, MOST - 1);
        expected[MOST - 1] = (char)(rank + 1); /* this byte is not sent */
        expect_ok(sb_comm_broadcast(comm, root, bytes, MOST - 1, &err));
        expect(memcmp(bytes, expected, MOST) == 0);
        expect_ok(sb_comm_broadcast(comm, root, NULL, 0, &err));
        expect_ok(sb_comm_barrier(comm, &err));
    }
    expect_status(SB_ERR_INVALID_ARGUMENT, sb_comm_broadcast(comm, size, bytes, 1, &err));
}

/* --- blobs ----------------------------------------------------------------------------------- */

static void open_at(struct net *net, const struct workplace *place, sb_comm *comm) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    options.device = place->device;
    if (place->device)
        expect_ok(sb_context_create(&options, &context, &err));
    net_open(net, place->device ? context : place->contexts[sb_comm_rank(comm)]);
}

static void close_at(struct net *net, const struct workplace *place) {
    net_close(net);
    if (place->device)
        sb_context_release(net->context);
}

/* Fills each diff; its bytes are then current on the host, the device, or both sides. */
static void fill_anywhere(struct net *net, int32_t rank, uint64_t *seed) {
    const bool has_device = sb_context_has_device(net->context);
    for (int b = 0; b < NET_BLOBS; b++) {
        const int32_t side = has_device ? (int32_t)(test_random(seed) % 3) : 0;
        expect_ok(net_fill(net, rank, b, SB_HEAD_AT_CPU + side, &err));
    }
}

static int32_t head_of(sb_blob *blob) {
    sb_mem *diff = NULL;
    expect_ok(sb_blob_mutable_mem(blob, SB_DIFF, &diff, &err));
    return sb_mem_head(diff);
}

void reduce_blobs(sb_comm *comm, void *arg) {
    const struct workplace *place = arg;
    const int32_t rank = sb_comm_rank(comm), size = sb_comm_size(comm);
    uint64_t seed = 3 + (uint64_t)rank;
    for (sb_comm_op op = SB_COMM_SUM; op <= SB_COMM_MAX; op++) {
        struct net net;
        open_at(&net, place, comm);
        fill_anywhere(&net, rank, &seed);
        const bool was_on_host = head_of(net.blobs[1]) == SB_HEAD_AT_CPU;
        expect_ok(sb_comm_all_reduce_blobs(comm, net.blobs, NET_BLOBS, SB_DIFF, op, &err));
        expect(!place->on_device ||
               head_of(net.blobs[1]) == (was_on_host ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU));
        expect(net_all_hold(&net, op, 0, size));
        close_at(&net, place);
    }
}

void broadcast_blobs(sb_comm *comm, void *arg) {
    const struct workplace *place = arg;
    const int32_t rank = sb_comm_rank(comm), size = sb_comm_size(comm);
    uint64_t seed = (uint64_t)rank;
    for (int32_t root = 0; root < size; root++) {
        struct net net;
        open_at(&net, place, comm);
        fill_anywhere(&net, rank, &seed);
        expect_ok(sb_comm_broadcast_blobs(comm, net.blobs, NET_BLOBS, SB_DIFF, root, &err));
        expect(net_all_hold(&net, SB_COMM_SUM, root, root + 1));
        close_at(&net, place);
    }
}

/* --- steps of a reducer ---------------------------------------------------------------------- */

static void step_in_random_order(struct net *net, sb_comm *comm, uint64_t *seed) {
    int order[NET_BLOBS];
    fill_anywhere(net, sb_comm_rank(comm), seed);
    shuffle(order, NET_BLOBS, seed);
    for (int i = 0; i < NET_BLOBS; i++)
        expect_ok(sb_reducer_ready(net->reducer, net->blobs[order[i]], &err));
    expect_ok(sb_reducer_wait(net->reducer, &err));
    expect(net_all_hold(net, SB_COMM_MEAN, 0, sb_comm_size(comm)));
}

void reduce_in_random_orders(sb_comm *comm, void *arg) {
    static const size_t bucket_sizes[] = {0, 4, 100, 512, 3000, SIZE_MAX};
    const struct workplace *place = arg;
    uint64_t seed = place->seed + (uint64_t)sb_comm_rank(comm);
    for (size_t b = 0; b < sizeof bucket_sizes / sizeof *bucket_sizes; b++) {
        struct net net;
        open_at(&net, place, comm);
        expect_ok(net_register(&net, comm, bucket_sizes[b], &err));
        for (int i = 0; i < place->steps && net.reducer; i++)
            step_in_random_order(&net, comm, &seed);
        close_at(&net, place);
    }
}

static void wait_ms(uint64_t ms) {
    for (const uint64_t then = sb__now() + ms * 1000000; sb__now() < then;)
        sched_yield();
}

void pause_longer_than_the_limit(sb_comm *comm, void *arg) {
    const struct workplace *place = arg;
    const bool is_first = sb_comm_rank(comm) == 0;
    struct net net;
    open_at(&net, place, comm);
    expect_ok(net_register(&net, comm, 0, &err));
    for (int b = NET_BLOBS; b--;) {
        if (b == (is_first ? 0 : NET_BLOBS - 1))
            wait_ms(place->limit_ms + (is_first ? 100 : 200));
        expect_ok(sb_reducer_ready(net.reducer, net.blobs[b], &err));
    }
    expect_ok(sb_reducer_wait(net.reducer, &err));
    close_at(&net, place);
}

void end_in_a_step(sb_comm *comm, void *arg) {
    const struct workplace *place = arg;
    struct net net;
    sb_status st = SB_OK;
    open_at(&net, place, comm);
    expect_ok(net_register(&net, comm, 100, &err));
    for (int b = NET_BLOBS; b-- > sb_comm_rank(comm) && st == SB_OK;)
        st = sb_reducer_ready(net.reducer, net.blobs[b], &err);
    expect(st == SB_OK || st == SB_ERR_COMM_FAILURE); /* another rank may have ended already */
    close_at(&net, place);
    expect_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(comm, &err));
}
