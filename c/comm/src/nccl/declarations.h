/* Declarations of the parts of NCCL that the engine uses, so that the build does not need NCCL's
   headers. The file cuda/declarations.h declares the driver's functions. The compilation of
   tests/cuda/fake/check_declarations.c compares both files with NVIDIA's headers. */
#ifndef SB_NCCL_DECLARATIONS_H
#define SB_NCCL_DECLARATIONS_H

#include "../../../../cuda/declarations.h"

typedef unsigned int sb__nccl_result; /* ncclResult_t */
typedef struct ncclComm *sb__nccl_comm;
#define SB__NCCL_ID_BYTES 128
typedef struct {
    char internal[SB__NCCL_ID_BYTES];
} sb__nccl_id; /* ncclUniqueId */

/* ncclConfig_t of NCCL 2.14, which later versions accept. The last member belongs to a later
   version. Without that member, the struct would end in padding with undefined bytes. */
typedef struct {
    size_t size;
    unsigned int magic, version;
    int blocking;
    int cga_cluster_size;
} sb__nccl_config;

enum {
    SB__NCCL_SUCCESS = 0,
    SB__NCCL_IN_PROGRESS = 7,
    SB__NCCL_UINT8 = 1,
    SB__NCCL_FLOAT16 = 6,
    SB__NCCL_FLOAT32 = 7,
    SB__NCCL_FLOAT64 = 8,
    SB__NCCL_BFLOAT16 = 9, /* since 2.10 */
    SB__NCCL_SUM = 0,
    SB__NCCL_MAX = 2,
    SB__NCCL_MIN = 3
};

#define SB__NCCL_MAGIC        0xcafebeefu
#define SB__NCCL_UNDEFINED    (-2147483647 - 1)
#define SB__NCCL_VERSION_2_14 21400

/* Expands F(result, symbol, parameters) for every function of libnccl.so.2 that the engine calls.
   NCCL 2.14 is the first version with communicators whose calls do not block. */
#define SB__NCCL_FUNCTIONS(F)                                                                      \
    F(sb__nccl_result, ncclGetUniqueId, (sb__nccl_id * id))                                        \
    F(sb__nccl_result, ncclCommInitRankConfig,                                                     \
      (sb__nccl_comm * comm, int size, sb__nccl_id id, int rank, sb__nccl_config *config))         \
    F(sb__nccl_result, ncclCommFinalize, (sb__nccl_comm comm))                                     \
    F(sb__nccl_result, ncclCommDestroy, (sb__nccl_comm comm))                                      \
    F(sb__nccl_result, ncclCommAbort, (sb__nccl_comm comm))                                        \
    F(sb__nccl_result, ncclCommGetAsyncError, (sb__nccl_comm comm, sb__nccl_result * out))         \
    F(const char *, ncclGetErrorString, (sb__nccl_result result))                                  \
    F(const char *, ncclGetLastError, (sb__nccl_comm comm))                                        \
    F(sb__nccl_result, ncclGroupStart, (void))                                                     \
    F(sb__nccl_result, ncclGroupEnd, (void))                                                       \
    F(sb__nccl_result, ncclAllReduce,                                                              \
      (const void *from, void *to, size_t count, unsigned int type, unsigned int op,               \
       sb__nccl_comm comm, sb__cu_stream stream))                                                  \
    F(sb__nccl_result, ncclBroadcast,                                                              \
      (const void *from, void *to, size_t count, unsigned int type, int root, sb__nccl_comm comm,  \
       sb__cu_stream stream))

#endif
