use std::sync::Arc;

use syncblob::{Blob, Format, Model, Payload};

use super::same_shape;
use crate::onnx::Custom;
use crate::{Error, ErrorKind, Net, NetOptions, Result};

/// Makes a model in which all values of a layer's blobs are the layer's index.
fn model(layers: &[(&str, &[&[usize]])]) -> Arc<Model> {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    for (number, (name, blobs)) in layers.iter().enumerate() {
        let layer = model.add_layer(name, "Convolution").unwrap();
        for shape in *blobs {
            let blob = Blob::<f32>::full(*shape, number as f32).unwrap();
            model.add_blob(layer, &blob, Payload::Data).unwrap();
        }
    }
    Arc::new(model)
}

fn net(layers: &[(&str, &str)], model: Arc<Model>) -> Net {
    let mut text = "layer { name: 'in' type: 'Input' top: 'd' input_param { shape {
        dim: 1 dim: 4 dim: 8 dim: 8 } } }"
        .to_owned();
    for (name, more) in layers {
        let (filler, param) = match more.starts_with("weight_filler") {
            true => (*more, ""),
            false => ("", *more),
        };
        text += &format!(
            "layer {{ name: '{name}' type: 'Convolution' bottom: 'd' top: '{name}/{}' {param}
             convolution_param {{ num_output: 2 kernel_size: 1 bias_term: false {filler} }} }}",
            text.len()
        );
    }
    let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
    net.with_weights(model).unwrap()
}

fn infer(net: &Net) -> Result<()> {
    let shapes: Vec<_> = net.inputs().iter().map(|input| input.1.clone()).collect();
    match net.infer(&shapes, &mut Custom::default()).1 {
        problems if problems.is_empty() => Ok(()),
        problems => Err(Error::of_problems(problems)),
    }
}

/// Returns, for each layer of the net, the index of the model's layer that stores its first blob.
fn layers_of(net: &Net) -> Vec<usize> {
    infer(net).unwrap();
    let blobs = (0..net.layers().len()).map(|at| net.weights(at).unwrap().blobs[0]);
    blobs.map(|at| at.layer.unwrap()).collect()
}

const BLOB: &[&[usize]] = &[&[2, 4, 1, 1]];

#[test]
fn layers_have_the_weights_of_their_names() {
    let model = model(&[("b", BLOB), ("x", BLOB), ("a", BLOB), ("y", &[])]);
    let net = net(&[("a", ""), ("b", "")], model);
    assert_eq!(layers_of(&net), [2, 0]);
    assert_eq!(net.warnings(), ["the net has no layer 'x': the model's layer was left out"]);
}

#[test]
fn the_weights_of_another_net_are_refused() {
    let layers =
        "layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: 1 dim: 3 } } }
        layer { name: 'p' type: 'PReLU' bottom: 'd' top: 'p' }";
    let net = Net::from_prototxt(layers.as_bytes(), &NetOptions::default()).unwrap();
    let error = net.clone().with_weights(model(&[("x", BLOB)])).unwrap_err();
    assert!(error.to_string().contains("is of another net"), "{error}");
    assert!(net.with_weights(model(&[("x", &[])])).is_ok());
}

#[test]
fn the_last_layer_of_a_name_in_the_model_counts() {
    let net = net(&[("a", "")], model(&[("a", BLOB), ("a", BLOB)]));
    assert_eq!(layers_of(&net), [1]);
}

#[test]
fn shared_blobs_are_those_that_caffe_copies_last() {
    let named = "param { name: 'w' }";
    let layers = [("a", named), ("b", ""), ("c", named)];
    assert_eq!(
        layers_of(&net(&layers, model(&[("c", BLOB), ("b", BLOB), ("a", BLOB)]))),
        [2, 1, 2]
    );
    assert_eq!(
        layers_of(&net(&layers, model(&[("a", BLOB), ("b", BLOB), ("c", BLOB)]))),
        [2, 1, 2]
    );
    // One stored copy of a shared blob is enough for all layers that share the blob.
    assert_eq!(layers_of(&net(&layers, model(&[("a", BLOB), ("b", BLOB)]))), [0, 1, 0]);
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let short: &[&[usize]] = &[&[2, 4, 1]];
    let refused = [
        (model(&[("a", &[])]), "the model has 0 blobs for it, but it needs 1"),
        (model(&[("a", &[BLOB[0], BLOB[0]])]), "the model has 2 blobs for it, but it needs 1"),
        (model(&[("a", short)]), "its blob 0 is [2, 4, 1] in the model, but must be [2, 4, 1, 1]"),
    ];
    for (model, reason) in refused {
        let error = infer(&net(&[("a", "")], model)).unwrap_err();
        assert_eq!(error.problems()[0].reason, reason);
    }
}

