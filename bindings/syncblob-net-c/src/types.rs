//! The structs of the header, in its order.

use std::ffi::c_void;
use std::ptr;

use syncblob_sys::sb_text;

/// A blob of a net, and the shape that it shall have.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_blob {
    /// [borrowed] the blob's name
    pub name: sb_text,
    /// [borrowed, nullable when num_axes is 0] `num_axes` dimensions
    pub shape: *const i64,
    /// 0 to SB_MAX_AXES
    pub num_axes: i32,
    /// 0
    pub reserved: i32,
}

/// How a net is read. Limits of 0 are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_options {
    /// sizeof(sb_net_options) of the caller
    pub struct_size: usize,
    /// [borrowed, nullable when num_inputs is 0] shapes that replace those of the net, and are
    ///  needed where only the data would give the shape
    pub inputs: *const sb_net_blob,
    /// inputs with a shape here
    pub num_inputs: i64,
    /// [borrowed, nullable when num_stages is 0] stages that layers' rules are compared with,
    ///  beside those that the net lists
    pub stages: *const sb_text,
    /// stages here
    pub num_stages: i64,
    /// the size of the batch, which is the first axis of the first input and of each input whose
    ///  first axis is as long; 0: as the net has it
    pub batch: i64,
    /// the level that layers' rules are compared with
    pub level: i32,
    /// messages inside each other; 0: 32
    pub max_depth: i32,
    /// bytes of a prototxt, and of a model's messages without their blobs; 0: 16 MiB
    pub max_bytes: usize,
    /// layers; 0: 100,000
    pub max_layers: i64,
    /// values of all fields, each of which takes some hundred bytes; 0: 2,000,000
    pub max_fields: i64,
}

/// A net. Its texts and lists live as long as the net.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_summary {
    /// sizeof(sb_net_summary) of the caller
    pub struct_size: usize,
    /// [borrowed] empty when there is none
    pub name: sb_text,
    /// [borrowed] names of the blobs that the caller gives
    pub inputs: *const sb_text,
    /// how many
    pub num_inputs: i64,
    /// [borrowed] names of the blobs that no layer reads, in the order of their bytes
    pub outputs: *const sb_text,
    /// how many
    pub num_outputs: i64,
    /// [borrowed] sentences about omitted or changed parts
    pub warnings: *const sb_text,
    /// how many
    pub num_warnings: i64,
    /// layers, without those that only training and data need
    pub num_layers: i64,
}

/// A layer of a net. Its texts and lists live as long as the net.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_layer {
    /// sizeof(sb_net_layer) of the caller
    pub struct_size: usize,
    /// [borrowed] may be empty
    pub name: sb_text,
    /// [borrowed] such as "Convolution"
    pub r#type: sb_text,
    /// [borrowed] names of the blobs that it reads
    pub bottoms: *const sb_text,
    /// how many
    pub num_bottoms: i64,
    /// [borrowed] names of the blobs that it writes; one of its bottoms, if it works in place
    pub tops: *const sb_text,
    /// how many
    pub num_tops: i64,
}

/// A layer that cannot be converted, as a reporter is passed it. All is borrowed for the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_problem {
    /// sizeof(sb_net_problem) of the library
    pub struct_size: usize,
    /// [borrowed] the layer's name
    pub layer: sb_text,
    /// [borrowed] its type
    pub r#type: sb_text,
    /// [borrowed] the error, in UTF-8
    pub reason: sb_text,
}

/// Is passed each layer that cannot be converted, on the thread of the call. It must not throw or
///  longjmp.
pub type sb_net_reporter =
    Option<unsafe extern "C" fn(user: *mut c_void, problem: *const sb_net_problem)>;

/// Is passed a sentence, on the thread of the call, [borrowed] for its time. It must not throw or
///  longjmp.
pub type sb_net_warner = Option<unsafe extern "C" fn(user: *mut c_void, text: sb_text)>;

/// An entry of a file's metadata.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_onnx_entry {
    /// [borrowed] UTF-8
    pub key: sb_text,
    /// [borrowed] UTF-8
    pub value: sb_text,
}

/// How a net is converted into ONNX. A mean, a scale and swap_rb are Caffe's preprocessing of
///  pixels; they become the first nodes after every input of four axes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_onnx_options {
    /// sizeof(sb_onnx_options) of the caller
    pub struct_size: usize,
    /// [borrowed, nullable when num_outputs is 0] names of the blobs to compute; layers that they
    ///  do not need are left out
    pub outputs: *const sb_text,
    /// names there; 0: the outputs of the net
    pub num_outputs: i64,
    /// [borrowed] the name of the batch's axis, which then has no fixed size; empty: it has
    pub batch: sb_text,
    /// [borrowed, nullable when num_mean is 0] the mean, in the net's order of channels: a number
    ///  for each channel or, with mean_height and mean_width, for each pixel
    pub mean: *const f32,
    /// numbers there: channels * mean_height * mean_width; 0: no mean
    pub num_mean: i64,
    /// rows of a mean image; 0: one number a channel
    pub mean_height: i64,
    /// columns of a mean image; 0 with mean_height
    pub mean_width: i64,
    /// the factor of the difference; 0: none
    pub scale: f32,
    /// 1: images have the channel order RGB, and the net needs BGR
    pub swap_rb: i32,
    /// 1: weights are halves, and the net computes with them; inputs and outputs stay floats
    pub half: i32,
    /// 1: a layer that cannot be converted becomes a node of its type and of the domain "caffe",
    ///  with its bottoms, then its weights as inputs and its parameters as attributes
    pub custom: i32,
    /// [borrowed, nullable when num_shapes is 0] shapes of blobs that such layers make; without one
    ///  a blob's shape stays open: then it is not an output, and no layer that must know it may
    ///  read it
    pub shapes: *const sb_net_blob,
    /// shapes there
    pub num_shapes: i64,
    /// [borrowed, nullable when num_metadata is 0] entries for the file's metadata
    pub metadata: *const sb_onnx_entry,
    /// entries there
    pub num_metadata: i64,
    /// [nullable] is passed all layers that cannot be converted, before the call returns
    ///  UNSUPPORTED; the error's message has only the first
    pub report: sb_net_reporter,
    /// passed to `report` and to `warn`
    pub user: *mut c_void,
    /// [nullable] is passed what differs in a file that was written from the net, before the call
    ///  returns OK: outputs with other names, weights that became infinite as halves
    pub warn: sb_net_warner,
}

/// The values of SB_NET_OPTIONS_INIT.
impl Default for sb_net_options {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            inputs: ptr::null(),
            num_inputs: 0,
            stages: ptr::null(),
            num_stages: 0,
            batch: 0,
            level: 0,
            max_depth: 0,
            max_bytes: 0,
            max_layers: 0,
            max_fields: 0,
        }
    }
}

/// The values of SB_ONNX_OPTIONS_INIT.
impl Default for sb_onnx_options {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            outputs: ptr::null(),
            num_outputs: 0,
            batch: sb_text { bytes: ptr::null(), size: 0 },
            mean: ptr::null(),
            num_mean: 0,
            mean_height: 0,
            mean_width: 0,
            scale: 0.0,
            swap_rb: 0,
            half: 0,
            custom: 0,
            shapes: ptr::null(),
            num_shapes: 0,
            metadata: ptr::null(),
            num_metadata: 0,
            report: None,
            user: ptr::null_mut(),
            warn: None,
        }
    }
}
