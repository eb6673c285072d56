/* A source whose bytes are in several pieces of memory. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "context/context.h"
#include "wire/source.h"

#include <string.h>

struct piece {
    size_t begin; /* the piece's offset in the source */
    const unsigned char *bytes;
};

struct pieces {
    sb_context *context;
    size_t size;  /* the size of this struct with its array */
    size_t count; /* number of pieces, none of which is empty */
    size_t end;
    struct piece piece[];
};

/* Returns the index of the piece that contains `offset`. */
static size_t piece_at(const struct pieces *all, uint64_t offset) {
    size_t first = 0, beyond = all->count;
    while (beyond - first > 1) {
        const size_t middle = first + (beyond - first) / 2;
        if (all->piece[middle].begin <= offset)
            first = middle;
        else
            beyond = middle;
    }
    return first;
}

static sb_status read_at(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err) {
    const struct pieces *all = user;
    unsigned char *to = buffer;
    if (bytes > all->end || offset > all->end - bytes) /* the caller may change sb_source::size */
        return sb__fail(err, SB_ERR_IO, "%zu bytes at offset %llu are beyond the spans", bytes,
                        (unsigned long long)offset);
    for (size_t i = piece_at(all, offset); bytes > 0; i++) {
        const size_t end = i + 1 < all->count ? all->piece[i + 1].begin : all->end;
        const size_t n = end - offset < bytes ? (size_t)(end - offset) : bytes;
        memcpy(to, all->piece[i].bytes + (offset - all->piece[i].begin), n);
        to += n;
        offset += n;
        bytes -= n;
    }
    return SB_OK;
}

static void end_pieces(void *user) {
    struct pieces *all = user;
    sb_context *context = all->context;
    sb__object_free(context, all, all->size);
    sb_context_release(context);
}

static sb_status measure(const sb_span *spans, size_t num_spans, size_t *out_total, sb_error *err) {
    *out_total = 0;
    if (!spans && num_spans > 0)
        return sb__fail_null(err, "spans");
    for (size_t i = 0; i < num_spans; i++) {
        if (!spans[i].bytes && spans[i].size > 0)
            return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "span %zu has %zu bytes, but no address",
                            i, spans[i].size);
        if (!sb__add_size(*out_total, spans[i].size, out_total))
            return sb__fail(err, SB_ERR_SIZE_OVERFLOW,
                            "the first %zu spans have more bytes than size_t holds", i + 1);
    }
    return SB_OK;
}

/* alloc_pieces cannot overflow, because the caller's array of the same size is in memory. */
_Static_assert(sizeof(struct piece) == sizeof(sb_span), "a piece is as large as a span");

static sb_status alloc_pieces(sb_context *context, size_t count, struct pieces **out,
                              sb_error *err) {
    const size_t bytes = sizeof(struct pieces) + count * sizeof(struct piece);
    void *object = NULL;
    context = sb__context(context);
    sb_status st = sb__object_alloc(context, bytes, &object, err);
    if (st != SB_OK)
        return st;
    *out = object;
    (*out)->context = sb_context_retain(context);
    (*out)->size = bytes;
    return SB_OK;
}

static void fill_pieces(struct pieces *all, const sb_span *spans, size_t num_spans) {
    for (size_t i = 0; i < num_spans; i++) {
        if (spans[i].size == 0)
            continue;
        all->piece[all->count++] = (struct piece){all->end, spans[i].bytes};
        all->end += spans[i].size;
    }
}

sb_status sb_source_of_spans(sb_context *context, const sb_span *spans, size_t num_spans,
                             sb_source *out, sb_error *err) {
    size_t total;
    struct pieces *all = NULL; /* gcc does not see that success sets the pointer */
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb__check_struct(out->struct_size, SB__SOURCE_FIRST_SIZE, "sb_source", err);
    if (st == SB_OK)
        st = measure(spans, num_spans, &total, err);
    if (st == SB_OK)
        st = alloc_pieces(context, num_spans, &all, err);
    if (st != SB_OK)
        return st;
    fill_pieces(all, spans, num_spans);
    sb_source source = SB_SOURCE_INIT;
    source.user = all;
    source.size = total;
    source.read_at = read_at;
    source.close = end_pieces;
    sb__give_struct(out, out->struct_size, &source, sizeof source);
    return SB_OK;
}
