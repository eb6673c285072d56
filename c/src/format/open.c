#include "format/open.h"

#include "base/error.h"
#include "base/options.h"
#include "format/refusal.h"
#include "port/files.h"

#include <stdio.h>

/* Refuses a source whose `size` is too large for a message. `first` contains the first bytes. */
static sb_status refuse_size(const struct sb__source *first, uint64_t size, sb_error *err) {
    sb_status st = sb__fail_at(err, SB_ERR_DATA_LIMIT, SB__MAX_MESSAGE_BYTES,
                               "%llu bytes are more than a protobuf message can have, 2147483647",
                               (unsigned long long)size);
    if (size <= INT64_MAX)
        sb__refusal_explain_size(first, size, err);
    return st;
}

sb_status sb__source_of_bytes(struct sb__source *out, const void *bytes, size_t size,
                              sb_error *err) {
    if (!bytes && size > 0)
        return sb__fail_null(err, "bytes");
    if (size > SB__MAX_MESSAGE_BYTES) {
        const struct sb__source first = {.bytes = bytes, .size = SB__MAX_MESSAGE_BYTES};
        return refuse_size(&first, size, err);
    }
    *out = (struct sb__source){.bytes = bytes ? bytes : (const void *)"", .size = (uint32_t)size};
    return SB_OK;
}

static sb_status take(struct sb__source *out, const sb_source *from, sb_error *err) {
    struct sb__stamp stamp;
    if (from->size > SB__MAX_MESSAGE_BYTES) {
        const struct sb__source first = {.size = SB__MAX_MESSAGE_BYTES, .from = *from};
        return refuse_size(&first, from->size, err);
    }
    sb_status st = sb__source_stamp(from, &stamp, err);
    if (st == SB_OK)
        *out = (struct sb__source){.size = (uint32_t)from->size, .from = *from, .stamp = stamp};
    return st;
}

sb_status sb__source_of(struct sb__source *out, const sb_source *theirs, sb_error *err) {
    sb_source from = SB_SOURCE_INIT;
    sb_status st = sb__adopt_struct(&from, sizeof from, SB__SOURCE_FIRST_SIZE, theirs,
                                    theirs->struct_size, "sb_source", err);
    if (st != SB_OK)
        return st;
    return from.read_at ? take(out, &from, err) : sb__fail_null(err, "read_at");
}

static sb_status map(struct sb__source *source, sb__file file, sb_error *err) {
    const void *bytes;
    if (source->size == 0) {
        source->bytes = (const unsigned char *)"";
        return SB_OK;
    }
    int error = sb__file_map(file, source->size, &bytes);
    if (error)
        return sb__fail_io(err, error, "%u bytes of the file cannot be mapped", source->size);
    source->bytes = bytes;
    source->mapped = true;
    return SB_OK;
}

sb_status sb__source_open(struct sb__source *out, const char *path, bool mapped, sb_error *err) {
    char escaped[96], shown[sizeof escaped + 2];
    sb_source from;
    struct sb__source source;
    sb__file file;
    (void)snprintf(shown, sizeof shown, "\"%s\"", sb__escape_path(path, escaped, sizeof escaped));
    int error = sb__file_open(path, &file);
    if (error)
        return sb__fail_io(err, error, "%s cannot be opened", shown);
    sb_status st = sb__descriptor_source(file, shown, &from, err);
    if (st == SB_OK) {
        from.close = sb__descriptor_close;
        st = take(&source, &from, err);
    }
    if (st == SB_OK && mapped)
        st = map(&source, file, err);
    if (st == SB_OK)
        *out = source;
    else
        sb__file_close(file);
    return st;
}
