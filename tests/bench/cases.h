/* The cases, a file each; every goal's number is that of README.md. */
#ifndef SB_BENCH_CASES_H
#define SB_BENCH_CASES_H

void bench_small(void);
void bench_allocation(void);
void bench_messages(void);
void bench_files(void);
void bench_arithmetic(void);
/* Both with two threads: needs a process of its own, in which OpenBLAS has them. */
void bench_threads(void);
void bench_fillers(void);
void bench_growth(void);
void bench_readers(void);

/* For files.c's question about peak memory: loads the model file, as `reader` ("syncblob" or
   "caffe"), in a process of its own and prints how far resident memory rose above what it was
   before, in bytes. */
int peak_memory(const char *reader, const char *path);

#endif
