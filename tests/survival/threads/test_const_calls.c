/* Tests that const calls on current host data do not write to the library's objects, so that any
   number of threads can share the cache lines of a blob or model. The test makes all memory of the
   library read-only during the calls. */
#include "blobs.h"
#include "nets.h"
#include "pointers.h"

#include <sys/mman.h>

#define ARENA_BYTES ((size_t)16 << 20)

struct arena {
    char *bytes;
    size_t used;
    sb_context *context;
    sb_blob *blob;
    sb_model *model;
};

static void *take(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    struct arena *arena = user;
    const size_t at = (arena->used + alignment - 1) / alignment * alignment;
    if (at + bytes > ARENA_BYTES)
        return NULL;
    arena->used = at + bytes;
    return arena->bytes + at;
}

/* Does nothing: the test frees the whole arena. */
static void ignore_free(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags) {
}

static void protect(const struct arena *arena, int protection) {
    assert_int_equal(mprotect(arena->bytes, ARENA_BYTES, protection), 0);
}

static void arena_open(struct arena *arena) {
    memset(arena, 0, sizeof *arena);
    arena->bytes =
        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(arena->bytes != MAP_FAILED);
    const sb_allocator allocator = {take, ignore_free, arena};
    assert_ok(sb_context_create(&CONTEXT_OPTIONS(.allocator = allocator), &arena->context, &err));
    arena->blob = blob_of_count(arena->context, SB_DTYPE_F32, 100);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
        memset(blob_pointer(arena->blob, part, MUTABLE_CPU), 0, 400);
    arena->model = small_model(arena->context);
}

static void arena_close(struct arena *arena) {
    protect(arena, PROT_READ | PROT_WRITE);
    sb_model_destroy(arena->model);
    sb_blob_destroy(arena->blob);
    sb_context_release(arena->context);
    assert_int_equal(munmap(arena->bytes, ARENA_BYTES), 0);
}

static void read_blob(sb_blob *blob) {
    const int64_t index[] = {42};
    float value;
    double sum;
    int64_t offset;
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        (void)blob_pointer(blob, part, CPU_DATA);
        assert_ok(sb_blob_at(blob, part, index, 1, &value, &err));
        assert_ok(sb_blob_asum(blob, part, &sum, &err));
        assert_ok(sb_blob_sumsq(blob, part, &sum, &err));
    }
    assert_ok(sb_blob_offset(blob, index, 1, &offset, &err));
}

static void read_model(const sb_model *model) {
    for (int64_t i = 0; i < sb_model_num_layers(model); i++) {
        sb_layer_info layer = SB_LAYER_INFO_INIT;
        sb_blob_info info = SB_BLOB_INFO_INIT;
        float value;
        int64_t found;
        assert_ok(sb_model_layer_info(model, i, &layer, &err));
        assert_ok(sb_model_find_layer(model, layer.name.bytes, layer.name.size, &found, &err));
        for (int64_t n = 0; n < layer.num_blobs; n++) {
            assert_ok(sb_model_blob_info(model, i, n, &info, &err));
            assert_ok(sb_model_read_values(model, i, n, SB_DATA, 0, 1, SB_DTYPE_F32, &value,
                                           sizeof value, &err));
        }
    }
}

TEST(const_calls_on_host_data_write_nothing_that_threads_share) {
    static struct arena arena;
    arena_open(&arena);
    protect(&arena, PROT_READ);
    read_blob(arena.blob);
    read_model(arena.model);
    arena_close(&arena);
}
