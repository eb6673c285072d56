#include "watched.h"

#include "ignore.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- memory -------------------------------------------------------------------- */

void watched_begin(struct watched *watched) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_error err;
    *watched = (struct watched){.counting = COUNTING_ALLOCATOR_INIT};
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    options.allocator = counting_allocator_table(&watched->counting);
    sb_status st = sb_context_create(&options, &watched->context, &err);
    fuzz_check(st == SB_OK, "no context: %s", err.message);
    watched_mark(watched);
}

void watched_end(struct watched *watched) {
    const struct counting_allocator *counting = &watched->counting;
    sb_context_release(watched->context);
    fuzz_check(counting->live_blocks == 0, "%lld blocks of %zu bytes are leaked",
               (long long)counting->live_blocks, counting->live_bytes);
    fuzz_check(counting->violations == 0, "%lld calls break the allocator's contract",
               (long long)counting->violations);
}

void watched_mark(struct watched *watched) {
    watched->before = watched->counting.peak_bytes = watched->counting.live_bytes;
}

size_t watched_peak(const struct watched *watched) {
    return watched->counting.peak_bytes - watched->before;
}

int64_t watched_growth(const struct watched *watched) {
    return (int64_t)watched->counting.live_bytes - (int64_t)watched->before;
}

sb_text name_of(const sb_model *model) {
    sb_text name = {NULL, 0};
    sb_error err = fuzz_fresh_error();
    sb_status st = sb_model_name(model, &name, &err);
    fuzz_check(st == SB_OK, "no name: %d", st);
    return name;
}

/* --- blobs ----------------------------------------------------------------------- */

static const sb_mem *memory_of(const sb_blob *blob, sb_part part) {
    const sb_mem *mem = NULL;
    sb_error err;
    fuzz_check(sb_blob_mem(blob, part, &mem, &err) == SB_OK, "no handle: %s", err.message);
    return mem;
}

bool blob_has(const sb_blob *blob, sb_part part) {
    return sb_mem_head(memory_of(blob, part)) != SB_HEAD_UNINITIALIZED;
}

const void *blob_at(const sb_blob *blob, sb_part part) {
    const void *ptr = NULL;
    sb_error err;
    if (sb_blob_count(blob) > 0)
        fuzz_check(sb_mem_cpu(memory_of(blob, part), &ptr, &err) == SB_OK, "no bytes: %s",
                   err.message);
    return ptr;
}

sb_blob *blob_new(sb_context *context, int32_t dtype) {
    sb_blob *blob = NULL;
    sb_error err;
    fuzz_check(sb_blob_create(context, dtype, &blob, &err) == SB_OK, "no blob: %s", err.message);
    return blob;
}

size_t blob_bytes(const sb_blob *blob) {
    return (size_t)sb_blob_count(blob) * sb_dtype_size(sb_blob_dtype(blob));
}

static void check_same_side(const sb_blob *a, const sb_blob *b, sb_part part, const char *label) {
    const size_t bytes = blob_bytes(a);
    if (bytes == 0)
        return;
    fuzz_check(blob_has(a, part) == blob_has(b, part), "%s: only one has part %d", label, part);
    fuzz_check(!blob_has(a, part) || memcmp(blob_at(a, part), blob_at(b, part), bytes) == 0,
               "%s: the %zu bytes of part %d differ", label, bytes, part);
}

void check_same_blob(const sb_blob *a, const sb_blob *b, const char *label) {
    char of_a[128], of_b[128];
    sb_error err;
    if (!sb_blob_shape_equals(a, b)) {
        ignore(sb_blob_shape_string(a, of_a, sizeof of_a, NULL, &err));
        ignore(sb_blob_shape_string(b, of_b, sizeof of_b, NULL, &err));
        fuzz_check(false, "%s: shapes %s and %s", label, of_a, of_b);
    }
    fuzz_check(sb_blob_dtype(a) == sb_blob_dtype(b), "%s: element types differ", label);
    check_same_side(a, b, SB_DATA, label);
    check_same_side(a, b, SB_DIFF, label);
}

/* --- snapshots ----------------------------------------------------------------------- */

static struct snapshot_side take_side(const sb_blob *blob, sb_part part) {
    const sb_mem *mem = memory_of(blob, part);
    struct snapshot_side side = {.head = sb_mem_head(mem), .size = sb_mem_size(mem)};
    if (side.head == SB_HEAD_UNINITIALIZED || side.size == 0)
        return side;
    fuzz_check(sb_mem_cpu(mem, &side.ptr, NULL) == SB_OK, "no bytes");
    side.bytes = malloc(side.size);
    if (!side.bytes)
        abort();
    memcpy(side.bytes, side.ptr, side.size);
    return side;
}

struct snapshot snapshot_take(const sb_blob *blob) {
    struct snapshot snapshot = {.num_axes = -1};
    if (sb_blob_is_shaped(blob)) {
        snapshot.num_axes = sb_blob_num_axes(blob);
        memcpy(snapshot.dims, sb_blob_shape(blob),
               (size_t)snapshot.num_axes * sizeof *snapshot.dims);
    }
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
        snapshot.part[part] = take_side(blob, part);
    return snapshot;
}

