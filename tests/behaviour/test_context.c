/* Tests contexts with their devices, allocators, limits, statistics and host cache. */
#include "blobs.h"
#include "context/context.h"
#include "plain.h"
#include "pointers.h"
#include "wire_builder.h"

#include <syncblob/backend.h>
#include <syncblob/model.h>

#define MIB ((size_t)1 << 20)

TEST(invalid_options_are_refused) {
    struct counting_allocator counting = COUNTING_ALLOCATOR_INIT;
    const sb_allocator whole = counting_allocator_table(&counting);
#define LIMITS(...) &((sb_limits){.struct_size = sizeof(sb_limits), __VA_ARGS__})
    const sb_context_options rows[] = {CONTEXT_OPTIONS(.reserved = 1),
                                       CONTEXT_OPTIONS(.allocator = {.alloc = whole.alloc}),
                                       CONTEXT_OPTIONS(.allocator = {.free = whole.free}),
                                       CONTEXT_OPTIONS(.limits = LIMITS(.max_layers = -1)),
                                       CONTEXT_OPTIONS(.limits = LIMITS(.max_blobs = INT64_MIN)),
                                       CONTEXT_OPTIONS(.limits = LIMITS(.max_axes = -1)),
                                       CONTEXT_OPTIONS(.limits = LIMITS(.max_axes = 33))};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sb_context *context = NULL;
        assert_status(INVALID, sb_context_create(&rows[i], &context, &err));
        assert_null(context);
    }
    assert_int_equal(counting.object_calls + counting.buffer_calls, 0);
}

static bool same_limits(const sb_limits *a, const sb_limits *b) {
    return a->max_memory == b->max_memory && a->max_layers == b->max_layers &&
           a->max_blobs == b->max_blobs && a->max_name_bytes == b->max_name_bytes &&
           a->max_axes == b->max_axes;
}

TEST(the_limits_of_a_read_override_those_of_its_context) {
    enum { SIZE = sizeof(sb_limits) };
    sb_limits of_context = {SIZE, 9, 7, 0, 0, 8}, found;
    const sb_limits of_read = {SIZE, 0, 0, 6, 5, 4}, both = {SIZE, 9, 7, 6, 5, 4},
                    with_defaults = {SIZE, 9, 7, 1000000, 65536, 8};
    sb_context *context = test_context(CONTEXT_OPTIONS(.limits = &of_context));
    memset(&of_context, 0, sizeof of_context);
    assert_ok(sb__limits_resolve(context, &of_read, &found, &err));
    assert_true(same_limits(&found, &both));
    assert_ok(sb__limits_resolve(context, NULL, &found, &err));
    assert_true(same_limits(&found, &with_defaults));
    assert_ok(sb__limits_resolve(NULL, NULL, &found, &err));
    assert_true(found.max_layers == 100000 && found.max_axes == 32);
}

TEST(messages_show_strange_device_names_escaped) {
    assert_error(INVALID, try_device(NULL, "\x1b[2J\n", &err),
                 "device \"\\x1b[2J\\x0a\" is neither \"cpu\" nor NAME:N (N from 0)");
    assert_error(SB_ERR_UNSUPPORTED, try_device(NULL, "tpu:0", &err),
                 "no backend is named \"tpu\"; load its library first (sb_backend_load)");
}

TEST(cuda_is_absent_or_works) {
    const sb_status status = try_device(NULL, "cuda:0", NULL);
    const bool is_built = sb_features() & SB_FEATURE_CUDA;
    assert_true(status == SB_ERR_NO_DEVICE ||
                status == (is_built ? (sb_status)SB_OK : SB_ERR_UNSUPPORTED));
}

