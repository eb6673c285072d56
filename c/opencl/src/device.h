#ifndef SB_OPENCL_DEVICE_H
#define SB_OPENCL_DEVICE_H

#include "port.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <syncblob/opencl.h>

struct sb__opencl_device;

/* --- kinds of memory (svm.c, usm.c, buffers.c) ------------------------------------------------ */

/* Queues a copy of bytes. Sets `*event` to the event of the queued command. */
typedef cl_int sb__opencl_transfer(struct sb__opencl_device *device, void *dst, const void *src,
                                   size_t bytes, cl_command_queue queue, cl_event *event);

/* The functions of one kind of memory. Each returns OpenCL's code. A function that queues a command
   sets `*event` to the command's event. */
struct sb__opencl_memory {
    int32_t kind; /* SB_OPENCL_* */
    /* Returns whether the device has this kind of memory. */
    bool (*open)(struct sb__opencl_device *device);
    /* Allocates memory that is aligned to 64 bytes or more. */
    cl_int (*alloc)(struct sb__opencl_device *device, size_t bytes, void **out);
    /* Frees memory when the work on `queue` has ended. */
    void (*free)(struct sb__opencl_device *device, void *ptr, cl_command_queue queue);
    cl_int (*zero)(struct sb__opencl_device *device, void *dst, size_t bytes,
                   cl_command_queue queue, cl_event *event);
    sb__opencl_transfer *upload, *download, *copy;
    /* Sets argument `*index` of a kernel to the memory that contains `ptr`. If has_offsets, sets
       the next argument to the number of elements before `ptr` in that memory. Advances
       `*index`. */
    cl_int (*argument)(struct sb__opencl_device *device, cl_kernel kernel, cl_uint *index,
                       const void *ptr, size_t element);
    bool has_offsets; /* a kernel argument only selects a memory, so an offset follows */
    /* Returns whether [ptr, ptr + bytes) is memory of the device. `holds` is NULL if OpenCL has no
       query for this. */
    bool (*holds)(struct sb__opencl_device *device, const void *ptr, size_t bytes);
};

extern const struct sb__opencl_memory sb__opencl_fine_svm, sb__opencl_usm, sb__opencl_svm,
    sb__opencl_buffers;

/* Functions of Intel's extension for unified shared memory. */
struct sb__opencl_usm_functions {
    void *(CL_API_CALL *alloc)(cl_context, cl_device_id, const cl_bitfield *, size_t, cl_uint,
                               cl_int *);
    cl_int(CL_API_CALL *free)(cl_context, void *);
    cl_int(CL_API_CALL *copy)(cl_command_queue, cl_bool, void *, const void *, size_t, cl_uint,
                              const cl_event *, cl_event *);
    cl_int(CL_API_CALL *fill)(cl_command_queue, void *, const void *, size_t, size_t, cl_uint,
                              const cl_event *, cl_event *);
    cl_int(CL_API_CALL *argument)(cl_kernel, cl_uint, const void *);
    cl_int(CL_API_CALL *info)(cl_context, const void *, cl_uint, size_t, void *, size_t *);
};

/* The buffers of a device, sorted by address. */
struct sb__opencl_table {
    sb__opencl_lock lock;
    struct sb__opencl_buffer *at;
    size_t count, capacity;
};

/* Returns the buffer that holds `ptr`, or NULL, and writes the offset of `ptr`. */
cl_mem sb__opencl_locate(struct sb__opencl_device *device, const void *ptr, size_t *out_offset);

/* --- queued commands (queued.c) --------------------------------------------------------------- */

/* The record of a queued command. The library keeps the record until a wait has returned the
   command's result, and while a stream or an event refers to the command. */
struct sb__opencl_command {
    struct sb__opencl_command *before, *after; /* neighbours in the stream's list */
    bool is_listed;
    int64_t refs;                     /* guarded by queued.lock */
    int64_t number;                   /* numbers increase along the list */
    struct sb__opencl_stream *stream; /* valid while the command is being queued or is listed */
    cl_command_queue queue;
    cl_event event;
    int64_t thread;           /* the thread that queued the command */
    bool is_covered;          /* `thread` has recorded an event after the command */
    cl_int failure;           /* OpenCL's negative code; 0 while no failure is known */
    _Atomic bool is_complete; /* a wait or a query has shown that the command succeeded */
    enum {
        SB__OPENCL_WORK,
        SB__OPENCL_MARKER, /* fails if an earlier command of a caller fails */
        SB__OPENCL_BARRIER,
        SB__OPENCL_FREE,
        SB__OPENCL_KINDS
    } kind;      /* only failures of work and of markers are reported */
    void *freed; /* memory that the command frees, or take_out if the command fails */
    const struct sb__opencl_stream *awaited; /* the stream whose commands a barrier awaits */
    int64_t awaited_end;                     /* the barrier waits for commands with lower numbers */
};

