#include "base/error.h"
#include "base/options.h"
#include "port/files.h"
#include "wire/source.h"

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

sb_status sb__descriptor_stamp(void *user, struct sb__stamp *out, sb_error *err) {
    struct sb__file_info info;
    int error = sb__file_examine((sb__file)user, &info);
    if (error)
        return sb__fail_io(err, error, "the file cannot be examined");
    *out = (struct sb__stamp){info.version, info.changed, info.names};
    return SB_OK;
}

static sb_status version(void *user, uint64_t *out, sb_error *err) {
    struct sb__stamp stamp = {.version = 0};
    sb_status st = sb__descriptor_stamp(user, &stamp, err);
    if (st == SB_OK)
        *out = stamp.version;
    return st;
}

bool sb__descriptor_is(const sb_source *source) {
    return source->version == version;
}

void sb__descriptor_close(void *user) {
    sb__file_close((sb__file)user);
}

/* Refuses a file of size 0 that contains bytes. An example is a file of procfs, which the kernel
   generates during the read. */
static sb_status check_empty(sb__file file, const char *shown, sb_error *err) {
    unsigned char byte;
    size_t got;
    int error = sb__file_read_at(file, 0, &byte, sizeof byte, &got);
    if (error)
        return sb__fail_io(err, error, "%s cannot be read", shown);
    if (got == 0)
        return SB_OK;
    return sb__fail(err, SB_ERR_IO,
                    "%s has a size of 0, but contains bytes: a file that is generated while it is "
                    "read must be copied first",
                    shown);
}

sb_status sb__descriptor_source(sb__file file, const char *shown, sb_source *out, sb_error *err) {
    struct sb__file_info info;
    int error = sb__file_examine(file, &info);
    if (error)
        return sb__fail_io(err, error, "%s cannot be examined", shown);
    if (info.misfit)
        return sb__fail_io(err, info.misfit, "%s is not a regular file", shown);
    sb_status st = info.size == 0 ? check_empty(file, shown, err) : SB_OK;
    if (st != SB_OK)
        return st;
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
