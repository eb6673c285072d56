/* Two pinned threads, the caller and a helper. team_run, an sb_parallel_for, runs tasks on both. */
#ifndef SB_BENCH_TEAM_H
#define SB_BENCH_TEAM_H

#include <stdint.h>

void team_start(void);
void team_run(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg);
void team_stop(void);

#endif
