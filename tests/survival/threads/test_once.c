/* What is set up at the first use is set up by whichever thread comes first,
   and seen by all others. A program of its own, since the first use is once. */
#include "team.h"
#include "tiny.h"

static void use_builtin(void *arg) {
    sb_mem *mem;
    const void *ptr;
    (void)arg;
    assert_ok(sb_mem_create(NULL, 100, &mem, &err));
    assert_ok(sb_mem_cpu(mem, &ptr, &err));
    sb_mem_release(mem);
}

TEST(threads_share_the_first_use_of_the_built_in_context) {
    hand_over(use_builtin, use_builtin, NULL);
}

struct opening {
    struct tiny tiny;
    sb_backend table;
    sb_context *contexts[2];
};

static void open_first(void *arg) {
    struct opening *o = arg;
    o->contexts[0] = tiny_context(&o->table);
}

static void open_second(void *arg) {
    struct opening *o = arg;
    o->contexts[1] = tiny_context(&o->table);
}

TEST(threads_share_the_first_opening_of_a_device) {
    struct opening o = {.contexts = {NULL, NULL}};
    o.table = tiny_table(&o.tiny);
    hand_over(open_first, open_second, &o);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sb_context_device_status(o.contexts[i]), SB_OK);
        sb_context_release(o.contexts[i]);
    }
}
