#include "blob/load.h"

#include "blob/blob.h"

/* Storage beyond the count is capacity with bytes that stay, so only a whole overwrite may leave
   them out. */
sb_status sb__load_side_begin(struct sb__load_side *load, sb_blob *blob, enum sb__side_name name,
                              const struct sb__shape *shape, int32_t side, bool fresh,
                              sb_error *err) {
    size_t bytes = (size_t)shape->count * blob->element_size;
    sb_mem *mem = sb__blob_peek(blob, name);
    sb_status st = SB_OK;
    load->wanted = true;
    load->fresh = NULL;
    if (!mem || sb_mem_size(mem) < bytes || (fresh && sb_mem_size(mem) != bytes)) {
        st = sb_mem_create(sb__context_public(blob->context), bytes, &mem, err);
        if (st != SB_OK)
            return st;
        load->fresh = mem;
    }
    enum sb__write_mode mode = sb_mem_size(mem) != bytes ? SB__WRITE_KEEP
                               : fresh                   ? SB__WRITE_FRESH
                                                         : SB__WRITE_OVERWRITE;
    st = sb__write_begin(&load->write, mem, side, mode, err);
    if (st != SB_OK)
        sb_mem_release(load->fresh);
    return st;
}

void sb__load_side_cancel(struct sb__load_side *load) {
    if (!load->wanted)
        return;
    sb__write_cancel(&load->write);
    sb_mem_release(load->fresh);
}

bool sb__load_side_commit(struct sb__load_side *load, sb_blob *blob, enum sb__side_name name) {
    if (!load->wanted)
        return false;
    sb__write_commit(&load->write);
    if (!load->fresh)
        return false;
    bool replaced = sb__blob_peek(blob, name) != NULL;
    sb__replace(&blob->memory[name], load->fresh);
    return replaced;
}

sb_status sb__load_begin(struct sb__load *load, sb_blob *blob, const struct sb__shape *shape,
                         bool want_data, bool want_diff, bool fresh, sb_error *err) {
    load->blob = blob;
    load->data.wanted = load->diff.wanted = false;
    sb__shape_copy(&load->shape, shape);
    sb_status st = SB_OK;
    if (want_data)
        st = sb__load_side_begin(&load->data, blob, SB__DATA, shape, SB_SIDE_CPU, fresh, err);
    if (st != SB_OK)
        return st;
    if (want_diff)
        st = sb__load_side_begin(&load->diff, blob, SB__DIFF, shape, SB_SIDE_CPU, fresh, err);
    if (st != SB_OK)
        sb__load_side_cancel(&load->data);
    return st;
}

uint32_t sb__load_commit(struct sb__load *load) {
    uint32_t replaced = 0;
    if (sb__load_side_commit(&load->data, load->blob, SB__DATA))
        replaced |= SB_REALLOCATED_DATA;
    if (sb__load_side_commit(&load->diff, load->blob, SB__DIFF))
        replaced |= SB_REALLOCATED_DIFF;
    return replaced | sb__blob_take_shape(load->blob, &load->shape);
}

void sb__load_cancel(struct sb__load *load) {
    sb__load_side_cancel(&load->data);
    sb__load_side_cancel(&load->diff);
}
