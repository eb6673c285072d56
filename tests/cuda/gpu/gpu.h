/* A context on "cuda:0" and, beside it, what an application does with the driver itself. The
   programs use the public functions of the library alone, so that they run on a device of NVIDIA's
   and on the fake driver alike. */
#ifndef SB_TESTS_GPU_H
#define SB_TESTS_GPU_H

#include "driver.h"
#include "support.h"

extern const struct driver *driver;
extern sb__cu_context primary; /* device 0's */

/* The status of ctest for a program that did not run. */
enum { GPU_SKIPPED = 77 };

/* Opens the driver. 0, or what main returns at once: GPU_SKIPPED where there is no device, the
   reason printed. */
int gpu_begin(void);
/* The `main` of a program: gpu_begin, then its tests. */
int gpu_main(void);

/* At its end nothing of the device is live, and no context is current. */
struct stage {
    sb_context *context;
    sb_stream stream; /* the test's own, a non-blocking one */
};

void stage_open(struct stage *stage);
void stage_open_options(struct stage *stage, const sb_context_options *options);
void stage_close(struct stage *stage);
/* Closes it and opens it with other options. */
void stage_reopen(struct stage *stage, const sb_context_options *options);
sb_context_options stage_options(void);
/* One more, on "cuda:N", which the test owns. */
sb_context *another_context(const char *device);
int device_count(void);

sb_stats stats_of(const sb_context *context);
struct copies {
    int64_t uploads, downloads, device_copies, host_copies, upload_bytes, download_bytes;
};
struct copies copies_so_far(const sb_context *context);
struct copies copies_since(const sb_context *context, const struct copies *before);
/* Nothing but so many transfers of `bytes` each. */
void assert_transfers(const sb_context *context, const struct copies *before, int64_t uploads,
                      int64_t downloads, size_t bytes);

#define cu_ok(call)                                                                                \
    do {                                                                                           \
        sb__cu_result result_ = driver->call;                                                      \
        if (result_)                                                                               \
            fail_with("%s: %u", #call, result_);                                                   \
    } while (0)
/* Makes device 0's primary context current. */
void enter(void);
void leave(void);

/* A stream that the test owns. */
sb_stream stream_make(unsigned int flags);
void stream_wait(sb_stream stream);

/* --- bytes of the device; what takes a stream is queued there ------------------------------ */

/* Memory that the test owns, until after its contexts. */
void *device_make(size_t bytes);
void queue_pause(sb_stream stream);
void queue_fill(sb_stream stream, void *ptr, int value, size_t bytes);
void queue_copy(sb_stream stream, void *dst, const void *src, size_t bytes);
/* On the legacy default stream, and waited for. */
void device_read(void *out, const void *src, size_t bytes);
bool device_holds(const void *ptr, size_t bytes, int value);
bool bytes_are(const void *ptr, size_t bytes, int value);
/* Of all the device; 0 where the driver does not say. */
size_t device_free(void);

/* --- memories and blobs; the test owns them ------------------------------------------------- */

sb_mem *mem_make(sb_context *context, size_t bytes);
/* Filled on the host, or with the head at the device. */
sb_mem *mem_on_host(sb_context *context, size_t bytes, int value);
sb_mem *mem_on_device(sb_context *context, size_t bytes, int value);
void host_fill(sb_mem *mem, int value);
bool host_holds(const sb_mem *mem, int value);
const void *gpu_pointer(const sb_mem *mem);
sb_blob *blob_make(sb_context *context, int32_t dtype, int64_t count);
sb_mem *memory_of(sb_blob *blob, sb_part part);

#endif
