// Replaces Caffe's header of the same name. See bindings/caffe/README.md.
#ifndef CAFFE_SYNCEDMEM_HPP_
#define CAFFE_SYNCEDMEM_HPP_

#include "syncblob_caffe_memory.hpp"

#endif
