#include "base/error.h"
#include "base/options.h"
#include "format/source.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int descriptor_of(void *user) {
    return (int)(intptr_t)user;
}

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    unsigned char *to = buffer;
    while (bytes > 0) {
        ssize_t got = pread(descriptor_of(user), to, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sb__fail_io(err, errno, "%zu bytes at offset %llu cannot be read", bytes,
                               (unsigned long long)offset);
        if (got == 0)
            return sb__source_changed(err);
        to += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return SB_OK;
}

/* A time of its own for each nanosecond; for one time, a number of its own for each size. */
static sb_status version(void *user, uint64_t *out, sb_error *err) {
    struct stat info;
    if (fstat(descriptor_of(user), &info) != 0)
        return sb__fail_io(err, errno, "the file cannot be examined");
    uint64_t time = (uint64_t)info.st_mtim.tv_sec * 1000000000 + (uint64_t)info.st_mtim.tv_nsec;
    *out = time * 0x9E3779B97F4A7C15 + (uint64_t)info.st_size;
    return SB_OK;
}

void sb__descriptor_close(void *user) {
    (void)close(descriptor_of(user));
}

sb_status sb__descriptor_source(int descriptor, const char *shown, sb_source *out, sb_error *err) {
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return sb__fail_io(err, errno, "%s cannot be examined", shown);
    if (!S_ISREG(info.st_mode))
        return sb__fail_io(err, S_ISDIR(info.st_mode) ? EISDIR : EINVAL, "%s is not a regular file",
                           shown);
    *out = (sb_source)SB_SOURCE_INIT;
    out->user = (void *)(intptr_t)descriptor;
    out->size = (uint64_t)info.st_size;
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
