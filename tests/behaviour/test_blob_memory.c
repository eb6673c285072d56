/* Tests calls that replace a blob's memory: sb_blob_set_mem, sb_blob_drop, and sb_blob_reclaim_cpu,
   by which a lender takes its memory back. */
#include "blobs.h"
#include "pointers.h"

#include <syncblob/dlpack.h>

#define COUNT 6
#define BYTES (COUNT * sizeof(float))

/* --- refusals ------------------------------------------------------------------------- */

/* A memory has no element type, so lent bytes may be misaligned for the elements of a blob. */
TEST_ON(rig, lent_bytes_must_suit_the_elements) {
    for (int on_device = 0; on_device < 2; on_device++) {
        rig_reopen_on(f, "sim:0", 0);
        struct lent lent =
            on_device ? lend_device(f->context, 2 * BYTES, 0x3F) : lend_host(2 * BYTES, 0x3F);
        sb_blob *floats = test_vector(f->context, SB_DTYPE_F32, COUNT);
        sb_blob *halves = test_vector(f->context, SB_DTYPE_F16, COUNT);
        char *askew = (char *)lent.ptr + 2;
        sb_mem *mem = test_mem(f->context, BYTES);
        assert_ok(on_device ? sb_mem_set_gpu(mem, askew, BYTES, 0, NULL, NULL, &err)
                            : sb_mem_set_cpu(mem, askew, BYTES, 0, NULL, NULL, &err));
        for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
            assert_status(INVALID, sb_blob_set_mem(floats, part, mem, &err));
        assert_ok(sb_blob_set_mem(halves, SB_DATA, mem, &err));
    }
}

/* --- a dropped diff --------------------------------------------------------------------- */

TEST_ON(rig, a_dropped_diff_frees_its_memory) {
    rig_reopen_on(f, "sim:0", SB_CONTEXT_NO_HOST_CACHE | SB_CONTEXT_NO_PINNED);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 1 << 16);
    (void)host_to_write(blob, SB_DATA);
    sb_stats before = rig_stats(f);
    (void)host_to_write(blob, SB_DIFF);
    (void)blob_pointer(blob, SB_DIFF, GPU_DATA);
    sb_blob_drop(blob, SB_DIFF);
    sb_stats after = rig_stats(f);
    assert_int_equal(after.host_bytes, before.host_bytes);
    assert_int_equal(after.device_bytes, before.device_bytes);
}

/* --- lent memory that the lender reclaims ---------------------------------------------------- */

struct loan {
    struct lent lent;
    sb_blob *blob, *other;
    sb_mem *owner;
    sb_dl_managed_versioned *tensor;
};

static void nothing_more(struct loan *l) {
}
static void a_share(struct loan *l) {
    assert_ok(sb_blob_share(l->other, SB_DATA, l->blob, &err));
}
static void an_owner(struct loan *l) {
    l->owner = sb_mem_retain(data_of(l->blob));
}
static void a_tensor(struct loan *l) {
    assert_ok(sb_blob_to_dlpack(l->blob, SB_DATA, SB_SIDE_CPU, &l->tensor, &err));
}
static void a_tensor_that_ends(struct loan *l) {
    a_tensor(l);
    l->tensor->deleter(l->tensor);
    l->tensor = NULL;
}
static void a_blob_of_a_tensor(struct loan *l) {
    a_tensor(l);
    assert_ok(sb_blob_from_dlpack(l->other, SB_DATA, l->tensor, 0, &err));
    l->tensor = NULL;
}
static void a_round_trip(struct loan *l) {
    assert_ok(sb_blob_to_mutable_dlpack(l->blob, SB_DATA, SB_SIDE_CPU, &l->tensor, &err));
    assert_ok(sb_blob_from_dlpack(l->blob, SB_DATA, l->tensor, 0, &err));
    l->tensor = NULL;
}
static void a_blob_on_a_part(struct loan *l) {
    assert_ok(sb_blob_to_mutable_dlpack(l->blob, SB_DATA, SB_SIDE_CPU, &l->tensor, &err));
    l->tensor->dl_tensor.byte_offset = 4;
    l->tensor->dl_tensor.shape[0] = 3;
    assert_ok(sb_blob_from_dlpack(l->blob, SB_DATA, l->tensor, SB_DLPACK_RESHAPE, &err));
    l->tensor = NULL;
}
static void a_device_that_has_them_too(struct loan *l) {
    (void)blob_pointer(l->blob, SB_DATA, GPU_DATA);
}
static void a_newer_device(struct loan *l) {
    (void)blob_pointer(l->blob, SB_DATA, MUTABLE_GPU);
}
static void a_push_under_way(struct loan *l) {
    assert_ok(sb_mem_async_gpu_push(data_of(l->blob), NULL, &err));
}
static void a_smaller_shape(struct loan *l) {
    assert_ok(sb_blob_reshape(l->blob, (int64_t[]){2}, 1, NULL, &err));
}
static void a_larger_shape(struct loan *l) {
    assert_ok(sb_blob_reshape(l->blob, (int64_t[]){40}, 1, NULL, &err));
    assert_int_equal(l->lent.deleted, 1);
}

