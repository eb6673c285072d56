use super::upgrade;
use crate::testing::message;

fn upgraded(text: &str) -> (String, Vec<String>) {
    let upgraded = upgrade(message("NetParameter", text)).unwrap();
    (format!("{}", upgraded.net), upgraded.notes)
}

/// A net, and the net that Caffe's `upgrade_net_proto_text` makes from it.
const NETS: &[(&str, &str)] = &[
    (
        "layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'r' }
         input: 'd' input: 'e' input_dim: 1 input_dim: 3 input_dim: 5 input_dim: 7
         input_dim: 2 input_dim: 1 input_dim: 1 input_dim: 1",
        "layer { name: 'input' type: 'Input' top: 'd' top: 'e' input_param {
           shape { dim: 1 dim: 3 dim: 5 dim: 7 } shape { dim: 2 dim: 1 dim: 1 dim: 1 } } }
         layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'r' }",
    ),
    (
        "name: 'n' input: 'd' input_shape { dim: 1 dim: 2 } force_backward: true",
        "name: 'n' force_backward: true layer { name: 'input' type: 'Input' top: 'd'
           input_param { shape { dim: 1 dim: 2 } } }",
    ),
    ("input: 'd' layer { name: 'a' }", "layer { name: 'a' }"),
    // The three old `param` of a BatchNorm are removed; a single `param` is kept.
    (
        "layer { name: 'b' type: 'BatchNorm' param { lr_mult: 0 } param { lr_mult: 0 }
           param { lr_mult: 0 } }
         layer { name: 'c' type: 'BatchNorm' param { lr_mult: 0 } }",
        "layer { name: 'b' type: 'BatchNorm' }
         layer { name: 'c' type: 'BatchNorm' param { lr_mult: 0 } }",
    ),
    (
        "layers { bottom: 'd' top: 'c' name: 'c' type: CONVOLUTION blobs_lr: 1 blobs_lr: 2
           weight_decay: 1 weight_decay: 0 param: 'w' blob_share_mode: PERMISSIVE
           convolution_param { num_output: 4 kernel_size: 3 } include { phase: TEST } }",
        "layer { name: 'c' type: 'Convolution' bottom: 'd' top: 'c'
           param { name: 'w' share_mode: PERMISSIVE lr_mult: 1 decay_mult: 1 }
           param { lr_mult: 2 decay_mult: 0 } include { phase: TEST }
           convolution_param { num_output: 4 kernel_size: 3 } }",
    ),
    ("layers { type: SOFTMAX_LOSS }", "layer { type: 'SoftmaxWithLoss' }"),
    ("layers { type: NONE }", "layer { type: '' }"),
    ("layers { name: 'a' }", "layer { name: 'a' }"),
    // Some forks use Caffe's type numbers for other layer types.
    (
        "layers { type: ARGMAX } layers { type: CONVOLUTION3D convolution_param { num_output: 3 } }
         layers { type: UPSAMPLE upsample_param { scale: 2 } } layers { type: CROP }
         layers { type: UNPOOLING unpooling_param { unpool_size: 9 } } layers { type: BN bn_param {} }",
        "layer { type: 'ArgMax' } layer { type: 'Convolution3D' convolution_param { num_output: 3 } }
         layer { type: 'Upsample' upsample_param { scale: 2 } } layer { type: 'Crop' }
         layer { unpooling_param { unpool_size: 9 } type: 'Unpooling' } layer { type: 'BN' bn_param {} }",
    ),
    // V1: if any data layer has transformation fields in `data_param`, every data layer gets
    // `transform_param` and the message of its type, even if these messages are empty.
    (
        "layers { type: DATA data_param { source: 's' scale: 0.5 mirror: true }
                  transform_param { mirror: false crop_size: 7 } }
         layers { type: IMAGE_DATA }
         layers { type: RELU }",
        "layer { type: 'Data' transform_param { scale: 0.5 mirror: true crop_size: 7 }
                 data_param { source: 's' } }
         layer { type: 'ImageData' transform_param { } image_data_param { } }
         layer { type: 'ReLU' }",
    ),
    ("layers { type: WINDOW_DATA }", "layer { type: 'WindowData' }"),
    // V0: the layer contains the parameters. The layer's type determines the parameters' new
    // message.
    (
        "name: 'n' input: 'd' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4
         layers { layer { name: 'c' type: 'conv' num_output: 4 kernelsize: 3 pad: 1 stride: 2
                          group: 2 biasterm: false blobs_lr: 1 weight_decay: 1
                          weight_filler { type: 'xavier' } }
                  bottom: 'd' top: 'c' }
         layers { layer { name: 'p' type: 'pool' pool: AVE kernelsize: 2 } bottom: 'c' top: 'p' }
         layers { layer { name: 'l' type: 'lrn' local_size: 3 alpha: 2 beta: 1 k: 4 }
                  bottom: 'p' top: 'l' }",
        "name: 'n' layer { name: 'input' type: 'Input' top: 'd' input_param {
             shape { dim: 1 dim: 2 dim: 3 dim: 4 } } }
         layer { name: 'c' type: 'Convolution' bottom: 'd' top: 'c'
           param { lr_mult: 1 decay_mult: 1 }
           convolution_param { num_output: 4 bias_term: false pad: 1 kernel_size: 3 group: 2
                               stride: 2 weight_filler { type: 'xavier' } } }
         layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p'
           pooling_param { pool: AVE kernel_size: 2 } }
         layer { name: 'l' type: 'LRN' bottom: 'p' top: 'l'
           lrn_param { local_size: 3 alpha: 2 beta: 1 k: 4 } }",
    ),
    (
        "input: 'd'
         layers { layer { name: 'pad' type: 'padding' pad: 2 } bottom: 'd' top: 'e' }
         layers { layer { name: 'c' type: 'conv' pad: 1 } bottom: 'e' top: 'c' }
         layers { layer { name: 'q' type: 'pool' } bottom: 'e' top: 'q' }",
        "layer { name: 'c' type: 'Convolution' bottom: 'd' top: 'c' convolution_param { pad: 2 } }
         layer { name: 'q' type: 'Pooling' bottom: 'd' top: 'q' pooling_param { pad: 2 } }",
    ),
    (
        "layers { layer { name: 'd' type: 'data' source: 's' batchsize: 3 cropsize: 5 mirror: true
                          meanfile: 'm' scale: 2 rand_skip: 4 } top: 'd' }
         layers { layer { name: 'w' type: 'window_data' det_fg_threshold: 0.25 det_crop_mode: 'x' }
                  top: 'w' }
         layers { layer { name: 'o' type: 'hdf5_output' hdf5_output_param { file_name: 'f' } } }",
        "layer { name: 'd' type: 'Data' top: 'd'
           transform_param { scale: 2 mirror: true crop_size: 5 mean_file: 'm' }
           data_param { source: 's' batch_size: 3 rand_skip: 4 } }
         layer { name: 'w' type: 'WindowData' top: 'w'
           window_data_param { fg_threshold: 0.25 crop_mode: 'x' } }
         layer { name: 'o' type: 'HDF5Output' hdf5_output_param { file_name: 'f' } }",
    ),
];

