/* Tests where reads store values, and how much memory the reads need. */
#include "blobs.h"
#include "files.h"
#include "nets.h"
#include "pointers.h"

#include "memory/mem.h"

enum reader { FROM_PROTO, READ_FILE, LOAD_BYTES, LOAD_FILE, LOAD_MAPPED, READERS };

enum { COUNT = 6 };
static const int64_t six[] = {COUNT};

struct scene {
    struct rig rig;
    struct wire wire;
    const char *path;
    sb_limits limits;
    sb_model *model;
};

static void put_message(struct wire *wire, int64_t count, bool diff) {
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    wire_shape(wire, &count, 1);
    fill_values(SB_DTYPE_F32, count, 100, 1, values);
    wire_floats(wire, 5, values, (size_t)count);
    fill_values(SB_DTYPE_F32, count, 200, 1, values);
    if (diff)
        wire_floats(wire, 6, values, (size_t)count);
    free(values);
}

static void scene_limit(struct scene *s, enum reader reader, size_t memory) {
    s->limits.max_memory = memory;
    sb_model_destroy(s->model);
    s->model = NULL;
    if (reader == LOAD_BYTES)
        assert_ok(open_wire(s->rig.context, SB_FORMAT_BLOB, &s->wire, &s->limits, &s->model, &err));
    else if (reader > LOAD_BYTES)
        assert_ok(sb_model_open_file(s->rig.context, SB_FORMAT_BLOB, s->path,
                                     reader == LOAD_MAPPED ? SB_OPEN_MAPPED : 0, &s->limits,
                                     &s->model, &err));
}

static void scene_open(struct scene *s, enum reader reader, int64_t count, bool diff) {
    *s = (struct scene){.limits = SB_LIMITS_INIT};
    rig_open_on(&s->rig, "sim:0", SB_CONTEXT_NO_PINNED | SB_CONTEXT_NO_HOST_CACHE);
    put_message(&s->wire, count, diff);
    s->path = rig_path(&s->rig, "blob");
    file_write_wire(s->path, &s->wire);
    scene_limit(s, reader, 0);
}

static void scene_close(struct scene *s) {
    sb_model_destroy(s->model);
    rig_close(&s->rig);
}

static sb_status read_into(struct scene *s, enum reader reader, sb_blob *blob, sb_error *err) {
    if (reader == FROM_PROTO)
        return sb_blob_from_proto(blob, s->wire.bytes, s->wire.size, SB_PROTO_RESHAPE, &s->limits,
                                  err);
    if (reader == READ_FILE)
        return sb_blob_load_file(blob, s->path, SB_PROTO_RESHAPE, &s->limits, err);
    return sb_model_load_blob(s->model, SB_NO_LAYER, 0, blob, err);
}

TEST(test_sharers_see_the_values) {
    enum { OWN, LENT_TO_WRITE, LENT_TO_READ, LENDINGS };
    for (int i = 0; i < READERS * LENDINGS; i++) {
        const int reader = i / LENDINGS, lending = i % LENDINGS;
        struct scene s;
        scene_open(&s, reader, COUNT, false);
        struct lent lent = lend_host(COUNT * sizeof(float), 0);
        sb_blob *blob = test_vector(s.rig.context, SB_DTYPE_F32, COUNT);
        sb_blob *sharer = test_vector(s.rig.context, SB_DTYPE_F32, COUNT);
        const uint32_t flags = lending == LENT_TO_READ ? SB_READ_ONLY : 0;
        (void)host_to_write(blob, SB_DATA);
        if (lending)
            assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, lent.bytes, flags, lent_deleter,
                                      &lent, &err));
        assert_ok(sb_blob_share(sharer, SB_DATA, blob, &err));
        const void *old = host_of(sharer, SB_DATA);
        const sb_mem *mem = data_of(sharer);
        assert_ok(read_into(&s, reader, blob, &err));
        const float *values = host_of(sharer, SB_DATA);
        assert_true(data_of(blob) == mem && data_of(sharer) == mem);
        assert_int_equal(lent.deleted, lending == LENT_TO_READ);
        assert_true(lending == LENT_TO_READ || values == old);
        for (int k = 0; k < COUNT; k++)
            assert_true(values[k] == 100 + (float)k);
        scene_close(&s);
        assert_int_equal(lent.deleted, lending != OWN);
    }
}

static size_t peak_of(struct scene *s, enum reader reader, sb_blob *blob) {
    const size_t before = s->rig.counting.peak_bytes = s->rig.counting.live_bytes;
    assert_ok(read_into(s, reader, blob, &err));
    return s->rig.counting.peak_bytes - before;
}

TEST(test_memory_is_the_payload_once) {
    enum { MANY = 100000 };
    const size_t payload = MANY * sizeof(float), objects = 4096;
    for (enum reader reader = 0; reader < READERS; reader++) {
        struct scene s;
        scene_open(&s, reader, MANY, false);
        sb_blob *blob = test_unshaped(s.rig.context, SB_DTYPE_F32);
        size_t empty = (size_t)rig_stats(&s.rig).host_bytes;
        size_t first = peak_of(&s, reader, blob);
        assert_true(first >= payload && first < payload + objects);
        assert_true(rig_stats(&s.rig).host_peak < empty + payload + objects);
        size_t live = (size_t)rig_stats(&s.rig).host_bytes, again = peak_of(&s, reader, blob);
        bool staged = reader != FROM_PROTO && reader != LOAD_BYTES;
        assert_int_equal(again, staged ? payload : 0);
        assert_int_equal(rig_stats(&s.rig).host_bytes, live);
        scene_close(&s);
    }
}

