#include "watched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- memory -------------------------------------------------------------------- */

void watched_begin(struct watched *watched) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    *watched = (struct watched){.counting = COUNTING_ALLOCATOR_INIT};
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    options.allocator = counting_allocator_table(&watched->counting);
    check_ok(sb_context_create(&options, &watched->context, &call_error));
    watched_mark(watched);
}

void watched_end(struct watched *watched) {
    const struct counting_allocator *counting = &watched->counting;
    sb_context_release(watched->context);
    check_equal(counting->live_blocks, 0);
    check_equal(counting->violations, 0);
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
    check_ok(sb_model_name(model, &name, &call_error));
    return name;
}

/* --- blobs ----------------------------------------------------------------------- */

static const sb_mem *memory_of(const sb_blob *blob, sb_part part) {
    const sb_mem *mem = NULL;
    check_ok(sb_blob_mem(blob, part, &mem, &call_error));
    return mem;
}

bool blob_has(const sb_blob *blob, sb_part part) {
    return sb_mem_head(memory_of(blob, part)) != SB_HEAD_UNINITIALIZED;
}

const void *blob_at(const sb_blob *blob, sb_part part) {
    const void *ptr = NULL;
    if (sb_blob_count(blob) > 0)
        check_ok(sb_mem_cpu(memory_of(blob, part), &ptr, &call_error));
    return ptr;
}

sb_blob *blob_new(sb_context *context, int32_t dtype) {
    sb_blob *blob = NULL;
    check_ok(sb_blob_create(context, dtype, &blob, &call_error));
    return blob;
}

size_t blob_bytes(const sb_blob *blob) {
    return (size_t)sb_blob_count(blob) * sb_dtype_size(sb_blob_dtype(blob));
}

void check_same_blob(const sb_blob *a, const sb_blob *b) {
    const size_t bytes = blob_bytes(a);
    fuzz_check(sb_blob_shape_equals(a, b), "%lld and %lld elements", (long long)sb_blob_count(a),
               (long long)sb_blob_count(b));
    check_equal(sb_blob_dtype(a), sb_blob_dtype(b));
    for (sb_part part = SB_DATA; part <= SB_DIFF && bytes > 0; part++) {
        check_equal(blob_has(a, part), blob_has(b, part));
        fuzz_check(!blob_has(a, part) || memcmp(blob_at(a, part), blob_at(b, part), bytes) == 0,
                   "the %zu bytes of part %d differ", bytes, part);
    }
}

/* --- errors ------------------------------------------------------------------------------ */

/* Messages about the whole input contain no offset. */
static bool is_of_the_whole(const char *message) {
    static const char *const beginnings[] = {"the index of ", "a model exceeds ",
                                             "none of the fields ", "the fields do not belong "};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(message, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static bool reason_ends(const char *message, const char *end) {
    for (const char *at = strstr(message, end); at; at = strstr(at + 1, end)) {
        const char *rest = at + strlen(end);
        if (*rest == '\0' || strncmp(rest, "; this is ", strlen("; this is ")) == 0)
            return true;
    }
    return false;
}

void check_read_status(sb_status status, size_t size) {
    check_bytes_status(status);
    if (status > -100 || status < -199 || is_of_the_whole(call_error.message))
        return;
    char place[40];
    (void)snprintf(place, sizeof place, " at offset %lld", (long long)call_error.offset);
    fuzz_check(call_error.offset >= 0 && (uint64_t)call_error.offset <= size,
               "offset %lld of %zu: %.239s", (long long)call_error.offset, size,
               call_error.message);
    fuzz_check(reason_ends(call_error.message, place), "\"%.239s\" does not contain%s",
               call_error.message, place);
}

/* --- files ------------------------------------------------------------------------------- */

static struct scratch_file make_folder(void) {
    static const char *const places[] = {"/dev/shm", "/tmp"};
    struct scratch_file file = {.path = ""};
    for (size_t i = 0; i < sizeof places / sizeof *places && !*file.path; i++) {
        (void)snprintf(file.folder, sizeof file.folder, "%s/syncblob-XXXXXX", places[i]);
        if (mkdtemp(file.folder))
            (void)snprintf(file.path, sizeof file.path, "%s/file", file.folder);
    }
    fuzz_check(*file.path, "no folder can be made");
    return file;
}

struct scratch_file scratch_file_make(const void *bytes, size_t size) {
    const struct scratch_file file = make_folder();
    FILE *out = fopen(file.path, "wb");
    fuzz_check(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, "no scratch file");
    return file;
}

bool scratch_file_end(const struct scratch_file *file) {
    return unlink(file->path) == 0 && rmdir(file->folder) == 0;
}

/* Removes the folder before the checks, because a failed check ends the process. */
void check_saved_file(save_call *save, const void *object, const void *bytes, size_t size) {
    const struct scratch_file file = make_folder();
    unsigned char *seen = malloc(size + 1);
    sb_status st = status_of(save(object, file.path, &call_error));
    FILE *in = fopen(file.path, "rb");
    size_t found = in ? fread(seen, 1, size + 1, in) : 0;
    if (in)
        (void)fclose(in);
    bool alone = scratch_file_end(&file);
    check_equal(st, SB_OK);
    check_equal(found, size);
    fuzz_check(memcmp(seen, bytes, size) == 0, "a saved file has wrong bytes");
    fuzz_check(alone, "%s has other files, too", file.folder);
    free(seen);
}

bool same_text(sb_text a, sb_text b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

uint32_t input_lot(const uint8_t *bytes, size_t size) {
    uint32_t lot = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        lot = (lot ^ bytes[i]) * 16777619u;
    return lot ^ lot >> 15;
}
