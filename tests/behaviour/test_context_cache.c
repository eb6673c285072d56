/* Tests a context's cache of host memory: it is bounded, can be trimmed, counts toward the cap, and
   its bytes are never visible in another context. */
#include "blobs.h"
#include "nets.h"
#include "rig.h"

#include <syncblob/model.h>

#define MIB ((size_t)1 << 20)

TEST_ON(rig, freed_buffers_are_cached_and_reused) {
    rig_reopen_on(f, "cpu", 0);
    sb_mem_release(mem_filled(f->context, 8 * MIB, 1));
    assert_true(rig_stats(f).cached_bytes >= 8 * MIB);
    int64_t buffers = f->counting.buffer_calls;
    sb_mem *mem = mem_filled(f->context, 8 * MIB, 2);
    assert_int_equal(f->counting.buffer_calls, buffers);
    assert_int_equal(rig_stats(f).cached_bytes, 0);
    sb_mem_release(mem);
    sb_context_trim(f->context);
    assert_int_equal(rig_stats(f).cached_bytes, 0);
    assert_int_equal(f->counting.live_buffers, 0);
}

TEST_ON(rig, the_cache_is_bounded) {
    sb_mem *mems[4];
    rig_reopen_options(f, CONTEXT_OPTIONS(.max_cache_bytes = 9 * MIB));
    for (int i = 0; i < 4; i++)
        mems[i] = mem_filled(f->context, 4 * MIB, i);
    for (int i = 0; i < 4; i++)
        sb_mem_release(mems[i]);
    assert_true(rig_stats(f).cached_bytes > 0);
    assert_true(rig_stats(f).cached_bytes <= 9 * MIB);
}

TEST_ON(rig, pinned_memory_is_cached_separately) {
    sb_mem *mem = mem_filled(f->context, 8 * MIB, 1);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
    sb_mem_release(mem);
    struct tally before = rig_tally(f);
    mem = mem_filled(f->context, 8 * MIB, 2);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
    assert_int_equal(rig_since(f, &before).host_allocs, 0);
    sb_mem_release(mem);
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
        const void *in;
        void *out;
        sb_mem *mem = test_mem(f->context, 8 * MIB);
        if (writes)
            assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
        assert_ok(sb_mem_cpu(mem, &in, &err));
        assert_true(bytes_are(in, 8 * MIB, 0));
    }
}

/* Page-locked memory from the device may have bytes of other users, so the library zeros it. */
TEST_ON(rig, overwritten_memory_shows_no_bytes_of_others) {
    void *out;
    sb_mem *mem = test_mem(f->context, 4096);
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
    assert_true(bytes_are(out, 4096, 0));
}

/* A read fills only a part of its buffer. The next memory of the same size class gets the whole
   buffer. */
TEST_ON(rig, bytes_past_a_read_are_zero_for_the_next_memory) {
    enum { COUNT = 25000, CLASS = 104 << 10 };
    void *bytes, *out;
    size_t size;
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &out, &err));
    memset(out, 0, COUNT * sizeof(float));
    assert_ok(blob_message(blob, 0, &bytes, &size, &err));
    test_end(blob);
    blob = test_unshaped(f->context, SB_DTYPE_F32);
    assert_ok(sb_blob_from_proto(blob, bytes, size, SB_PROTO_RESHAPE, NULL, &err));
    const void *in = host_of(blob, SB_DATA);
    test_end(blob);
    free(bytes);
    sb_mem *mem = test_mem(f->context, CLASS);
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    assert_ptr_equal(out, in);
    assert_true(bytes_are(out, CLASS, 0));
}

static bool shows(const unsigned char *ptr, size_t bytes, const char *secret) {
    size_t length = strlen(secret);
    for (size_t i = 0; i + length <= bytes; i++)
        if (memcmp(ptr + i, secret, length) == 0)
            return true;
    return false;
}

/* Uses the built-in allocator, which may reuse memory that another context has freed. */
TEST(no_bytes_of_one_context_show_in_another) {
    static const char secret[] = "0123456789abcdef";
    static const size_t sizes[] = {64, 4096, MIB, 64 * MIB};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        const size_t bytes = sizes[i / 2];
        if (test_is_quick() && bytes > MIB)
            continue;
        const char *const device = i % 2 ? "sim:0" : "cpu"; /* page-locked or ordinary memory */
        sb_context *a = test_context(CONTEXT_OPTIONS(.device = device));
        sb_context *b = test_context(CONTEXT_OPTIONS(.device = device));
        for (int round = 0; round < 3; round++) {
            void *ptr;
            sb_mem *mine = test_mem(a, bytes);
            assert_ok(sb_mem_overwrite_cpu(mine, &ptr, &err));
            for (size_t at = 0; at + 16 <= bytes; at += 16)
                memcpy((char *)ptr + at, secret, 16);
            test_end(mine);
            if (round == 1)
                sb_context_trim(a);
            if (round == 2)
                test_end(a);
            sb_mem *theirs = test_mem(b, bytes);
            assert_ok(sb_mem_overwrite_cpu(theirs, &ptr, &err));
            assert_false(shows(ptr, bytes, secret));
        }
        test_end_after(0);
    }
}

static void *net_of_layers(int layers, size_t *size) {
    sb_model *model = test_model(NULL, SB_FORMAT_CAFFEMODEL);
    for (int i = 0; i < layers; i++)
        assert_ok(sb_model_add_layer(model, "layer", 5, "ReLU", 4, NULL, &err));
    assert_ok(sb_model_size(model, size, &err));
    void *net = malloc(*size);
    assert_non_null(net);
    assert_ok(sb_model_save(model, net, *size, NULL, &err));
    test_end(model);
    return net;
}

/* At first the blob and the cache use all memory that the cap allows, except 10 kB. */
TEST_ON(rig, handles_and_indices_get_the_memory_of_the_cache) {
    enum { HANDLES = 4000 };
    size_t net_size;
    void *net = net_of_layers(2000, &net_size);
    for (int what = 0; what < 2; what++) {
        rig_reopen_options(f, CONTEXT_OPTIONS(.max_host_bytes = 4 * MIB));
        size_t rest = 4 * MIB - (size_t)rig_stats(f).host_bytes;
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 40000);
        float *x;
        assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err));
        memset(x, 0, 40000 * sizeof *x);
        sb_mem_release(mem_filled(f->context, rest - 170000, 1));
        assert_true(rig_stats(f).cached_bytes > 0);
        if (what == 0) {
            const size_t owned = test_num_owned();
            for (int i = 0; i < HANDLES; i++)
                (void)test_mem(f->context, 8);
            test_end_after(owned);
        } else {
            sb_model *model;
            assert_ok(sb_model_open_bytes(f->context, SB_FORMAT_CAFFEMODEL, net, net_size, NULL,
                                          NULL, NULL, &model, &err));
            sb_model_destroy(model);
        }
        assert_int_equal(rig_stats(f).cached_bytes, 0);
    }
    free(net);
}
