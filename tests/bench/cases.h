/* The cases of the benchmark, one file each. */
#ifndef SB_BENCH_CASES_H
#define SB_BENCH_CASES_H

void bench_allocation(void);
void bench_messages(void);
void bench_files(void);
void bench_arithmetic(void);
void bench_threads(void); /* in a process whose OpenBLAS has two threads */
void bench_fillers(void);
void bench_growth(void);
void bench_readers(void);

/* Loads the model file as `reader`, "syncblob" or "caffe", and prints by how many bytes the peak of
   resident memory rose. Needs a fresh process. */
int peak_memory(const char *reader, const char *path);

#endif
