/* The cases of the benchmark. Each is in a separate file. */
#ifndef SB_BENCH_CASES_H
#define SB_BENCH_CASES_H

void bench_allocation(void);
void bench_messages(void);
void bench_files(void);
void bench_arithmetic(void);
void bench_threads(void); /* requires that OpenBLAS has two threads */
void bench_fillers(void);
void bench_growth(void);

#endif
