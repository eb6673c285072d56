/* Tests copies, updates and transfers of memories that borrow overlapping bytes. */
#include "blobs.h"
#include "plain.h"
#include "pointers.h"

#define COUNT ((int64_t)8)
#define SIZE  ((size_t)COUNT * sizeof(float))

static const struct {
    const char *what;
    size_t first, second; /* offsets in elements */
} places[] = {
    {"the same bytes", 4, 4},    {"one element in common", 0, 7}, {"shifted down by one", 4, 3},
    {"shifted up by one", 4, 5}, {"next to each other", 0, 8},    {"adjacent, reversed", 8, 0},
};
#define PLACES (sizeof places / sizeof *places)

static bool overlap_in_part(size_t place) {
    const size_t a = places[place].first, b = places[place].second;
    return a != b && a < b + COUNT && b < a + COUNT;
}

struct pair {
    struct rig rig;
    struct lent lent;
    sb_blob *blob, *other;
};

static void set(const struct pair *p, sb_mem *mem, size_t first) {
    void *ptr = (float *)p->lent.ptr + first;
    assert_ok(
        (p->lent.context ? sb_mem_set_gpu : sb_mem_set_cpu)(mem, ptr, SIZE, 0, NULL, NULL, &err));
}

static void open_pair(struct pair *p, sb_side side) {
    float values[16];
    rig_open(&p->rig);
    fill_values(SB_DTYPE_F32, 16, 0, 1, values);
    p->lent = side == SB_SIDE_CPU ? lend_host(sizeof values, 0)
                                  : lend_device(p->rig.context, sizeof values, 0);
    bytes_put(p->lent.context, p->lent.ptr, values, sizeof values);
    p->blob = test_vector(p->rig.context, SB_DTYPE_F32, COUNT);
    p->other = test_vector(p->rig.context, SB_DTYPE_F32, COUNT);
}

static void look(const struct pair *p, float out[16]) {
    bytes_get(p->lent.context, p->lent.ptr, out, 16 * sizeof(float));
}

static void expect(const struct pair *p, size_t place, bool sum, float factor) {
    float now[16];
    look(p, now);
    for (size_t i = 0; i < 16; i++) {
        const size_t first = places[place].first, second = places[place].second;
        const bool is_written = i >= first && i < first + COUNT && !overlap_in_part(place);
        const float there = (float)i, theirs = (float)(i - first + second);
        if (now[i] != (is_written ? (sum ? there : 0) + factor * theirs : there))
            fail_with("%s: element %zu is %g", places[place].what, i, (double)now[i]);
    }
}

static void try_place(sb_side side, size_t place, bool updates) {
    struct pair p;
    open_pair(&p, side);
    set(&p, data_of(p.blob), places[place].first);
    set(&p, updates ? diff_of(p.blob) : data_of(p.other), places[place].second);
    assert_status(overlap_in_part(place) ? INVALID : SB_OK,
                  updates ? sb_blob_update(p.blob, &err)
                          : sb_blob_copy_from(p.blob, SB_DATA, p.other, 0, &err));
    assert_ok(sb_context_synchronize(p.rig.context, &err));
    expect(&p, place, updates, updates ? -1 : 1);
    rig_close(&p.rig);
}

TEST(a_copy_or_update_of_overlapping_bytes_is_right_or_refused) {
    for (sb_side side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
        for (size_t place = 0; place < PLACES; place++)
            for (int updates = 0; updates < 2; updates++)
                try_place(side, place, updates);
}

static void bring(int64_t count, size_t second, bool is_stale, sb_status expected) {
    struct pair p;
    float values[16];
    open_pair(&p, SB_SIDE_CPU);
    set(&p, data_of(p.blob), 0);
    set(&p, data_of(p.other), second);
    if (is_stale)
        device_fill(p.rig.context, blob_pointer(p.blob, SB_DATA, MUTABLE_GPU), SIZE, 0x11);
    assert_ok(sb_blob_reshape(p.other, &count, 1, NULL, &err));
    assert_status(expected, sb_blob_copy_from(p.blob, SB_DATA, p.other, SB_COPY_RESHAPE, &err));
    look(&p, values);
    for (size_t i = 8; i < 16; i++)
        assert_true(values[i] == (float)i);
    (void)blob_pointer(p.other, SB_DATA, MUTABLE_GPU); /* checks that no lock is held */
    rig_close(&p.rig);
}

TEST(bytes_past_a_copy_do_not_overwrite_the_source) {
    for (size_t second = 4; second <= 8; second++) {
        bring(COUNT / 2, second, true, second < 8 ? INVALID : SB_OK);
        bring(COUNT / 2, second, false, SB_OK);
    }
    bring(COUNT, 0, true, SB_OK);
}

TEST(sides_may_be_the_same_bytes_but_not_overlap_in_part) {
    struct plain plain = {0};
    const sb_backend table = plain_backend(&plain);
    sb_context *context;
    char bytes[2 * 64] = {0};
    assert_ok(create_with_backend(&table, "plain:0", &context, &err));
    sb_mem *mem = test_mem(context, 64);
    assert_ok(sb_mem_set_cpu(mem, bytes + 32, 64, 0, NULL, NULL, &err));
    assert_status(INVALID, sb_mem_set_gpu(mem, bytes + 31, 64, 0, NULL, NULL, &err));
    assert_status(INVALID, sb_mem_set_gpu(mem, bytes + 64, 64, 0, NULL, NULL, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    assert_ok(sb_mem_set_gpu(mem, bytes + 32, 64, 0, NULL, NULL, &err));
    memset(mem_pointer(mem, MUTABLE_CPU), 7, 64);
    assert_ptr_equal(mem_pointer(mem, GPU_DATA), bytes + 32);
    assert_true(bytes_are(bytes + 32, 64, 7));
    memset(mem_pointer(mem, MUTABLE_GPU), 9, 64);
    assert_ptr_equal(mem_pointer(mem, CPU_DATA), bytes + 32);
    assert_true(bytes_are(bytes + 32, 64, 9));
    assert_int_equal(plain.self_copies, 0);
    test_end(mem);
    sb_context_release(context);
}
