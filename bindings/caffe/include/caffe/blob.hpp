// Replaces Caffe's header of the same name. See bindings/caffe/README.md.
#ifndef CAFFE_BLOB_HPP_
#define CAFFE_BLOB_HPP_

#include "syncblob_caffe.hpp"

#endif
