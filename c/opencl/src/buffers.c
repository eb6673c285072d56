/* Buffers (cl_mem). The library invents addresses for buffers: an address only identifies a buffer
   and an offset. No system gives a program memory at FIRST_ADDRESS or above. The library never
   reuses an address, and gives no address to two devices. A device can thus refuse the buffers of
   another device. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ADDRESS ((uint64_t)1 << 60)
#define LAST_ADDRESS  ((uint64_t)1 << 62)
#define PAGE          ((uint64_t)4096) /* the distance between buffers is at least one page */

struct sb__opencl_buffer {
    uintptr_t address;
    size_t bytes;
    cl_mem mem;
};

/* Returns false on a 32-bit host, which cannot represent FIRST_ADDRESS. */
static bool has_buffers(struct sb__opencl_device *device) {
    (void)device;
    return sizeof(void *) == 8;
}

/* Reserves addresses for a buffer. Returns 0 if no addresses are left. */
static uintptr_t take_addresses(size_t bytes) {
    static sb__opencl_lock lock = SB__OPENCL_LOCK_INIT;
    static uint64_t next = FIRST_ADDRESS;
    const uint64_t pages = bytes / PAGE + 2;
    uintptr_t address = 0;
    sb__opencl_lock_take(&lock);
    if (pages < (LAST_ADDRESS - next) / PAGE) {
        address = (uintptr_t)next;
        next += pages * PAGE;
    }
    sb__opencl_lock_give(&lock);
    return address;
}

