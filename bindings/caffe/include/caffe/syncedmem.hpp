// Replaces Caffe's header of this name if it is found first; see bindings/caffe/README.md.
#ifndef CAFFE_SYNCEDMEM_HPP_
#define CAFFE_SYNCEDMEM_HPP_

#include "syncblob_caffe_memory.hpp"

#endif
