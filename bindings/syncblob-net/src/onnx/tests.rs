use std::sync::Arc;

use syncblob::{Blob, Format, Model, Payload};

use super::proto::{AttributeProto, AttributeType, NodeProto};
use super::{Dim, Mean, Onnx, OnnxOptions, Preprocessing};
use crate::{ErrorKind, Limits, Net, NetOptions, Result, Upgraded};

fn net(layers: &str) -> Net {
    let text = format!(
        "layer {{ name: 'data' type: 'Input' top: 'data'
         input_param {{ shape {{ dim: 2 dim: 3 }} }} }} {layers}"
    );
    Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap()
}

fn options(shapes: &[(&str, &[i64])]) -> OnnxOptions {
    let shapes = shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect();
    OnnxOptions { custom: true, shapes, ..OnnxOptions::default() }
}

fn custom_node(layers: &str) -> NodeProto {
    let onnx = net(layers).to_onnx(&options(&[("top", &[1])])).unwrap();
    let nodes = &onnx.parts.message.node;
    nodes.iter().find(|node| node.domain == "caffe").expect("a node of the domain").clone()
}

fn shown(attribute: &AttributeProto) -> String {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    let value = match attribute.r#type() {
        AttributeType::Int => format!("{}", attribute.i.unwrap()),
        AttributeType::Float => format!("{:?}", attribute.f.unwrap()),
        AttributeType::String => format!("'{}'", text(attribute.s.as_ref().unwrap())),
        AttributeType::Ints => format!("{:?}", attribute.ints),
        AttributeType::Floats => format!("{:?}", attribute.floats),
        AttributeType::Strings => {
            format!("{:?}", attribute.strings.iter().map(text).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    format!("{} = {value}", attribute.name)
}

#[test]
fn parameters_become_attributes() {
    let rows: &[(&str, &[&str])] = &[
        ("", &[]),
        ("include { phase: TEST } param { lr_mult: 1 }", &[]),
        (
            "roi_pooling_param { pooled_h: 7 pooled_w: 6 spatial_scale: 0.0625 }",
            &["pooled_h = 7", "pooled_w = 6", "spatial_scale = 0.0625"],
        ),
        (
            "python_param { module: 'rpn' layer: 'Proposal' share_in_parallel: true }",
            &["module = 'rpn'", "layer = 'Proposal'", "share_in_parallel = 1"],
        ),
        ("pooling_param { pool: AVE kernel_h: 3 }", &["pool = 'AVE'", "kernel_h = 3"]),
        ("convolution_param { pad: 1 }", &["pad = [1]"]),
        ("eltwise_param { coeff: 1 coeff: -0.5 }", &["coeff = [1.0, -0.5]"]),
        (
            "convolution_param { weight_filler { type: 'xavier' std: 0.5 } }",
            &["weight_filler.type = 'xavier'", "weight_filler.std = 0.5"],
        ),
        ("reshape_param { axis: 1 shape { dim: 2 dim: 3 } }", &["shape.dim = [2, 3]", "axis = 1"]),
        (
            "dummy_data_param { shape { dim: 2 } shape { dim: 3 } }",
            &["shape = [\"dim: 2\\n\", \"dim: 3\\n\"]"],
        ),
        ("concat_param { axis: 1 } slice_param { axis: 2 }", &["axis = 1", "slice_param.axis = 2"]),
        (
            "odd_param { a: 1 b { c: 'x' } } odd: 5 odd: 'y'",
            &["odd_param = '{ a: 1 b { c: 'x' } }'", "odd = [\"5\", \"'y'\"]"],
        ),
    ];
    for (parameters, wanted) in rows {
        let node = custom_node(&format!(
            "layer {{ name: 'a' type: 'Odd' bottom: 'data' top: 'top' {parameters} }}"
        ));
        assert_eq!(
            (&*node.op_type, &node.input, &node.output),
            ("Odd", &vec!["data".into()], &vec!["top".into()])
        );
        assert_eq!(node.attribute.iter().map(shown).collect::<Vec<_>>(), *wanted, "{parameters}");
    }
}

#[test]
fn weights_follow_the_bottoms() {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    let layer = model.add_layer("a", "Odd").unwrap();
    for shape in [&[2_usize, 3][..], &[4]] {
        model.add_blob(layer, &Blob::<f32>::full(shape, 0.5).unwrap(), Payload::Data).unwrap();
    }
    let net = net("layer { name: 'a' type: 'Odd' bottom: 'data' bottom: 'data' top: 'top' }");
    let net = net.with_weights(Arc::new(model)).unwrap();
    for half in [false, true] {
        let onnx = net.to_onnx(&OnnxOptions { half, ..options(&[("top", &[1])]) }).unwrap();
        let message = &onnx.parts.message;
        let node = message.node.iter().find(|node| node.op_type == "Odd").unwrap();
        assert_eq!((node.input.len(), &node.input[2..]), (4, &["a.0".into(), "a.1".into()][..]));
        // A custom node reads 32-bit floats, even if the file stores weights as 16-bit floats.
        assert_eq!(node.input[0] == "data", !half);
        let floats = onnx.size_of_values();
        assert_eq!(floats, 4 * (6 + 4), "{half}");
    }
}

const A: &str = "layer { name: 'a' type: 'Odd' bottom: 'data' top: 'a' }";
const RELU: &str = "layer { name: 'relu' type: 'ReLU' bottom: 'a' top: 'b' }";
const IN_PLACE: &str = "layer { name: 'in' type: 'Odd' bottom: 'data' top: 'data' }
    layer { name: 'relu' type: 'ReLU' bottom: 'data' top: 'b' }";
const CHAIN: &str = "layer { name: 'c' type: 'Python' bottom: 'a' top: 'c' }";
/// The parameter `odd` is unknown.
const POOL: &str = "layer { name: 'r' type: 'Reshape' bottom: 'data' top: 'i' reshape_param {
    shape { dim: 1 dim: 1 dim: 2 dim: 3 } } }
    layer { name: 'pool' type: 'Pooling' bottom: 'i' top: 'p' pooling_param { kernel_size: 1 odd: 1 } }";

