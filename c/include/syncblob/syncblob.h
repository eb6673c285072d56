/**
 * syncblob: Caffe's Blob and SyncedMemory as a library.
 *
 * The headers in reading order; each includes the headers that it needs:
 * - base.h: element types, version, conventions
 * - status.h: status codes, the error struct
 * - context.h: allocator, limits, device
 * - mem.h: one buffer on host and device (SyncedMemory)
 * - blob.h: an n-dimensional array with data and diff (Blob); typed.h: pointers to its elements
 * - filler.h: a blob's initial values (Filler)
 * - io.h: sources, sinks and progress callbacks
 * - proto.h: blobs as bytes and files (BlobProto)
 * - model.h: .caffemodel and .solverstate files
 *
 * Headers that a program includes separately:
 * - dlpack.h: exchange of tensors with other programs
 * - sim_device.h: the simulated device sim:0, for programs without a GPU
 * - backend.h: support for another accelerator, for its authors and users
 */
#ifndef SYNCBLOB_SYNCBLOB_H
#define SYNCBLOB_SYNCBLOB_H

#include <syncblob/base.h>
#include <syncblob/blob.h>
#include <syncblob/caffe.h>
#include <syncblob/context.h>
#include <syncblob/filler.h>
#include <syncblob/io.h>
#include <syncblob/mem.h>
#include <syncblob/model.h>
#include <syncblob/proto.h>
#include <syncblob/status.h>
#include <syncblob/typed.h>

#endif