void snapshot_free(struct snapshot *snapshot) {
    free(snapshot->part[SB_DATA].bytes);
    free(snapshot->part[SB_DIFF].bytes);
}

void snapshot_check(const struct snapshot *snapshot, const sb_blob *blob, const char *label) {
    struct snapshot now = snapshot_take(blob);
    fuzz_check(now.num_axes == snapshot->num_axes &&
                   memcmp(now.dims, snapshot->dims, sizeof now.dims) == 0,
               "%s: the shape changed: %d axes, not %d", label, now.num_axes, snapshot->num_axes);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        const struct snapshot_side *a = &snapshot->part[part], *b = &now.part[part];
        fuzz_check(b->head == a->head, "%s: head of part %d was %d, is %d", label, part, a->head,
                   b->head);
        fuzz_check(b->size == a->size && b->ptr == a->ptr, "%s: part %d moved", label, part);
        fuzz_check(!b->bytes || memcmp(b->bytes, a->bytes, b->size) == 0, "%s: part %d was written",
                   label, part);
    }
    snapshot_free(&now);
}

/* --- errors ------------------------------------------------------------------------------ */

/* Returns whether the message is about the whole input, so that it contains no offset. */
static bool is_of_the_whole(const char *message) {
    static const char *const beginnings[] = {"the index of ", "a model exceeds ",
                                             "none of the fields ", "the fields are of no ",
                                             "the fields are not those of "};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(message, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* Returns whether the message ends with `end`, or with `end` and a guess, "; this is ...". */
static bool reason_ends(const char *message, const char *end) {
    for (const char *at = strstr(message, end); at; at = strstr(at + 1, end)) {
        const char *rest = at + strlen(end);
        if (*rest == '\0' || strncmp(rest, "; this is ", strlen("; this is ")) == 0)
            return true;
    }
    return false;
}

void check_read_status(sb_status status, const sb_error *err, size_t size) {
    fuzz_check_bytes_status(status, err);
    if (status > -100 || status < -199 || is_of_the_whole(err->message))
        return;
    char place[40];
    (void)snprintf(place, sizeof place, " at offset %lld", (long long)err->offset);
    fuzz_check(err->offset >= 0 && (uint64_t)err->offset <= size, "offset %lld of %zu: %.239s",
               (long long)err->offset, size, err->message);
    fuzz_check(reason_ends(err->message, place), "\"%.239s\" does not contain%s", err->message,
               place);
}

void check_status(sb_status status, sb_status from_memory, const char *where) {
    fuzz_check(status == from_memory, "%s from %s, %s from memory", sb_status_name(status), where,
               sb_status_name(from_memory));
}

/* --- saved files ------------------------------------------------------------------------- */

/* Makes a folder, in memory if possible. */
static void make_folder(char folder[32]) {
    static const char *const places[] = {"/dev/shm", "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        (void)snprintf(folder, 32, "%s/syncblob-XXXXXX", places[i]);
        if (mkdtemp(folder))
            return;
    }
    fuzz_check(false, "no folder can be made");
}

struct seen {
    sb_status status;
    sb_error err;
    ssize_t size; /* -1: there is no file */
    unsigned char *bytes;
};

static struct seen save_and_read(save_call *save, const void *object, const char *path,
                                 size_t size) {
    struct seen seen = {.size = -1, .err = fuzz_fresh_error(), .bytes = malloc(size + 1)};
    seen.status = save(object, path, &seen.err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && seen.bytes)
        seen.size = read(fd, seen.bytes, size + 1);
    if (fd >= 0)
        (void)close(fd);
    return seen;
}

static void check_seen(struct seen *seen, const void *bytes, size_t size) {
    fuzz_check_error(seen->status, &seen->err);
    fuzz_check(seen->status == SB_OK, "cannot be saved: %s", seen->err.message);
    fuzz_check(seen->size == (ssize_t)size && (size == 0 || memcmp(seen->bytes, bytes, size) == 0),
               "a file has %zd bytes, which are not the %zu expected bytes", seen->size, size);
    free(seen->bytes);
}

/* Removes the folder before the checks, one of which may end the process. */
void check_saved_file(save_call *save, const void *object, const void *bytes, size_t size) {
    char folder[32], path[48];
    make_folder(folder);
    (void)snprintf(path, sizeof path, "%s/file", folder);
    struct seen made = save_and_read(save, object, path, size);
    struct seen replaced = save_and_read(save, object, path, size);
    bool alone = unlink(path) == 0 && rmdir(folder) == 0;
    check_seen(&made, bytes, size);
    check_seen(&replaced, bytes, size);
    fuzz_check(alone, "%s has other files, too", folder);
    struct seen nowhere = save_and_read(save, object, path, size);
    fuzz_check_error(nowhere.status, &nowhere.err);
    fuzz_check(nowhere.status == SB_ERR_IO, "%s in a missing folder",
               sb_status_name(nowhere.status));
    free(nowhere.bytes);
}

uint32_t input_lot(const uint8_t *bytes, size_t size) {
    uint32_t lot = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        lot = (lot ^ bytes[i]) * 16777619u;
    return lot ^ lot >> 15;
}