TEST(the_built_in_context_and_default_options_have_no_device) {
    sb_stream stream = NULL;
    sb_context *context;
    assert_ok(sb_context_create(NULL, &context, &err));
    sb_context *const contexts[] = {NULL, context, test_context(CONTEXT_OPTIONS(.flags = 0))};
    for (int i = 0; i < 3; i++) {
        sb_stats stats = SB_STATS_INIT;
        sb_context_trim(contexts[i]);
        assert_string_equal(sb_context_device(contexts[i]), "cpu");
        assert_int_equal(sb_context_has_device(contexts[i]), 0);
        assert_int_equal(sb_context_device_status(contexts[i]), SB_ERR_NO_DEVICE);
        assert_status(SB_ERR_NO_DEVICE, sb_context_stream(contexts[i], &stream, &err));
        assert_status(SB_ERR_NO_DEVICE, sb_context_forget_stream(contexts[i], NULL, &err));
        assert_ok(sb_context_synchronize(contexts[i], &err));
        assert_ok(sb_context_stats(contexts[i], &stats, &err));
    }
    sb_context_release(context);
}

struct device {
    struct plain plain;
    sb_backend table;
    sb_context *context;
    size_t owned_before;
};

static void device_open(struct device *device) {
    *device = (struct device){.owned_before = test_num_owned()};
    device->table = plain_backend(&device->plain);
}

static void device_close(struct device *device) {
    test_end_after(device->owned_before);
    sb_context_release(device->context);
    device->context = NULL;
    assert_int_equal(device->plain.live, 0);
}

static void device_reopen(struct device *device) {
    device_close(device);
    device_open(device);
}

static sb_status try_context(struct device *device, sb_error *err) {
    return create_with_backend(&device->table, "plain:0", &device->context, err);
}

