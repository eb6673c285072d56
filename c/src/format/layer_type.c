#include "format/layout.h"

#include <stddef.h>

/* V1LayerParameter.LayerType by number. */
static const char *const names[] = {"NONE",
                                    "ACCURACY",
                                    "BNLL",
                                    "CONCAT",
                                    "CONVOLUTION",
                                    "DATA",
                                    "DROPOUT",
                                    "EUCLIDEAN_LOSS",
                                    "FLATTEN",
                                    "HDF5_DATA",
                                    "HDF5_OUTPUT",
                                    "IM2COL",
                                    "IMAGE_DATA",
                                    "INFOGAIN_LOSS",
                                    "INNER_PRODUCT",
                                    "LRN",
                                    "MULTINOMIAL_LOGISTIC_LOSS",
                                    "POOLING",
                                    "RELU",
                                    "SIGMOID",
                                    "SOFTMAX",
                                    "SOFTMAX_LOSS",
                                    "SPLIT",
                                    "TANH",
                                    "WINDOW_DATA",
                                    "ELTWISE",
                                    "POWER",
                                    "SIGMOID_CROSS_ENTROPY_LOSS",
                                    "HINGE_LOSS",
                                    "MEMORY_DATA",
                                    "ARGMAX",
                                    "THRESHOLD",
                                    "DUMMY_DATA",
                                    "SLICE",
                                    "MVN",
                                    "ABSVAL",
                                    "SILENCE",
                                    "CONTRASTIVE_LOSS",
                                    "EXP",
                                    "DECONVOLUTION"};

const char *sb__layer_type_name(int32_t number) {
    if (number < 0 || (size_t)number >= sizeof names / sizeof *names)
        return NULL;
    return names[number];
}
