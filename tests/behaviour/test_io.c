/* Tests sources, sinks and progress reports, also with callbacks that break the rules. */
#include "blobs.h"
#include "files.h"
#include "nets.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t large[] = {600000}, three[] = {3};

struct world {
    struct wire wire; /* a solver state with a small blob and a large blob */
    struct test_source source;
    struct test_sink sink;
    struct test_progress progress;
    sb_blob *blob;
    size_t owned_before;
};

static void world_open(struct world *w) {
    *w = (struct world){.owned_before = test_num_owned()};
    w->blob = test_blob(NULL, SB_DTYPE_F32, 1, three);
    w->wire = wire_of("1:5 3:{[3]9} 3:{[%d]1}", (int)*large);
}

static void world_close(struct world *w) {
    test_end_after(w->owned_before);
    assert_false(w->source.outside);
    assert_false(w->sink.after_failure);
    assert_false(w->progress.wrong);
}

static sb_model *open_as(const sb_source *source, sb_format format, const sb_progress *progress) {
    sb_model *model;
    assert_ok(sb_model_open_source(NULL, format, source, NULL, progress, &model, &err));
    return test_own_model(model);
}

static sb_model *open_source(struct world *w) {
    const sb_source source = test_source_of(&w->source, &w->wire);
    return open_as(&source, SB_FORMAT_AUTO, NULL);
}

TEST_ON(world, callbacks_without_a_required_slot_are_refused) {
    sb_source source = test_source_of(&f->source, &f->wire);
    sb_sink sink = test_sink_of(&f->sink);
    sb_progress progress = SB_PROGRESS_INIT;
    sb_model *model = open_source(f);
    const int reads = f->source.reads;
    assert_reports(INVALID, sb_blob_load_source(f->blob, &source, 0, NULL, &progress, &err),
                   "report");
    assert_int_equal(f->source.reads, reads);
    assert_status(INVALID, sb_model_open_source(NULL, 99, &source, NULL, NULL, &model, &err));
    source.read_at = NULL;
    assert_reports(INVALID, sb_blob_load_source(f->blob, &source, 0, NULL, NULL, &err), "read_at");
    assert_status(INVALID,
                  sb_model_open_source(NULL, SB_FORMAT_AUTO, &source, NULL, NULL, &model, &err));
    assert_reports(INVALID, sb_blob_save_sink(f->blob, &sink, 0, &progress, &err), "report");
    const sb_progress whole = test_progress_of(&f->progress);
    assert_ok(sb_model_set_progress(model, &whole, &err));
    assert_status(INVALID, sb_model_set_progress(model, &progress, &err));
    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 0, f->blob, &err));
    assert_int_equal(f->progress.reports, 1); /* the model still has the old callback */
    sink.write = NULL;
    assert_reports(INVALID, sb_blob_save_sink(f->blob, &sink, 0, NULL, &err), "write");
    assert_status(INVALID, sb_model_save_sink(model, &sink, &err));
}

TEST_ON(world, a_source_is_no_larger_than_a_message) {
    sb_source source = test_source_of(&f->source, &f->wire);
    for (source.size = (uint64_t)INT32_MAX + 1; source.size != 0; source.size <<= 1) {
        assert_status(SB_ERR_DATA_LIMIT,
                      sb_blob_load_source(f->blob, &source, 0, NULL, NULL, &err));
        assert_null(strstr(err.message, "; this is "));
    }
    const int reads = f->source.reads; /* without `err`, the library does not describe the bytes */
    source.size = (uint64_t)INT32_MAX + 1;
    assert_int_equal(sb_blob_load_source(f->blob, &source, 0, NULL, NULL, NULL), SB_ERR_DATA_LIMIT);
    assert_int_equal(f->source.reads, reads);
    f->source.outside = false;
}

TEST_ON(world, a_status_of_a_callback_is_one_of_three) {
    static const struct {
        sb_status returned, seen;
    } rows[] = {
        {SB_ERR_IO, SB_ERR_IO},
        {SB_ERR_OUT_OF_MEMORY, SB_ERR_OUT_OF_MEMORY},
        {SB_ERR_CANCELLED, SB_ERR_CANCELLED},
        {SB_ERR_MALFORMED, SB_ERR_IO},
        {SB_ERR_INTERNAL, SB_ERR_IO},
        {-77777, SB_ERR_IO},
        {7, SB_ERR_IO},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const sb_status returned = rows[i / 2].returned, seen = rows[i / 2].seen;
        const sb_source source = test_source_of(&f->source, &f->wire);
        struct test_sink fails = {.fault = {1, returned, i % 2}};
        const sb_sink sink = test_sink_of(&fails);
        f->source.fault = (struct test_fault){2, returned, i % 2};
        assert_error(seen, sb_blob_load_source(f->blob, &source, 0, NULL, NULL, &err),
                     i % 2 ? "the source failed and gave no reason" : "planted by the test");
        assert_int_equal(err.device_code, i % 2 ? 0 : 5);
        assert_int_equal(err.offset, 0);
        assert_error(seen, sb_blob_save_sink(f->blob, &sink, 0, NULL, &err),
                     i % 2 ? "the sink failed and gave no reason" : "planted by the test");
        assert_int_equal(fails.got.size, 0);
    }
}

