#include "format/source.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static sb_status check_size(uint64_t size, sb_error *err) {
    if (size <= SB__MAX_MESSAGE_BYTES)
        return SB_OK;
    return sb__fail_at(err, SB_ERR_DATA_LIMIT, SB__MAX_MESSAGE_BYTES,
                       "%llu bytes are more than a protobuf message can have, 2147483647",
                       (unsigned long long)size);
}

sb_status sb__source_of_bytes(struct sb__source *out, const void *bytes, size_t size,
                              sb_error *err) {
    if (!bytes && size > 0)
        return sb__fail_null(err, "bytes");
    sb_status st = check_size(size, err);
    if (st == SB_OK)
        *out = (struct sb__source){
            .bytes = bytes ? bytes : (const void *)"", .size = (uint32_t)size, .fd = -1};
    return st;
}

static sb_status map(struct sb__source *source, sb_error *err) {
    if (source->size == 0) {
        source->bytes = (const unsigned char *)"";
        return SB_OK;
    }
    void *bytes = mmap(NULL, source->size, PROT_READ, MAP_PRIVATE, source->fd, 0);
    if (bytes == MAP_FAILED)
        return sb__fail_io(err, errno, "%u bytes of the file cannot be mapped", source->size);
    source->bytes = bytes;
    source->mapped = true;
    return SB_OK;
}

static sb_status examine(struct sb__source *source, const char *shown_path, sb_error *err) {
    struct stat info;
    if (fstat(source->fd, &info) != 0)
        return sb__fail_io(err, errno, "\"%s\" cannot be examined", shown_path);
    if (!S_ISREG(info.st_mode))
        return sb__fail_io(err, S_ISDIR(info.st_mode) ? EISDIR : EINVAL,
                           "\"%s\" is not a regular file", shown_path);
    sb_status st = check_size((uint64_t)info.st_size, err);
    if (st != SB_OK)
        return st;
    source->size = (uint32_t)info.st_size;
    source->modified = info.st_mtim;
    return SB_OK;
}

sb_status sb__source_open(struct sb__source *out, const char *path, bool mapped, sb_error *err) {
    char shown[96];
    sb__escape(path, strlen(path), shown, sizeof shown);
    /* O_NONBLOCK: opening a pipe must not wait; for a regular file it means nothing. */
    struct sb__source source = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (source.fd < 0)
        return sb__fail_io(err, errno, "\"%s\" cannot be opened", shown);
    sb_status st = examine(&source, shown, err);
    if (st == SB_OK && mapped)
        st = map(&source, err);
    if (st == SB_OK)
        *out = source;
    else
        (void)close(source.fd);
    return st;
}

void sb__source_close(struct sb__source *source) {
    if (source->mapped)
        (void)munmap((void *)source->bytes, source->size);
    if (source->fd >= 0)
        (void)close(source->fd);
    *source = (struct sb__source){.fd = -1};
}

sb_status sb__source_changed(sb_error *err) {
    return sb__fail(err, SB_ERR_IO, "the file changed while it was read");
}

sb_status sb__source_read(const struct sb__source *source, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    unsigned char *to = dst;
    while (size > 0) {
        ssize_t got = pread(source->fd, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sb__fail_io(err, errno, "%zu bytes at offset %u cannot be read", size, offset);
        if (got == 0)
            return sb__source_changed(err);
        to += got;
        offset += (uint32_t)got;
        size -= (size_t)got;
    }
    return SB_OK;
}

sb_status sb__source_check(const struct sb__source *source, sb_error *err) {
    struct stat info;
    if (source->fd < 0)
        return SB_OK;
    if (fstat(source->fd, &info) != 0)
        return sb__fail_io(err, errno, "the file cannot be examined");
    if (info.st_size != (off_t)source->size || info.st_mtim.tv_sec != source->modified.tv_sec ||
        info.st_mtim.tv_nsec != source->modified.tv_nsec)
        return sb__source_changed(err);
    return SB_OK;
}
