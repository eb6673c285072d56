/* Passes structs of all sizes to calls that take a struct_size. Each struct ends at an unmapped
   page or, for sanitizers, at the end of its block. The script tests/project/abi/versions.sh runs
   these tests with libraries whose structs have more or fewer members. */
#ifndef SB_TESTS_STRUCT_SIZES_H
#define SB_TESTS_STRUCT_SIZES_H

#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sized {
    const char *name;
    sb_status (*call)(void *given);
    const void *whole; /* the input struct, or NULL if the struct is an output */
    size_t first, size;
};

static inline void *struct_place(void *page_end, const struct sized *row, size_t size) {
    /* Every call reads struct_size, so the memory is at least as large. */
    const size_t held = size < sizeof size ? sizeof size : size;
    const size_t whole = row->size < held ? row->size : held;
    const size_t aligned = (held + 7) / 8 * 8;
    unsigned char *at = page_end ? (unsigned char *)page_end - aligned : malloc(held);
    assert_non_null(at);
    memset(at, row->whole ? 0 : 0xEE, held);
    if (row->whole)
        memcpy(at, row->whole, whole);
    memcpy(at, &size, sizeof size);
    return at;
}

enum { BEYOND = 24, STRUCT_MOST = 4096 }; /* STRUCT_MOST: the largest struct_size allowed */

static inline void check_struct_size(const struct sized *row, void *page_end, size_t size) {
    unsigned char *given = struct_place(page_end, row, size);
    const bool is_refused = size < row->first || size > STRUCT_MOST || size % sizeof(size_t);
    const bool is_unknown = row->whole && size == row->size + BEYOND;
    if (is_unknown)
        given[size - 1] = 1;
    const sb_status status = row->call(given);
    if (status != (is_refused ? SB_ERR_ABI_MISMATCH : is_unknown ? SB_ERR_UNSUPPORTED : SB_OK))
        fail_with("%s with a struct_size of %zu: %s", row->name, size, sb_status_name(status));
    for (size_t i = is_refused ? sizeof size : row->size; !row->whole && i < size; i++)
        assert_int_equal(given[i], is_refused ? 0xEE : 0);
    if (!page_end)
        free(given);
}

static inline void check_struct_sizes(const struct sized *rows, size_t count) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && !mprotect(pages + page, page, PROT_NONE));
    for (size_t i = 0; i < count; i++) {
        check_struct_size(&rows[i], NULL, STRUCT_MOST);
        check_struct_size(&rows[i], NULL, STRUCT_MOST + sizeof(size_t));
        for (size_t size = 0; size <= rows[i].size + BEYOND; size++) {
            check_struct_size(&rows[i], pages + page, size);
            check_struct_size(&rows[i], NULL, size);
        }
    }
    assert_int_equal(munmap(pages, 2 * page), 0);
}

#endif
