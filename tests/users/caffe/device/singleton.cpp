// The parts of Caffe's common.cpp that do not need cuBLAS or cuRAND.
#include "caffe/common.hpp"
#include "caffe/util/rng.hpp"

namespace caffe {

Caffe::Caffe()
    : cublas_handle_(nullptr), curand_generator_(nullptr), mode_(Caffe::GPU), solver_count_(1),
      root_solver_(true) {
}

Caffe::~Caffe() {
}

Caffe &Caffe::Get() {
    static Caffe caffe;
    return caffe;
}

class Caffe::RNG::Generator {
  public:
    rng_t rng;
};

Caffe::RNG::RNG() : generator_(new Generator) {
}

void *Caffe::RNG::generator() {
    return &generator_->rng;
}

} // namespace caffe