type Row<'a> = (&'a str, &'a [(&'a str, &'a [i64])], Result<&'a [(&'a str, &'a [i64])], &'a str>);

/// Each row contains layers, the option `shapes`, and the expected outputs or a part of the error.
#[test]
fn custom_layers_need_shapes_for_readers_and_outputs() {
    let rows: &[Row] = &[
        (A, &[("a", &[5, 4])], Ok(&[("a", &[5, 4])])),
        (A, &[], Err("the shape of the output 'a' is not known")),
        (A, &[("a", &[-1])], Err("'a' (Odd): ")),
        (A, &[("b", &[1])], Err("no custom layer makes 'b'")),
        (RELU, &[("b", &[1])], Err("--input a=SHAPE")),
    ];
    for (layers, shapes, wanted) in rows {
        check(layers, shapes, wanted);
    }
    check(&[A, RELU].concat(), &[("a", &[5, 4])], &Ok(&[("b", &[5, 4])]));
    check(
        &[A, RELU].concat(),
        &[],
        &Err("'relu' (ReLU): the shape of its bottom 'a' is not known"),
    );
    check(&[A, RELU].concat(), &[("b", &[1])], &Err("--shape a=SHAPE"));
    check(&[A, CHAIN].concat(), &[("c", &[7])], &Ok(&[("c", &[7])]));
    check(IN_PLACE, &[], &Ok(&[("b", &[2, 3])]));
    check(POOL, &[], &Err("the shape of the output 'p'"));
    check(POOL, &[("p", &[1, 1, 1, 1])], &Ok(&[("p", &[1, 1, 1, 1])]));
}

