//! Tests that an .onnx file contains the model's weights if the program, or the system, copies
//! them.

mod program;

use std::fs;
use std::sync::Arc;

use program::{command, run, Files};
use syncblob::Model;
use syncblob_net::{Net, NetOptions, OnnxOptions};

const SIDE: usize = 300; // weights of 360 kB, which the system copies, and a bias of 1200 bytes

const NET: &str = r#"
    layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 300 } } }
    layer { name: "long" type: "InnerProduct" bottom: "data" top: "long"
            inner_product_param { num_output: 300 bias_term: false } }
    layer { name: "scale" type: "Scale" bottom: "long" top: "scale" }
    layer { name: "last" type: "InnerProduct" bottom: "scale" top: "last"
            inner_product_param { num_output: 300 bias_term: false } }"#;

#[test]
fn weights_equal_those_of_the_model() {
    let files = Files::new();
    let long: Vec<f32> = (0..SIDE * SIDE).map(|i| i as f32).collect();
    let short: Vec<f32> = (0..SIDE).map(|i| -(i as f32)).collect();
    let matrix: &[usize] = &[SIDE, SIDE];
    let layers = [
        ("long", "InnerProduct", matrix, &*long),
        ("scale", "Scale", &[SIDE], &*short),
        ("last", "InnerProduct", matrix, &*long),
    ];
    let (model, out) = (files.net("weights", &layers), files.path("weights.onnx"));
    let prototxt = files.write("net.prototxt", NET.as_bytes());
    let (status, _, err) = run(command("convert", &[], &[&prototxt, &model, &out]));
    assert_eq!((status, &*err), (0, ""));

    // The weights must occur as often as in a file that the program wrote without system copies.
    let net = Net::from_prototxt(NET.as_bytes(), &NetOptions::default()).unwrap();
    let net = net.with_weights(Arc::new(Model::open(&model).unwrap())).unwrap();
    let wanted = net.to_onnx(&OnnxOptions::default()).unwrap().to_bytes().unwrap();
    let (found, bytes) = (fs::read(&out).unwrap(), |values: &[f32]| -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    });
    for (values, times) in [(&long, 2), (&short, 1)] {
        assert_eq!((count(&found, &bytes(values)), count(&wanted, &bytes(values))), (times, times));
    }
}

fn count(all: &[u8], bytes: &[u8]) -> usize {
    all.windows(bytes.len()).filter(|part| part[..64] == bytes[..64] && *part == bytes).count()
}