/* A command queue and its commands. While only the library adds commands to a queue, the library
   waits for the queue's last command instead of a marker. */
struct sb__opencl_stream {
    struct sb__opencl_stream *next; /* the next stream in device->streams */
    cl_command_queue queue;
    sb__opencl_lock lock; /* held while a command is queued and listed */
    /* Guarded by queued.lock: */
    int64_t refs; /* references; at 0 the record of a caller's queue is freed */
    struct sb__opencl_command *first, *tail;
    struct sb__opencl_command *running;   /* all listed commands before `running` have failed */
    struct sb__opencl_command *uncovered; /* all listed commands before `uncovered` are covered */
    int64_t failed[SB__OPENCL_KINDS];     /* number of commands of each kind before `running` */
    int64_t barriers;                     /* number of barriers in the list */
    struct sb__opencl_command *last;      /* NULL if all commands are known to have ended */
    bool is_shared; /* a caller may add commands, so `last` is not used and stays NULL */
};

enum { SB__OPENCL_FAILED = 64 };

struct sb__opencl_queued {
    sb__opencl_lock lock;
    int64_t count; /* number of commands that were ever listed */
    /* The last failed events. The library delays the release of these events, because pocl 3.1
       still uses an event for a moment after the event has failed. */
    cl_event failed[SB__OPENCL_FAILED];
    int64_t num_failed; /* number of events that were ever in `failed` */
    /* Commands whose failure was returned only to a thread that had not queued the command. The
       thread that queued the command must also get the failure, unless the thread has ended. For
       each thread and queue, the array has at most one command, the first that failed, and a
       reference to the queue. */
    struct sb__opencl_command *unclaimed[SB__OPENCL_FAILED];
    cl_uint num_unclaimed;
    _Atomic bool has_dropped; /* `unclaimed` was too small, so the device is lost */
};

/* --- arithmetic (kernels.c, sums.c) ---------------------------------------------------- */

enum sb__opencl_kernel {
    SB__OPENCL_AXPY,
    SB__OPENCL_SCALE,
    SB__OPENCL_ASUM,
    SB__OPENCL_SUMSQ,
    SB__OPENCL_KERNELS
};

/* Memory for the parts (partial results) of one sum. */
struct sb__opencl_parts {
    struct sb__opencl_parts *next; /* the next entry in the list `abandoned` */
    cl_mem sums;                   /* NULL if the host adds all elements */
    double *host;                  /* an array of `count` numbers */
    size_t count;
};

struct sb__opencl_arithmetic {
    sb__opencl_lock lock; /* protects the kernels' arguments */
    _Atomic bool is_ready;
    cl_program program;
    cl_kernel kernels[2][SB__OPENCL_KERNELS]; /* for SB_DTYPE_F32 and SB_DTYPE_F64 */
    sb__opencl_lock sum_lock;
    struct sb__opencl_parts *parts;     /* NULL before the first sum */
    struct sb__opencl_parts *abandoned; /* parts that the device may still write */
};

/* --- the device (device.c) ------------------------------------------------------------- */

struct sb__opencl_device {
    int32_t ordinal;
    bool has_doubles, is_cpu;
    const struct sb__opencl_memory *memory;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    struct sb__opencl_stream own;
    struct sb__opencl_stream reads;    /* runs downloads while `own` runs other work */
    struct sb__opencl_stream *streams; /* `own`, `reads`, and callers' streams in use; guarded by
                                          queued.lock */
    bool has_returned_queue;           /* own_stream was called; guarded by queued.lock */
    struct sb__opencl_usm_functions usm;
    struct sb__opencl_table table;
    struct sb__opencl_queued queued;
    struct sb__opencl_arithmetic arithmetic;
};

/* For tests, `user` points to the kind of memory to use. NULL means the best kind. */
sb_status sb__opencl_open(void *user, int32_t ordinal, void **out, sb_error *err);
void sb__opencl_close(void *device);

/* --- status.c -------------------------------------------------------------------------- */

