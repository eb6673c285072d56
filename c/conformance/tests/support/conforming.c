#include "conforming.h"

#include "support.h"

static void print_result(void *user, const sb_conformance_result *result) {
    static const char *const outcomes[] = {"passed", "FAILED", "skipped"};
    if (result->outcome != SB_CONFORMANCE_PASSED)
        print_message("%s: %s: %s: %s\n", outcomes[result->outcome], (const char *)user,
                      result->claim, result->detail);
}

void assert_conforms(const char *name, const sb_backend *table,
                     const sb_conformance_options *options) {
    sb_conformance_options chosen = *options;
    int32_t failed = -1;
    if (test_is_full() && test_has_memory((size_t)9 << 30, (size_t)18 << 30))
        chosen.max_count = INT64_MAX;
    else if (test_is_quick())
        chosen.max_count = 10000;
    assert_ok(
        sb_conformance_run(table, &chosen, print_result, (void *)(uintptr_t)name, &failed, &err));
    assert_int_equal(failed, 0);
}