static sb_status next_version(void *user, uint64_t *out, sb_error *err) {
    *out = ++((struct test_source *)user)->version;
    return SB_OK;
}

TEST_ON(world, a_source_that_changes_while_it_is_opened_is_refused) {
    sb_source source = test_source_of(&f->source, &f->wire);
    sb_model *model = NULL;
    source.version = next_version;
    for (int i = 0; i < 2; i++) {
        const sb_format format = i ? SB_FORMAT_CAFFEMODEL : SB_FORMAT_AUTO;
        assert_reports(SB_ERR_IO,
                       sb_model_open_source(NULL, format, &source, NULL, NULL, &model, &err),
                       "changed");
        assert_int_equal(sb_model_open_source(NULL, format, &source, NULL, NULL, &model, NULL),
                         SB_ERR_IO);
        assert_null(model);
    }
}

static void reset_progress(struct world *w) {
    w->progress = (struct test_progress){.cancels_at = 0};
}

static void check_progress(struct world *w, uint64_t total) {
    if (w->progress.wrong || w->progress.done != total || w->progress.total != total ||
        w->progress.largest_step > (1 << 20) + 65536)
        fail_with("%d reports, the last of %llu of %llu bytes, not %llu, the largest step %llu",
                  w->progress.reports, (unsigned long long)w->progress.done,
                  (unsigned long long)w->progress.total, (unsigned long long)total,
                  (unsigned long long)w->progress.largest_step);
    reset_progress(w);
}

TEST_ON(world, long_calls_report_their_progress) {
    const sb_progress progress = test_progress_of(&f->progress);
    const sb_sink sink = test_sink_of(&f->sink);
    const sb_source source = test_source_of(&f->source, &f->wire);
    unsigned char *buffer = malloc(f->wire.size);
    sb_blob_info info = SB_BLOB_INFO_INIT;
    size_t size;
    test_end(open_as(&source, SB_FORMAT_AUTO, &progress));
    assert_int_equal(f->progress.done, f->wire.size);
    reset_progress(f);
    sb_model *model = open_as(&source, SB_FORMAT_SOLVERSTATE, &progress);
    assert_int_equal(f->progress.done, f->wire.size);
    reset_progress(f);
    assert_ok(sb_model_blob_info(model, SB_NO_LAYER, 1, &info, &err));
    assert_int_equal(f->progress.reports, 0);
    assert_ok(sb_model_set_progress(model, &progress, &err));
    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 1, f->blob, &err));
    assert_true(f->source.largest <= 1 << 20);
    check_progress(f, info.size);
    assert_ok(sb_model_read_values(model, SB_NO_LAYER, 1, SB_DATA, 0, *large, SB_DTYPE_F32, buffer,
                                   f->wire.size, &err));
    check_progress(f, info.size);
    assert_ok(sb_model_save_sink(model, &sink, &err));
    assert_true(f->sink.largest <= 1 << 20);
    check_progress(f, f->wire.size);
    assert_ok(sb_model_save(model, buffer, f->wire.size, &size, &err));
    check_progress(f, f->wire.size);
    assert_ok(sb_blob_save_sink(f->blob, &sink, 0, &progress, &err));
    check_progress(f, info.size);
    const struct wire written = {f->sink.got.bytes + f->sink.got.size - info.size, info.size, 0};
    struct test_source again = {.reads = 0};
    const sb_source blob_source = test_source_of(&again, &written);
    assert_ok(sb_blob_load_source(f->blob, &blob_source, 0, NULL, &progress, &err));
    check_progress(f, info.size);
    assert_ok(sb_model_set_progress(model, NULL, &err));
    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 1, f->blob, &err));
    assert_int_equal(f->progress.reports, 0);
    free(buffer);
}

