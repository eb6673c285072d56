/* Claims about memory and copies. The tests use one stream and wait for the stream's work. */
#include "array.h"

#include <stdio.h>
#include <string.h>

static void devices_are_separate(struct sb__kit *kit) {
    void *second;
    sb_stream stream;
    unsigned char bytes[100];
    sb__kit_fill(bytes, sizeof bytes, 1);
    void *memory = sb__kit_alloc(kit, sizeof bytes);
    sb__kit_upload(kit, memory, bytes, sizeof bytes);
    sb__kit_wait(kit, kit->stream);
    for (int i = 0; i < 2; i++) { /* opens the device while it is open, and again after close */
        sb__kit_open(kit, &second, &stream);
        sb__kit_close(kit, second);
    }
    sb__kit_compare(kit, memory, bytes, sizeof bytes, "memory of the first device");
    sb__kit_free(kit, memory, sizeof bytes);
}

static void expect_open(struct sb__kit *kit, int32_t number, sb_status expected) {
    char call[32];
    void *device;
    sb_error err = {.code = SB_OK};
    const sb_status st = kit->table.open(kit->table.user, number, &device, &err);
    (void)snprintf(call, sizeof call, "open of device %d", (int)number);
    sb__kit_expect(kit, call, expected, st, &err);
    if (st == SB_OK)
        kit->table.close(device);
}

static void all_numbers_open(struct sb__kit *kit) {
    if (!kit->options.devices)
        sb__kit_skip(kit, "the options do not contain the number of devices");
    for (int32_t i = 0; i < kit->options.devices && sb__kit_goes(kit); i++)
        expect_open(kit, i, SB_OK);
}

static void other_numbers_do_not_open(struct sb__kit *kit) {
    const int32_t numbers[] = {kit->options.devices, INT32_MAX};
    if (!kit->options.devices)
        sb__kit_skip(kit, "the options do not contain the number of devices");
    for (int i = 0; i < 2 && sb__kit_goes(kit); i++)
        expect_open(kit, numbers[i], SB_ERR_NO_DEVICE);
}

static void limits_do_not_change(struct sb__kit *kit) {
    void *second;
    sb_stream stream;
    if (!kit->table.lacks)
        sb__kit_skip(kit, "lacks is NULL");
    sb__kit_open(kit, &second, &stream);
    for (int i = 0; i < 2 && sb__kit_goes(kit); i++) {
        const uint32_t lacks = kit->table.lacks(i ? second : kit->device);
        if (lacks != kit->lacks)
            sb__kit_fail(kit, "lacks returned 0x%x and 0x%x", (unsigned)kit->lacks,
                         (unsigned)lacks);
    }
    sb__kit_close(kit, second);
}

static void blocks_are_apart(struct sb__kit *kit) {
    enum { BLOCKS = 61, LARGEST = 100000 };
    void *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS];
    uint64_t random = 2;
    unsigned char *bytes = sb__kit_memory(kit, LARGEST);
    for (uint64_t b = 0; b < BLOCKS; b++) {
        sizes[b] = 1 + (size_t)(sb__kit_random(&random) % (b % 8 ? 200 : LARGEST));
        blocks[b] = sb__kit_alloc(kit, sizes[b]);
        sb__kit_fill(bytes, sizes[b], b);
        sb__kit_upload(kit, blocks[b], bytes, sizes[b]);
        sb__kit_wait(kit, kit->stream); /* the next round overwrites `bytes` */
    }
    for (uint64_t b = 0; b < BLOCKS; b++) {
        const uint64_t at = b * 17 % BLOCKS; /* frees blocks in another order than they were
                                                allocated */
        sb__kit_fill(bytes, sizes[at], at);
        sb__kit_compare(kit, blocks[at], bytes, sizes[at], "one of 61 blocks");
        sb__kit_free(kit, blocks[at], sizes[at]);
    }
    sb__kit_memory_free(kit, bytes);
}

static void too_much_is_refused(struct sb__kit *kit) {
    void *memory = NULL;
    if (PTRDIFF_MAX <= INT32_MAX)
        sb__kit_skip(kit, "a device may have as much memory as 32-bit sizes can express");
    SB__KIT_EXPECT(kit, SB_ERR_OUT_OF_MEMORY, alloc, PTRDIFF_MAX / 2, kit->stream, &memory);
    memory = sb__kit_alloc(kit, 64); /* the device must still work */
    sb__kit_free(kit, memory, 64);
}

