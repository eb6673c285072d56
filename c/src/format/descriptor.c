#include "base/error.h"
#include "base/options.h"
#include "format/source.h"
#include "port/files.h"

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    unsigned char *to = buffer;
    while (bytes > 0) {
        size_t got;
        int error = sb__file_read_at((sb__file)user, offset, to, bytes, &got);
        if (error)
            return sb__fail_io(err, error, "%zu bytes at offset %llu cannot be read", bytes,
                               (unsigned long long)offset);
        if (got == 0)
            return sb__source_changed(err);
        to += got;
        offset += got;
        bytes -= got;
    }
    return SB_OK;
}

static sb_status version(void *user, uint64_t *out, sb_error *err) {
    struct sb__file_info info;
    int error = sb__file_examine((sb__file)user, &info);
    if (error)
        return sb__fail_io(err, error, "the file cannot be examined");
    *out = info.version;
    return SB_OK;
}

void sb__descriptor_close(void *user) {
    sb__file_close((sb__file)user);
}

sb_status sb__descriptor_source(sb__file file, const char *shown, sb_source *out, sb_error *err) {
    struct sb__file_info info;
    int error = sb__file_examine(file, &info);
    if (error)
        return sb__fail_io(err, error, "%s cannot be examined", shown);
    if (info.misfit)
        return sb__fail_io(err, info.misfit, "%s is not a regular file", shown);
    *out = (sb_source)SB_SOURCE_INIT;
    out->user = (void *)file;
    out->size = info.size;
    out->read_at = read_at;
    out->version = version;
    return SB_OK;
}

sb_status sb_source_of_descriptor(int32_t descriptor, uint32_t flags, sb_source *out,
                                  sb_error *err) {
    sb_source source;
    if (!out)
        return sb__fail_null(err, "out");
    if (flags & ~(uint32_t)SB_SOURCE_CLOSES)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "flags are %u, only SB_SOURCE_CLOSES is known", flags);
    sb_status st = sb__check_struct(out->struct_size, SB__SOURCE_FIRST_SIZE, "sb_source", err);
    if (st == SB_OK)
        st = sb__descriptor_source(descriptor, "the descriptor", &source, err);
    if (st != SB_OK)
        return st;
    if (flags & SB_SOURCE_CLOSES)
        source.close = sb__descriptor_close;
    sb__give_struct(out, out->struct_size, &source, sizeof source);
    return SB_OK;
}
