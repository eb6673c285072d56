#include "context/context.h"

sb__counter sb__fork_generation = 1;

static void forked(void) {
    (void)sb__counter_add(&sb__fork_generation, 1);
}

static void watch_once(void) {
    sb__on_fork(forked);
}

void sb__fork_watch(void) {
    static sb__once once = SB__ONCE_INIT;
    sb__run_once(&once, watch_once);
}
