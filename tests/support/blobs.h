/* The fixtures rig and rigs, and functions that create, write and read blobs and memories. */
#ifndef SB_TESTS_BLOBS_H
#define SB_TESTS_BLOBS_H

#include "support.h"

#include <syncblob/dlpack.h>
#include <syncblob/sim.h>

struct rig {
    struct counting_allocator counting;
    sb_context *context;
    char folder[32], paths[8][96];
    size_t owned_before; /* number of objects that the test owned at rig_open */
};

/* Opens the rig on "sim:0". */
void rig_open(struct rig *rig);
/* If `device` is NULL, opens "cpu". `flags` are SB_CONTEXT_*. */
void rig_open_on(struct rig *rig, const char *device, uint32_t flags);
void rig_open_options(struct rig *rig, sb_context_options options);
/* Destroys the objects made since rig_open. Fails if an object or a buffer remains, or a file that
   rig_path did not name. */
void rig_close(struct rig *rig);
void rig_reopen_on(struct rig *rig, const char *device, uint32_t flags);
void rig_reopen_options(struct rig *rig, sb_context_options options);

/* Two contexts on "sim:0". */
struct rigs {
    struct rig a, b;
};

void rigs_open(struct rigs *rigs);
void rigs_close(struct rigs *rigs);
void rigs_reopen_on(struct rigs *rigs, const char *device, const char *other, uint32_t flags);

/* The test owns the contexts. */
sb_context *test_context(sb_context_options options);
sb_context *test_context_on(const char *device);
/* The test owns the memory. `context` may be NULL. */
sb_mem *test_mem(sb_context *context, size_t bytes);
/* Returns the path of a file in the rig's folder, but does not create the file. */
const char *rig_path(struct rig *rig, const char *name);

struct tally {
    int64_t calls[SB_SIM_OP_COUNT]; /* all 0 if the device is not simulated */
    int64_t host_allocs;            /* requests for host buffers, ordinary or pinned */
    int64_t device_allocs;
    int64_t uploads, downloads, device_copies, host_copies;
};

struct tally rig_tally(struct rig *rig);
struct tally rig_since(struct rig *rig, const struct tally *before);
sb_stats rig_stats(struct rig *rig);
/* Asserts that no call requested a host buffer or ran a device operation, except checks of
   streams. */
void assert_no_work(const struct tally *since);

/* Bytes that a test lends, and that are freed when the test ends. */
struct lent {
    sb_context *context; /* NULL if the bytes are on the host */
    void *ptr;
    struct test_loan *loan;
    size_t bytes;
    int deleted;
    bool taken; /* the deleter fills the bytes with TAKEN, to detect later writes */
};

#define TAKEN 0xEE

struct lent lend_host(size_t bytes, int fill);
struct lent lend_device(sb_context *context, size_t bytes, int fill);
void lent_deleter(void *user, void *ptr); /* `user` is a struct lent */
bool lent_holds(const struct lent *lent, int fill);
void lent_free(struct lent *lent);

/* These functions copy or compare bytes without a stream. A NULL context means host memory. */
void bytes_get(sb_context *context, const void *there, void *out, size_t bytes);
void bytes_put(sb_context *context, void *there, const void *in, size_t bytes);
bool bytes_are(const void *ptr, size_t bytes, int fill);
bool device_bytes_are(sb_context *context, const void *ptr, size_t bytes, int fill);
void device_fill(sb_context *context, void *ptr, size_t bytes, int fill);
/* The streams of rig_stream end with the context. */
void rig_schedule(struct rig *rig, int32_t schedule, uint64_t seed);
sb_stream rig_stream(struct rig *rig);
void rig_end_stream(struct rig *rig, sb_stream stream);

/* A kernel that checks, when the kernel runs, whether its memory still exists. */
struct look {
    sb_context *context;
    const void *ptr;
    size_t bytes;
    bool ran, reached;
};

void rig_look(struct look *look, struct rig *rig, sb_stream stream, const void *ptr, size_t bytes);

/* Removes all faults. Then, if `nth` is not 0, makes the `nth` call of `op` from now on fail. */
void device_fail(sb_context *context, int32_t op, int64_t nth, int32_t mode);
void device_fail_no_more(sb_context *context);
/* Makes `times` successive calls of `op` fail, from the `nth` on. Earlier faults stay armed. */
void device_fail_run(sb_context *context, int32_t op, int64_t nth, int times);