fn check(layers: &str, shapes: &[(&str, &[i64])], wanted: &Result<&[(&str, &[i64])], &str>) {
    let text = format!(
        "layer {{ name: 'data' type: 'Input' top: 'data'
         input_param {{ shape {{ dim: 2 dim: 3 }} }} }} {layers}"
    );
    let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default());
    match (net.and_then(|net| net.to_onnx(&options(shapes))), wanted) {
        (Ok(onnx), Ok(wanted)) => {
            let dims = |shape: &[i64]| shape.iter().map(|&dim| Dim::Size(dim)).collect();
            let wanted: Vec<(&str, Vec<Dim>)> =
                wanted.iter().map(|(name, shape)| (*name, dims(shape))).collect();
            assert_eq!(onnx.outputs(), wanted, "{layers}");
            assert_eq!(domains(&onnx), ["", "caffe"], "{layers}");
        }
        (Err(error), Err(part)) => {
            assert!(error.to_string().contains(part), "{layers}: {error}");
        }
        (Ok(onnx), Err(part)) => panic!("{layers}: {:?}, not {part}", onnx.outputs()),
        (Err(error), Ok(_)) => panic!("{layers}: {error}"),
    }
}

fn domains(onnx: &Onnx) -> Vec<&str> {
    onnx.parts.model.opset_import.iter().map(|one| one.domain.as_str()).collect()
}

#[test]
fn a_net_without_custom_layers_has_no_custom_domain() {
    let relu = "layer { name: 'relu' type: 'ReLU' bottom: 'data' top: 'b' }";
    let onnx = net(relu).to_onnx(&options(&[])).unwrap();
    assert_eq!(domains(&onnx), [""]);
    let error = net(relu).to_onnx(&options(&[("b", &[1])])).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
}

#[test]
fn a_batch_that_is_not_fixed_needs_no_shapes() {
    let batch = Some("N".to_owned());
    let onnx =
        net(IN_PLACE).to_onnx(&OnnxOptions { batch: batch.clone(), ..options(&[]) }).unwrap();
    assert_eq!(onnx.outputs(), [("b", vec![Dim::Name("N".into()), Dim::Size(3)])]);
    let error = net(A).to_onnx(&OnnxOptions { batch, ..options(&[("a", &[2, 3])]) }).err().unwrap();
    assert!(error.to_string().contains("only if the batch has a fixed size"), "{error}");
}

/// Layers, and the expected shapes of the outputs `a` and `o`.
const BATCHES: &[(&str, &str)] = &[
    ("layer { type: 'ReLU' bottom: 'd' top: 'a' }", "a [N, 4] o [5, 4]"),
    (
        "layer { type: 'Concat' bottom: 'd' bottom: 'd' top: 'a' concat_param { axis: 0 } }",
        "a [a_N, 4] o [5, 4]",
    ),
    (
        "layer { type: 'Tile' bottom: 'd' top: 'a' tile_param { axis: 0 tiles: 2 } }",
        "a [a_N, 4] o [5, 4]",
    ),
    (
        "layer { type: 'Reshape' bottom: 'd' top: 'a' reshape_param { shape { dim: -1 dim: 2 } } }",
        "a [a_N, 2] o [5, 4]",
    ),
    (
        "layer { type: 'Concat' bottom: 'd' bottom: 'o' top: 'a' concat_param { axis: 0 } }",
        "a [a_N, 4]",
    ),
    (
        "layer { type: 'Reshape' bottom: 'd' top: 'a' reshape_param { shape { dim: 1 dim: -1 } } }",
        "a [1, a_N] o [5, 4]",
    ),
];

#[test]
fn only_axes_of_the_batch_size_have_the_batch_name() {
    let inputs = "layer { type: 'Input' top: 'd' top: 'i' input_param { shape { dim: 2 dim: 4 } shape { dim: 5 dim: 4 } } }
                  layer { type: 'ReLU' bottom: 'i' top: 'o' }";
    for (layer, wanted) in BATCHES {
        let net =
            Net::from_prototxt(format!("{inputs} {layer}").as_bytes(), &NetOptions::default());
        let onnx = net
            .unwrap()
            .to_onnx(&OnnxOptions { batch: Some("N".into()), ..OnnxOptions::default() });
        let onnx = onnx.unwrap();
        let mut outputs: Vec<String> = onnx
            .outputs()
            .iter()
            .map(|(name, dims)| {
                let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
                format!("{name} [{}]", dims.join(", "))
            })
            .collect();
        outputs.sort();
        assert_eq!(outputs.join(" "), *wanted, "{layer}");
    }
}

