//! Names of layer types in Caffe's older formats: V0 with types as texts, and V1 with numbers.

use crate::message::Message;

/// V0's type names, in the order of V1's numbers, which begin at 1.
const V0: &[&str] = &[
    "accuracy",
    "bnll",
    "concat",
    "conv",
    "data",
    "dropout",
    "euclidean_loss",
    "flatten",
    "hdf5_data",
    "hdf5_output",
    "im2col",
    "images",
    "infogain_loss",
    "innerproduct",
    "lrn",
    "multinomial_logistic_loss",
    "pool",
    "relu",
    "sigmoid",
    "softmax",
    "softmax_loss",
    "split",
    "tanh",
    "window_data",
];

/// The current type names, indexed by V1's numbers. The last type is from a fork of Caffe.
const V1: &[&str] = &[
    "",
    "Accuracy",
    "BNLL",
    "Concat",
    "Convolution",
    "Data",
    "Dropout",
    "EuclideanLoss",
    "Flatten",
    "HDF5Data",
    "HDF5Output",
    "Im2col",
    "ImageData",
    "InfogainLoss",
    "InnerProduct",
    "LRN",
    "MultinomialLogisticLoss",
    "Pooling",
    "ReLU",
    "Sigmoid",
    "Softmax",
    "SoftmaxWithLoss",
    "Split",
    "TanH",
    "WindowData",
    "Eltwise",
    "Power",
    "SigmoidCrossEntropyLoss",
    "HingeLoss",
    "MemoryData",
    "ArgMax",
    "Threshold",
    "DummyData",
    "Slice",
    "MVN",
    "AbsVal",
    "Silence",
    "ContrastiveLoss",
    "Exp",
    "Deconvolution",
    "Crop",
];

/// Layer types of forks. Each row: number, field, message type, fork's type. In Caffe or another
/// fork, some of the numbers mean other types. A layer has the fork's type only if the layer's
/// field has the message type.
const FORKS: &[(usize, &str, &str, &str)] = &[
    (30, "convolution_param", "Convolution3DParameter", "Convolution3D"),
    (31, "pooling_param", "Pooling3DParameter", "Pooling3D"),
    (34, "convolution_param", "Convolution3DParameter", "Deconvolution3D"),
    (40, "upsample_param", "UpsampleParameter", "Upsample"),
    (42, "unpooling_param", "UnpoolingParameter", "Unpooling"),
    (43, "bn_param", "BNParameter.Mode", "BN"),
];

/// Returns the number that a V0 layer's type has in V1.
pub(super) fn v0_type(name: &[u8]) -> Option<i64> {
    let place = V0.iter().position(|known| known.as_bytes() == name)?;
    i64::try_from(place + 1).ok()
}

/// Returns the current name of a V1 layer's type.
pub(super) fn v1_type(number: i64, layer: &Message) -> Option<&'static str> {
    let number = usize::try_from(number).ok()?;
    let has = |field, kind| layer.message(field).is_some_and(|given| given.type_name() == kind);
    let fork = FORKS.iter().find(|row| row.0 == number && has(row.1, row.2));
    fork.map(|row| row.3).or_else(|| V1.get(number).copied())
}
