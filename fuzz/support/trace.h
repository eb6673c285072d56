/* With SYNCBLOB_FUZZ_TRACE in the environment a harness tells its steps: for
   whoever reads a finding. */
#ifndef SB_FUZZ_TRACE_H
#define SB_FUZZ_TRACE_H

void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
