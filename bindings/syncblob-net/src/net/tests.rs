use super::{Net, NetOptions};
use crate::{ErrorKind, OnnxOptions};

fn read(text: &str) -> crate::Result<Net> {
    Net::from_prototxt(text.as_bytes(), &NetOptions::default())
}

fn with_inputs(text: &str, inputs: &[(&str, &[i64])]) -> crate::Result<Net> {
    let inputs = inputs.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec()));
    let options = NetOptions { inputs: inputs.collect(), ..NetOptions::default() };
    Net::from_prototxt(text.as_bytes(), &options)
}

fn layers(net: &Net) -> String {
    let names = net.layers().iter().map(|layer| format!("{}:{}", layer.name(), layer.layer_type()));
    names.collect::<Vec<_>>().join(" ")
}

const IN: &str =
    "layer { name: 'in' type: 'Input' top: 'd' input_param { shape { dim: 1 dim: 4 } } }
";

#[test]
fn outputs_are_the_unread_blobs_sorted_by_name() {
    let net = read(&format!(
        "{IN} layer {{ name: 'z' type: 'ReLU' bottom: 'd' top: 'z' }}
         layer {{ name: 'b' type: 'ReLU' bottom: 'd' top: 'b' }}
         layer {{ name: 'i' type: 'ReLU' bottom: 'b' top: 'b' }}
         layer {{ name: 'm' type: 'ReLU' bottom: 'd' top: 'm' }}
         layer {{ name: 's' type: 'Silence' bottom: 'm' }}"
    ));
    let net = net.unwrap();
    assert_eq!(net.outputs(), ["b", "z"]);
    assert_eq!(net.inputs(), [("d".to_owned(), vec![1, 4])]);
    assert_eq!(layers(&net), "z:ReLU b:ReLU i:ReLU m:ReLU s:Silence");
    let part = net.up_to(&["b".into()]).unwrap();
    assert_eq!((layers(&part).as_str(), part.outputs()), ("b:ReLU i:ReLU", &["b".to_owned()][..]));
    for (name, text) in [
        ("x", "the net has no blob 'x'"),
        ("d", "'d' is an input of the net: no layer computes it"),
    ] {
        assert_eq!(net.up_to(&[name.into()]).unwrap_err().to_string(), text);
    }
}

/// A prototxt, the inputs in the options, and the expected inputs of the net or the error.
type Row<'a> = (&'a str, &'a [(&'a str, &'a [i64])], &'a str);

const INPUTS: &[Row] = &[
    ("input: 'd' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4", &[], "d [1, 2, 3, 4]"),
    ("input: 'd' input_shape { dim: 1 dim: 2 }", &[], "d [1, 2]"),
    ("input: 'd' input_shape { dim: 1 dim: 2 }", &[("d", &[5, 6])], "d [5, 6]"),
    ("input: 'd'", &[("d", &[5, 6])], "d [5, 6]"),
    (
        "layer { name: 'x' type: 'Input' top: 'd' top: 'e' input_param { shape { dim: 3 } } }",
        &[],
        "d [3] e [3]",
    ),
    (
        "layer { name: 'x' type: 'Input' top: 'd' input_param { shape { dim: -1 dim: 3 } } }",
        &[],
        "layer 'x' (Input): no blob can have the shape [-1, 3]",
    ),
    (
        "layer { name: 'x' type: 'DummyData' top: 'd' top: 'e' dummy_data_param { num: 1 num: 2
           channels: 3 height: 4 width: 5 } }",
        &[],
        "d [1, 3, 4, 5]",
    ),
    (
        "layer { name: 'x' type: 'DummyData' top: 'd' dummy_data_param { shape { dim: 7 } } }",
        &[],
        "d [7]",
    ),
    (
        "layer { name: 'x' type: 'MemoryData' top: 'd' top: 'e'
           memory_data_param { batch_size: 2 channels: 3 height: 4 width: 5 } }",
        &[],
        "d [2, 3, 4, 5]",
    ),
    ("layer { name: 'x' type: 'Data' top: 'd' top: 'l' }", &[("d", &[1, 2])], "d [1, 2]"),
    (
        "layer { name: 'x' type: 'Data' top: 'd' }",
        &[],
        "layer 'r' (ReLU): its bottom 'd' comes from layer 'x' (Data), whose shape is not known: \
         give it by --input d=SHAPE",
    ),
    (
        "",
        &[],
        "layer 'r' (ReLU): no layer makes its bottom 'd': if it is an input, give its shape by \
         --input d=SHAPE",
    ),
    ("", &[("d", &[1]), ("f", &[2])], "the net has no input 'f'; it has 'd'"),
    ("", &[("d", &[1]), ("r", &[2])], "'r' is not an input: a layer makes it"),
    (
        "layer { name: 'x' type: 'Input' top: 'd' top: 'e' top: 'f' input_param {
           shape { dim: 3 } shape { dim: 3 } } }",
        &[],
        "layer 'x' (Input): 2 shapes for 3 tops",
    ),
];

