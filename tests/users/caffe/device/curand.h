/* A fake cuRAND: declares the only types that Caffe's headers use here, since its package is
   large. These programs use no random numbers. */
#ifndef SYNCBLOB_TESTS_CAFFE_CURAND_H
#define SYNCBLOB_TESTS_CAFFE_CURAND_H

typedef int curandStatus_t;
typedef struct curandGenerator_st *curandGenerator_t;

#endif
