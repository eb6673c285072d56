//! Names of layer types in the older generations of Caffe.

use crate::message::Message;

/// V0's names of types. A type's position, counted from 1, is the type's number in V1.
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

/// The current names of V1's types. The index is the type's number. The last type is from a fork.
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

/// Types of forks whose number may mean another type in Caffe. A row has the number, the
/// parameters' field and message type, which together identify the layer, and the layer's type.
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
