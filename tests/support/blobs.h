/* The fixture of tests on a device, TEST_ON(rig, …): a context that counts calls, a folder, and the
   test's blobs, memories and streams. Other functions create blobs and memories, and write and read
   their contents and heads. */
#ifndef SB_TESTS_BLOBS_H
#define SB_TESTS_BLOBS_H

#include "support.h"

#include <syncblob/dlpack.h>
#include <syncblob/sim.h>

struct rig {
    struct counting_allocator counting;
    sb_context *context;
    char folder[32], paths[8][96]; /* empty until the first call of rig_path */
    size_t owned_before;           /* number of objects that the test owned at rig_open */
};

/* Opens the rig on "sim:0". */
void rig_open(struct rig *rig);
/* Opens the rig on `device`; NULL means "cpu". `flags` are SB_CONTEXT_*. */
void rig_open_on(struct rig *rig, const char *device, uint32_t flags);
void rig_open_options(struct rig *rig, sb_context_options options);
/* Destroys the objects that the test has made since rig_open. Then fails if an object or a buffer
   is live, except the context and its cache, or if the folder has a file that rig_path did not
   name. */
void rig_close(struct rig *rig);
/* Closes the rig and opens it with other options. */
void rig_reopen_on(struct rig *rig, const char *device, uint32_t flags);
void rig_reopen_options(struct rig *rig, sb_context_options options);

/* The fixture of tests on two contexts of "sim:0", TEST_ON(rigs, …). */
struct rigs {
    struct rig a, b;
};

void rigs_open(struct rigs *rigs);
void rigs_close(struct rigs *rigs);
void rigs_reopen_on(struct rigs *rigs, const char *device, const char *other, uint32_t flags);

/* These create contexts that the test owns. */
sb_context *test_context(sb_context_options options);
sb_context *test_context_on(const char *device);
/* Creates a memory that the test owns. `context` may be NULL. */
sb_mem *test_mem(sb_context *context, size_t bytes);
/* Returns the path of a file in the rig's folder. Makes the folder, but not the file. */
const char *rig_path(struct rig *rig, const char *name);

/* Numbers of calls that a context has made. */
struct tally {
    int64_t calls[SB_SIM_OP_COUNT]; /* all 0 without a simulated device */
    int64_t host_allocs;            /* requests for host buffers, ordinary or pinned */
    int64_t device_allocs;
    int64_t uploads, downloads, device_copies, host_copies;
};

struct tally rig_tally(struct rig *rig);
/* Returns the numbers of calls since `before`. */
struct tally rig_since(struct rig *rig, const struct tally *before);
sb_stats rig_stats(struct rig *rig);
/* Asserts that there was no request for a host buffer, and no operation of the device except checks
   of streams. */
void assert_no_work(const struct tally *since);

/* Bytes that a test lends. The bytes are freed when the test ends. The deleter counts its calls. */
struct lent {
    sb_context *context; /* NULL: host memory */
    void *ptr;
    struct test_loan *loan; /* the object whose destruction frees the bytes */
    size_t bytes;
    int deleted;
    bool taken; /* if true, the deleter fills the bytes with TAKEN, to detect later writes */
};

#define TAKEN 0xEE

struct lent lend_host(size_t bytes, int fill);
struct lent lend_device(sb_context *context, size_t bytes, int fill);
void lent_deleter(void *user, void *ptr); /* `user` is a struct lent */
bool lent_holds(const struct lent *lent, int fill);
void lent_free(struct lent *lent);

/* These copy bytes from or to `there` without queuing. `there` is memory of the context's simulated
   device or, if `context` is NULL, of the host. */
void bytes_get(sb_context *context, const void *there, void *out, size_t bytes);
void bytes_put(sb_context *context, void *there, const void *in, size_t bytes);
bool bytes_are(const void *ptr, size_t bytes, int fill);
bool device_bytes_are(sb_context *context, const void *ptr, size_t bytes, int fill);
void device_fill(sb_context *context, void *ptr, size_t bytes, int fill);
/* These set the simulated device's schedule, and create a stream, which ends with the context. */
void rig_schedule(struct rig *rig, int32_t schedule, uint64_t seed);
sb_stream rig_stream(struct rig *rig);
/* Forgets and destroys the stream now. */
void rig_end_stream(struct rig *rig, sb_stream stream);

/* A kernel that checks, when it runs, whether its memory still exists. */
struct look {
    sb_context *context;
    const void *ptr;
    size_t bytes;
    bool ran, reached;
};