TEST_ON(rig, lent_memory_is_reclaimed_from_its_only_user) {
    static const struct {
        void (*then)(struct loan *);
        bool reclaimed;
    } cases[] = {
        {nothing_more, true},       {a_share, false},
        {an_owner, false},          {a_tensor, false},
        {a_tensor_that_ends, true}, {a_blob_of_a_tensor, false},
        {a_round_trip, true},       {a_blob_on_a_part, false},
        {a_newer_device, false},    {a_device_that_has_them_too, true},
        {a_push_under_way, true},   {a_smaller_shape, true},
        {a_larger_shape, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t flags = 0; flags <= SB_READ_ONLY; flags += SB_READ_ONLY) {
            struct loan l = {.owner = NULL};
            void *user = &l;
            l.lent = lend_host(16, 0x31);
            l.blob = test_vector(f->context, SB_DTYPE_F32, 4);
            l.other = test_vector(f->context, SB_DTYPE_F32, 4);
            assert_ok(sb_blob_set_cpu(l.blob, SB_DATA, l.lent.ptr, 16, flags, lent_deleter, &l.lent,
                                      &err));
            cases[i].then(&l);
            bool left_it = l.lent.deleted; /* the call above has ended the loan */
            sb_status wanted = cases[i].reclaimed && !left_it ? (sb_status)SB_OK : INVALID;
            assert_status(wanted, sb_blob_reclaim_cpu(l.blob, SB_DATA, lent_deleter, &user, &err));
            assert_ptr_equal(user, wanted == SB_OK ? (void *)&l.lent : (void *)&l);
            l.lent.taken = true;
            sb_mem_release(l.owner);
            if (l.tensor)
                l.tensor->deleter(l.tensor);
            test_end(l.other);
            if (wanted == SB_OK)
                assert_int_equal(sb_mem_head(data_of(l.blob)), SB_HEAD_UNINITIALIZED);
            test_end(l.blob);
            assert_int_equal(l.lent.deleted, wanted != SB_OK);
        }
}

static void another_deleter(void *user, void *ptr) {
    lent_deleter(user, ptr);
}

TEST_ON(rig, only_lent_memory_is_reclaimed) {
    void *user = f, *out;
    struct lent lent = lend_host(16, 0), device = lend_device(f->context, 16, 0);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 4);
    assert_status(INVALID, sb_blob_reclaim_cpu(blob, SB_DATA, lent_deleter, &user, &err));
    assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &out, &err));
    assert_status(INVALID, sb_blob_reclaim_cpu(blob, SB_DATA, lent_deleter, &user, &err));
    assert_ok(sb_blob_set_gpu(blob, SB_DATA, device.ptr, 16, 0, lent_deleter, &device, &err));
    assert_status(INVALID, sb_blob_reclaim_cpu(blob, SB_DATA, lent_deleter, &user, &err));
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, 16, 0, lent_deleter, &lent, &err));
    assert_status(INVALID, sb_blob_reclaim_cpu(blob, SB_DATA, another_deleter, &user, &err));
    assert_ptr_equal(user, f);
    assert_int_equal(lent.deleted, 0);
    test_end(blob);
    assert_int_equal(lent.deleted, 1);
    assert_int_equal(device.deleted, 1);
}
