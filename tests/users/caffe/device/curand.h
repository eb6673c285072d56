/* A fake header of cuRAND, whose package is large. Declares the only types of cuRAND that Caffe's
   headers use here. These programs use no random numbers. */
#ifndef SYNCBLOB_TESTS_CAFFE_CURAND_H
#define SYNCBLOB_TESTS_CAFFE_CURAND_H

typedef int curandStatus_t;
typedef struct curandGenerator_st *curandGenerator_t;

#endif
