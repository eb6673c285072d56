#include "blob/load.h"

#include "blob/blob.h"
#include "host/arithmetic.h"
#include "memory/mem.h"

/* Returns `whole` if a write of `bytes` bytes fills the memory. Else returns the mode that
   preserves the remaining bytes. */
static enum sb__write_mode mode_of(const sb_mem *mem, size_t bytes, enum sb__write_mode whole) {
    return mem->bytes == bytes ? whole : SB__WRITE_KEEP;
}

size_t sb__load_room(const sb_blob *blob, sb_part part, size_t bytes) {
    const sb_mem *mem = sb__blob_peek(blob, part);
    if (!mem || mem->bytes <= bytes)
        return bytes;
    const int32_t head = sb__head(mem);
    const bool is_there = mem->side[SB_SIDE_CPU].kind != SB_STORAGE_BORROWED_READ_ONLY &&
                          (head == SB_HEAD_AT_CPU || head == SB_HEAD_SYNCED);
    return is_there || head == SB_HEAD_LOST ? bytes : mem->bytes;
}

size_t sb__load_size(const sb_blob *blob, sb_part part, size_t bytes) {
    const sb_mem *mem = sb__blob_peek(blob, part);
    const size_t handle = mem && mem->bytes >= bytes ? 0 : sizeof *mem;
    return handle + sb__storage_size(blob->context, sb__load_room(blob, part, bytes));
}

/* Begins a write on `side`. `whole` is the write's mode if the values fill the whole memory. */
static sb_status begin_side(struct sb__load_side *load, sb_blob *blob, sb_part part,
                            const struct sb__shape *shape, int32_t side, enum sb__write_mode whole,
                            struct sb__retired *retired, sb_error *err) {
    size_t bytes = (size_t)shape->count * blob->element_size;
    sb_mem *mem = sb__blob_peek(blob, part);
    sb_status st = SB_OK;
    load->fresh = NULL;
    load->scratch = NULL;
    load->bytes = bytes;
    if (!mem || mem->bytes < bytes) {
        st = sb_mem_create(sb__context_public(blob->context), bytes, &mem, err);
        if (st != SB_OK)
            return st;
        load->fresh = mem;
    }
    bool existed = mem->side[side].ptr != NULL;
    st = sb__write_begin(&load->write, mem, side, mode_of(mem, bytes, whole), err);
    if (st != SB_OK) {
        sb__retire_mem(retired, load->fresh);
        return st;
    }
    load->wanted = true;
    load->in_place = existed && !load->write.replaces;
    load->ptr = load->write.ptr;
    return SB_OK;
}

sb_status sb__load_side_begin(struct sb__load_side *load, sb_blob *blob, sb_part part,
                              const struct sb__shape *shape, int32_t side,
                              struct sb__retired *retired, sb_error *err) {
    return begin_side(load, blob, part, shape, side, SB__WRITE_OVERWRITE, retired, err);
}

static void drop_scratch(struct sb__load_side *load) {
    if (load->scratch)
        sb__host_free(load->write.mem->context, load->scratch, load->bytes, load->pinned);
}

void sb__load_side_cancel(struct sb__load_side *load, struct sb__retired *retired) {
    if (!load->wanted)
        return;
    drop_scratch(load);
    sb__write_cancel(&load->write);
    sb__retire_mem(retired, load->fresh);
}

static void take_scratch(struct sb__load_side *load) {
    sb_context *context = load->write.mem->context;
    if (!load->scratch)
        return;
    sb__host_copy(&context->parallel, load->write.ptr, load->scratch, load->bytes);
    sb__count_copy(context, SB__HOST_COPY, load->bytes);
    drop_scratch(load);
}

void sb__load_side_commit(struct sb__load_side *load, sb_blob *blob, sb_part part,
                          struct sb__retired *retired) {
    if (!load->wanted)
        return;
    take_scratch(load);
    sb__write_commit(&load->write, retired);
    if (load->fresh)
        sb__swap(&blob->memory[part], load->fresh, retired);
}

/* If the load writes existing storage, allocates a scratch buffer that receives the values until
   they are complete. */
static sb_status stage(struct sb__load_side *load, sb_error *err) {
    if (!load->wanted || !load->in_place || load->bytes == 0)
        return SB_OK;
    sb_status st = sb__host_alloc(load->write.mem->context, load->bytes, SB__OWN_BYTES,
                                  &load->pinned, &load->scratch, err);
    if (st == SB_OK)
        load->ptr = load->scratch;
    return st;
}

sb_status sb__load_begin(struct sb__load *load, sb_blob *blob, const struct sb__shape *shape,
                         bool want_diff, bool may_fail, sb_error *err) {
    load->blob = blob;
    load->data.wanted = load->diff.wanted = false;
    load->retired = (struct sb__retired){NULL, NULL};
    sb__shape_copy(&load->shape, shape);
    sb_status st = begin_side(&load->data, blob, SB_DATA, shape, SB_SIDE_CPU, SB__WRITE_FILL,
                              &load->retired, err);
    if (st == SB_OK && want_diff)
        st = begin_side(&load->diff, blob, SB_DIFF, shape, SB_SIDE_CPU, SB__WRITE_FILL,
                        &load->retired, err);
    if (st == SB_OK && may_fail)
        st = stage(&load->data, err);
    if (st == SB_OK && may_fail)
        st = stage(&load->diff, err);
    if (st != SB_OK)
        sb__load_cancel(load);
    return st;
}

void sb__load_commit(struct sb__load *load) {
    sb__load_side_commit(&load->data, load->blob, SB_DATA, &load->retired);
    sb__load_side_commit(&load->diff, load->blob, SB_DIFF, &load->retired);
    (void)sb__blob_take_shape(load->blob, &load->shape, &load->retired);
    sb__retired_end(&load->retired);
}

void sb__load_cancel(struct sb__load *load) {
    sb__load_side_cancel(&load->data, &load->retired);
    sb__load_side_cancel(&load->diff, &load->retired);
    sb__retired_end(&load->retired);
}