#[test]
fn preprocessing_that_fits_no_image_is_refused() {
    let scale = |scale| Preprocessing { scale: Some(scale), ..Preprocessing::default() };
    let mean = |mean: &[f32]| Preprocessing {
        mean: Some(Mean::Channels(mean.to_vec())),
        ..Preprocessing::default()
    };
    let swap = Preprocessing { swap_rb: true, ..Preprocessing::default() };
    let no_image = "need an input with 4 axes, but 'd' has [3, 2, 2]";
    let rows = [
        ("[1, 3, 2, 2]", scale(2.0), None),
        ("[1, 3, 2, 2]", scale(f32::INFINITY), Some("the scale is not finite")),
        ("[1, 3, 2, 2]", mean(&[1.0, f32::NAN, 3.0]), Some("not finite")),
        ("[1, 3, 2, 2]", mean(&[1.0, 2.0]), Some("[2, 1, 1]")),
        ("[1, 2, 2, 2]", swap.clone(), Some("2 channels")),
        ("[3, 2, 2]", scale(2.0), Some(no_image)),
        ("[3, 2, 2]", mean(&[1.0, 2.0, 3.0]), Some(no_image)),
        ("[3, 2, 2]", swap, Some(no_image)),
    ];
    for (shape, preprocessing, refusal) in rows {
        let text = format!(
            "layer {{ type: 'Input' top: 'd' input_param {{ shape {{ dim: {shape} }} }} }}
             layer {{ type: 'AbsVal' bottom: 'd' top: 'a' }}"
        );
        let options = OnnxOptions { preprocessing, ..OnnxOptions::default() };
        let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
        match (net.to_onnx(&options), refusal) {
            (Ok(onnx), None) => assert_eq!(onnx.nodes(), 2),
            (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{error}"),
            (result, _) => panic!("{shape}: {:?}", result.err()),
        }
    }
}

/// Layers that read an input `data`, the outputs' names in the file, and the number of warnings.
const NAMES: &[(&str, &[&str], usize)] = &[
    ("layer { type: 'ReLU' bottom: 'data' top: 'b' }", &["b"], 0),
    ("layer { type: 'ReLU' bottom: 'data' top: 'data' }", &["data.1"], 1),
    (
        "layer { type: 'Input' top: 'e' input_param { shape { dim: 1 } } }
         layer { type: 'AbsVal' bottom: 'e' top: 'data.1' }
         layer { type: 'ReLU' bottom: 'data' top: 'data' }",
        &["data.1", "data.2"],
        1,
    ),
    (
        "layer { name: 'a' type: 'Power' bottom: 'data' top: 'x' power_param { shift: 2 scale: 3 } }
         layer { type: 'AbsVal' bottom: 'data' top: 'a' } layer { type: 'AbsVal' bottom: 'x' top: 'a.1' }",
        &["a", "a.1"],
        0,
    ),
];

#[test]
fn blobs_keep_their_names() {
    for (layers, wanted, warnings) in NAMES {
        let onnx = net(layers).to_onnx(&OnnxOptions::default()).unwrap();
        let mut names: Vec<&str> = onnx.outputs().iter().map(|output| output.0).collect();
        names.sort_unstable();
        assert_eq!((names.as_slice(), onnx.warnings().len()), (*wanted, *warnings), "{layers}");
    }
}

/// Layers, and whether they may work in place. A layer may not work in place if Caffe refuses it or
/// reads values that the layer has overwritten.
const IN_PLACE_LAYERS: &[(&str, bool)] = &[
    ("ReLU", true),
    ("Dropout", true),
    ("Softmax", true),
    ("Threshold", true),
    ("MVN", true),
    ("Normalize", true),
    ("AbsVal", false),
    ("Flatten", false),
    ("Reshape' reshape_param { shape { dim: [0, 0, 0, 0] } }", false),
    ("Split", false),
    ("Concat", true),
    ("Concat' bottom: 'data", false),
    ("Tile' tile_param { tiles: 1 }", true),
    ("Tile' tile_param { tiles: 2 }", false),
    ("Reduction", false),
    ("Permute' permute_param { order: 0 order: 1 order: 3 order: 2 }", false),
    ("Pooling' pooling_param { kernel_size: 3 pad: 1 }", false),
    ("LRN' lrn_param { norm_region: WITHIN_CHANNEL }", true),
    ("LRN", false),
    ("Eltwise' bottom: 'data' eltwise_param { operation: PROD }", true),
    ("Eltwise' bottom: 'data", false),
    ("InnerProduct' inner_product_param { num_output: 36 axis: 3 }", false),
    ("Convolution' convolution_param { num_output: 4 kernel_size: 3 pad: 1 }", true),
    ("Convolution' convolution_param { num_output: 4 kernel_size: 3 }", false),
    ("Convolution' convolution_param { num_output: 4 kernel_size: 1 }", false),
    ("Deconvolution' convolution_param { num_output: 4 kernel_size: 3 pad: 1 }", true),
    ("Deconvolution' convolution_param { num_output: 4 kernel_size: 1 }", false),
];

#[test]
fn only_layers_that_may_work_in_place_are_accepted() {
    for (layer, works) in IN_PLACE_LAYERS {
        let end = if layer.contains('}') { "" } else { "'" };
        let text = format!(
            "input: 'data' input_shape {{ dim: 2 dim: 4 dim: 6 dim: 6 }}
             layer {{ name: 'x' type: 'Power' bottom: 'data' top: 'x' }}
             layer {{ name: 'in' bottom: 'x' top: 'x' type: '{layer}{end} }}"
        );
        let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
        let refused = net.to_onnx(&OnnxOptions::default()).err();
        let refused = refused.is_some_and(|error| error.to_string().contains("works in place"));
        assert_ne!(refused, *works, "{text}");
    }
}

/// For some ONNX operators a size of 0 does not mean an empty axis.
#[test]
fn blobs_without_elements_are_refused() {
    for layer_type in ["Flatten", "Reduction"] {
        let text = format!(
            "input: 'd' input_shape {{ dim: 1 dim: 0 dim: 4 }}
             layer {{ name: 'f' type: '{layer_type}' bottom: 'd' top: 'f' }}"
        );
        let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
        let error = net.to_onnx(&OnnxOptions::default()).err().unwrap();
        let wanted = format!("layer 'f' ({layer_type}): a blob without elements, [1, 0, 4]");
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn a_repeated_output_is_written_once() {
    let outputs = vec!["b".to_owned(), "b".to_owned()];
    let onnx = net("layer { type: 'ReLU' bottom: 'data' top: 'b' }")
        .to_onnx(&OnnxOptions { outputs, ..OnnxOptions::default() });
    assert_eq!(onnx.unwrap().outputs().len(), 1);
}

#[test]
fn numbers_that_become_infinite_as_halves_are_counted() {
    let layers = "layer { name: 'p' type: 'Power' bottom: 'data' top: 'b'
        power_param { scale: 2 shift: 1e6 } }";
    for (half, wanted) in [(false, None), (true, Some(1))] {
        let onnx = net(layers).to_onnx(&OnnxOptions { half, ..OnnxOptions::default() }).unwrap();
        onnx.to_bytes().unwrap();
        let found = onnx.overflow().map(|overflow| (overflow.values, overflow.tensor));
        assert_eq!(found, wanted.map(|values| (values, "p/constant.1".to_owned())));
    }
}

/// The test would take minutes if the conversion passed over the net once for each layer.
#[test]
fn many_custom_layers_follow_each_other() {
    let layer = "layer { name: 'u' type: 'Unpooling' bottom: 'data' top: 'data' } ";
    let onnx = net(&layer.repeat(4000)).to_onnx(&options(&[])).unwrap();
    assert_eq!(onnx.nodes(), 4000);
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_layers() {
    let layers = [
        POOL,
        A,
        "layer { name: 'flat' type: 'Flatten' bottom: 'data' top: 'f'
        flatten_param { axis: 9 } }",
    ]
    .concat();
    let error = net(&layers).to_onnx(&OnnxOptions::default()).err().unwrap();
    let found: Vec<(&str, ErrorKind)> =
        error.problems().iter().map(|one| (one.layer.as_str(), one.kind)).collect();
    let wanted = [
        ("pool", ErrorKind::Unsupported),
        ("a", ErrorKind::Unsupported),
        ("flat", ErrorKind::Invalid),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_net_that_computes_nothing_is_refused() {
    let error = net("").to_onnx(&OnnxOptions::default()).err().unwrap();
    assert_eq!(error.to_string(), "the net has no layers: it computes nothing");
    assert!(Upgraded::from_prototxt(b"", &Limits::default()).is_ok());
}

fn data(phase: &str, transform: &str) -> String {
    format!(
        "layer {{ name: 'd' type: 'Data' top: 'data' top: 'label' include {{ phase: {phase} }}
         transform_param {{ {transform} }} }}"
    )
}

#[test]
fn transformations_of_images_are_in_the_metadata() {
    const TEXT: &str = "mirror: false\ncrop_size: 227\nmean_value: 104\nmean_value: 117\n";
    let rows: [(&[String], &[&str]); 4] = [
        (&[data("TEST", TEXT)], &[TEXT]),
        (&[data("TRAIN", TEXT)], &[TEXT]),
        (&[data("TRAIN", "scale: 2"), data("TEST", TEXT)], &[TEXT]),
        (&[data("TEST", "")], &[]),
    ];
    let relu = "layer { name: 'relu' type: 'ReLU' bottom: 'data' top: 'b' }";
    for (layers, wanted) in rows {
        let text = layers.concat() + relu;
        let inputs = vec![("data".into(), vec![1, 3])];
        let options = NetOptions { inputs, ..NetOptions::default() };
        let net = Net::from_prototxt(text.as_bytes(), &options).unwrap();
        let metadata = vec![("source".into(), "x".into())];
        let onnx = net.to_onnx(&OnnxOptions { metadata, ..OnnxOptions::default() }).unwrap();
        let found = onnx.parts.model.metadata_props.iter();
        let found: Vec<_> = found.map(|one| (one.key.as_str(), one.value.as_str())).collect();
        let transforms = wanted.iter().map(|text| ("caffe.transform_param.data", *text));
        assert_eq!(found, [("source", "x")].into_iter().chain(transforms).collect::<Vec<_>>());
    }
}

#[test]
fn large_weights_are_at_the_offsets_in_the_second_file() {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    for (name, width, inputs) in [("fc", 300_usize, 3_usize), ("small", 2, 300)] {
        let layer = model.add_layer(name, "InnerProduct").unwrap();
        for (shape, value) in [(&[width, inputs][..], 0.5_f32), (&[width], 2.0)] {
            let blob = Blob::<f32>::full(shape, value).unwrap();
            model.add_blob(layer, &blob, Payload::Data).unwrap();
        }
    }
    let layers = "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc'
        inner_product_param { num_output: 300 } }
        layer { name: 'small' type: 'InnerProduct' bottom: 'fc' top: 'small'
        inner_product_param { num_output: 2 } }";
    let onnx = net(layers).with_weights(Arc::new(model)).unwrap().to_onnx(&OnnxOptions::default());
    let onnx = onnx.unwrap();
    let (mut message, mut values) = (Vec::new(), Vec::new());
    onnx.write_external("x.data", &mut message, &mut values).unwrap();
    let bytes = |value: f32, count: usize| value.to_le_bytes().repeat(count);
    assert!(values[..3600] == bytes(0.5, 900));
    assert!(values[4096..5296] == bytes(2.0, 300));
    assert!(values[8192..] == bytes(0.5, 600));
    let inside = onnx.to_bytes().unwrap();
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    for part in ["location", "x.data", "4096", "8192"] {
        assert!(has(&message, part.as_bytes()) && !has(&inside, part.as_bytes()), "{part}");
    }
    assert!(has(&inside, &values[..3600]) && !has(&message, &bytes(0.5, 100)));
    assert!(has(&message, &bytes(2.0, 2)) && !has(&message, &bytes(2.0, 3)));
}
