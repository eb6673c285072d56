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

/* Loads the model file by `reader`, "syncblob" or "caffe", and prints by how many bytes the peak of
   resident memory rose. Must be called in a new process. */
int peak_memory(const char *reader, const char *path);

#endif
