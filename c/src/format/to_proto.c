#include "base/error.h"
#include "format/bytes.h"
#include "format/encode.h"

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
    sb_status st = sb__encode_measure(&encoding, blob, flags, err);
    if (st != SB_OK)
        return st;
    if (!buffer && capacity > 0)
        return sb__fail_null(err, "buffer");
    if (capacity < encoding.size)
        return sb__fail_buffer(err, capacity, encoding.size, out_size);
    st = sb__encode_fetch(&encoding, err);
    if (st != SB_OK)
        return st;
    struct sb__sink sink = sb__sink_memory(buffer, encoding.size);
    sb__encode_pack(&encoding, &sink);
    if (out_size)
        *out_size = encoding.size;
    return SB_OK;
}

sb_status sb_blob_to_proto_new(const sb_blob *blob, uint32_t flags, void **out, size_t *out_size,
                               sb_error *err) {
    struct sb__encoding encoding;
    void *bytes;
    if (!out || !out_size)
        return sb__fail_null(err, out ? "out_size" : "out");
    sb_status st = sb__encode_measure(&encoding, blob, flags, err);
    if (st == SB_OK)
        st = sb__bytes_alloc(sb__context(sb_blob_context(blob)), encoding.size, &bytes, err);
    if (st != SB_OK)
        return st;
    st = sb__encode_fetch(&encoding, err);
    if (st != SB_OK) {
        sb_bytes_free(bytes);
        return st;
    }
    struct sb__sink sink = sb__sink_memory(bytes, encoding.size);
    sb__encode_pack(&encoding, &sink);
    *out = bytes;
    *out_size = encoding.size;
    return SB_OK;
}

sb_status sb_blob_write_file(const sb_blob *blob, const char *path, uint32_t flags, sb_error *err) {
    struct sb__encoding encoding;
    struct sb__file_write file;
    if (!path)
        return sb__fail_null(err, "path");
    sb_status st = sb__encode_measure(&encoding, blob, flags, err);
    if (st == SB_OK)
        st = sb__file_write_begin(&file, path, err);
    if (st != SB_OK)
        return st;
    st = sb__encode_fetch(&encoding, err);
    if (st != SB_OK) {
        sb__file_write_cancel(&file);
        return st;
    }
    struct sb__sink sink = sb__sink_file(&file);
    sb__encode_pack(&encoding, &sink);
    return sb__file_write_commit(&file, err);
}
