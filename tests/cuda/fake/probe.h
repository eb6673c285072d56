/* Macros for the tests of contract.tsv. The body of ROW(id) { ... } returns whether the row is
   true; HOLDS(id, expression) is short for a body that returns the expression. */
#ifndef SB_TESTS_PROBE_H
#define SB_TESTS_PROBE_H

#include <cuda.h>
#include <stdbool.h>

struct row {
    const char *id;
    bool (*holds)(void);
    bool listed;
    struct row *next;
};

void add_row(struct row *row);
#define ROW(id)                                                                                    \
    static bool id(void);                                                                          \
    __attribute__((constructor)) static void add_##id(void) {                                      \
        static struct row row = {#id, id, false, NULL};                                            \
        add_row(&row);                                                                             \
    }                                                                                              \
    static bool id(void)

#define HOLDS(id, expression)                                                                      \
    ROW(id) {                                                                                      \
        return expression;                                                                         \
    }

extern void *driver, *nccl; /* from dlopen */
extern CUstream stream;     /* non-blocking */
void (*look_up(void *library, const char *name))(void);
#define STRING(name)  STRING_(name)
#define STRING_(name) #name
/* Looks up a function by the name that cuda.h defines for it, such as cuMemAlloc_v2. */
#define CU(name) ((__typeof__(&(name)))look_up(driver, STRING(name)))

#define IS(call, code) ((call) == (code))
#define OK(call)       IS(call, CUDA_SUCCESS)

#endif
