#include "format/layout.h"

#include <stddef.h>

/* The names of V1LayerParameter.LayerType, by number. */
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

/* The names of C3D 1.0's layer types, from number 30 on. */
static const char *const c3d_names[] = {
    "CONVOLUTION3D",     "POOLING3D",          "VOLUME_DATA",
    "VIDEO_DATA",        "DECONVOLUTION3D",    "VIDEO_SEGMENTATION_DATA",
    "VOXEL_SOFTMAX",     "VOXEL_SOFTMAX_LOSS", "VIDEO_WITH_VOXEL_TRUTH_DATA",
    "VOXEL_CUSTOM_LOSS", "DOWN_SAMPLING"};

const char *sb__layer_type_name(int32_t number, bool is_c3d) {
    if (is_c3d && number == 25)
        return "ELTWISE_PRODUCT";
    if (is_c3d && number >= 30 && (size_t)number - 30 < sizeof c3d_names / sizeof *c3d_names)
        return c3d_names[number - 30];
    if (number < 0 || (size_t)number >= sizeof names / sizeof *names)
        return NULL;
    return names[number];
}

bool sb__layer_type_is_c3d(int32_t number) {
    return number == 30 || number == 31 || number == 34;
}
