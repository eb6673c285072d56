/* Defines the types of cuRAND, a large package, that Caffe's headers use. */
#ifndef SYNCBLOB_TESTS_CAFFE_CURAND_H
#define SYNCBLOB_TESTS_CAFFE_CURAND_H

typedef int curandStatus_t;
typedef struct curandGenerator_st *curandGenerator_t;

#endif