static void bytes_return(struct sb__kit *kit, sb_dtype dtype, int64_t count) {
    struct sb__array a = sb__array_make(kit, dtype, count, 1);
    sb__array_check_unchanged(&a, "upload and download");
    if (sb__kit_goes(kit))
        sb__kit_compare(kit, sb__array_first(&a), sb__array_values(&a), sb__array_value_bytes(&a),
                        "upload and download");
    sb__array_free(&a);
}

static void uploaded_bytes_return(struct sb__kit *kit) {
    sb__on_every_size(kit, SB_DTYPE_F64, bytes_return);
}

static void bytes_are_zero(struct sb__kit *kit, sb_dtype dtype, int64_t count) {
    struct sb__array a = sb__array_make(kit, dtype, count, 2);
    const size_t bytes = sb__array_value_bytes(&a);
    SB__KIT_CALL(kit, zero, sb__array_first(&a), bytes, kit->stream);
    sb__array_check_guards(&a, "zero");
    if (sb__kit_goes(kit)) {
        memset(sb__array_values(&a), 0, bytes);
        sb__kit_compare(kit, sb__array_first(&a), sb__array_values(&a), bytes, "zero");
    }
    sb__array_free(&a);
}

static void zero_clears_its_range(struct sb__kit *kit) {
    sb__on_every_size(kit, SB_DTYPE_F64, bytes_are_zero);
}

static void bytes_are_copied(struct sb__kit *kit, sb_dtype dtype, int64_t count) {
    struct sb__array from = sb__array_make(kit, dtype, count, 3);
    struct sb__array to = sb__array_make(kit, dtype, count, 4);
    const size_t bytes = sb__array_value_bytes(&to);
    SB__KIT_CALL(kit, copy, sb__array_first(&to), sb__array_first(&from), bytes, kit->stream);
    sb__array_check_guards(&to, "copy");
    sb__array_check_unchanged(&from, "copy");
    if (sb__kit_goes(kit))
        sb__kit_compare(kit, sb__array_first(&to), sb__array_values(&from), bytes, "copy");
    sb__array_free(&to);
    sb__array_free(&from);
}

static void copy_moves_its_range(struct sb__kit *kit) {
    sb__on_every_size(kit, SB_DTYPE_F64, bytes_are_copied);
}

/* Copies and clears bytes at odd addresses in one block, does the same in a host array (`model`),
   and compares the results. */
static void interior_pointers_work(struct sb__kit *kit) {
    enum { BYTES = 4099 };
    static const size_t places[] = {1, 3, 17, 63, 1001};
    char model[BYTES], bytes[BYTES];
    char *back = sb__kit_memory(kit, BYTES);
    char *block = sb__kit_alloc(kit, BYTES);
    sb__kit_fill(model, BYTES, 5);
    sb__kit_fill(bytes, BYTES, 6);
    sb__kit_upload(kit, block, model, BYTES);
    for (size_t p = 0; p < SB__KIT_COUNT_OF(places) && sb__kit_goes(kit); p++) {
        const size_t at = places[p];
        const size_t size = 2 * at + 1;
        sb__kit_upload(kit, block + at, bytes, size);
        sb__kit_wait(kit, kit->stream);
        memcpy(model + at, bytes, size);
        SB__KIT_CALL(kit, copy, block + BYTES - at, block + 1, at, kit->stream);
        memcpy(model + BYTES - at, model + 1, at);
        SB__KIT_CALL(kit, zero, block + 2 * at, at, kit->stream);
        memset(model + 2 * at, 0, at);
        sb__kit_download(kit, back, block + at, size);
        sb__kit_wait(kit, kit->stream);
        if (sb__kit_goes(kit) && memcmp(back, model + at, size) != 0)
            sb__kit_fail(kit, "download of %zu bytes from byte %zu returned wrong bytes", size, at);
    }
    sb__kit_compare(kit, block, model, BYTES, "upload, copy and zero at odd addresses");
    sb__kit_memory_free(kit, back);
    sb__kit_free(kit, block, BYTES);
}

