/* The state of a conformance test, and the functions that claims call. The kit records the first
   failure of a claim. Afterwards these functions only free memory, so a claim need not check
   statuses. */
#ifndef SB_CONFORMANCE_KIT_H
#define SB_CONFORMANCE_KIT_H

#include "port.h"

#include <syncblob/conformance.h>

#include <stdbool.h>

#define SB__KIT_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct sb__kit {
    sb_conformance_options options;
    sb_backend table;           /* the backend's table; members beyond its struct_size are NULL */
    void *device;               /* the device that a claim tests; open only during the claim */
    sb_stream stream;           /* own_stream, or NULL if the backend has no streams */
    sb_stream other;            /* the default stream, or `stream` if the device has none */
    uint32_t lacks;             /* SB_DEVICE_LACKS_* of the device */
    struct sb__kit_block *kept; /* host memory to free after the device is closed */
    sb_conformance_outcome outcome;
    bool may_be_lost; /* a copy was made to fail, so any later slot may return DEVICE_LOST */
    bool wait_lost;   /* a wait has returned DEVICE_LOST: the claim must queue no more work */
    bool is_lost;     /* the device was lost: the rest of the claim is not tested */
    char detail[480];
};

struct sb__claim {
    const char *text;
    void (*test)(struct sb__kit *kit);
};

/* The claims of each file. The text of the last element is NULL. */
extern const struct sb__claim sb__kit_memory_claims[], sb__kit_stream_claims[],
    sb__kit_arithmetic_claims[], sb__kit_failure_claims[], sb__kit_blob_claims[],
    sb__kit_machine_claims[];

/* --- outcomes ---------------------------------------------------------------------- */

/* Returns whether the claim goes on: it has neither failed nor been skipped, and the device is not
   lost. */
static inline bool sb__kit_goes(const struct sb__kit *kit) {
    return kit->outcome == SB_CONFORMANCE_PASSED && !kit->is_lost;
}

/* End the claim: as failed, as skipped, or as passed because the device is lost. Do nothing if the
   claim has already ended. */
void sb__kit_fail(struct sb__kit *kit, const char *format, ...) SB__KIT_PRINTF(2, 3);
void sb__kit_skip(struct sb__kit *kit, const char *reason);
void sb__kit_lose(struct sb__kit *kit);
/* Moves to `kit` the outcome and memory of `copy`, a copy of `kit` for another thread or device. */
void sb__kit_join(struct sb__kit *kit, struct sb__kit *copy);

/* Call malloc and free. If malloc fails, sb__kit_memory skips the claim. After a failure of the
   claim, memory is freed only when the device is closed, because a faulty backend may still copy to
   it. */
void *sb__kit_memory(struct sb__kit *kit, size_t bytes);
void sb__kit_memory_free(struct sb__kit *kit, void *memory);
void sb__kit_memory_end(struct sb__kit *kit); /* call after the device is closed */

/* Returns the next pseudorandom number, by splitmix64. */
uint64_t sb__kit_random(uint64_t *state);
/* Fills bytes with random numbers from a seed. */
void sb__kit_fill(void *bytes, size_t count, uint64_t seed);

/* --- slots ------------------------------------------------------------------------- */

/* Fails the claim if a slot has not returned `expected`, or has returned a failure without filling
   `err`. */
void sb__kit_expect(struct sb__kit *kit, const char *slot, sb_status expected, sb_status found,
                    const sb_error *err);

/* Calls a slot of the open device, which must return `expected`. */
#define SB__KIT_EXPECT(kit, expected, slot, ...)                                                   \
    do {                                                                                           \
        sb_error slot_error_;                                                                      \
        if (sb__kit_goes(kit)) {                                                                   \
            slot_error_ = (sb_error){.code = SB_OK};                                               \
            sb__kit_expect(kit, #slot, expected,                                                   \
                           (kit)->table.slot((kit)->device, __VA_ARGS__, &slot_error_),            \
                           &slot_error_);                                                          \
        }                                                                                          \
    } while (0)
#define SB__KIT_CALL(kit, slot, ...) SB__KIT_EXPECT(kit, SB_OK, slot, __VA_ARGS__)

/* Calls a function of the library, which must succeed. */
#define SB__KIT_TRY(kit, function, ...)                                                            \
    do {                                                                                           \
        sb_error call_error_;                                                                      \
        if (sb__kit_goes(kit))                                                                     \
            sb__kit_expect(kit, #function, SB_OK, function(__VA_ARGS__, &call_error_),             \
                           &call_error_);                                                          \
    } while (0)

/* Creates a context on a device of `table`. Returns NULL if the claim has ended. */
sb_context *sb__kit_context(struct sb__kit *kit, const sb_backend *table, const char *name);

/* Open and close a device. */
void sb__kit_open(struct sb__kit *kit, void **out, sb_stream *out_stream);
void sb__kit_close(struct sb__kit *kit, void *device);

/* Allocates memory on the device's stream. Returns NULL if the claim has ended. */
void *sb__kit_alloc(struct sb__kit *kit, size_t bytes);
void sb__kit_free(struct sb__kit *kit, void *ptr, size_t bytes);
/* Queue a copy on the device's stream. */
void sb__kit_upload(struct sb__kit *kit, void *dst, const void *src, size_t bytes);
void sb__kit_download(struct sb__kit *kit, void *dst, const void *src, size_t bytes);
/* Waits for all work on a stream, if the backend has streams. */
void sb__kit_wait(struct sb__kit *kit, sb_stream stream);
/* Downloads, waits, and fails the claim if the bytes differ. `what` names the bytes. */
void sb__kit_compare(struct sb__kit *kit, const void *ptr, const void *expected, size_t bytes,
                     const char *what);

/* Returns whether the backend has the slots of arithmetic and the device supports arithmetic. */
bool sb__kit_computes(struct sb__kit *kit);
/* Each function returns whether the device has the feature in the function's name. If not, the
   function skips the claim. */
bool sb__kit_has_streams(struct sb__kit *kit);
bool sb__kit_has_arithmetic(struct sb__kit *kit);
/* Returns the last dtype with arithmetic: SB_DTYPE_F64, or SB_DTYPE_F32 if the device has no
   doubles. Skips the claim if the device has no arithmetic. */
sb_dtype sb__kit_last_dtype(struct sb__kit *kit);
/* Returns whether the device's memory is host-coherent. */
static inline bool sb__kit_is_coherent(const struct sb__kit *kit) {
    return kit->table.flags & SB_BACKEND_HOST_COHERENT &&
           !(kit->lacks & SB_DEVICE_LACKS_HOST_COHERENT);
}
/* Returns whether the device has a default stream. If not, skips the claim. */
bool sb__kit_has_default(struct sb__kit *kit);
/* Creates a stream with the caller's stream_create, or skips the claim if stream_create is NULL. */
sb_stream sb__kit_stream_create(struct sb__kit *kit);
/* Creates a stream on `device` with options.stream_create, which must not be NULL. `own` is the
   device's own_stream. Returns NULL if the claim has ended. */
sb_stream sb__kit_stream_create_on(struct sb__kit *kit, void *device, sb_stream own);
void sb__kit_stream_destroy(struct sb__kit *kit, sb_stream stream);

/* Run `task` on one other thread, or on two threads at once, and return when the task has ended. If
   no thread can be created, skip the claim. */
void sb__kit_on_thread(struct sb__kit *kit, void (*task)(void *arg), void *arg);
void sb__kit_on_two_threads(struct sb__kit *kit, void (*task)(void *arg), void *first,
                            void *second);

#endif