/* CL_PLATFORM_NOT_FOUND_KHR: the loader has found no driver. */
#define SB__OPENCL_NO_PLATFORM (-1001)

/* Fills `err` with OpenCL's code and a message. Returns `status`. */
sb_status sb__opencl_fail(sb_error *err, sb_status status, cl_int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Converts the result of `call` to a status, and fills `err`. */
sb_status sb__opencl_status(const struct sb__opencl_device *device, cl_int result, const char *call,
                            sb_error *err);
/* Converts the result of a wait to SB_OK, DEVICE_LOST, DEVICE_FAILURE or OUT_OF_MEMORY. After
   OUT_OF_MEMORY the result of the work is unknown. */
sb_status sb__opencl_wait_status(const struct sb__opencl_device *device, cl_int result,
                                 const char *call, sb_error *err);
/* Converts the code of a failed command. Never returns OUT_OF_MEMORY. */
sb_status sb__opencl_work_status(const struct sb__opencl_device *device, cl_int failure,
                                 sb_error *err);

/* --- queued.c -------------------------------------------------------------------------- */

/* Allocates the record of a command, and locks the command's stream until sb__opencl_end. Call this
   function before the command is queued. */
sb_status sb__opencl_begin(struct sb__opencl_device *device, cl_command_queue queue,
                           struct sb__opencl_command **out, sb_error *err);
/* Adds the record of a queued command to the list and submits the queue's commands to the device.
   If `result` is a failure of `call`, frees the record instead. */
sb_status sb__opencl_end(struct sb__opencl_device *device, struct sb__opencl_command *command,
                         cl_int result, const char *call, sb_error *err);
/* If a caller adds commands to the queue, queues a marker before a barrier. Call this function
   between sb__opencl_begin and sb__opencl_end of the barrier. A later event returns the marker's
   failure, not the barrier's failure, which may come from another queue. Returns OpenCL's code. */
cl_int sb__opencl_mark(struct sb__opencl_device *device, const struct sb__opencl_command *barrier);
/* Waits until all commands of the queue have ended, even if some fail. If a barrier of the queue
   has failed, also waits for the commands of other queues for which the barrier should have waited.
   Returns OpenCL's code. */
cl_int sb__opencl_wait(struct sb__opencl_device *device, cl_command_queue queue);
/* Returns whether the list has a failed barrier of the queue. After such a barrier, pocl 3.1 may
   run a later command before earlier commands have ended. */
bool sb__opencl_has_failed_barrier(struct sb__opencl_device *device, cl_command_queue queue);
/* Waits for the queue, and removes the records. Returns OpenCL's code of the wait. Sets
   `*out_failure` to the code of the first failed command, or to CL_SUCCESS. If another thread
   queued a failed command and has recorded no event after the command, keeps the failure for that
   thread. */
cl_int sb__opencl_finish(struct sb__opencl_device *device, cl_command_queue queue,
                         cl_int *out_failure);
/* Returns the status of a wait for commands. `failure` is the code of the first failed command, or
   CL_SUCCESS. Returns DEVICE_LOST if the device has dropped a failure. */
sb_status sb__opencl_report(const struct sb__opencl_device *device, cl_int failure, sb_error *err);
/* Initialises the list of streams, which then contains the library's two queues. */
void sb__opencl_queued_begin(struct sb__opencl_device *device);
/* Waits for all commands, and frees their records. */
void sb__opencl_queued_end(struct sb__opencl_device *device);

/* Called by own_stream. libsyncblob makes the first call when it opens the device. Later calls
   return the queue to a caller, who may add commands. */
void sb__opencl_share(struct sb__opencl_device *device);

/* An event of the backend. The work before the event has ended when all commands in `at` have
   ended. One of these commands is the queue's last command, or a marker. Further commands are in
   `at` because OpenCL reports a command's failure only in the command's own event. A failed barrier
   ends before earlier commands. If the queue may have a barrier, the queue's listed commands with
   numbers below `end` must therefore have ended, too. */
struct sb__opencl_event {
    cl_uint count;
    cl_uint reported; /* the event reports failures of the first `reported` commands */
    bool is_ordered;  /* without markers and barriers, the last command in `at` ends last */
    struct sb__opencl_stream *stream;
    int64_t end;
    cl_int earlier_failure; /* failure of an earlier event's marker; guarded by queued.lock */
    struct sb__opencl_command *at[];
};

/* Waits for the work before the event, even if the work fails. Returns OpenCL's code of the
   wait. */
cl_int sb__opencl_await(struct sb__opencl_device *device, const struct sb__opencl_event *event);
/* Returns whether commands before the event are still running. May omit the commands in `at`, which
   the caller checks. */
bool sb__opencl_runs(struct sb__opencl_device *device, const struct sb__opencl_event *event);
/* Allocates an array with the events of the commands for which a barrier of `queue` must wait.
   sb__opencl_running_end frees the array. Omits commands that have ended, because pocl 3.1 never
   runs a barrier that waits for a failed command. Also omits commands for which a recent barrier of
   the queue already waits. */
sb_status sb__opencl_running(struct sb__opencl_device *device, const struct sb__opencl_event *event,
                             cl_command_queue queue, cl_event **out, cl_uint *out_count,
                             sb_error *err);
void sb__opencl_running_end(cl_event *events, cl_uint count);

/* Returns an event with the queue's commands. Omits a command if the thread that queued the command
   has already recorded a later event. Omits a failed command of another thread if a wait has
   returned the failure. */
sb_status sb__opencl_collect(struct sb__opencl_device *device, cl_command_queue queue,
                             struct sb__opencl_event **out, sb_error *err);
void sb__opencl_event_end(struct sb__opencl_device *device, struct sb__opencl_event *event);
/* Removes the records of commands whose failure a wait for the event returns. Like
   sb__opencl_finish, keeps failures for other threads. */
void sb__opencl_note_failures(struct sb__opencl_device *device,
                              const struct sb__opencl_event *event);
/* Call after a wait for the event. Removes the failed markers with numbers below `end`. Sets
   `*out_failure` to the code of the first of these markers, or to CL_SUCCESS. Later calls for the
   event set the same code. Thus an event returns the failure of an earlier event that was destroyed
   without a wait. Returns CL_SUCCESS, or the error of a query. */
cl_int sb__opencl_take_markers(struct sb__opencl_device *device, struct sb__opencl_event *event,
                               cl_int *out_failure);
/* Sets `*out` to the execution status of a command: negative after a failure, 0 after success, else
   positive. Does not query a command that is known to be complete. */
cl_int sb__opencl_progress(struct sb__opencl_command *command, cl_int *out);

/* --- slots: memory.c, streams.c, arithmetic.c, sums.c ---------------------------------- */

sb_status sb__opencl_alloc(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err);
void sb__opencl_free(void *device, void *ptr, size_t bytes, sb_stream stream);
sb_status sb__opencl_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err);
sb_status sb__opencl_upload(void *device, void *dst, const void *src, size_t bytes,
                            sb_stream stream, sb_error *err);
