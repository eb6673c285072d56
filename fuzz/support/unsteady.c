#include "unsteady.h"

#include <string.h>

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    struct unsteady *unsteady = user;
    fuzz_check(bytes > 0 && offset <= unsteady->size && bytes <= unsteady->size - offset,
               "an empty or too long read: %zu bytes at %llu of %zu", bytes,
               (unsigned long long)offset, unsteady->size);
    if (unsteady->left > 0)
        unsteady->left--;
    if (unsteady->trouble == TROUBLE_FAILS && unsteady->left == 0) {
        unsteady->left = -1;
        return sb_error_fill(err, SB_ERR_IO, 0, "the input ends here");
    }
    memcpy(buffer, unsteady->bytes + offset, bytes);
    if (unsteady->trouble == TROUBLE_CHANGES && unsteady->left == 0)
        ((uint8_t *)buffer)[unsteady->where % bytes] ^= (uint8_t)(1 + unsteady->where / 7 % 255);
    return SB_OK;
}

static void close_source(void *user) {
    struct unsteady *unsteady = user;
    unsteady->closed++;
}

sb_source unsteady_source(struct unsteady *unsteady) {
    sb_source source = SB_SOURCE_INIT;
    source.user = unsteady;
    source.size = unsteady->size;
    source.read_at = read_at;
    source.close = close_source;
    return source;
}

bool unsteady_struck(const struct unsteady *unsteady) {
    return unsteady->trouble != TROUBLE_NONE && unsteady->left <= 0;
}

void unsteady_check(const struct unsteady *unsteady, sb_status status) {
    if (status != SB_ERR_IO)
        check_bytes_status(status);
    else
        fuzz_check(unsteady_struck(unsteady), "a steady source fails: %.239s", call_error.message);
}

static sb_status write_bytes(void *user, const void *bytes, size_t size, sb_error *err) {
    struct drain *drain = user;
    fuzz_check(size > 0 && drain->left >= 0, "%zu bytes are written after a failure", size);
    if (drain->left > 0 && --drain->left == 0) {
        drain->left = -1;
        return sb_error_fill(err, SB_ERR_IO, 0, "the sink is full");
    }
    if (drain->bytes)
        fuzz_check(size <= drain->size - drain->written &&
                       memcmp(drain->bytes + drain->written, bytes, size) == 0,
                   "%zu bytes at %zu differ from the input", size, drain->written);
    drain->written += size;
    return SB_OK;
}

sb_sink drain_sink(struct drain *drain) {
    sb_sink sink = SB_SINK_INIT;
    sink.user = drain;
    sink.write = write_bytes;
    return sink;
}
