/* What the bindings are made from. */
#include <syncblob/backend.h>
#include <syncblob/dlpack.h>
#include <syncblob/sim.h>
#include <syncblob/syncblob.h>
