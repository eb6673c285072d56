/* Tests blobs whose data was lost with the device. Reads fail until an overwrite on the host makes
   the data valid again. */
#include "blobs.h"
#include "pointers.h"
#include "wire_builder.h"

#include "memory/storage.h"

#define COUNT 6
#define BYTES (COUNT * sizeof(float))
#define LOST  SB_ERR_UNINITIALIZED

struct wreck {
    struct rig rig;
    sb_blob *lost, *whole; /* `lost` has lost its data; data and diff of `whole` are on the host */
    float values[COUNT];
};

static void wreck_open(struct wreck *w) {
    rig_open(&w->rig);
    w->lost = test_vector(w->rig.context, SB_DTYPE_F32, COUNT);
    w->whole = test_vector(w->rig.context, SB_DTYPE_F32, COUNT);
    fill_values(SB_DTYPE_F32, COUNT, 1, 1, w->values);
    mem_place(data_of(w->whole), SB_HEAD_AT_CPU, w->values, BYTES);
    mem_place(diff_of(w->whole), SB_HEAD_AT_CPU, w->values, BYTES);
    mem_place(diff_of(w->lost), SB_HEAD_AT_CPU, w->values, BYTES);
    (void)blob_pointer(w->lost, SB_DATA, MUTABLE_GPU);
    device_fail(w->rig.context, SB_SIM_SCALE, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale(w->lost, SB_DATA, 2, &err));
    assert_int_equal(sb_mem_head(data_of(w->lost)), SB_HEAD_LOST);
}

static void wreck_close(struct wreck *w) {
    rig_close(&w->rig);
}

TEST_ON(wreck, lost_bytes_are_not_read) {
    double sum = -1;
    float value = -1;
    const void *in = NULL;
    void *out = NULL;
    assert_ok(sb_blob_asum(f->lost, SB_DIFF, &sum, &err)); /* the diff is unaffected */
    assert_status(LOST, sb_blob_cpu(f->lost, SB_DATA, &in, &err));
    assert_status(LOST, sb_mem_mutable_cpu(data_of(f->lost), &out, &err));
    assert_status(LOST, sb_mem_prefetch_cpu(data_of(f->lost), NULL, &err));
    assert_status(LOST, sb_mem_evict_cpu(data_of(f->lost), &err));
    assert_status(LOST, sb_blob_asum(f->lost, SB_DATA, &sum, &err));
    assert_status(LOST, sb_blob_sumsq(f->lost, SB_DATA, &sum, &err));
    assert_status(LOST, sb_blob_scale(f->lost, SB_DATA, 2, &err));
    assert_status(LOST, sb_blob_update(f->lost, &err));
    assert_status(LOST, sb_blob_clear(f->lost, SB_DATA, &err));
    assert_status(LOST, sb_blob_at(f->lost, SB_DATA, (int64_t[]){0}, 1, &value, &err));
    assert_status(LOST, sb_blob_copy_from(f->whole, SB_DATA, f->lost, 0, &err));
    assert_ok(sb_blob_reshape(f->lost, (int64_t[]){2}, 1, NULL, &err));
    assert_status(LOST, sb_blob_shrink_to_fit(f->lost, NULL, &err));
    assert_int_equal(sb_mem_head(data_of(f->lost)), SB_HEAD_LOST);
    assert_true(mem_holds(data_of(f->whole), f->values, BYTES));
    assert_true(sum == 21 && value == -1 && !in && !out);
}

/* The read fails with LOST although it would also exceed the memory limit. */
TEST_ON(wreck, a_message_does_not_replace_a_part_of_lost_bytes) {
    static const int64_t two[] = {2};
    struct wire wire = {0};
    sb_limits limits = SB_LIMITS_INIT;
    wire_blob(&wire, two, 1, 1);
    limits.max_memory = sb__storage_size(f->rig.context, BYTES) - 1;
    assert_status(
        LOST, sb_blob_from_proto(f->lost, wire.bytes, wire.size, SB_PROTO_RESHAPE, &limits, &err));
    assert_int_equal(sb_blob_count(f->lost), COUNT);
}

/* The fuzz target synced_memory tests the calls on a memory that make lost bytes valid. */
TEST(a_copy_or_new_storage_makes_a_lost_blob_valid) {
    for (int copies = 0; copies < 2; copies++) {
        struct wreck w;
        double sum = -1;
        wreck_open(&w);
        if (copies) {
            assert_ok(sb_blob_copy_from(w.lost, SB_DATA, w.whole, 0, &err));
        } else { /* a shape beyond the capacity requires new storage */
            assert_ok(sb_blob_reshape(w.lost, (int64_t[]){100}, 1, NULL, &err));
            memcpy(blob_pointer(w.lost, SB_DATA, MUTABLE_CPU), w.values, BYTES);
        }
        assert_ok(sb_blob_asum(w.lost, SB_DATA, &sum, &err));
        assert_true(sum == 21);
        assert_int_equal(sb_mem_head(data_of(w.lost)), SB_HEAD_AT_CPU);
        wreck_close(&w);
    }
}
