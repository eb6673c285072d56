/* Claims about blobs in a context on the backend: copies, heads and arithmetic. At the end of each
   claim no memory may remain allocated. */
#include "kit.h"

#include <syncblob/blob.h>

#include <math.h>
#include <string.h>

static sb_blob *blob_make(struct sb__kit *kit, sb_context *context, sb_dtype dtype, int64_t count) {
    sb_blob *blob = NULL;
    SB__KIT_TRY(kit, sb_blob_create_shaped, context, dtype, &count, 1, &blob);
    return blob;
}

static size_t bytes_of(const sb_blob *blob) {
    return (size_t)sb_blob_count(blob) * sb_dtype_size(sb_blob_dtype(blob));
}

static void write_host(struct sb__kit *kit, sb_blob *blob, sb_part part, uint64_t seed) {
    void *bytes = NULL;
    SB__KIT_TRY(kit, sb_blob_overwrite_cpu, blob, part, &bytes);
    if (sb__kit_goes(kit))
        sb__kit_fill(bytes, bytes_of(blob), seed);
}

/* Reads the host's bytes, and compares them with bytes that are generated from a seed. */
static void check_host(struct sb__kit *kit, const sb_blob *blob, sb_part part, uint64_t seed,
                       const char *what) {
    const void *found = NULL;
    void *expected = sb__kit_memory(kit, blob ? bytes_of(blob) : 0);
    SB__KIT_TRY(kit, sb_blob_cpu, blob, part, &found);
    if (sb__kit_goes(kit)) {
        sb__kit_fill(expected, bytes_of(blob), seed);
        if (memcmp(found, expected, bytes_of(blob)) != 0)
            sb__kit_fail(kit, "%s: the host has wrong bytes", what);
    }
    sb__kit_memory_free(kit, expected);
}

static void check_head(struct sb__kit *kit, const sb_blob *blob, sb_head expected,
                       const char *what) {
    const sb_mem *mem = NULL;
    SB__KIT_TRY(kit, sb_blob_mem, blob, SB_DATA, &mem);
    if (sb__kit_goes(kit) && sb_mem_head(mem) != expected)
        sb__kit_fail(kit, "%s: the head is %d, not %d", what, (int)sb_mem_head(mem), (int)expected);
}

/* Releases a context after its blobs. Fails the claim if memory of the device is still live. */
static void context_end(struct sb__kit *kit, sb_context *context) {
    sb_stats stats = SB_STATS_INIT;
    SB__KIT_TRY(kit, sb_context_synchronize, context);
    SB__KIT_TRY(kit, sb_context_stats, context, &stats);
    if (stats.device_bytes || stats.pinned_bytes || stats.borrowed_bytes || stats.quarantined_bytes)
        sb__kit_fail(kit, "%llu bytes of the device are live after the last blob",
                     (unsigned long long)stats.device_bytes);
    if (context)
        sb_context_release(context);
}

static void bytes_move(struct sb__kit *kit, sb_context *context, sb_dtype dtype, int64_t count) {
    const void *on_device = NULL;
    void *to_write = NULL;
    sb_blob *blob = blob_make(kit, context, dtype, count);
    write_host(kit, blob, SB_DATA, 1);
    SB__KIT_TRY(kit, sb_blob_gpu, blob, SB_DATA, &on_device);
    check_head(kit, blob, SB_HEAD_SYNCED, "sb_blob_gpu");
    SB__KIT_TRY(kit, sb_blob_mutable_gpu, blob, SB_DATA, &to_write);
    check_head(kit, blob, SB_HEAD_AT_GPU, "sb_blob_mutable_gpu");
    check_host(kit, blob, SB_DATA, 1, "sb_blob_cpu");
    check_head(kit, blob, SB_HEAD_SYNCED, "sb_blob_cpu");
    sb_blob_destroy(blob);
}

