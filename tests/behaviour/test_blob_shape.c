/* Tests the shapes and offsets of a blob. The fuzz target reshape compares counts, axes, legacy
   dimensions, texts, offsets and refused shapes with a reference model. */
#include "blobs.h"

#include <stdio.h>
#include <string.h>

#define I64(n) INT64_C(n)

TEST(the_longest_shape_text_is_whole) {
    int64_t shape[SB_MAX_AXES];
    char text[1024], expected[1024];
    size_t length = 0, used = 0;
    for (int i = 0; i < SB_MAX_AXES; i++)
        shape[i] = i ? PTRDIFF_MAX : 0;
    for (int i = 0; i < SB_MAX_AXES; i++)
        used +=
            (size_t)snprintf(expected + used, sizeof expected - used, "%lld ", (long long)shape[i]);
    (void)snprintf(expected + used, sizeof expected - used, "(0)");
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, SB_MAX_AXES, shape);
    assert_ok(sb_blob_shape_string(blob, text, sizeof text, &length, &err));
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    assert_names_null("buffer", sb_blob_shape_string(blob, NULL, 5, &length, &err));
}

TEST_ON(rig, the_device_sees_the_shape) {
    skip_on_32_bits("dimensions have 31 bits");
    const int64_t *shape = NULL;
    int64_t seen[4];
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 4, (int64_t[]){2, 3, I64(1) << 33, 0});
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    struct tally before = rig_tally(f);
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    struct tally since = rig_since(f, &before);
    assert_no_work(&since);
    for (int round = 0; round < 2; round++) {
        assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
        assert_ok(sb_sim_peek(f->context, seen, shape, sizeof seen, &err));
        assert_memory_equal(seen, sb_blob_shape(blob), sizeof seen);
        assert_ok(sb_blob_reshape_legacy(blob, 9, 8, 7, 6, NULL, &err));
    }
    assert_ok(sb_blob_reshape(blob, NULL, 0, NULL, &err));
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
}
