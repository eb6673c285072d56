/* The input of bindgen. */
#define SB_EXPERIMENTAL
#include <syncblob/backend.h>
#include <syncblob/cuda_device.h>
#include <syncblob/dlpack.h>
#include <syncblob/sim_device.h>
#include <syncblob/syncblob.h>
