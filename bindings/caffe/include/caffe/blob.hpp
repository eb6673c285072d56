// Replaces Caffe's header of this name if it is found first; see bindings/caffe/README.md.
#ifndef CAFFE_BLOB_HPP_
#define CAFFE_BLOB_HPP_

#include "syncblob_caffe.hpp"

#endif