#[test]
fn nets_are_upgraded_as_caffe_does() {
    for (old, new) in NETS {
        let expected = format!("{}", message("NetParameter", new));
        assert_eq!(upgraded(old), (expected, Vec::new()), "{old}");
        assert_eq!(upgraded(old).0, upgraded(&upgraded(old).0).0, "twice: {old}");
    }
}

#[test]
fn omitted_fields_are_noted() {
    let (net, notes) = upgraded("layers { layer { name: 'r' type: 'relu' pad: 1 } }");
    assert_eq!(net, format!("{}", message("NetParameter", "layer { name: 'r' type: 'ReLU' }")));
    assert_eq!(notes, ["line 1, column 46: omitted 'pad', which type 'relu' does not have"]);
    let (net, notes) = upgraded("debug_info: true layers { layer { name: 'r' } }");
    assert_eq!(net, format!("{}", message("NetParameter", "layer { name: 'r' }")));
    assert_eq!(notes, ["line 1, column 13: omitted 'debug_info', which V0 does not have"]);
    let three = "param { name: 'm' } param { name: 'v' } param { name: 'f' }";
    let (net, notes) = upgraded(&format!("layer {{ name: 'b' type: 'BatchNorm' {three} }}"));
    let plain = "layer { name: 'b' type: 'BatchNorm' }";
    assert_eq!(net, format!("{}", message("NetParameter", plain)));
    assert_eq!(notes, ["layer 'b' (BatchNorm): Caffe ignores its 'param', so it shares no blobs"]);
}

#[test]
fn nets_that_caffe_refuses_are_refused() {
    let refused = [
        ("layer { } layers { }", "line 1, column 7: both 'layer' and 'layers'"),
        ("layers { layer { } } layers { }", "layers of Caffe's generations V0 and V1"),
        ("layers { layer { name: 'a' type: 'odd' } }", "layer 'a' (odd) of Caffe's generation V0"),
        ("layers { layer { mvn_param { } } }", "line 1, column 18: the field 'mvn_param' is newer"),
        ("layers { scale_param { } }", "line 1, column 10: the field 'scale_param' is newer"),
        ("input: 'a' input: 'b' input_shape { dim: 1 }", "2 inputs, but shapes for only 1"),
        ("input: 'a' input_dim: 1", "1 inputs, but shapes for only 0"),
        (
            "layers { layer { name: 'p' type: 'padding' } bottom: 'd' top: 'p' }
             layers { layer { name: 'r' type: 'relu' } bottom: 'p' top: 'r' }",
            "layer 'r' (relu) of Caffe's generation V0: only a convolution or",
        ),
        (
            "layers { layer { name: 'p' type: 'padding' } top: 'p' }",
            "layer 'p' (padding) of Caffe's generation V0: a padding layer has one bottom",
        ),
    ];
    for (net, text) in refused {
        let error = upgrade(message("NetParameter", net)).unwrap_err().to_string();
        assert!(error.starts_with(text), "{net}: {error}");
    }
}