/* Writes `values` to the memory, and moves its head to `head`. Does nothing if `head` is
   UNINITIALIZED. */
void mem_place(sb_mem *mem, int32_t head, const void *values, size_t bytes);
sb_mem *mem_filled(sb_context *context, size_t bytes, int fill);
/* The test owns the memory. */
sb_mem *test_filled(sb_context *context, size_t bytes, int fill);
/* Copies the first `bytes` bytes of a current side to `out`, without moving the head. */
void mem_look(const sb_mem *mem, void *out, size_t bytes);
bool mem_holds(const sb_mem *mem, const void *values, size_t bytes);
/* Queues a copy to the host, and makes every wait for the copy fail. The head must be at the
   device. Sets the schedule SB_SIM_LAZY. */
void mem_fail_wait(const sb_mem *mem);

sb_blob *blob_of(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape);
/* Creates a blob of one axis. */
sb_blob *blob_of_count(sb_context *context, int32_t dtype, int64_t count);
/* The test owns these blobs. A test_vector has one axis. */
sb_blob *test_blob(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape);
sb_blob *test_vector(sb_context *context, int32_t dtype, int64_t count);
sb_blob *test_unshaped(sb_context *context, int32_t dtype);
/* SB_DTYPE_LIST(DTYPE_ITEM) expands to the constants of all element types, each with a comma. */
#define DTYPE_ITEM(NAME, number, name, type, kind, with) SB_DTYPE_##NAME,

sb_filler filler_of(int32_t type);
sb_mem *mem_of(sb_blob *blob, sb_part part);
sb_mem *data_of(sb_blob *blob);
sb_mem *diff_of(sb_blob *blob);
/* `expected` is a shape string, such as "2 3 (6)". */
void assert_shape_is(const sb_blob *blob, const char *expected);
/* Asserts that the blob's `count` values of F32 or F64 are first, first + 1, ... */
void assert_values(const sb_blob *blob, sb_part part, int64_t count, double first);
const void *host_of(const sb_blob *blob, sb_part part);
void *host_to_write(sb_blob *blob, sb_part part);
/* Writes `count` values of F32 or F64: start, start + step, ... */
void fill_values(int32_t dtype, int64_t count, double start, double step, void *out);
double value_at(int32_t dtype, const void *values, int64_t i);

/* A tensor as another program would pass it. The test lends the tensor's memory. */
struct tensor {
    sb_dl_managed_versioned versioned;
    sb_dl_managed legacy; /* the same tensor in the older struct */
    int64_t shape[SB_MAX_AXES + 1], strides[SB_MAX_AXES + 1];
    struct lent lent;
    int deleted; /* number of calls of the deleters */
};

/* Makes a writable tensor of 2 x 3 floats 1, 2, ... on the host, with strides. */
void tensor_make(struct tensor *tensor);

/* Calls that make the host bytes of a blob's data stale, or free the bytes. */
enum { RETIRINGS = 5 };
extern void (*const retirings[RETIRINGS])(sb_blob *blob);

enum fault {
    FAULT_ALLOC,  /* the n-th call of the allocator returns NULL */
    FAULT_NOW,    /* the n-th operation of the device does nothing and fails */
    FAULT_LATER,  /* the n-th operation is queued, and fails when it runs */
    FAULT_STICKY, /* the n-th operation fails, and the device is lost */
    FAULTS
};

struct armed {
    struct rig *rig;
    enum fault fault;
    int64_t nth, calls_before;
};

const char *fault_name(enum fault fault);
struct armed fault_arm(struct rig *rig, enum fault fault, int64_t nth);
bool fault_fired(const struct armed *armed);
/* Disarms the fault. Returns whether the fault has fired. */
bool fault_disarm(const struct armed *armed);
/* `writes_in_place`: the call overwrites current bytes of the device. */
bool fault_explains(enum fault fault, sb_status status, bool writes_in_place);

/* If the condition is false, calls the test's function blame(t, TEXT) to print the failed trial. */
#define demand(t, condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            blame(t, #condition);                                                                  \
    } while (0)

#endif