sb_status sb__opencl_download(void *device, void *dst, const void *src, size_t bytes,
                              sb_stream stream, sb_error *err);
sb_status sb__opencl_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err);
sb_status sb__opencl_check_pointer(void *device, const void *ptr, size_t bytes, sb_error *err);

sb_stream sb__opencl_own_stream(void *device);
sb_stream sb__opencl_read_stream(void *device);
sb_status sb__opencl_check_stream(void *device, sb_stream stream, sb_error *err);
sb_status sb__opencl_stream_synchronize(void *device, sb_stream stream, sb_error *err);
sb_status sb__opencl_event_record(void *device, sb_stream stream, void **out, sb_error *err);
sb_status sb__opencl_stream_wait(void *device, sb_stream stream, void *event, sb_error *err);
sb_status sb__opencl_event_wait(void *device, void *event, sb_error *err);
void sb__opencl_event_destroy(void *device, void *event);
sb_status sb__opencl_event_query(void *device, void *event, int32_t *out_done, sb_error *err);

sb_status sb__opencl_prepare_arithmetic(void *device, sb_error *err);
void sb__opencl_end_arithmetic(struct sb__opencl_device *device);
sb_status sb__opencl_axpy(void *device, sb_dtype dtype, int64_t count, double alpha, const void *x,
                          void *y, sb_stream stream, sb_error *err);
sb_status sb__opencl_scale(void *device, sb_dtype dtype, int64_t count, double alpha, void *x,
                           sb_stream stream, sb_error *err);
sb_status sb__opencl_asum(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err);
sb_status sb__opencl_sumsq(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                           sb_stream stream, sb_error *err);
void sb__opencl_end_sums(struct sb__opencl_device *device);

#endif
