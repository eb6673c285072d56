/* A context on "cuda:0" and, beside it, what an application does with the driver
   itself. Only public functions of the library are used, so that the programs
   run on a device of NVIDIA's and on the stand-ins alike. */
#ifndef SB_TESTS_GPU_H
#define SB_TESTS_GPU_H

#include "driver.h"
#include "support.h"

extern const struct driver *driver;

/* What main returns at once when it is not 0: 77 where there is no device, the reason printed. */
int gpu_begin(void);

/* The status of ctest for a program that did not run. */
enum { GPU_SKIPPED = 77 };

struct stage {
    sb_context *context;
    sb__cu_context primary; /* device 0's */
    sb__cu_stream stream;   /* the test's own, a non-blocking one */
};

void stage_open(struct stage *stage, const sb_context_options *options);
/* All memories were released: nothing of the device is live, and no context is current. */
void stage_close(struct stage *stage);
sb_context_options stage_options(void);
/* One more, on "cuda:N". */
sb_context *another_context(const char *device);
int device_count(void);

sb_stats stats_of(const sb_context *context);
struct copies {
    int64_t uploads, downloads, device_copies, host_copies;
    int64_t upload_bytes, download_bytes, device_copy_bytes, host_copy_bytes;
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
/* In device 0's primary context. */
void enter(const struct stage *stage);
void leave(void);

sb__cu_stream stream_make(const struct stage *stage, unsigned int flags);
void stream_wait(const struct stage *stage, sb__cu_stream stream);
void stream_end(const struct stage *stage, sb__cu_stream stream);

/* --- bytes of the device; what takes a stream is queued there ------------------------------ */

void *device_make(const struct stage *stage, size_t bytes);
void device_end(const struct stage *stage, void *ptr);
void queue_pause(const struct stage *stage, sb__cu_stream stream);
void queue_fill(const struct stage *stage, sb__cu_stream stream, void *ptr, int value,
                size_t bytes);
void queue_copy(const struct stage *stage, sb__cu_stream stream, void *dst, const void *src,
                size_t bytes);
/* On the legacy default stream, and waited for. */
void device_read(const struct stage *stage, void *out, const void *src, size_t bytes);
void device_write(const struct stage *stage, void *dst, const void *in, size_t bytes);
bool device_holds(const struct stage *stage, const void *ptr, size_t bytes, int value);
bool bytes_are(const void *ptr, size_t bytes, int value);
/* Of all the device; 0 where the driver does not tell. */
size_t device_free(const struct stage *stage);

/* --- memories -------------------------------------------------------------------------------- */

sb_mem *mem_make(sb_context *context, size_t bytes);
/* Filled on the host, or with the head at the device. */
sb_mem *mem_on_host(sb_context *context, size_t bytes, int value);
sb_mem *mem_on_device(const struct stage *stage, sb_context *context, size_t bytes, int value);
void host_fill(sb_mem *mem, int value);
bool host_holds(const sb_mem *mem, int value);
const void *gpu_pointer(const sb_mem *mem);

#endif