static void blobs_move(struct sb__kit *kit) {
    static const int64_t counts[] = {0, 1, 7, 1000, 30011};
    sb_context *context = sb__kit_context(kit, &kit->table, kit->table.name);
#define MOVE(NAME, number, name, type, kind, with)                                                 \
    for (size_t c = 0; c < SB__KIT_COUNT_OF(counts); c++)                                          \
        bytes_move(kit, context, SB_DTYPE_##NAME, counts[c]);
    SB_DTYPE_LIST(MOVE, )
#undef MOVE
    context_end(kit, context);
}

static void blobs_are_zero_first(struct sb__kit *kit) {
    static const char zeros[1000 * sizeof(float)];
    const void *on_device = NULL;
    const void *on_host = NULL;
    void *to_write = NULL;
    sb_context *context = sb__kit_context(kit, &kit->table, kit->table.name);
    sb_blob *blob = blob_make(kit, context, SB_DTYPE_F32, 1000);
    SB__KIT_TRY(kit, sb_blob_gpu, blob, SB_DATA, &on_device);
    check_head(kit, blob, SB_HEAD_AT_GPU, "the first sb_blob_gpu");
    SB__KIT_TRY(kit, sb_blob_cpu, blob, SB_DATA, &on_host);
    if (sb__kit_goes(kit) && memcmp(on_host, zeros, sizeof zeros) != 0)
        sb__kit_fail(kit, "the first sb_blob_gpu returned bytes that are not zero");
    write_host(kit, blob, SB_DATA, 1);
    SB__KIT_TRY(kit, sb_blob_mutable_gpu, blob, SB_DATA, &to_write);
    SB__KIT_TRY(kit, sb_blob_clear, blob, SB_DATA);
    SB__KIT_TRY(kit, sb_blob_cpu, blob, SB_DATA, &on_host);
    if (sb__kit_goes(kit) && memcmp(on_host, zeros, sizeof zeros) != 0)
        sb__kit_fail(kit, "sb_blob_clear left bytes that are not zero");
    sb_blob_destroy(blob);
    context_end(kit, context);
}

static void blobs_are_copied(struct sb__kit *kit) {
    void *to_write = NULL;
    sb_context *context = sb__kit_context(kit, &kit->table, kit->table.name);
    sb_context *other = sb__kit_context(kit, &kit->table, kit->table.name);
    sb_blob *from = blob_make(kit, context, SB_DTYPE_F32, 3000);
    sb_blob *to = blob_make(kit, context, SB_DTYPE_F32, 3000);
    sb_blob *far = blob_make(kit, other, SB_DTYPE_F32, 3000);
    write_host(kit, from, SB_DATA, 1);
    SB__KIT_TRY(kit, sb_blob_mutable_gpu, from, SB_DATA, &to_write);
    SB__KIT_TRY(kit, sb_blob_copy_from, to, SB_DATA, from, 0);
    check_head(kit, to, SB_HEAD_AT_GPU, "sb_blob_copy_from on the device");
    SB__KIT_TRY(kit, sb_blob_copy_from, far, SB_DATA, to, 0);
    check_host(kit, to, SB_DATA, 1, "sb_blob_copy_from");
    check_host(kit, far, SB_DATA, 1, "sb_blob_copy_from between contexts");
    check_host(kit, from, SB_DATA, 1, "the source of sb_blob_copy_from");
    sb_blob_destroy(far);
    sb_blob_destroy(to);
    sb_blob_destroy(from);
    context_end(kit, other);
    context_end(kit, context);
}

/* Accesses the host's bytes immediately after each copy is queued. */
static void copies_are_asynchronous(struct sb__kit *kit) {
    void *to_write = NULL;
    sb_mem *mem = NULL;
    sb_context *context = sb__kit_context(kit, &kit->table, kit->table.name);
    sb_blob *blob = blob_make(kit, context, SB_DTYPE_F64, 20011);
    SB__KIT_TRY(kit, sb_blob_mutable_mem, blob, SB_DATA, &mem);
    for (uint64_t i = 1; i < 4 && sb__kit_goes(kit); i++) {
        write_host(kit, blob, SB_DATA, i);
        SB__KIT_TRY(kit, sb_mem_async_gpu_push, mem, NULL);
        check_head(kit, blob, SB_HEAD_SYNCED, "sb_mem_async_gpu_push");
        SB__KIT_TRY(kit, sb_mem_mutable_gpu, mem, &to_write);
        SB__KIT_TRY(kit, sb_mem_async_cpu_pull, mem, NULL);
        if (i == 2)
            SB__KIT_TRY(kit, sb_mem_synchronize, mem);
        check_host(kit, blob, SB_DATA, i, "sb_mem_async_cpu_pull");
        write_host(kit, blob, SB_DATA, i + 10);
        SB__KIT_TRY(kit, sb_mem_prefetch_gpu, mem, NULL);
        write_host(kit, blob, SB_DATA, i + 20); /* waits for the copy */
        check_host(kit, blob, SB_DATA, i + 20, "bytes written after sb_mem_prefetch_gpu");
    }
    sb_blob_destroy(blob);
    context_end(kit, context);
}

/* Lends a part of one memory's device storage to another memory, as its device side. */
static void memory_is_lent(struct sb__kit *kit) {
    enum { BYTES = 8000, INNER = 4000, AT = 1024 };
    char model[BYTES];
    void *whole = NULL, *to_write = NULL;
    const void *found = NULL;
    sb_mem *lender = NULL, *borrower = NULL;
    sb_context *context = sb__kit_context(kit, &kit->table, kit->table.name);
    SB__KIT_TRY(kit, sb_mem_create, context, BYTES, &lender);
    SB__KIT_TRY(kit, sb_mem_create, context, INNER, &borrower);
    SB__KIT_TRY(kit, sb_mem_mutable_cpu, lender, &to_write);
    sb__kit_fill(model, BYTES, 1);
    if (sb__kit_goes(kit))
        memcpy(to_write, model, BYTES);
    SB__KIT_TRY(kit, sb_mem_mutable_gpu, lender, &whole);
    SB__KIT_TRY(kit, sb_mem_set_gpu, borrower, whole ? (char *)whole + AT : NULL, INNER, 0, NULL,
                NULL);
    SB__KIT_TRY(kit, sb_mem_cpu, borrower, &found);
    if (sb__kit_goes(kit) && memcmp(found, model + AT, INNER) != 0)
        sb__kit_fail(kit, "lent memory of the device has wrong bytes");
    SB__KIT_TRY(kit, sb_mem_mutable_gpu, borrower, &to_write);
    SB__KIT_TRY(kit, sb_mem_clear, borrower);
    sb_mem_release(borrower);
    memset(model + AT, 0, INNER);
    SB__KIT_TRY(kit, sb_mem_cpu, lender, &found);
    if (sb__kit_goes(kit) && memcmp(found, model, BYTES) != 0)
        sb__kit_fail(kit, "clearing lent memory changed bytes outside it");
    SB__KIT_TRY(kit, sb_mem_evict_gpu, lender);
    SB__KIT_TRY(kit, sb_mem_cpu, lender, &found);
    if (sb__kit_goes(kit) && memcmp(found, model, BYTES) != 0)
        sb__kit_fail(kit, "sb_mem_evict_gpu changed the host's bytes");
    sb_mem_release(lender);
    context_end(kit, context);
}

/* --- arithmetic ---------------------------------------------------------------------- */

/* Writes small integers, for which arithmetic is exact. */
static void write_values(struct sb__kit *kit, sb_blob *blob, sb_part part, int64_t first) {
    void *bytes = NULL;
    SB__KIT_TRY(kit, sb_blob_overwrite_cpu, blob, part, &bytes);
    for (int64_t i = 0; i < sb_blob_count(blob) && sb__kit_goes(kit); i++) {
        const int64_t value = (first + i * 7) % 101 - 50;
        if (sb_blob_dtype(blob) == SB_DTYPE_F64)
            ((double *)bytes)[i] = (double)value;
        else
            ((float *)bytes)[i] = (float)value;
    }
}

static void compute(struct sb__kit *kit, sb_blob *blob, double sums[4]) {
    SB__KIT_TRY(kit, sb_blob_update, blob);
    SB__KIT_TRY(kit, sb_blob_scale, blob, SB_DATA, -3);
    SB__KIT_TRY(kit, sb_blob_update_on, blob, NULL);
    SB__KIT_TRY(kit, sb_blob_scale_on, blob, SB_DIFF, 2, NULL);
    SB__KIT_TRY(kit, sb_blob_asum, blob, SB_DATA, &sums[0]);
    SB__KIT_TRY(kit, sb_blob_sumsq, blob, SB_DATA, &sums[1]);
    SB__KIT_TRY(kit, sb_blob_asum, blob, SB_DIFF, &sums[2]);
    SB__KIT_TRY(kit, sb_blob_sumsq, blob, SB_DIFF, &sums[3]);
}

static void compute_as_host(struct sb__kit *kit, sb_context *context, sb_dtype dtype,
                            int64_t count) {
    double found[4] = {0}, expected[4] = {0};
    void *to_write = NULL;
    sb_blob *host = blob_make(kit, NULL, dtype, count);
    sb_blob *blob = blob_make(kit, context, dtype, count);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        const void *theirs = NULL, *ours = NULL;
        write_values(kit, host, part, part);
        write_values(kit, blob, part, part);
        SB__KIT_TRY(kit, sb_blob_cpu, host, part, &ours);
        SB__KIT_TRY(kit, sb_blob_mutable_gpu, blob, part, &to_write);
        SB__KIT_TRY(kit, sb_blob_cpu, blob, part, &theirs);
        if (sb__kit_goes(kit) && memcmp(theirs, ours, bytes_of(blob)) != 0)
            sb__kit_fail(kit, "values changed before any arithmetic");
        SB__KIT_TRY(kit, sb_blob_mutable_gpu, blob, part, &to_write);
    }
    compute(kit, host, expected);
    compute(kit, blob, found);
    for (int i = 0; i < 4 && sb__kit_goes(kit); i++)
        if (!(fabs(found[i] - expected[i]) <= 1e-6 * expected[i]))
            sb__kit_fail(kit, "sum %d of %lld %s is %g on the device, %g on the host", i,
                         (long long)count, sb_dtype_name(dtype), found[i], expected[i]);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        const void *theirs = NULL, *ours = NULL;
        SB__KIT_TRY(kit, sb_blob_cpu, host, part, &ours);
        SB__KIT_TRY(kit, sb_blob_cpu, blob, part, &theirs);
        if (sb__kit_goes(kit) && memcmp(theirs, ours, bytes_of(blob)) != 0)
            sb__kit_fail(kit, "sb_blob_update or sb_blob_scale had other results than on the host");
    }
    sb_blob_destroy(blob);
    sb_blob_destroy(host);
}

static void arithmetic_is_the_hosts(struct sb__kit *kit) {
    const sb_dtype last = sb__kit_last_dtype(kit);
    sb_context *context = sb__kit_context(kit, &kit->table, kit->table.name);
    for (sb_dtype dtype = SB_DTYPE_F32; dtype <= last; dtype++) {
        compute_as_host(kit, context, dtype, 1);
        compute_as_host(kit, context, dtype, 9999);
    }
    context_end(kit, context);
}

const struct sb__claim sb__kit_blob_claims[] = {
    {"Blobs of every element type move to the device and back", blobs_move},
    {"Blobs on the device are zeros at first and after sb_blob_clear", blobs_are_zero_first},
    {"Blobs are copied on the device and between contexts", blobs_are_copied},
    {"Calls that read a queued copy's result, or overwrite its source, wait for the copy",
     copies_are_asynchronous},
    {"Device memory can be lent to the library, also a part of a block", memory_is_lent},
    {"Arithmetic on blobs has the same results as on the host", arithmetic_is_the_hosts},
    {NULL, NULL},
};
