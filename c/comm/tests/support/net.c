#include "net.h"

#include "halves.h"

const int64_t net_counts[NET_BLOBS] = {3, 700, 0, 1, 64, 5, 1, 33, 12, 40, 7, 90};
const sb_dtype net_dtypes[NET_BLOBS] = {
    SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F64, SB_DTYPE_F64, SB_DTYPE_F32,
    SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F32, SB_DTYPE_F16, SB_DTYPE_F16, SB_DTYPE_BF16,
};

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

/* --- values ---------------------------------------------------------------------------------- */

double value_of_rank(sb_dtype dtype, int32_t rank, int blob, int64_t i) {
    uint64_t seed = (uint64_t)rank * 7919u + (uint64_t)blob * 104729u + (uint64_t)i;
    if (is_half(dtype))
        return (double)(test_random(&seed) % 17) - 8;
    return (double)(test_random(&seed) >> 44) / 1024.0 - 500.0;
}

bool is_combined(double found, sb_dtype dtype, sb_comm_op op, int32_t first, int32_t last, int blob,
                 int64_t i) {
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

void shuffle(int *order, int count, uint64_t *seed) {
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)(test_random(seed) % (uint64_t)(i + 1)), other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}
