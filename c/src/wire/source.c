#include "wire/source.h"

#include "base/error.h"
#include "port/files.h"

#include <string.h>

sb_status sb__callback_failed(sb_status status, const sb_error *reported, const char *who,
                              int64_t offset, sb_error *err) {
    if (status != SB_ERR_OUT_OF_MEMORY && status != SB_ERR_CANCELLED)
        status = SB_ERR_IO;
    return sb__fail_reported(err, status, offset, reported, who);
}

sb_status sb__source_stamp(const sb_source *from, struct sb__stamp *out, sb_error *err) {
    *out = (struct sb__stamp){.version = 0};
    if (!from->version)
        return SB_OK;
    sb_error reported = {.code = SB_OK};
    sb_status st = sb__descriptor_is(from) ? sb__descriptor_stamp(from->user, out, &reported)
                                           : from->version(from->user, &out->version, &reported);
    return st == SB_OK ? SB_OK : sb__callback_failed(st, &reported, "the source", -1, err);
}

void sb__source_close(struct sb__source *source) {
    if (source->mapped)
        sb__file_unmap(source->bytes, source->size);
    if (source->from.close)
        source->from.close(source->from.user);
}

sb_status sb__source_changed(sb_error *err) {
    return sb__fail(err, SB_ERR_IO, "the file changed while it was read");
}

sb_status sb__source_read(const struct sb__source *source, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    sb_error reported = {.code = SB_OK};
    if (source->bytes) {
        memcpy(dst, source->bytes + offset, size);
        return SB_OK;
    }
    sb_status st = source->from.read_at(source->from.user, offset, dst, size, &reported);
    return st == SB_OK ? SB_OK : sb__callback_failed(st, &reported, "the source", offset, err);
}

/* Returns whether two stamps belong to the same bytes. Compares ctime, because a writer can reset
   mtime, but not ctime. ctime also changes if the number of the file's names (hard links) changes.
   For example, a save may replace the file, but the open file still has the old bytes. */
static bool is_same(const struct sb__stamp *was, const struct sb__stamp *is) {
    return is->version == was->version && (is->changed == was->changed || is->names != was->names);
}

sb_status sb__source_check(const struct sb__source *source, sb_error *err) {
    struct sb__stamp stamp;
    sb_status st = sb__source_stamp(&source->from, &stamp, err);
    if (st != SB_OK || is_same(&source->stamp, &stamp))
        return st;
    return sb__source_changed(err);
}
