#include "base/error.h"
#include "proto/encode.h"
#include "wire/file_write.h"

sb_status sb_blob_proto_size(const sb_blob *blob, uint32_t flags, size_t *out, sb_error *err) {
    struct sb__encoding encoding;
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb__encode_measure(&encoding, blob, flags, err);
    if (st == SB_OK)
        *out = encoding.size;
    return st;
}

sb_status sb_blob_to_proto(const sb_blob *blob, uint32_t flags, void *buffer, size_t capacity,
                           size_t *out_size, sb_error *err) {
    struct sb__encoding encoding;
    struct sb__retired retired = {NULL, NULL};
    sb_status st = sb__encode_measure(&encoding, blob, flags, err);
    if (st != SB_OK)
        return st;
    if (!buffer && capacity > 0)
        return sb__fail_null(err, "buffer");
    if (capacity < encoding.size)
        return sb__fail_buffer(err, capacity, encoding.size, out_size);
    st = sb__encode_fetch(&encoding, &retired, err);
    if (st == SB_OK) {
        struct sb__sink sink = sb__sink_memory(buffer, encoding.size);
        sb__encode_pack(&encoding, &sink);
        if (out_size)
            *out_size = encoding.size;
    }
    sb__retired_end(&retired);
    return st;
}

/* Not inlined, so that the outlet and the buffers of sb__replacement_begin are not on the stack at
   the same time. */
__attribute__((noinline)) static sb_status pack(const struct sb__encoding *encoding,
                                                const sb_sink *to, const sb_progress *progress,
                                                sb_error *err) {
    struct sb__outlet outlet;
    struct sb__progress state;
    struct sb__sink sink = sb__sink_outlet(&outlet, to);
    sink.err = err;
    sink.progress = sb__progress_begin(&state, progress, encoding->size);
    sb__encode_pack(encoding, &sink);
    sb_status st = sb__sink_end(&sink);
    return st == SB_OK ? sb__progress_end(sink.progress, err) : st;
}

sb_status sb_blob_save_file(const sb_blob *blob, const char *path, uint32_t flags, sb_error *err) {
    struct sb__encoding encoding;
    struct sb__retired retired = {NULL, NULL};
    struct sb__replacement file;
    if (!path)
        return sb__fail_null(err, "path");
    sb_status st = sb__encode_measure(&encoding, blob, flags, err);
    if (st == SB_OK)
        st = sb__file_write_begin(&file, path, err);
    if (st != SB_OK)
        return st;
    const sb_sink to = sb__file_write_sink(&file);
    st = sb__encode_fetch(&encoding, &retired, err);
    if (st == SB_OK)
        st = pack(&encoding, &to, NULL, err);
    if (st == SB_OK)
        st = sb__file_write_commit(&file, err);
    else
        sb__replacement_cancel(&file);
    sb__retired_end(&retired);
    return st;
}

sb_status sb_blob_save_sink(const sb_blob *blob, const sb_sink *sink, uint32_t flags,
                            const sb_progress *progress, sb_error *err) {
    struct sb__encoding encoding;
    struct sb__retired retired = {NULL, NULL};
    sb_sink to;
    sb_progress adopted;
    if (!sink)
        return sb__fail_null(err, "sink");
    sb_status st = sb__sink_adopt(&to, sink, err);
    if (st == SB_OK)
        st = sb__progress_adopt(&adopted, progress, err);
    if (st == SB_OK)
        st = sb__encode_measure(&encoding, blob, flags, err);
    if (st == SB_OK)
        st = sb__encode_fetch(&encoding, &retired, err);
    if (st == SB_OK)
        st = pack(&encoding, &to, &adopted, err);
    sb__retired_end(&retired);
    return st;
}
