/* Tests the built-in allocator with pages of 64 KiB, which aarch64 may have. CMake compiles
   c/src/port with the system's calls renamed to functions of this file. The linker's --wrap would
   also rename the calls of a sanitizer's runtime. */
#include "blobs.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)64 << 10)
#define MIB  ((size_t)1 << 20)

static struct {
    size_t bytes;
    int64_t refusals;
    int64_t maps, asked; /* calls of mmap; requests for the page size */
} kernel;

static size_t whole_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static int refuse(void) {
    kernel.refusals++;
    errno = EINVAL;
    return -1;
}

void *large_page_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int large_page_munmap(void *at, size_t size);
int large_page_madvise(void *at, size_t size, int advice);
long large_page_sysconf(int name);

long large_page_sysconf(int name) {
    if (name != _SC_PAGESIZE)
        return sysconf(name);
    kernel.asked++;
    return (long)PAGE;
}

/* Maps memory at an address that is a multiple of PAGE, but not of 2 * PAGE. */
void *large_page_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    size_t length = whole_pages(size), margin = 4 * PAGE;
    char *base = mmap(at, length + margin, protection, flags, fd, offset);
    if (base == MAP_FAILED)
        return base;
    char *start = base + (PAGE - (uintptr_t)base % PAGE) % PAGE;
    if ((uintptr_t)start % (2 * PAGE) == 0)
        start += PAGE;
    if (start > base)
        assert_int_equal(munmap(base, (size_t)(start - base)), 0);
    assert_int_equal(munmap(start + length, (size_t)(base + margin - start)), 0);
    kernel.maps++;
    kernel.bytes += length;
    return start;
}

int large_page_munmap(void *at, size_t size) {
    unsigned char resident;
    if ((uintptr_t)at % PAGE != 0 || size == 0 || mincore(at, 1, &resident) != 0)
        return refuse(); /* the real munmap accepts unmapped bytes */
    kernel.bytes -= whole_pages(size);
    return munmap(at, whole_pages(size));
}

int large_page_madvise(void *at, size_t size, int advice) {
    return (uintptr_t)at % PAGE != 0 ? refuse() : madvise(at, size, advice);
}

TEST(test_large_blocks_come_and_go_in_whole_pages) {
    static const size_t sizes[] = {2 * MIB,         2 * MIB + 1,        3000000,
                                   3 * MIB,         3 * MIB + 4096,     4 * MIB - 1,
                                   4 * MIB + 65535, 5 * MIB + PAGE + 1, 16 * MIB};
    sb_context *context = test_context(CONTEXT_OPTIONS(.flags = SB_CONTEXT_NO_HOST_CACHE));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *p;
        int64_t maps = kernel.maps;
        sb_mem *mem = test_mem(context, sizes[i]);
        assert_ok(sb_mem_mutable_cpu(mem, &p, &err));
        assert_int_equal(kernel.maps, maps + 1);
        assert_int_equal((uintptr_t)p % (2 * MIB), 0);
        assert_int_equal(kernel.bytes, whole_pages(sizes[i]));
        memset(p, 0x5a, sizes[i]);
        test_end(mem);
        assert_int_equal(kernel.bytes, 0);
        assert_int_equal(kernel.refusals, 0);
    }
    assert_int_equal(kernel.asked, 1);
}