TEST_ON(world, each_pass_over_a_file_is_an_equal_share) {
    static const struct {
        int32_t requested, is;
        uint64_t num_passes;
    } rows[] = {{SB_FORMAT_AUTO, SB_FORMAT_CAFFEMODEL, 3},
                {SB_FORMAT_CAFFEMODEL, SB_FORMAT_CAFFEMODEL, 2},
                {SB_FORMAT_BLOB, SB_FORMAT_BLOB, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire wire = {0};
        struct test_source from = {0};
        for (int field = 0; field < 65536; field++)
            if (rows[i].is == SB_FORMAT_BLOB)
                wire_float(&wire, 5, 1);
            else
                wire_text(&wire, 100, "\x0a\1n");
        if (rows[i].is == SB_FORMAT_BLOB)
            wire_text(&wire, 7, "\x08\x80\x80\4");
        const sb_source source = test_source_of(&from, &wire);
        const sb_progress progress = test_progress_of(&f->progress);
        test_end(open_as(&source, rows[i].requested, &progress));
        assert_int_equal(f->progress.done, wire.size);
        assert_true(f->progress.largest_step <= (65536 + 4096) / rows[i].num_passes + 1);
        assert_true((uint64_t)f->progress.reports >= rows[i].num_passes * wire.size / 65536);
        reset_progress(f);
    }
}

TEST_ON(world, a_model_in_memory_reports_progress_too) {
    const sb_progress progress = test_progress_of(&f->progress);
    sb_blob *wide = test_unshaped(NULL, SB_DTYPE_F64);
    sb_model *model = test_model_of(&f->wire, SB_FORMAT_AUTO);
    assert_ok(sb_model_set_progress(model, &progress, &err));
    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 1, f->blob, &err));
    assert_true(f->progress.reports > 3);
    assert_values(f->blob, SB_DATA, *large, 1);
    reset_progress(f);
    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 1, wide, &err));
    assert_true(f->progress.reports > 3);
    f->progress = (struct test_progress){.cancels_at = 2};
    fill_values(SB_DTYPE_F32, *large, -5, 1, host_to_write(f->blob, SB_DATA));
    assert_status(SB_ERR_CANCELLED, sb_model_load_blob(model, SB_NO_LAYER, 1, f->blob, &err));
    assert_values(f->blob, SB_DATA, *large, -5);
}

static int temporary(const struct wire *wire) {
    char path[] = "/tmp/syncblob-fd-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, wire->bytes, wire->size), wire->size);
    assert_int_equal(unlink(path), 0);
    return fd;
}

TEST_ON(world, a_file_that_changed_is_seen_through_its_descriptor) {
    const struct timespec times[] = {{1, 1}, {1, 1}};
    sb_source source = SB_SOURCE_INIT;
    int fd = temporary(&f->wire);
    uint64_t before, after;
    char message[64];
    assert_int_equal(futimens(fd, times), 0);
    assert_ok(sb_source_of_descriptor(fd, 0, &source, &err));
    sb_model *model = open_as(&source, SB_FORMAT_AUTO, NULL);
    assert_ok(sb_model_load_blob(model, SB_NO_LAYER, 0, f->blob, &err));
    assert_ok(sb_model_layer_message(model, SB_NO_LAYER, message, sizeof message, NULL, &err));
    assert_ok(source.version(source.user, &before, &err));
    for (int step = 0; step < 3;
         step++) { /* first the size changes, then the time, then only the ctime */
        assert_int_equal(ftruncate(fd, (off_t)f->wire.size + (step == 0)), 0);
        assert_int_equal(step == 1 ? 0 : futimens(fd, times), 0);
        assert_ok(source.version(source.user, &after, &err));
        assert_int_equal(before == after, step == 2);
        assert_status(SB_ERR_IO, sb_model_layer_message(model, SB_NO_LAYER, message, sizeof message,
                                                        NULL, &err));
        assert_status(SB_ERR_IO, sb_model_load_blob(model, SB_NO_LAYER, 0, f->blob, &err));
    }
    assert_int_equal(ftruncate(fd, 10), 0);
    assert_status(SB_ERR_IO, sb_model_load_blob(model, SB_NO_LAYER, 1, f->blob, &err));
    test_end(model);
    assert_int_equal(close(fd), 0);
    assert_status(SB_ERR_IO, source.version(source.user, &after, &err));
    assert_int_equal(before, after);
}

TEST_ON(world, a_descriptor_of_no_file_is_refused) {
    sb_source source = SB_SOURCE_INIT;
    int ends[2], folder = open("/tmp", O_RDONLY | O_DIRECTORY);
    assert_int_equal(pipe(ends), 0);
    assert_status(SB_ERR_IO, sb_source_of_descriptor(ends[0], 0, &source, &err));
    assert_int_equal(err.device_code, EINVAL);
    assert_status(SB_ERR_IO, sb_source_of_descriptor(folder, 0, &source, &err));
    assert_int_equal(err.device_code, EISDIR);
    assert_status(SB_ERR_IO, sb_source_of_descriptor(-1, 0, &source, &err));
    assert_int_equal(err.device_code, EBADF);
    assert_int_equal(close(folder) | close(ends[0]) | close(ends[1]), 0);
}
