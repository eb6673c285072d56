#include "memory/storage.h"

#include "memory/lease.h"

#include <syncblob/mem.h>

#include <string.h>

/* The address of memories of size 0: not NULL, aligned, never read or written. */
static _Alignas(64) char sentinel[64];

/* Storage in quarantine. `entry` is the first member, because release_kept casts its address. */
struct sb__kept {
    struct sb__quarantined entry;
    sb_context *context;
    int32_t side;
    struct sb__storage storage;
};

static sb_status make_kept(sb_context *context, size_t bytes, struct sb__kept **out,
                           sb_error *err) {
    void *object = NULL;
    sb_status st = SB_OK;
    if (bytes && context->has_device)
        st = sb__object_alloc(context, sizeof(struct sb__kept), &object, err);
    *out = object;
    return st;
}

static void free_kept(sb_context *context, struct sb__kept *kept) {
    sb__object_free(context, kept, sizeof *kept);
}

/* The sum cannot overflow: sb__host_size adds at most 1/8 to `bytes`, which is at most
   PTRDIFF_MAX. */
size_t sb__storage_size(const sb_context *context, size_t bytes) {
    if (!bytes)
        return 0;
    return sb__host_size(context, bytes) + (context->has_device ? sizeof(struct sb__kept) : 0);
}

sb_status sb__storage_alloc(struct sb__storage *out, sb_context *context, int32_t side,
                            size_t bytes, enum sb__contents contents, sb_stream stream,
                            sb_error *err) {
    struct sb__storage made = {.ptr = sentinel, .kind = SB_STORAGE_OWNED};
    bool pinned = false;
    sb_status st = make_kept(context, bytes, &made.kept, err);
    if (st != SB_OK)
        return st;
    if (bytes && side == SB_SIDE_GPU)
        st = sb__device_alloc(context, bytes, stream, &made.ptr, err);
    else if (bytes)
        st = sb__host_alloc(context, bytes, contents, &pinned, &made.ptr, err);
    if (st != SB_OK) {
        free_kept(context, made.kept);
        return st;
    }
    if (pinned)
        made.kind = SB_STORAGE_PINNED;
    *out = made;
    return SB_OK;
}

bool sb__storage_alloc_coherent(struct sb__storage *out, sb_context *context, size_t bytes,
                                enum sb__contents contents) {
    if (sb__storage_alloc(out, context, SB_SIDE_GPU, bytes, contents, context->stream, NULL) !=
        SB_OK)
        return false;
    if (contents != SB__ANY_BYTES)
        memset(out->ptr, 0, bytes);
    return true;
}

static sb_status borrow(struct sb__storage *out, sb_context *context, size_t bytes, void *ptr,
                        uint32_t flags, sb_error *err) {
    struct sb__kept *kept;
    sb_status st = make_kept(context, bytes, &kept, err);
    if (st != SB_OK)
        return st;
    *out = (struct sb__storage){
        .ptr = ptr,
        .kind = flags & SB_READ_ONLY ? SB_STORAGE_BORROWED_READ_ONLY : SB_STORAGE_BORROWED,
        .kept = kept,
        .is_exposed = true,
    };
    return SB_OK;
}

static bool is_borrowed(const struct sb__storage *storage) {
    return storage->kind == SB_STORAGE_BORROWED || storage->kind == SB_STORAGE_BORROWED_READ_ONLY;
}

/* Returns the bytes to count as borrowed. Returns 0 if the storage comes from a lease of the same
   context, because that context has already counted the bytes. */
static size_t counted(const struct sb__storage *storage, const sb_context *context, size_t bytes) {
    const struct sb__lease *lease = atomic_load_explicit(&storage->lease, memory_order_relaxed);
    return storage->is_joined && lease->context == context ? 0 : bytes;
}

sb_status sb__storage_lend(struct sb__storage *out, sb_context *context, size_t bytes, void *ptr,
                           uint32_t flags, sb_deleter deleter, void *user, sb_error *err) {
    sb_status st = borrow(out, context, bytes, ptr, flags, err);
    if (st != SB_OK)
        return st;
    out->deleter = deleter;
    out->user = user;
    (void)sb__counter_add(&context->borrowed, counted(out, context, bytes));
    return SB_OK;
}

