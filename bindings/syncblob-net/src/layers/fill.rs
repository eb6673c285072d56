//! Computes the values of blobs that the model does not contain, with the fillers of the blobs'
//! layers.

use syncblob::{Blob, Filler};

use super::{constants, rule};
use crate::message::Message;
use crate::net::{Layer, Shape};
use crate::{Error, Result};

/// The values with which Caffe fills a new blob.
enum First {
    /// The filler in the field of this name or, if the field is missing, this constant.
    Of(&'static str, f64),
    /// This constant, because the layer's parameters have no filler for the blob.
    Value(f64),
}

fn first(layer: &Layer, index: usize, blobs: usize) -> Option<First> {
    match (layer.layer_type.as_str(), index) {
        ("BatchNorm", _) if blobs == 3 => Some(First::Value(0.0)),
        ("Bias", _) => Some(First::Of("filler", 0.0)),
        ("PReLU", _) => Some(First::Of("filler", 0.25)),
        ("Scale", 0) if layer.bottoms.len() == 1 => Some(First::Of("filler", 1.0)),
        ("Scale", _) => Some(First::Of("bias_filler", 0.0)),
        (
            "Convolution"
            | "ConvolutionDepthwise"
            | "Deconvolution"
            | "DepthwiseConvolution"
            | "Embed"
            | "InnerProduct",
            _,
        ) => Some(First::Of(["weight_filler", "bias_filler"].get(index)?, 0.0)),
        _ => None,
    }
}

/// Returns the filler of blob `index` of a layer with `blobs` blobs, or the reason why the blob's
/// initial values are unknown.
pub(crate) fn filler(layer: &Layer, index: usize, blobs: usize) -> Result<Filler, &'static str> {
    let unknown = "its initial values in Caffe are not known";
    let first = first(layer, index, blobs).ok_or(unknown)?;
    let parameters = layer.parameters(rule(&layer.layer_type).ok_or(unknown)?);
    match first {
        First::Value(value) => Ok(Filler::Constant { value }),
        First::Of(name, value) => match parameters.message(name) {
            None => Ok(Filler::Constant { value }),
            Some(filler) => of_message(filler).ok_or("its filler is random"),
        },
    }
}

fn of_message(filler: &Message) -> Option<Filler> {
    match filler.text("type") {
        b"constant" => Some(Filler::Constant { value: f64::from(filler.float("value")) }),
        b"bilinear" => Some(Filler::Bilinear),
        _ => None,
    }
}

/// Computes the values that a filler makes for a blob of this shape.
pub(crate) fn values(filler: &Filler, shape: &Shape) -> Result<Vec<f32>> {
    constants(shape)?;
    if let (Filler::Bilinear, Some(width)) = (filler, shape.last()) {
        check_bilinear(*width)?;
    }
    let refused = |error: syncblob::Error| Error::invalid(error);
    let mut blob = Blob::<f32>::zeros(shape.as_slice()).map_err(refused)?;
    blob.initialize(filler, 0).map_err(refused)?;
    Ok(blob.data().map_err(refused)?.to_vec())
}

/// Refuses widths for which older versions of Caffe place the kernel's centre differently.
fn check_bilinear(width: i64) -> Result<()> {
    match width % 4 {
        0 | 1 => Ok(()),
        _ => Err(Error::invalid(format_args!(
            "Caffe's versions differ in the bilinear filler's values for a kernel width of {width}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use syncblob::Filler;

    use super::{filler, values};
    use crate::net::Layer;
    use crate::testing::message;

    #[test]
    fn first_values_are_those_of_caffe() {
        let constant = |value| Ok(Filler::Constant { value });
        let random = Err("its filler is random");
        let unknown = Err("its initial values in Caffe are not known");
        for (text, index, blobs, wanted) in [
            ("type: 'Convolution'", 0, 2, constant(0.0)),
            (
                "type: 'Convolution' convolution_param { bias_filler { value: 0.5 } }",
                1,
                2,
                constant(0.5),
            ),
            (
                "type: 'Deconvolution' convolution_param { weight_filler { type: 'bilinear' } }",
                0,
                1,
                Ok(Filler::Bilinear),
            ),
            (
                "type: 'InnerProduct' inner_product_param { weight_filler { type: 'gaussian' } }",
                0,
                1,
                random,
            ),
            ("type: 'Scale' bottom: 'a'", 0, 2, constant(1.0)),
            ("type: 'Scale' bottom: 'a' scale_param { filler { value: 3 } }", 0, 1, constant(3.0)),
            ("type: 'Scale' bottom: 'a' scale_param { filler {} }", 0, 1, constant(0.0)),
            ("type: 'Scale' bottom: 'a'", 1, 2, constant(0.0)),
            ("type: 'Scale' bottom: 'a' bottom: 'b'", 0, 1, constant(0.0)),
            ("type: 'Bias'", 0, 1, constant(0.0)),
            ("type: 'PReLU'", 0, 1, constant(0.25)),
            ("type: 'BatchNorm'", 2, 3, constant(0.0)),
            ("type: 'BatchNorm'", 3, 5, unknown),
            ("type: 'LSTM'", 0, 3, unknown),
        ] {
            let layer = Layer::new(message("LayerParameter", text));
            assert_eq!(filler(&layer, index, blobs), wanted, "{text} {index}");
        }
    }

    #[test]
    fn values_fill_a_shape() {
        assert_eq!(values(&Filler::Constant { value: 2.0 }, &vec![3]).unwrap(), [2.0; 3]);
        assert!(values(&Filler::Bilinear, &vec![4]).is_err());
        for (width, is_same) in [(1, true), (2, false), (3, false), (4, true), (5, true)] {
            let made = values(&Filler::Bilinear, &vec![1, 1, width, width]);
            assert_eq!(made.is_ok(), is_same, "{width}");
        }
        assert!(values(&Filler::default(), &vec![1 << 30]).is_err());
    }
}
