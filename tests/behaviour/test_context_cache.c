/* Tests a context's cache of host memory: it can be trimmed, counts toward the cap, and shows no
   bytes of other memories. The test behaviour.cache_list tests that the cache is bounded. */
#include "blobs.h"
#include "pointers.h"
#include "wire_builder.h"

#include <syncblob/model.h>

#define MIB ((size_t)1 << 20)

TEST_ON(rig, freed_buffers_are_cached_and_reused) {
    static const char *const devices[] = {"cpu", "sim:0"}; /* ordinary or pinned memory */
    for (int i = 0; i < 2; i++) {
        rig_reopen_on(f, devices[i], 0);
        sb_mem_release(mem_filled(f->context, 8 * MIB, 1));
        assert_true(rig_stats(f).cached_bytes >= 8 * MIB);
        struct tally before = rig_tally(f);
        sb_mem *mem = mem_filled(f->context, 8 * MIB, 2);
        assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU),
                         i ? SB_STORAGE_PINNED : SB_STORAGE_OWNED);
        assert_int_equal(rig_since(f, &before).host_allocs, 0);
        assert_int_equal(rig_stats(f).cached_bytes, 0);
        sb_mem_release(mem);
        sb_context_trim(f->context);
        assert_int_equal(rig_stats(f).cached_bytes, 0);
        assert_int_equal(f->counting.live_buffers, 0);
    }
}

/* Pinned memory that can be cached is counted with the size of its size class; each range between
   two powers of two has eight size classes. Other pinned memory is counted with its exact size. */
TEST_ON(rig, pinned_memory_of_near_sizes_is_one_class) {
    static const struct row {
        size_t bytes, counted;
        uint32_t flags;
        size_t max_pinned, max_cache;
    } rows[] = {
        {65535, 65535, 0, 0, 0}, /* too small for the cache */
        {65536, 65536, 0, 0, 0},
        {65537, 73728, 0, 0, 0},
        {73728, 73728, 0, 0, 0},
        {131071, 131072, 0, 0, 0},
        {131073, 147456, 0, 0, 0},
        {15 * MIB + 1, 16 * MIB, 0, 0, 0},
        {65537, 65537, SB_CONTEXT_NO_HOST_CACHE, 0, 0}, /* no cache */
        {65537, 65537, 0, 0, 65536},
        {65537, 65537, 0, 0, 73727}, /* the size class exceeds max_cache */
        {65537, 73728, 0, 0, 73728},
        {65537, 0, 0, 73727, 0}, /* the size class exceeds max_pinned */
        {65537, 73728, 0, 73728, 0},
        {65537, 0, SB_CONTEXT_NO_PINNED, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        rig_reopen_options(f, CONTEXT_OPTIONS(.device = "sim:0", .flags = row->flags,
                                              .max_pinned_bytes = row->max_pinned,
                                              .max_cache_bytes = row->max_cache));
        for (int round = 0; round < 2; round++) {
            sb_mem *mem = mem_filled(f->context, row->bytes, round);
            assert_int_equal(rig_stats(f).pinned_bytes, row->counted);
            assert_int_equal(rig_stats(f).pinned_peak, row->counted);
            assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU),
                             row->counted ? SB_STORAGE_PINNED : SB_STORAGE_OWNED);
            sb_mem_release(mem);
        }
        sb_context_trim(f->context);
        assert_int_equal(rig_stats(f).pinned_bytes, 0);
    }
}

TEST_ON(rig, reused_memory_reads_as_zero_where_that_is_promised) {
    for (int writes = 0; writes < 2; writes++) {
        rig_reopen_on(f, "cpu", 0);
        sb_mem_release(mem_filled(f->context, 8 * MIB, 0xff));
        sb_mem *mem = test_mem(f->context, 8 * MIB);
        if (writes)
            (void)mem_pointer(mem, MUTABLE_CPU);
        assert_true(bytes_are(mem_pointer(mem, CPU_DATA), 8 * MIB, 0));
    }
}

/* The allocator and the device return memory that may have bytes of other contexts or users. */
TEST_ON(rig, overwritten_memory_shows_no_bytes_of_others) {
    static const char *const devices[] = {"cpu", "sim:0"}; /* ordinary or pinned memory */
    static const size_t sizes[] = {64, 4096, MIB};
    for (int i = 0; i < 2; i++) {
        rig_reopen_on(f, devices[i], 0);
        for (int k = 0; k < 3; k++) {
            sb_mem *mem = test_mem(f->context, sizes[k]);
            assert_true(bytes_are(mem_pointer(mem, OVERWRITE_CPU), sizes[k], 0));
        }
    }
}

/* A read fills only a part of its buffer. The next memory of the same size class gets the whole
   buffer. */
TEST_ON(rig, bytes_past_a_read_are_zero_for_the_next_memory) {
    enum { COUNT = 25000, BYTES = COUNT * sizeof(float), CLASS = 104 << 10 };
    struct wire wire = {0};
    wire_blob(&wire, (int64_t[]){COUNT}, 1, 0);
    sb_blob *blob = test_unshaped(f->context, SB_DTYPE_F32);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    const void *in = host_of(blob, SB_DATA);
    test_end(blob);
    assert_ptr_equal(mem_pointer(test_mem(f->context, CLASS), OVERWRITE_CPU), in);
    assert_true(bytes_are((const char *)in + BYTES, CLASS - BYTES, 0));
}

/* At first the blob and the cache use all memory that the cap allows, except 10 kB. */
TEST_ON(rig, handles_and_indices_get_the_memory_of_the_cache) {
    enum { HANDLES = 4000 };
    for (int what = 0; what < 2; what++) {
        rig_reopen_options(f, CONTEXT_OPTIONS(.max_host_bytes = 4 * MIB));
        size_t rest = 4 * MIB - (size_t)rig_stats(f).host_bytes;
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 40000);
        (void)blob_pointer(blob, SB_DATA, OVERWRITE_CPU);
        sb_mem_release(mem_filled(f->context, rest - 170000, 1));
        assert_true(rig_stats(f).cached_bytes > 0);
        if (what == 0) {
            const size_t owned = test_num_owned();
            for (int i = 0; i < HANDLES; i++)
                (void)test_mem(f->context, 8);
            test_end_after(owned);
        } else {
            struct wire layer = {0}, net = {0};
            sb_model *model;
            wire_text(&layer, 1, "layer");
            wire_text(&layer, 2, "ReLU");
            for (int i = 0; i < 2000; i++)
                wire_message(&net, 100, &layer);
            assert_ok(sb_model_open_bytes(f->context, SB_FORMAT_CAFFEMODEL, net.bytes, net.size,
                                          NULL, NULL, NULL, &model, &err));
            sb_model_destroy(model);
        }
        assert_int_equal(rig_stats(f).cached_bytes, 0);
    }
}
