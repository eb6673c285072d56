#include "tasks.h"

#include "halves.h"
#include "port/threads.h"

#include <sched.h>

const int64_t net_counts[NET_BLOBS] = {3, 700, 0, 1, 64, 5, 1, 33, 12, 40, 7, 90};
const sb_dtype net_dtypes[NET_BLOBS] = {
    SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F64, SB_DTYPE_F64, SB_DTYPE_F32,
    SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F16, SB_DTYPE_F16, SB_DTYPE_BF16,
};

double value_of_rank(sb_dtype dtype, int32_t rank, int blob, int64_t i) {
    uint64_t seed = (uint64_t)rank * 7919u + (uint64_t)blob * 104729u + (uint64_t)i;
    if (is_half(dtype))
        return (double)(test_random(&seed) % 17) - 8;
    return (double)(test_random(&seed) >> 44) / 1024.0 - 500.0;
}

static bool is_combined(double found, sb_dtype dtype, sb_comm_op op, int32_t first, int32_t last,
                        int blob, int64_t i) {
    double all = value_of_rank(dtype, first, blob, i);
    for (int32_t rank = first + 1; rank < last; rank++) {
        const double value = value_of_rank(dtype, rank, blob, i);
        if (op == SB_COMM_SUM || op == SB_COMM_MEAN)
            all += value;
        else if (op == SB_COMM_MIN ? value < all : value > all)
            all = value;
    }
    if (op != SB_COMM_MEAN)
        return found == all;
    const int32_t size = last - first;
    const double off = found - all / size;
    const double most =
        is_half(dtype) ? 8 * 0x1p-9 : size * 500 * (dtype == SB_DTYPE_F32 ? 6e-8 : 2e-16);
    return off <= most && -off <= most;
}

void net_open(struct net *net, sb_context *context) {
    *net = (struct net){.context = context};
    for (int b = 0; b < NET_BLOBS; b++)
        expect_ok(
            sb_blob_create_shaped(context, net_dtypes[b], &net_counts[b], 1, &net->blobs[b], &err));
}

void net_close(struct net *net) {
    sb_reducer_destroy(net->reducer);
    for (int b = 0; b < NET_BLOBS; b++)
        sb_blob_destroy(net->blobs[b]);
}

sb_status net_fill(struct net *net, int32_t rank, int blob, int32_t head, sb_error *err) {
    void *values;
    const void *in;
    sb_blob *filled = net->blobs[blob];
    sb_status st = sb_blob_overwrite_cpu(filled, SB_DIFF, &values, err);
    if (st != SB_OK)
        return st;
    for (int64_t i = 0; i < net_counts[blob]; i++)
        put_value(net_dtypes[blob], values, i, value_of_rank(net_dtypes[blob], rank, blob, i));
    if (head == SB_HEAD_SYNCED)
        return sb_blob_gpu(filled, SB_DIFF, &in, err);
    return head == SB_HEAD_AT_GPU ? sb_blob_mutable_gpu(filled, SB_DIFF, &values, err) : st;
}

void net_fill_all(struct net *net, int32_t rank, int32_t head) {
    for (int b = 0; b < NET_BLOBS; b++)
        expect_ok(net_fill(net, rank, b, head, &err));
}

bool net_holds(struct net *net, int blob, sb_comm_op op, int32_t first, int32_t last) {
    const sb_dtype dtype = net_dtypes[blob];
    const void *values;
    if (sb_blob_cpu(net->blobs[blob], SB_DIFF, &values, &err) != SB_OK)
        return false;
    for (int64_t i = 0; i < net_counts[blob]; i++)
        if (!is_combined(get_value(dtype, values, i), dtype, op, first, last, blob, i))
            return false;
    return true;
}

bool net_all_hold(struct net *net, sb_comm_op op, int32_t first, int32_t last) {
    int held = 0;
    for (int b = 0; b < NET_BLOBS; b++)
        held += net_holds(net, b, op, first, last);
    return held == NET_BLOBS;
}

sb_status net_register(struct net *net, sb_comm *comm, size_t bucket_bytes, sb_error *err) {
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    options.bucket_bytes = bucket_bytes;
    return sb_reducer_create(comm, net->blobs, NET_BLOBS, &options, &net->reducer, err);
}

sb_status net_step(struct net *net, sb_error *err) {
    sb_status st = SB_OK;
    for (int b = NET_BLOBS; b-- && st == SB_OK;)
        st = sb_reducer_ready(net->reducer, net->blobs[b], err);
    return st == SB_OK ? sb_reducer_wait(net->reducer, err) : st;
}

#define MOST 2500 /* more than two blocks of sim_combine.c */

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

/* Only ranks 0 and 1 change the result. With more ranks an engine may choose another algorithm. */
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

static void shuffle(int *order, int count, uint64_t *seed) {
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)(test_random(seed) % (uint64_t)(i + 1)), other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}

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
