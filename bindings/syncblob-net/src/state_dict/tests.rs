use std::sync::Arc;

use syncblob::{Blob, Format, Model, Payload};

use super::{StateTensor, ROWS};
use crate::{Limits, Net, NetOptions};

#[test]
fn rows_are_sorted_by_type() {
    assert!(ROWS.is_sorted_by(|one, next| one.0 < next.0));
}

fn blob(shape: &[usize], is_factor: bool) -> Blob<f32> {
    let first = if is_factor { 2_u8 } else { 1 };
    let values: Vec<f32> = (first..).take(shape.iter().product()).map(f32::from).collect();
    Blob::from_slice(shape, &values).unwrap()
}

fn model(layers: &[(&str, &str, &[&[usize]])]) -> Model {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    for (name, layer_type, shapes) in layers {
        let layer = model.add_layer(name, *layer_type).unwrap();
        for (number, shape) in shapes.iter().enumerate() {
            let is_factor = *layer_type == "BatchNorm" && number == 2;
            model.add_blob(layer, &blob(shape, is_factor), Payload::Data).unwrap();
        }
    }
    model
}

fn shown(tensors: &[StateTensor], model: &Model) -> Vec<String> {
    let tensor = |tensor: &StateTensor| {
        let loaded = tensor.load(model).unwrap();
        assert_eq!(loaded.shape(), tensor.shape);
        assert_eq!(loaded.dtype(), tensor.dtype);
        let values = loaded.downcast_ref::<f32>().unwrap().data().unwrap();
        format!("{} {:?} {values:?}", tensor.role, tensor.shape)
    };
    tensors.iter().map(tensor).collect()
}

/// A layer's type, its parameters, the shapes of its blobs, and the expected tensors.
type Layer<'a> = (&'a str, &'a str, &'a [&'a [usize]], &'a [&'a str]);

#[test]
fn each_type_has_names_and_shapes() {
    let rows: &[Layer<'_>] = &[
        (
            "Convolution",
            "",
            &[&[2, 1, 1, 1], &[1, 1, 1, 2]],
            &["weight [2, 1, 1, 1] [1.0, 2.0]", "bias [2] [1.0, 2.0]"],
        ),
        (
            "Deconvolution",
            "",
            &[&[2, 1, 1, 1], &[1]],
            &["weight [2, 1, 1, 1] [1.0, 2.0]", "bias [1] [1.0]"],
        ),
        (
            "InnerProduct",
            "",
            &[&[1, 1, 2, 3], &[1, 1, 1, 2]],
            &["weight [2, 3] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]", "bias [2] [1.0, 2.0]"],
        ),
        (
            "InnerProduct",
            "inner_product_param { transpose: true }",
            &[&[2, 3]],
            &["weight [3, 2] [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]"],
        ),
        ("PReLU", "", &[&[]], &["weight [1] [1.0]"]),
        ("Scale", "", &[&[2], &[2]], &["weight [2] [1.0, 2.0]", "bias [2] [1.0, 2.0]"]),
        ("Scale", "bottom: 'in'", &[&[2]], &["bias [2] [1.0, 2.0]"]),
        (
            "BatchNorm",
            "",
            &[&[2], &[1, 1, 1, 2], &[1]],
            &[
                "weight [2] [1.0, 1.0]",
                "bias [2] [0.0, 0.0]",
                "running_mean [2] [0.5, 1.0]",
                "running_var [2] [0.5, 1.0]",
            ],
        ),
        (
            "BatchNorm",
            "",
            &[&[1], &[1], &[1], &[1, 1, 1, 1], &[1]],
            &[
                "running_mean [1] [0.5]",
                "running_var [1] [0.5]",
                "weight [1] [1.0]",
                "bias [1] [1.0]",
            ],
        ),
        ("BN", "", &[&[1, 1, 1, 1], &[1, 1, 1, 1]], &["weight [1] [1.0]", "bias [1] [1.0]"]),
        ("Mine", "", &[&[1, 1, 1, 1], &[2]], &["0 [1, 1, 1, 1] [1.0]", "1 [2] [1.0, 2.0]"]),
    ];
    for (layer_type, more, blobs, wanted) in rows {
        let model = Arc::new(model(&[("a", layer_type, blobs)]));
        let text = format!(
            "input: 'in' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 3
             layer {{ name: 'a' type: '{layer_type}' bottom: 'in' {more} top: 'a' }}"
        );
        let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
        let net = net.with_weights(Arc::clone(&model)).unwrap();
        assert_eq!(shown(&net.state_dict().unwrap(), &model), *wanted, "{layer_type} {more}");
    }
}

/// Each row contains the layers after a BatchNorm `n`, and whether the Scale `s` is joined.
#[test]
fn a_scale_that_alone_reads_a_batch_norm_is_joined() {
    let rows = [
        ("layer { name: 's' type: 'Scale' bottom: 'n' top: 's' }", true),
        ("layer { name: 's' type: 'Scale' bottom: 'n' top: 'n' }", true),
        ("layer { name: 's' type: 'Scale' bottom: 'n' top: 's' scale_param { axis: 2 } }", false),
        ("layer { name: 's' type: 'Scale' bottom: 'n' bottom: 'in' top: 's' }", false),
        ("layer { name: 's' type: 'Scale' bottom: 'in' top: 's' }", false),
        (
            "layer { name: 'r' type: 'ReLU' bottom: 'n' top: 'n' }
             layer { name: 's' type: 'Scale' bottom: 'n' top: 's' }",
            false,
        ),
        (
            "layer { name: 'r' type: 'ReLU' bottom: 'n' top: 'r' }
             layer { name: 's' type: 'Scale' bottom: 'n' top: 's' }",
            false,
        ),
    ];
    let model =
        Arc::new(model(&[("n", "BatchNorm", &[&[2], &[2], &[1]]), ("s", "Scale", &[&[2]])]));
    for (text, joined) in rows {
        let text = format!(
            "input: 'in' input_dim: 1 input_dim: 2 input_dim: 2 input_dim: 2
             layer {{ name: 'n' type: 'BatchNorm' bottom: 'in' top: 'n' }} {text}"
        );
        let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
        let net = net.with_weights(Arc::clone(&model)).unwrap();
        let tensors = net.state_dict().unwrap();
        let layers: Vec<usize> = tensors.iter().map(|tensor| tensor.layer).collect();
        assert_eq!(layers.iter().all(|&layer| layer == 0), joined, "{text}");
        let weight = if joined { "weight [2] [1.0, 2.0]" } else { "weight [2] [1.0, 1.0]" };
        assert_eq!(shown(&tensors[..2], &model), [weight, "bias [2] [0.0, 0.0]"], "{text}");
    }
}

#[test]
fn a_model_without_a_net_keeps_all_layers() {
    let model = model(&[
        ("c", "Convolution", &[&[1, 1, 1, 1]]),
        ("n", "BatchNorm", &[&[1], &[1], &[1]]),
        ("n", "Scale", &[&[1]]),
        ("c", "InnerProduct", &[&[1, 1, 2, 1]]),
    ]);
    let tensors = StateTensor::from_model(&model, &Limits::default()).unwrap();
    let layers: Vec<usize> = tensors.iter().map(|tensor| tensor.layer).collect();
    assert_eq!(layers, [0, 1, 1, 1, 1, 2, 3]);
    assert_eq!(shown(&tensors[5..], &model), ["weight [1] [1.0]", "weight [2, 1] [1.0, 2.0]"]);
    let empty = Model::create(Format::Solverstate).unwrap();
    assert!(StateTensor::from_model(&empty, &Limits::default()).unwrap().is_empty());
}