/* Call with the lock held. */
static struct sb__opencl_buffer *find(const struct sb__opencl_table *table, const void *ptr) {
    const uintptr_t address = (uintptr_t)ptr;
    size_t low = 0, high = table->count; /* table->at[low - 1].address <= address */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (table->at[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    struct sb__opencl_buffer *buffer = low ? table->at + low - 1 : NULL;
    return buffer && address - buffer->address < buffer->bytes ? buffer : NULL;
}

/* The buffer stays valid after the unlock: libsyncblob frees no memory that a slot is using. */
cl_mem sb__opencl_locate(struct sb__opencl_device *device, const void *ptr, size_t *out_offset) {
    struct sb__opencl_table *table = &device->table;
    sb__opencl_lock_take(&table->lock);
    const struct sb__opencl_buffer *buffer = find(table, ptr);
    const struct sb__opencl_buffer found =
        buffer ? *buffer : (struct sb__opencl_buffer){.address = (uintptr_t)ptr};
    sb__opencl_lock_give(&table->lock);
    *out_offset = (uintptr_t)ptr - found.address;
    return found.mem;
}

/* Makes room for one more buffer. Call with the lock held. */
static bool reserve(struct sb__opencl_table *table) {
    const size_t capacity = table->capacity ? table->capacity * 2 : 64;
    if (table->count < table->capacity)
        return true;
    void *grown = realloc(table->at, capacity * sizeof *table->at);
    if (!grown)
        return false;
    table->at = grown;
    table->capacity = capacity;
    return true;
}

/* Adds a buffer. The address is higher than all earlier addresses, so the table stays sorted. */
static bool add(struct sb__opencl_table *table, cl_mem mem, size_t bytes, void **out) {
    sb__opencl_lock_take(&table->lock);
    const uintptr_t address = reserve(table) ? take_addresses(bytes) : 0;
    if (address) {
        table->at[table->count++] = (struct sb__opencl_buffer){address, bytes, mem};
        *out = (void *)address; /* NOLINT(performance-no-int-to-ptr): never dereferenced */
    }
    sb__opencl_lock_give(&table->lock);
    return address != 0;
}

static cl_int alloc_buffer(struct sb__opencl_device *device, size_t bytes, void **out) {
    cl_int result;
    cl_mem mem = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &result);
    if (!mem)
        return result;
    if (add(&device->table, mem, bytes, out))
        return CL_SUCCESS;
    (void)clReleaseMemObject(mem);
    return CL_OUT_OF_HOST_MEMORY;
}

/* Does not wait for `queue`: OpenCL frees a buffer only after the commands that use it. */
static void free_buffer(struct sb__opencl_device *device, void *ptr, cl_command_queue queue) {
    struct sb__opencl_table *table = &device->table;
    (void)queue;
    sb__opencl_lock_take(&table->lock);
    struct sb__opencl_buffer *buffer = find(table, ptr);
    const cl_mem mem = buffer ? buffer->mem : NULL;
    if (buffer) {
        const size_t behind = (size_t)(table->at + --table->count - buffer);
        memmove(buffer, buffer + 1, behind * sizeof *buffer);
    }
    sb__opencl_lock_give(&table->lock);
    if (mem && clReleaseMemObject(mem) != CL_SUCCESS)
        (void)clReleaseMemObject(mem);
}

static cl_int zero_buffer(struct sb__opencl_device *device, void *dst, size_t bytes,
                          cl_command_queue queue, cl_event *event) {
    static const unsigned char zero = 0;
    size_t offset;
    cl_mem mem = sb__opencl_locate(device, dst, &offset);
    return clEnqueueFillBuffer(queue, mem, &zero, sizeof zero, offset, bytes, 0, NULL, event);
}

static cl_int write_buffer(struct sb__opencl_device *device, void *dst, const void *src,
                           size_t bytes, cl_command_queue queue, cl_event *event) {
    size_t offset;
    cl_mem mem = sb__opencl_locate(device, dst, &offset);
    return clEnqueueWriteBuffer(queue, mem, CL_FALSE, offset, bytes, src, 0, NULL, event);
}

static cl_int read_buffer(struct sb__opencl_device *device, void *dst, const void *src,
                          size_t bytes, cl_command_queue queue, cl_event *event) {
    size_t offset;
    cl_mem mem = sb__opencl_locate(device, src, &offset);
    return clEnqueueReadBuffer(queue, mem, CL_FALSE, offset, bytes, dst, 0, NULL, event);
}

static cl_int copy_buffer(struct sb__opencl_device *device, void *dst, const void *src,
                          size_t bytes, cl_command_queue queue, cl_event *event) {
    size_t to, from;
    cl_mem target = sb__opencl_locate(device, dst, &to);
    cl_mem source = sb__opencl_locate(device, src, &from);
    return clEnqueueCopyBuffer(queue, source, target, from, to, bytes, 0, NULL, event);
}

static cl_int argument_buffer(struct sb__opencl_device *device, cl_kernel kernel, cl_uint *index,
                              const void *ptr, size_t element) {
    size_t offset;
    cl_mem mem = sb__opencl_locate(device, ptr, &offset);
    const cl_ulong before = offset / element;
    const cl_int result = clSetKernelArg(kernel, (*index)++, sizeof(cl_mem), (const void *)&mem);
    return result == CL_SUCCESS ? clSetKernelArg(kernel, (*index)++, sizeof before, &before)
                                : result;
}

static bool holds_buffer(struct sb__opencl_device *device, const void *ptr, size_t bytes) {
    struct sb__opencl_table *table = &device->table;
    sb__opencl_lock_take(&table->lock);
    const struct sb__opencl_buffer *buffer = find(table, ptr);
    const bool holds = buffer && bytes <= buffer->bytes - ((uintptr_t)ptr - buffer->address);
    sb__opencl_lock_give(&table->lock);
    return holds;
}

const struct sb__opencl_memory sb__opencl_buffers = {
    .kind = SB_OPENCL_BUFFERS,
    .open = has_buffers,
    .alloc = alloc_buffer,
    .free = free_buffer,
    .zero = zero_buffer,
    .upload = write_buffer,
    .download = read_buffer,
    .copy = copy_buffer,
    .argument = argument_buffer,
    .has_offsets = true,
    .holds = holds_buffer,
};