/// Each row contains the filler of a missing layer, and the error if the filler is refused.
#[test]
fn fillers_make_the_weights_of_layers_that_the_model_lacks() {
    let filler = |text: &str| format!("weight_filler {{ {text} }}");
    for (text, problem) in [
        ("type: 'constant' value: 2", None),
        ("", None),
        ("type: 'bilinear'", None),
        ("type: 'xavier'", Some("its filler is random")),
        ("type: 'msra'", Some("its filler is random")),
    ] {
        for (name, why) in [
            ("b", "the model has no weights for it"),
            ("a", "the model's weights belong to the first layer of this name"),
        ] {
            let net = net(&[("a", ""), (name, &filler(text))], model(&[("a", BLOB)]));
            let layer = format!("layer '{name}' (Convolution)");
            match (infer(&net), problem) {
                (Ok(()), None) => {
                    let warning = format!("{layer}: {why}: its fillers make the weights");
                    assert_eq!(net.warnings(), [warning], "{text}");
                }
                (Err(error), Some(problem)) => {
                    assert_eq!(error.to_string(), format!("{layer}: {why}, and {problem}"));
                    assert_eq!(net.warnings(), [""; 0]);
                }
                (result, _) => panic!("{text}: {result:?}"),
            }
        }
    }
}

#[test]
fn blobs_that_the_model_lacks_are_not_shared() {
    let named = "param { name: 'w' }";
    let error = infer(&net(&[("a", named), ("b", named)], model(&[]))).unwrap_err();
    let reason = "the model has no weights for it, and no copy of the blobs it shares";
    assert_eq!(error.problems()[0].reason, reason);
}

#[test]
fn a_model_without_a_net_is_refused() {
    for (format, reason) in [
        (Format::Blob, "the model is not a net: it is one blob, such as a mean"),
        (Format::BlobVector, "the model is not a net: it is a list of blobs"),
        (Format::Solverstate, "the model is not a net: it is the state of a solver"),
    ] {
        let model = Arc::new(Model::create(format).unwrap());
        for text in [Some(&b"input: 'd' input_shape { dim: 1 }"[..]), None] {
            let error = Net::open(text, Some(Arc::clone(&model)), &NetOptions::default());
            let error = error.unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unsupported, reason.into()));
        }
    }
}

#[test]
fn layers_behind_wrong_weights_are_checked() {
    let convolution = |name: &str, bottom: &str| {
        format!(
            "layer {{ name: '{name}' type: 'Convolution' bottom: '{bottom}' top: '{name}'
             convolution_param {{ num_output: 2 kernel_size: 1 bias_term: false }} }}"
        )
    };
    let text = "input: 'd' input_shape { dim: 1 dim: 4 dim: 8 dim: 8 }".to_owned()
        + &convolution("a", "d")
        + &convolution("b", "a");
    let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
    let wrong: &[&[usize]] = &[&[7]];
    let net = net.with_weights(model(&[("a", wrong), ("b", wrong)])).unwrap();
    let error = net.to_onnx(&crate::OnnxOptions::default()).map(|_| ()).unwrap_err();
    let names: Vec<&str> = error.problems().iter().map(|problem| &*problem.layer).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn shared_blobs_have_one_shape() {
    let text = |second: &str| {
        format!(
            "layer {{ name: 'in' type: 'Input' top: 'd' input_param {{ shape {{ dim: 1 dim: 4 dim: 8
             dim: 8 }} }} }}
             layer {{ name: 'a' type: 'Convolution' bottom: 'd' top: 'a' param {{ name: 'w' }}
             convolution_param {{ num_output: 2 kernel_size: 2 bias_term: false }} }}
             layer {{ name: 'b' type: 'Convolution' bottom: 'd' top: 'b' {second}
             convolution_param {{ num_output: 8 kernel_size: 1 bias_term: false }} }}"
        )
    };
    let read = |mode: &str| {
        let second = format!("param {{ name: 'w' share_mode: {mode} }}");
        Net::from_prototxt(text(&second).as_bytes(), &NetOptions::default()).unwrap()
    };
    infer(&read("PERMISSIVE")).unwrap();
    let error = infer(&read("STRICT")).unwrap_err();
    let reason = "its blob 0 is [8, 4, 1, 1], but the shared blob 'w' is [2, 4, 2, 2]";
    assert_eq!(error.problems()[0].reason, reason);
}

#[test]
fn old_shapes_may_have_ones_before() {
    let shapes: &[(&[i64], bool, &[i64], bool)] = &[
        (&[1, 1, 1, 20], true, &[20], true),
        (&[1, 1, 1, 20], false, &[20], false),
        (&[1, 1, 10, 20], true, &[10, 20], true),
        (&[1, 1, 1, 1], true, &[], true),
        (&[20, 1, 1, 1], true, &[20], false),
        (&[2, 1, 10, 20], true, &[10, 20], false),
        (&[2, 3, 10, 20], true, &[2, 3, 10, 20], true),
        (&[1, 1, 10, 20], true, &[1, 1, 1, 10, 20], false),
        (&[10, 20], false, &[10, 20], true),
        (&[20, 10], false, &[10, 20], false),
    ];
    for (stored, legacy, needed, same) in shapes {
        assert_eq!(same_shape(stored, *legacy, needed), *same, "{stored:?} {needed:?}");
    }
}