#[test]
fn inputs_come_from_layers_and_options() {
    for (text, given, expected) in INPUTS {
        let text = format!("{text} layer {{ name: 'r' type: 'ReLU' bottom: 'd' top: 'r' }}");
        let found = match with_inputs(&text, given) {
            Ok(net) => {
                let inputs = net.inputs().iter().map(|(name, shape)| format!("{name} {shape:?}"));
                inputs.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn impossible_dimensions_are_errors_of_the_argument() {
    let text = b"input: 'd' input_shape { dim: 1 dim: 3 }
        layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'r' }";
    for dim in [-1, 0, 1 << 31] {
        let batch = NetOptions { batch: Some(dim), ..NetOptions::default() };
        let inputs = vec![("d".into(), vec![1, dim])];
        for options in [batch, NetOptions { inputs, ..NetOptions::default() }] {
            let error = Net::from_prototxt(text, &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument, "{options:?}: {error}");
        }
    }
}

#[test]
fn a_batch_is_the_first_axis_of_inputs_of_the_same_size() {
    let options = NetOptions { batch: Some(7), ..NetOptions::default() };
    for (dims, wanted) in [
        (&["1, 4"][..], "d0 [7, 4]"),
        (&["1, 4", "300, 5", "1, 3"], "d0 [7, 4] d1 [300, 5] d2 [7, 3]"),
        (&["2", "1"], "d0 [7] d1 [1]"),
        (&["", "1"], "d0 [] d1 [1]"),
    ] {
        let input = |(at, dims): (usize, &&str)| {
            format!(
                "layer {{ name: 'i{at}' type: 'Input' top: 'd{at}'
                 input_param {{ shape {{ dim: [{dims}] }} }} }}"
            )
        };
        let text: String = dims.iter().enumerate().map(input).collect();
        let net = Net::from_prototxt(text.as_bytes(), &options).unwrap();
        let found = net.inputs().iter().map(|(name, shape)| format!("{name} {shape:?}"));
        assert_eq!(found.collect::<Vec<_>>().join(" "), wanted);
    }
}

/// Each row contains layers that read the input `d` and the labels `l`, then the layers after the
/// conversion, then the outputs.
const TRAINING: &[(&str, &str, &str)] = &[
    (
        "layer { name: 's' type: 'SoftmaxWithLoss' bottom: 'd' bottom: 'l' top: 'loss' }
         layer { name: 'a' type: 'Accuracy' bottom: 'd' bottom: 'l' top: 'a' }",
        "s:Softmax",
        "loss",
    ),
    (
        "layer { name: 's' type: 'SoftmaxWithLoss' bottom: 'd' bottom: 'l' top: 'loss' top: 'p' }",
        "s:Softmax",
        "p",
    ),
    (
        "layer { name: 's' type: 'SoftmaxWithLoss' bottom: 'd' bottom: 'l' top: 'loss' }
         layer { name: 'p' type: 'Softmax' bottom: 'd' top: 'p' }",
        "p:Softmax",
        "p",
    ),
    (
        "layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'r' }
         layer { name: 'e' type: 'EuclideanLoss' bottom: 'r' bottom: 'l' top: 'e' }",
        "r:ReLU",
        "r",
    ),
    (
        "layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'r' }
         layer { name: 'q' type: 'Slice' bottom: 'l' top: 'm' top: 'n' }
         layer { name: 't' type: 'Silence' bottom: 'n' }
         layer { name: 'e' type: 'EuclideanLoss' bottom: 'r' bottom: 'm' top: 'e' }",
        "r:ReLU",
        "r",
    ),
    (
        "layer { name: 'c' type: 'SigmoidCrossEntropyLoss' bottom: 'd' bottom: 'l' top: 'c' }",
        "c:Sigmoid",
        "c",
    ),
];

#[test]
fn statistics_of_the_batch_are_reported() {
    let norm = |name: &str, more: &str| {
        format!("layer {{ name: '{name}' type: 'BatchNorm' bottom: 'd' top: '{name}' {more} }} ")
    };
    let of = |given: &str| format!("batch_norm_param {{ use_global_stats: {given} }}");
    let quiet = [norm("a", ""), norm("b", &of("true"))].concat();
    assert!(read(&format!("{IN} {quiet}")).unwrap().warnings().is_empty());
    let loud = [quiet, norm("c", &of("false")), norm("e", &of("false"))].concat();
    let net = read(&format!("{IN} {loud}")).unwrap();
    let [warning] = net.warnings() else { panic!("{:?}", net.warnings()) };
    assert!(warning.starts_with("layer 'c' (BatchNorm): use_global_stats is false"), "{warning}");
    assert!(warning.ends_with("layers of this kind: 2"), "{warning}");
}

#[test]
fn layers_of_training_are_omitted() {
    for (text, stays, outputs) in TRAINING {
        let text = format!("{IN} layer {{ name: 'y' type: 'HDF5Data' top: 'l' }} {text}");
        let net = read(&text).unwrap();
        assert_eq!((layers(&net).as_str(), net.outputs().join(" ").as_str()), (*stays, *outputs));
        assert!(!net.warnings().is_empty());
        assert_eq!(net.inputs().len(), 1);
    }
}

#[test]
fn nets_that_caffe_refuses_are_refused() {
    let refused = [
        (
            "layer { name: 'a' type: 'ReLU' bottom: 'd' top: 'a' }
             layer { name: 'b' type: 'ReLU' bottom: 'd' top: 'a' }",
            "layer 'b' (ReLU): another layer also writes its top 'a'",
        ),
        (
            "layer { name: 'a' type: 'ReLU' bottom: 'd' top: 'a' }
             layer { name: 'b' type: 'Power' bottom: 'a' top: 'b' }
             layer { name: 'c' type: 'ReLU' bottom: 'a' top: 'a' }",
            "layer 'c' (ReLU): it works in place on 'a', which other layers read",
        ),
        (
            "layer { name: 'a' type: 'ReLU' bottom: 'd' top: 'a' }
             layer { name: 'b' type: 'Eltwise' bottom: 'd' bottom: 'a' top: 'a' }",
            "layer 'b' (Eltwise): another layer also writes its top 'a'",
        ),
        (
            "layer { name: 'i' type: 'Input' top: 'd' }",
            "layer 'i' (Input): another layer also writes its top 'd'",
        ),
        (
            "layer { name: 'a' type: 'ReLU' bottom: 'b' top: 'a' }
             layer { name: 'b' type: 'ReLU' bottom: 'd' top: 'b' }",
            "layer 'a' (ReLU): no layer makes its bottom 'b'",
        ),
    ];
    for (text, expected) in refused {
        let error = read(&format!("{IN}{text}")).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

/// Caffe's dimensions have the type `int`.
#[test]
fn dimensions_are_below_2_to_the_31() {
    let net = read(
        "input: 'd' input_shape { dim: 0 dim: 1 dim: 1 dim: 9223372036854775807 dim: 1 }
         layer { name: 'p' type: 'Pooling3D' bottom: 'd' top: 'p' pooling_param { pool: AVE
         kernel_depth: 1 kernel_size: 2 pad: 1 stride: 1 } }",
    );
    let problem = match net {
        Ok(net) => net.shapes().problems.remove(0).reason,
        Err(error) => error.to_string(),
    };
    assert!(problem.contains("9223372036854775807"), "{problem}");
}

/// Each row contains layers, the inputs without shapes, the number of known shapes and the outputs.
#[test]
fn inputs_without_shapes_are_open_if_allowed() {
    const RELU: &str = "layer { name: 'a' type: 'ReLU' bottom: 'd' top: 'a' }";
    let loss = "layer { name: 'l' type: 'EuclideanLoss' bottom: 'a' bottom: 'label' top: 'l' }";
    type Row<'a> = (&'a [&'a str], &'a [&'a str], usize, &'a [&'a str]);
    let rows: &[Row] = &[
        (&[IN, RELU], &[], 2, &["a"]),
        (&[RELU], &["d"], 0, &["a"]),
        (&["input: 'd'", RELU], &["d"], 0, &["a"]),
        (
            &["layer { name: 'x' type: 'Data' top: 'd' top: 'label' }", RELU, loss],
            &["d"],
            0,
            &["a"],
        ),
        (
            &[IN, RELU, "layer { name: 'c' type: 'Concat' bottom: 'e' bottom: 'a' top: 'c' }"],
            &["e"],
            2,
            &["c"],
        ),
    ];
    for (layers, open, known, outputs) in rows {
        let options = NetOptions { open_inputs: true, ..NetOptions::default() };
        let text = layers.concat();
        let net = Net::from_prototxt(text.as_bytes(), &options).unwrap();
        assert_eq!(
            (net.open_inputs(), net.outputs()),
            (&owned(open)[..], &owned(outputs)[..]),
            "{text}"
        );
        assert_eq!((net.shapes().known.len(), net.shapes().problems.len()), (*known, 0), "{text}");
        assert_eq!(read(&text).is_ok(), open.is_empty(), "{text}");
        assert_eq!(net.to_onnx(&OnnxOptions::default()).is_ok(), open.is_empty(), "{text}");
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
