#include "wire/file_write.h"

#include "base/error.h"

static sb_status fail(const char *path, int error, const char *what, sb_error *err) {
    char shown[96];
    return sb__fail_io(err, error, "\"%s\" %s", sb__escape_path(path, shown, sizeof shown), what);
}

sb_status sb__file_write_begin(struct sb__replacement *file, const char *path, sb_error *err) {
    const char *what;
    int error = sb__replacement_begin(file, path, &what);
    return error ? fail(file->shown, error, what, err) : SB_OK;
}

static sb_status write_out(void *user, const void *bytes, size_t size, sb_error *err) {
    struct sb__replacement *file = user;
    int error = sb__replacement_write(file, bytes, size);
    return error ? fail(file->shown, error, "cannot be written", err) : SB_OK;
}

sb_sink sb__file_write_sink(struct sb__replacement *file) {
    return (sb_sink){sizeof(sb_sink), file, write_out};
}

sb_status sb__file_write_commit(struct sb__replacement *file, sb_error *err) {
    bool in_place;
    int error = sb__replacement_commit(file, &in_place);
    if (!error)
        return SB_OK;
    return fail(file->shown, error,
                in_place ? "is in place, but may not outlive a power failure" : "cannot be written",
                err);
}