TEST_ON(device, without_streams_asynchronous_calls_are_done_on_return) {
    sb_stream stream = NULL;
    void *ptr;
    const void *in = NULL;
    assert_ok(try_context(f, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_context_stream(f->context, &stream, &err));
    assert_ok(sb_context_synchronize(f->context, &err));
    sb_mem *mem = test_filled(f->context, 64, 0x41);
    ptr = mem_pointer(mem, OVERWRITE_CPU);
    assert_ok(sb_mem_async_gpu_push(mem, NULL, &err));
    memset(ptr, 0x42, 64);
    assert_true(bytes_are(mem_pointer_on(mem, GPU_DATA_ON, NULL), 64, 0x41));
    memset(mem_pointer_on(mem, MUTABLE_GPU_ON, NULL), 0x43, 64);
    assert_ok(sb_mem_async_cpu_pull(mem, NULL, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_true(bytes_are(mem_pointer(mem, CPU_DATA), 64, 0x43));
    int32_t head = sb_mem_head(mem);
    sb_stream other = (sb_stream)(uintptr_t)0x1000;
    assert_int_not_equal(sb_mem_gpu_on(mem, other, &in, &err), SB_OK);
    assert_int_not_equal(sb_mem_mutable_gpu_on(mem, other, &ptr, &err), SB_OK);
    assert_int_equal(sb_mem_head(mem), head);
}

TEST_ON(device, without_arithmetic_slots_arithmetic_is_unsupported_on_the_device) {
    double sum = -1;
    assert_ok(try_context(f, &err));
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 4);
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_non_null(strstr(err.message, "plain:0 has no arithmetic"));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_sumsq(blob, SB_DATA, &sum, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_update(blob, &err));
    assert_float_equal(sum, -1.0, 0);
    assert_int_equal(sb_context_device_status(f->context), SB_OK);
}

static void plain_trim(void *device) {
    ((struct plain *)device)->trims++;
}

static sb_status plain_fail SLOT_MOVE {
    return sb_error_fill(err, ((struct plain *)device)->status, 0, "planted by the test");
}

static const void *plain_extension(void *device, const char *name) {
    return strcmp(name, "plain_record") == 0 ? device : NULL;
}

TEST_ON(device, a_device_offers_tables_by_name) {
    const void *found = NULL, *in;
    void *device = NULL, *out;
    assert_ok(try_context(f, &err));
    assert_status(SB_ERR_UNSUPPORTED,
                  sb_context_extension(f->context, "plain_record", &found, &device, &err));
    device_close(f);
    f->plain.status = SB_ERR_DEVICE_LOST;
    f->table.upload = plain_fail;
    f->table.trim = plain_trim;
    f->table.extension = plain_extension;
    assert_ok(try_context(f, &err));
    assert_error(SB_ERR_UNSUPPORTED,
                 sb_context_extension(f->context, "plain\nrecord", &found, &device, &err),
                 "plain:0 has no table \"plain\\x0arecord\"");
    assert_status(SB_ERR_NO_DEVICE,
                  sb_context_extension(NULL, "plain_record", &found, &device, &err));
    assert_null(found);
    assert_null(device);
    sb_context_trim(f->context);
    sb_mem *mem = test_mem(f->context, 64);
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    assert_status(SB_ERR_DEVICE_LOST, sb_mem_gpu(mem, &in, &err));
    sb_context_trim(f->context);
    assert_int_equal(f->plain.trims, 1); /* sb_context_trim does not trim a lost device */
    assert_ok(sb_context_extension(f->context, "plain_record", &found, &device, &err));
    assert_ptr_equal(found, &f->plain);
    assert_ptr_equal(device, &f->plain);
}

static sb_status plain_scale SLOT_SCALE {
    return sb_error_fill(err, ((struct plain *)device)->status, 17, "planted by the test");
}

static sb_status plain_axpy SLOT_AXPY {
    return plain_scale(device, dtype, count, alpha, y, stream, err);
}

static sb_status plain_sum SLOT_SUM {
    *out = 0;
    return SB_OK;
}

static sb_status plain_ready(void *device, sb_error *err) {
    return SB_OK;
}

static void add_arithmetic(sb_backend *table) {
    table->prepare_arithmetic = plain_ready;
    table->axpy = plain_axpy;
    table->scale = plain_scale;
    table->asum = table->sumsq = plain_sum;
}

static sb_status plain_after_default(void *device, sb_error *err) {
    struct plain *plain = device;
    plain->afters++;
    return plain->after == SB_OK ? SB_OK : sb_error_fill(err, plain->after, 0, "not after it");
}

enum own_work { SUMS, SCALES, CLEARS, DOWNLOADS, OWN_WORKS };

static sb_status do_own_work(enum own_work work, sb_blob *blob, sb_error *err) {
    double sum;
    const void *in;
    switch (work) {
    case SUMS:
        return sb_blob_asum(blob, SB_DATA, &sum, err);
    case SCALES:
        return sb_blob_scale(blob, SB_DATA, 2, err);
    case CLEARS:
        return sb_blob_clear(blob, SB_DATA, err);
    default:
        return sb_blob_cpu(blob, SB_DATA, &in, err);
    }
}

TEST_ON(device, work_of_the_library_comes_after_users_of_plain_pointers) {
    for (enum own_work work = 0; work < OWN_WORKS; work++)
        for (int exposed = 0; exposed < 2; exposed++) {
            void *out;
            device_reopen(f);
            add_arithmetic(&f->table);
            f->table.after_default = plain_after_default;
            assert_ok(try_context(f, &err));
            sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 4);
            sb_mem *data = data_of(blob);
            assert_ok(exposed ? sb_mem_overwrite_gpu(data, &out, &err)
                              : sb_mem_overwrite_gpu_on(data, NULL, &out, &err));
            f->plain.afters = 0;
            f->plain.after = exposed ? SB_ERR_DEVICE_FAILURE : SB_OK;
            assert_status(f->plain.after, do_own_work(work, blob, &err));
            assert_int_equal(f->plain.afters, exposed);
            f->plain.afters = 0;
            f->plain.after = SB_OK;
            test_end(blob);
            assert_int_equal(f->plain.afters, exposed);
        }
}

static sb_status silent_open SLOT_OPEN {
    return 12345; /* no status has this value */
}

TEST_ON(device, a_slot_that_gives_no_reason_is_a_failure_of_its_device) {
    f->table.open = silent_open;
    assert_error(SB_ERR_DEVICE_FAILURE, try_context(f, &err), "plain:0 failed and gave no reason");
    assert_null(f->context);
}

TEST(a_failure_without_a_message_has_the_text_of_its_status) {
    assert_error(SB_ERR_NO_DEVICE, sb_error_fill(&err, SB_ERR_NO_DEVICE, 3, NULL),
                 sb_status_text(SB_ERR_NO_DEVICE));
    assert_int_equal(err.device_code, 3);
    assert_int_equal(sb_error_fill(NULL, SB_ERR_NO_DEVICE, 3, "x"), SB_ERR_NO_DEVICE);
}

TEST_ON(device, a_device_is_the_tables_name_and_a_number_of_31_bits) {
    static const struct {
        const char *device;
        int32_t ordinal;
    } rows[] = {{"plain:0", 0}, {"plain:9", 9}, {"plain:10", 10}, {"plain:2147483647", INT32_MAX}};
    static const char *const others[] = {"plai:0", "plain2:0", "cpu2:0", "plaim:0", "sim:0"};
    static const char *const malformed[] = {
        "",          ":0",        "plain",    "plain:",          "plain:x",  "plain::",
        "plain:/",   "plain:-1",  "plain:+1", "plain: 1",        "plain:1 ", " plain:1",
        "plain:1x",  "plain:1\n", "plain:1:", "plain:1/",        "plain/:1", "plain:0:0",
        "plain:007", "plain:00",  "plain 1",  "plain:2147483648"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_status(SB_ERR_UNSUPPORTED, try_device(&f->table, others[i], &err));
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        assert_status(INVALID, try_device(&f->table, malformed[i], &err));
    assert_int_equal(f->plain.opened, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_ok(create_with_backend(&f->table, rows[i].device, &f->context, &err));
        assert_int_equal(f->plain.ordinal, rows[i].ordinal);
        assert_string_equal(sb_context_device(f->context), rows[i].device);
        assert_int_equal(sb_context_has_device(f->context), 1);
        sb_context_release(f->context);
        f->context = NULL;
        assert_int_equal(f->plain.closed, i + 1);
    }
    f->table.name = "abcdefghijklmnopqrstuvwxyz0123"; /* "NAME:0" has 32 characters */
    assert_status(INVALID, try_device(&f->table, "abcdefghijklmnopqrstuvwxyz0123:1", &err));
    f->table.name = "abcdefghijklmnopqrstuvwxyz012";
    assert_ok(try_device(&f->table, "abcdefghijklmnopqrstuvwxyz012:1", &err));
}

TEST_ON(device, tables_with_missing_slots_are_refused) {
#define HOLE(slot) offsetof(sb_backend, slot), false
    static const struct {
        size_t slot;
        bool is_there;
        sb_status status;
        const char *words;
    } rows[] = {
        {HOLE(open), INVALID, "open"},
        {HOLE(close), INVALID, "close"},
        {HOLE(alloc), INVALID, "alloc"},
        {HOLE(free), INVALID, "free"},
        {HOLE(zero), INVALID, "zero"},
        {HOLE(upload), INVALID, "upload"},
        {HOLE(download), INVALID, "download"},
        {HOLE(copy), INVALID, "copy"},
        {HOLE(name), SB_ERR_UNSUPPORTED, "no backend is named"},
        {offsetof(sb_backend, free_pinned), true, INVALID,
         "lacks the slot alloc_pinned, but has free_pinned"},
        {offsetof(sb_backend, own_stream), true, INVALID,
         "lacks the slot check_stream, but has own_stream"},
        {offsetof(sb_backend, prepare_arithmetic), true, INVALID,
         "lacks the slot axpy, but has prepare_arithmetic"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        f->table = plain_backend(&f->plain);
        sb_status (*const function)(void *, sb_error *) = rows[i].is_there ? plain_ready : NULL;
        memcpy((char *)&f->table + rows[i].slot, &function, sizeof function);
        assert_status(rows[i].status, try_context(f, &err));
        assert_non_null(strstr(err.message, rows[i].words));
        assert_null(f->context);
    }
    f->table.flags = 0x100;
    assert_error(SB_ERR_UNSUPPORTED, try_context(f, &err), "the backend has unknown flags 0x100");
    assert_int_equal(f->plain.opened, 0);
}

static sb_stream no_stream(void *device) {
    return NULL;
}

TEST_ON(device, an_own_stream_that_is_null_is_refused) {
    sb_status (*const ready)(void *, sb_error *) = plain_ready;
    for (size_t slot = offsetof(sb_backend, own_stream);
         slot <= offsetof(sb_backend, event_destroy); slot += sizeof f->table.open)
        memcpy((char *)&f->table + slot, &ready, sizeof ready);
    f->table.own_stream = no_stream;
    assert_status(SB_ERR_DEVICE_FAILURE, try_context(f, &err));
    assert_non_null(strstr(err.message, "own_stream"));
    assert_null(f->context);
    assert_int_equal(f->plain.opened, 1);
    assert_int_equal(f->plain.closed, 1);
}

static uint32_t plain_lacks(void *device) {
    return SB_DEVICE_LACKS_F64 | SB_DEVICE_LACKS_CHECK_POINTER;
}

static uint32_t plain_lacks_more(void *device) {
    return SB_DEVICE_LACKS_HOST_COHERENT << 1;
}

static sb_status no_check SLOT_POINTER {
    return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, "not called");
}

TEST_ON(device, slots_that_a_device_lacks_are_not_called) {
    sb_stats before = SB_STATS_INIT, after = SB_STATS_INIT;
    static float lent[4];
    double sum;
    add_arithmetic(&f->table);
    f->table.check_pointer = no_check;
    f->table.lacks = plain_lacks;
    assert_ok(try_context(f, &err));
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F64, 4);
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    (void)blob_pointer(blob, SB_DIFF, MUTABLE_CPU);
    assert_ok(sb_context_stats(f->context, &before, &err));
    assert_error(SB_ERR_UNSUPPORTED, sb_blob_update(blob, &err),
                 "plain:0 has no arithmetic on f64");
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_ok(sb_context_stats(f->context, &after, &err));
    assert_int_equal(after.uploads, before.uploads);
    assert_int_equal(after.downloads, before.downloads);
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_AT_GPU);
    sb_mem *other = test_mem(f->context, sizeof lent);
    assert_ok(sb_mem_set_gpu(other, lent, sizeof lent, 0, NULL, NULL, &err));
    f->table.lacks = plain_lacks_more;
    sb_context *context = NULL;
    assert_status(SB_ERR_UNSUPPORTED, create_with_backend(&f->table, "plain:0", &context, &err));
    assert_int_equal(f->plain.closed, 1);
}

