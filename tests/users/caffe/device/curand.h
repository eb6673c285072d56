/* The one name of cuRAND that Caffe's headers use here: its package is large, and nothing is
   random in these programs. */
#ifndef SYNCBLOB_TESTS_CAFFE_CURAND_H
#define SYNCBLOB_TESTS_CAFFE_CURAND_H

typedef int curandStatus_t;
typedef struct curandGenerator_st *curandGenerator_t;

#endif