enum { LARGE = 1 << 20, LIMIT = 4096 };

static sb_blob *roomy(struct scene *s, sb_part part, int32_t head, struct lent *lent) {
    sb_blob *blob = test_vector(s->rig.context, SB_DTYPE_F32, LARGE);
    if (lent->ptr)
        assert_ok(sb_blob_set_cpu(blob, part, lent->ptr, lent->bytes, SB_READ_ONLY, lent_deleter,
                                  lent, &err));
    else
        mem_place(mem_of(blob, part), head, "\1\2\3\4", 4);
    assert_ok(sb_blob_reshape(blob, six, 1, NULL, &err));
    return blob;
}

static void check_limit(enum reader reader, int32_t head, bool read_only, bool is_refused) {
    struct scene s;
    struct lent lent = {.ptr = NULL};
    scene_open(&s, reader, COUNT, false);
    if (read_only)
        lent = lend_host(LARGE * sizeof(float), 0);
    sb_blob *blob = roomy(&s, SB_DATA, head, &lent);
    sb_mem *mem = data_of(blob);
    scene_limit(&s, reader, LIMIT);
    struct tally before = rig_tally(&s.rig);
    size_t live = s.rig.counting.peak_bytes = s.rig.counting.live_bytes;
    assert_status(is_refused ? SB_ERR_DATA_LIMIT : SB_OK, read_into(&s, reader, blob, &err));
    struct tally since = rig_since(&s.rig, &before);
    assert_int_equal(since.downloads, 0);
    assert_true(s.rig.counting.peak_bytes - live <= LIMIT);
    assert_ptr_equal(data_of(blob), mem);
    assert_int_equal(sb_mem_head(mem), is_refused && !read_only ? head : SB_HEAD_AT_CPU);
    scene_limit(&s, reader, LARGE * sizeof(float) + LIMIT);
    assert_ok(read_into(&s, reader, blob, &err));
    const float *values = host_of(blob, SB_DATA);
    assert_true(values[0] == 100 && values[COUNT - 1] == 99 + COUNT);
    scene_close(&s);
}

/* A small untrusted message must not make the library copy or allocate a blob's whole capacity. */
TEST(test_a_blobs_room_counts_if_it_has_to_be_copied) {
    for (enum reader reader = 0; reader < READERS; reader++) {
        check_limit(reader, SB_HEAD_AT_CPU, false, false);
        check_limit(reader, SB_HEAD_SYNCED, false, false);
        check_limit(reader, SB_HEAD_AT_GPU, false, true);
        check_limit(reader, SB_HEAD_UNINITIALIZED, false, true);
        check_limit(reader, SB_HEAD_AT_CPU, true, true);
    }
}

TEST(test_the_limit_is_exact) {
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        struct scene s;
        struct lent none = {.ptr = NULL};
        scene_open(&s, FROM_PROTO, COUNT, true);
        sb_blob *blob = roomy(&s, part, SB_HEAD_AT_GPU, &none);
        const size_t other =
            sizeof(sb_mem) + sb__storage_size(s.rig.context, COUNT * sizeof(float));
        s.limits.max_memory = sb__storage_size(s.rig.context, LARGE * sizeof(float)) + other - 1;
        assert_reports(SB_ERR_DATA_LIMIT, read_into(&s, FROM_PROTO, blob, &err), "4194304");
        s.limits.max_memory++;
        assert_ok(read_into(&s, FROM_PROTO, blob, &err));
        scene_close(&s);
    }
}

TEST(test_a_failed_read_shows_no_bytes_of_others) {
    enum { BYTES = 96 << 10, SECRET = 0x5a };
    const int64_t count = BYTES / 4;
    struct wire wire = {0};
    sb_context *context = test_context(CONTEXT_OPTIONS(.flags = 0));
    put_message(&wire, count, false);
    wire.bytes[wire.size - BYTES + 3] = 0x7f; /* 3.3e38 is not an int32 */
    for (int cached = 0; cached < 2; cached++) {
        void *secret = test_aligned_alloc(64, BYTES);
        memset(secret, SECRET, BYTES);
        test_aligned_free(secret);
        sb_blob *blob = test_vector(context, SB_DTYPE_I32, count);
        assert_true(sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err) <= -100);
        if (cached) { /* another blob gets the cached buffer */
            test_end(blob);
            blob = test_vector(context, SB_DTYPE_I32, count);
        }
        const unsigned char *values = blob_pointer(blob, SB_DATA, OVERWRITE_CPU);
        for (size_t i = 0; i < BYTES; i++)
            assert_int_not_equal(values[i], SECRET);
        test_end(blob);
        sb_context_trim(context);
    }
}