sb_status sb__storage_join(struct sb__storage *out, sb_context *context, size_t bytes, void *ptr,
                           uint32_t flags, struct sb__lease *lease, sb_error *err) {
    sb_status st = borrow(out, context, bytes, ptr, flags, err);
    if (st != SB_OK)
        return st;
    atomic_store_explicit(&out->lease, lease, memory_order_relaxed);
    out->is_joined = true;
    (void)sb__counter_add(&context->borrowed, counted(out, context, bytes));
    return SB_OK;
}

void sb__storage_unlend(struct sb__storage *lent, sb_context *context, size_t bytes) {
    sb__counter_subtract(&context->borrowed, counted(lent, context, bytes));
    free_kept(context, lent->kept);
}

bool sb__storage_is_in_child(const struct sb__storage *storage, const sb_context *context) {
    if (storage->is_joined) {
        const struct sb__lease *lease = storage->lease;
        return lease->side == SB_SIDE_CPU &&
               sb__storage_is_in_child(&lease->storage, lease->context);
    }
    if (storage->is_alias)
        return false;
    return storage->kind != SB_STORAGE_PINNED ||
           !(context->backend.flags & SB_BACKEND_PINNED_NOT_IN_CHILD);
}

/* Frees storage or runs its deleter. Called when no work can use the storage any more. Owned device
   memory is an exception: its free is queued on the library's stream, after the work that uses the
   memory. */
static void release(const struct sb__storage *storage, sb_context *context, int32_t side,
                    size_t bytes) {
    free_kept(context, storage->kept);
    if (is_borrowed(storage)) {
        sb__counter_subtract(&context->borrowed, counted(storage, context, bytes));
        if (storage->is_joined)
            sb__lease_release(storage->lease, 0);
        else if (storage->deleter)
            storage->deleter(storage->user, storage->ptr);
    } else if (bytes && side == SB_SIDE_GPU) {
        sb__device_free(context, storage->ptr, bytes);
    } else if (bytes) {
        sb__host_free(context, storage->ptr, bytes, storage->kind == SB_STORAGE_PINNED);
    }
}

static void release_kept(struct sb__quarantined *entry) {
    struct sb__kept *kept = (struct sb__kept *)entry;
    struct sb__storage storage = kept->storage;
    release(&storage, kept->context, kept->side, entry->bytes);
}

/* Returns the streams whose work must end before the storage is released. For device memory, also
   returns the default stream if a pointer was exposed without a stream, and the library's stream if
   the caller has lent the memory. */
static uint64_t users_of(const sb_context *context, const struct sb__storage *storage,
                         int32_t side) {
    uint64_t users = storage->users;
    if (side == SB_SIDE_GPU && storage->is_exposed)
        users |= sb__default_stream(context);
    if (side == SB_SIDE_GPU && is_borrowed(storage))
        users |= sb__slot_bit(SB__OWN_SLOT);
    return users;
}

/* Makes the library's stream, on which device memory is freed, wait for the storage's users. */
static sb_status order_free(sb_context *context, const struct sb__storage *storage) {
    sb_status st = storage->is_exposed ? sb__device_after_default(context, NULL) : (sb_status)SB_OK;
    return st == SB_OK && storage->users
               ? sb__streams_order(context, storage->users, context->stream, NULL)
               : st;
}

static bool is_over(sb_context *context, int32_t side, const struct sb__storage *storage) {
    uint64_t users = users_of(context, storage, side);
    if (!users)
        return true;
    if (side == SB_SIDE_GPU && !is_borrowed(storage) && order_free(context, storage) == SB_OK)
        return true; /* the free is queued on the library's stream */
    return sb__streams_over(context, users);
}

static void quarantine(struct sb__storage *storage, sb_context *context, int32_t side,
                       size_t bytes) {
    struct sb__kept *kept = storage->kept;
    kept->entry.users = users_of(context, storage, side);
    kept->entry.bytes = bytes;
    kept->entry.release = release_kept;
    kept->context = context;
    kept->side = side;
    kept->storage = *storage;
    sb__quarantine_put(context, &kept->entry);
}

void sb__storage_end(struct sb__storage *storage, sb_context *context, int32_t side, size_t bytes) {
    struct sb__storage old = *storage;
    *storage = (struct sb__storage){.kind = SB_STORAGE_NONE};
    if (!old.ptr || old.is_alias)
        return;
    if (old.lease && !old.is_joined)
        sb__lease_release(old.lease, old.users);
    else if (!old.kept || is_over(context, side, &old))
        release(&old, context, side, bytes);
    else
        quarantine(&old, context, side, bytes);
}
