/* Tests base/checked.h with a 32-bit size_t, also on 64-bit hosts. */
#include "support.h"

#undef PTRDIFF_MAX
#define PTRDIFF_MAX INT32_MAX
#define size_t      uint32_t
#include "base/checked.h"

static const struct {
    int64_t count;
    uint32_t element_size;
    bool fits;
} rows[] = {
    {0, 8, true},
    {INT32_MAX, 1, true},
    {INT32_MAX / 4, 4, true},
    {INT32_MAX / 4 + 1, 4, false},
    {(int64_t)INT32_MAX + 1, 1, false},
    {(int64_t)65536 * 65537, 4, false}, /* the product's low 32 bits fit */
    {(int64_t)1 << 32, 1, false},
    {((int64_t)1 << 32) + 1, 8, false},
    {INT64_MAX, 8, false},
};

TEST(the_size_in_bytes_does_not_wrap) {
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        uint32_t bytes = 0;
        const bool fits = sb__bytes_of(rows[i].count, rows[i].element_size, &bytes);
        if (fits != rows[i].fits)
            fail_with("%lld elements of %u bytes: %d", (long long)rows[i].count,
                      rows[i].element_size, fits);
        if (fits)
            assert_int_equal(bytes, rows[i].count * rows[i].element_size);
    }
}
