/* What the bindings are made from. */
#define SB_EXPERIMENTAL
#include <syncblob/backend.h>
#include <syncblob/comm_engine.h>
#include <syncblob/dlpack.h>
#include <syncblob/nccl.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>
#include <syncblob/sim_device.h>
#include <syncblob/syncblob.h>
