#include "files.h"

#include <dirent.h>

struct wire wire_of_file(const char *path) {
    struct wire wire = {0};
    char buffer[4096];
    size_t n;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((n = fread(buffer, 1, sizeof buffer, file)) > 0)
        wire_raw(&wire, buffer, n);
    (void)fclose(file);
    return wire;
}

void file_write(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void file_write_wire(const char *path, const struct wire *wire) {
    file_write(path, wire->bytes, wire->size);
}

void assert_wire(const struct wire *found, const struct wire *expected) {
    assert_int_equal(found->size, expected->size);
    if (expected->size > 0)
        assert_memory_equal(found->bytes, expected->bytes, expected->size);
}

int files_in(const char *folder) {
    int files = -2; /* does not count the entries "." and ".." */
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    while (readdir(listing))
        files++;
    (void)closedir(listing);
    return files;
}

bool file_holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(found, 1, sizeof found, file) : 0;
    if (file)
        (void)fclose(file);
    return n == strlen(text) && memcmp(found, text, n) == 0;
}

static sb_status fire(struct test_fault *fault, sb_error *err) {
    if (atomic_load(&fault->left) <= 0 || atomic_fetch_sub(&fault->left, 1) != 1)
        return SB_OK;
    if (fault->silent)
        return fault->status;
    return sb_error_fill(err, fault->status, 5, "planted by the test");
}

static void raise_to(_Atomic size_t *most, size_t value) {
    size_t seen = atomic_load(most);
    while (value > seen && !atomic_compare_exchange_weak(most, &seen, value))
        ;
}

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    struct test_source *s = user;
    const struct wire *from = s->wire;
    atomic_fetch_add(&s->reads, 1);
    atomic_fetch_add(&s->bytes, bytes);
    raise_to(&s->largest, bytes);
    if (offset > s->wire->size || bytes > s->wire->size - offset || bytes == 0) {
        s->outside = true;
        return sb_error_fill(err, SB_ERR_IO, 0, "outside");
    }
    if (!s->other) {
        sb_status st = fire(&s->fault, err);
        if (st != SB_OK)
            return st;
    } else if (atomic_load(&s->fault.left) <= 1 || atomic_fetch_sub(&s->fault.left, 1) <= 1) {
        from = s->other;
    }
    memcpy(buffer, from->bytes + offset, bytes);
    return SB_OK;
}

static sb_status version(void *user, uint64_t *out, sb_error *err) {
    struct test_source *s = user;
    *out = atomic_load(&s->version);
    return s->other ? SB_OK : fire(&s->fault, err);
}

static void close_source(void *user) {
    struct test_source *s = user;
    atomic_fetch_add(&s->closes, 1);
}

sb_source test_source_of(struct test_source *s, const struct wire *wire) {
    sb_source source = SB_SOURCE_INIT;
    s->wire = wire;
    source.user = s;
    source.size = wire->size;
    source.read_at = read_at;
    source.version = version;
    source.close = close_source;
    return source;
}

static sb_status write_bytes(void *user, const void *bytes, size_t size, sb_error *err) {
    struct test_sink *s = user;
    s->writes++;
    s->largest = size > s->largest ? size : s->largest;
    if (size == 0 || (s->fault.status != SB_OK && s->fault.left == 0))
        s->after_failure = true;
    sb_status st = fire(&s->fault, err);
    if (st == SB_OK)
        wire_raw(&s->got, bytes, size);
    return st;
}

sb_sink test_sink_of(struct test_sink *s) {
    sb_sink sink = SB_SINK_INIT;
    sink.user = s;
    sink.write = write_bytes;
    return sink;
}

static int32_t report(void *user, uint64_t done, uint64_t total) {
    struct test_progress *p = user;
    int n = atomic_fetch_add(&p->reports, 1) + 1;
    if (done < p->done || done > total || (p->total && total != p->total) ||
        (p->cancels_at && n > p->cancels_at))
        p->wrong = true;
    if (done - p->done > p->largest_step)
        p->largest_step = done - p->done;
    p->done = done;
    p->total = total;
    return n == p->cancels_at ? -7 : 0;
}

sb_progress test_progress_of(struct test_progress *p) {
    sb_progress progress = SB_PROGRESS_INIT;
    progress.user = p;
    progress.report = report;
    return progress;
}
