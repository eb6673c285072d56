/* Replaces cuRAND's header, because the package of cuRAND is large. Declares the types of cuRAND
   that Caffe's headers use. The tests draw no random numbers on a device. */
#ifndef SYNCBLOB_TESTS_CAFFE_CURAND_H
#define SYNCBLOB_TESTS_CAFFE_CURAND_H

typedef int curandStatus_t;
typedef struct curandGenerator_st *curandGenerator_t;

#endif