static sb_status alloc_nothing SLOT_ALLOC {
    return SB_OK;
}

static sb_status alloc_pinned_nothing(void *device, size_t bytes, void **out, sb_error *err) {
    *out = NULL;
    return SB_OK;
}

static void plain_pinned_free(void *device, void *ptr, size_t bytes) {
    plain_free(device, ptr, bytes, NULL);
}

TEST_ON(device, an_allocation_that_returns_no_memory_is_a_failure) {
    void *out = NULL;
    f->table.alloc = alloc_nothing;
    f->table.alloc_pinned = alloc_pinned_nothing;
    f->table.free_pinned = plain_pinned_free;
    assert_ok(try_context(f, &err));
    sb_mem *mem = test_mem(f->context, 64);
    assert_error(SB_ERR_DEVICE_FAILURE, sb_mem_mutable_gpu(mem, &out, &err),
                 "alloc of plain:0 returned SB_OK and NULL");
    memset(mem_pointer(mem, MUTABLE_CPU), 0x31, 64);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_OWNED);
}

TEST(impossible_sizes_are_out_of_memory) {
    const sb_allocator *a = &sb__default_allocator;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - ((size_t)1 << 20), SIZE_MAX / 8 * 7};
    char largest[32];
    void *bytes = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_null(a->alloc(a->user, sizes[i], 64, 0));
    assert_null(a->alloc(a->user, SIZE_MAX, (size_t)4 << 20, 0));
    assert_status(SB_ERR_OUT_OF_MEMORY,
                  sb__object_alloc(sb__context(NULL), SIZE_MAX, &bytes, &err));
    (void)snprintf(largest, sizeof largest, "%zu", SIZE_MAX);
    assert_non_null(strstr(err.message, largest));
    assert_null(bytes);
}

/* Pinned memory that the cache can keep counts with the size of its class. Between two powers of
   two there are eight classes. */
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