static void pinned_memory_is_copied(struct sb__kit *kit) {
    enum { BYTES = 100003, BLOCKS = 3 };
    void *pinned[BLOCKS] = {NULL};
    if (!kit->table.alloc_pinned)
        sb__kit_skip(kit, "the slots of page-locked memory are NULL");
    char *block = sb__kit_alloc(kit, BYTES);
    for (uint64_t b = 0; b < BLOCKS && sb__kit_goes(kit); b++) {
        SB__KIT_CALL(kit, alloc_pinned, BYTES, &pinned[b]);
        if (sb__kit_goes(kit) && (!pinned[b] || (uintptr_t)pinned[b] % 64))
            sb__kit_fail(kit, "alloc_pinned returned %p, which is not aligned to 64 bytes",
                         pinned[b]);
        if (sb__kit_goes(kit))
            sb__kit_fill(pinned[b], BYTES, b);
    }
    for (uint64_t b = 1; b < BLOCKS && pinned[b] && sb__kit_goes(kit); b++) {
        char *next = pinned[b], *own = pinned[b - 1];
        sb__kit_upload(kit, block, own, BYTES);
        SB__KIT_CALL(kit, zero, block, (size_t)1, kit->stream);
        sb__kit_download(kit, next, block, BYTES);
        sb__kit_wait(kit, kit->stream);
        own[0] = 0;
        if (sb__kit_goes(kit) && memcmp(own, next, BYTES) != 0)
            sb__kit_fail(kit, "page-locked memory has wrong bytes after a copy");
    }
    for (int b = 0; b < BLOCKS; b++)
        if (pinned[b])
            kit->table.free_pinned(kit->device, pinned[b], BYTES);
    sb__kit_free(kit, block, BYTES);
}

/* Returns whether the device checks pointers. If not, skips the claim. */
static bool has_check_pointer(struct sb__kit *kit) {
    if (!kit->table.check_pointer)
        sb__kit_skip(kit, "check_pointer is NULL");
    if (kit->lacks & SB_DEVICE_LACKS_CHECK_POINTER)
        sb__kit_skip(kit, "the device cannot check pointers");
    return sb__kit_goes(kit);
}

static void foreign_pointers_are_refused(struct sb__kit *kit) {
    int local = 0;
    if (!has_check_pointer(kit))
        return;
    char *block = sb__kit_alloc(kit, 1000);
    void *heap = sb__kit_memory(kit, 1000);
    SB__KIT_CALL(kit, check_pointer, block, (size_t)1000);
    SB__KIT_CALL(kit, check_pointer, block + 1, (size_t)1);
    SB__KIT_CALL(kit, check_pointer, block + 999, (size_t)1);
    SB__KIT_EXPECT(kit, SB_ERR_WRONG_DEVICE, check_pointer, &local, sizeof local);
    SB__KIT_EXPECT(kit, SB_ERR_WRONG_DEVICE, check_pointer, heap, (size_t)1000);
    sb__kit_memory_free(kit, heap);
    sb__kit_free(kit, block, 1000);
}

/* If check_pointer accepts memory of a second open device, an upload to that memory must succeed.
   The block `own` ensures that the first device has memory, too. */
static void memory_of_another_open_is_refused(struct sb__kit *kit) {
    enum { BYTES = 3001 };
    struct sb__kit other = *kit;
    unsigned char bytes[BYTES];
    sb_status st = SB_ERR_WRONG_DEVICE;
    sb_error err = {.code = SB_OK};
    if (!has_check_pointer(kit))
        return;
    sb__kit_open(&other, &other.device, &other.stream);
    void *own = sb__kit_alloc(kit, BYTES), *foreign = sb__kit_alloc(&other, BYTES);
    sb__kit_wait(&other, other.stream);
    if (foreign && sb__kit_goes(kit)) {
        st = kit->table.check_pointer(kit->device, foreign, BYTES, &err);
        sb__kit_expect(kit, "check_pointer", st == SB_OK ? st : SB_ERR_WRONG_DEVICE, st, &err);
    }
    if (st == SB_OK) {
        sb__kit_fill(bytes, BYTES, 8);
        sb__kit_upload(kit, foreign, bytes, BYTES);
        sb__kit_wait(kit, kit->stream);
        sb__kit_compare(&other, foreign, bytes, BYTES, "memory that check_pointer accepted");
    }
    sb__kit_free(&other, foreign, BYTES);
    sb__kit_free(kit, own, BYTES);
    sb__kit_close(kit, other.device);
    sb__kit_join(kit, &other);
}

static void expect_host_bytes(struct sb__kit *kit, const void *block, const void *expected,
                              size_t bytes, const char *what) {
    if (sb__kit_goes(kit) && memcmp(block, expected, bytes) != 0)
        sb__kit_fail(kit, "%s", what);
}