void rig_look(struct look *look, struct rig *rig, sb_stream stream, const void *ptr, size_t bytes);

/* Removes all faults. Then, if `nth` is not 0, makes the `nth` call of the operation `op` from now
   on fail. */
void device_fail(sb_context *context, int32_t op, int64_t nth, int32_t mode);
void device_fail_no_more(sb_context *context);
/* Makes `times` successive calls of `op` fail, from the `nth` on. Earlier faults stay armed. */
void device_fail_run(sb_context *context, int32_t op, int64_t nth, int times);

/* Copies `bytes` bytes of `values` to the memory and moves its head to `head`. Does nothing if
   `head` is UNINITIALIZED. */
void mem_place(sb_mem *mem, int32_t head, const void *values, size_t bytes);
/* Creates a memory whose host bytes are all `fill`. */
sb_mem *mem_filled(sb_context *context, size_t bytes, int fill);
/* Creates a memory like mem_filled; the test owns the memory. */
sb_mem *test_filled(sb_context *context, size_t bytes, int fill);
/* Copies the first `bytes` bytes of a current side to `out`, without moving the head. */
void mem_look(const sb_mem *mem, void *out, size_t bytes);
bool mem_holds(const sb_mem *mem, const void *values, size_t bytes);
/* Queues a copy to the host of a memory whose head is at the device, and makes every wait for the
   copy fail. Sets the schedule SB_SIM_LAZY. */
void mem_fail_wait(const sb_mem *mem);

sb_blob *blob_of(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape);
/* Creates a blob of one axis. */
sb_blob *blob_of_count(sb_context *context, int32_t dtype, int64_t count);
/* These create blobs that the test owns: of any shape, of one axis, and without a shape. */
sb_blob *test_blob(sb_context *context, int32_t dtype, int32_t num_axes, const int64_t *shape);
sb_blob *test_vector(sb_context *context, int32_t dtype, int64_t count);
sb_blob *test_unshaped(sb_context *context, int32_t dtype);
/* SB_DTYPE_LIST(DTYPE_ITEM) expands to the constants of all element types, each with a comma. */
#define DTYPE_ITEM(NAME, number, name, type, kind, with) SB_DTYPE_##NAME,

/* Returns a filler of the type with default parameters. */
sb_filler filler_of(int32_t type);
sb_mem *mem_of(sb_blob *blob, sb_part part);
sb_mem *data_of(sb_blob *blob);
sb_mem *diff_of(sb_blob *blob);
/* Asserts that the blob's shape string is `expected`, such as "2 3 (6)". */
void assert_shape_is(const sb_blob *blob, const char *expected);
/* Asserts that the blob's `count` values of F32 or F64 are first, first + 1, ... */
void assert_values(const sb_blob *blob, sb_part part, int64_t count, double first);
/* These return a pointer to a part's host bytes: host_of for reading, host_to_write for writing. */
const void *host_of(const sb_blob *blob, sb_part part);
void *host_to_write(sb_blob *blob, sb_part part);
/* Writes `count` values of F32 or F64: start, start + step, ... */
void fill_values(int32_t dtype, int64_t count, double start, double step, void *out);
double value_at(int32_t dtype, const void *values, int64_t i);

/* A tensor such as other programs make, with memory that the test lends. The tensor's deleters
   count their calls. */
struct tensor {
    sb_dl_managed_versioned versioned;
    sb_dl_managed legacy; /* describes the same tensor */
    int64_t shape[SB_MAX_AXES + 1], strides[SB_MAX_AXES + 1];
    struct lent lent;
    int deleted; /* number of calls of both structs' deleters */
};

/* Makes a tensor of 2 x 3 floats 1, 2, ... on the host, writable, with strides. */
void tensor_make(struct tensor *tensor);

/* Calls that retire the host bytes of a blob's data: afterwards the bytes are not current, or they
   no longer exist. */
enum { RETIRINGS = 5 };
extern void (*const retirings[RETIRINGS])(sb_blob *blob);

/* Ways to make one step of a call fail: an allocation, or a device operation in one of 3 modes. */
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
/* Disarms the fault; returns whether the fault has fired. */
bool fault_disarm(const struct armed *armed);
/* Returns whether a call may return `status` because of the fault. `writes_in_place` means that the
   call overwrites current bytes of the device, so that its failure makes the bytes invalid. */
bool fault_explains(enum fault fault, sb_status status, bool writes_in_place);

/* If the condition is false, calls the test's function blame(t, TEXT) to print the failed trial. */
#define demand(t, condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            blame(t, #condition);                                                                  \
    } while (0)

#endif