/* The host and a caller's stream must be able to use memory as soon as `alloc` returns. */
static void host_shares_memory(struct sb__kit *kit) {
    enum { BYTES = 50021, ROUNDS = 4 };
    if (!sb__kit_is_coherent(kit))
        sb__kit_skip(kit, "the device has no host-coherent memory");
    const bool has_other = kit->options.stream_create && kit->table.own_stream;
    const sb_stream other = has_other ? sb__kit_stream_create(kit) : kit->stream;
    unsigned char *bytes = sb__kit_memory(kit, BYTES);
    unsigned char *from = sb__kit_alloc(kit, BYTES), *to = sb__kit_alloc(kit, BYTES);
    for (uint64_t round = 0; round < ROUNDS && sb__kit_goes(kit); round++) {
        const sb_stream stream = round % 2 ? kit->stream : other;
        sb__kit_fill(from, BYTES, round);
        sb__kit_fill(bytes, BYTES, round);
        SB__KIT_CALL(kit, copy, to, from, (size_t)BYTES, stream);
        SB__KIT_CALL(kit, zero, from, (size_t)BYTES / 2, stream);
        sb__kit_wait(kit, stream);
        expect_host_bytes(kit, to, bytes, BYTES,
                          "the host found wrong bytes in a copy of bytes that it had written");
        if (sb__kit_goes(kit))
            memset(bytes, 0, BYTES / 2);
        expect_host_bytes(kit, from, bytes, BYTES,
                          "the host found wrong bytes after the slot zero");
    }
    sb__kit_free(kit, to, BYTES);
    sb__kit_free(kit, from, BYTES);
    sb__kit_memory_free(kit, bytes);
    if (has_other)
        sb__kit_stream_destroy(kit, other);
}

static void trim_keeps_memory(struct sb__kit *kit) {
    unsigned char bytes[1000];
    if (!kit->table.trim)
        sb__kit_skip(kit, "trim is NULL");
    sb__kit_fill(bytes, sizeof bytes, 7);
    void *freed = sb__kit_alloc(kit, sizeof bytes);
    void *used = sb__kit_alloc(kit, sizeof bytes);
    sb__kit_upload(kit, used, bytes, sizeof bytes);
    sb__kit_free(kit, freed, sizeof bytes);
    if (sb__kit_goes(kit))
        kit->table.trim(kit->device);
    sb__kit_compare(kit, used, bytes, sizeof bytes, "memory after trim");
    sb__kit_free(kit, used, sizeof bytes);
}

static void unknown_extensions_are_null(struct sb__kit *kit) {
    if (!kit->table.extension)
        sb__kit_skip(kit, "extension is NULL");
    if (sb__kit_goes(kit) && kit->table.extension(kit->device, "syncblob.no.such.extension"))
        sb__kit_fail(kit, "extension returned a table for a name that no backend knows");
}

const struct sb__claim sb__kit_memory_claims[] = {
    {"A device can be opened again while it is open, and after close", devices_are_separate},
    {"open succeeds for each of the given number of devices", all_numbers_open},
    {"open returns NO_DEVICE for the number of a device that does not exist",
     other_numbers_do_not_open},
    {"lacks returns the same flags on every call and for every open", limits_do_not_change},
    {"Blocks of alloc are aligned to 64 bytes and do not overlap", blocks_are_apart},
    {"alloc returns OUT_OF_MEMORY for more memory than the device has", too_much_is_refused},
    {"download returns the bytes that upload has copied", uploaded_bytes_return},
    {"zero clears its range and nothing else", zero_clears_its_range},
    {"copy moves its range and nothing else", copy_moves_its_range},
    {"Copies and zero accept pointers into a block, at any byte", interior_pointers_work},
    {"Page-locked memory is aligned to 64 bytes and can be copied", pinned_memory_is_copied},
    {"check_pointer accepts the device's memory and refuses the host's",
     foreign_pointers_are_refused},
    {"check_pointer refuses memory of another open device, unless the device can use it",
     memory_of_another_open_is_refused},
    {"The host reads and writes host-coherent memory at the device's address", host_shares_memory},
    {"trim keeps memory that is in use", trim_keeps_memory},
    {"extension returns NULL for an unknown name", unknown_extensions_are_null},
    {NULL, NULL},
};
