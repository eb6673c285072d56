//! The structs of the header, in the header's order.

use std::ffi::c_void;
use std::ptr;

use syncblob_sys::sb_text;

/// The name and the shape of a blob.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_blob {
    /// [borrowed] the blob's name
    pub name: sb_text,
    /// [borrowed, nullable when num_axes is 0] `num_axes` dimensions
    pub shape: *const i64,
    /// number of dimensions, 0 to SB_MAX_AXES
    pub num_axes: i32,
    /// must be 0
    pub reserved: i32,
}

/// Options for reading a net. A limit of 0 means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_options {
    /// sizeof(sb_net_options) of the caller
    pub struct_size: usize,
    /// [borrowed, nullable when num_inputs is 0] shapes of inputs, which replace the shapes in the
    ///  net. A shape is required for each input whose shape the net lacks
    pub inputs: *const sb_net_blob,
    /// elements of `inputs`
    pub num_inputs: i64,
    /// [borrowed, nullable when num_stages is 0] stages for the layers' `include` and `exclude`
    ///  rules, in addition to the stages that the net lists
    pub stages: *const sb_text,
    /// elements of `stages`
    pub num_stages: i64,
    /// a new size for the first axis of the first input, and of each other input whose first axis
    ///  has the same size. 0 keeps the sizes in the net
    pub batch: i64,
    /// the level for the layers' `include` and `exclude` rules
    pub level: i32,
    /// the maximum depth of nested messages, by default 32
    pub max_depth: i32,
    /// the maximum size in bytes of a prototxt, and of a model's messages without blobs, by
    ///  default 16 MiB
    pub max_bytes: usize,
    /// the maximum number of layers, by default 100,000
    pub max_layers: i64,
    /// the maximum number of values in all fields, by default 2,000,000. A value needs some 100
    ///  bytes of memory
    pub max_fields: i64,
}

/// The description of a net. The texts and lists are valid until the net is destroyed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_summary {
    /// sizeof(sb_net_summary) of the caller
    pub struct_size: usize,
    /// [borrowed] the net's name; may be empty
    pub name: sb_text,
    /// [borrowed] names of the input blobs
    pub inputs: *const sb_text,
    /// elements of `inputs`
    pub num_inputs: i64,
    /// [borrowed] names of the blobs that no layer reads, sorted by their bytes
    pub outputs: *const sb_text,
    /// elements of `outputs`
    pub num_outputs: i64,
    /// [borrowed] sentences about the parts of the net that were omitted or changed
    pub warnings: *const sb_text,
    /// elements of `warnings`
    pub num_warnings: i64,
    /// number of layers, without layers for training, data and losses
    pub num_layers: i64,
}

/// The description of a layer. The texts and lists are valid until the net is destroyed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_layer {
    /// sizeof(sb_net_layer) of the caller
    pub struct_size: usize,
    /// [borrowed] the layer's name; may be empty
    pub name: sb_text,
    /// [borrowed] the layer's type, such as "Convolution"
    pub r#type: sb_text,
    /// [borrowed] names of the blobs that the layer reads
    pub bottoms: *const sb_text,
    /// elements of `bottoms`
    pub num_bottoms: i64,
    /// [borrowed] names of the blobs that the layer writes. A layer that works in place writes one
    ///  of its bottoms
    pub tops: *const sb_text,
    /// elements of `tops`
    pub num_tops: i64,
}

/// A layer that cannot be converted. The texts are valid until the callback returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_net_problem {
    /// sizeof(sb_net_problem) of the library
    pub struct_size: usize,
    /// [borrowed] the layer's name
    pub layer: sb_text,
    /// [borrowed] the layer's type
    pub r#type: sb_text,
    /// [borrowed] the reason, in UTF-8
    pub reason: sb_text,
}

/// A callback for each layer that cannot be converted. The callback runs on the thread that
///  converts, and must not throw or longjmp.
pub type sb_net_reporter =
    Option<unsafe extern "C" fn(user: *mut c_void, problem: *const sb_net_problem)>;

/// A callback for a warning. The callback runs on the thread that converts, and must not throw or
///  longjmp. `text` is [borrowed] until the callback returns.
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

/// Options for converting a net into ONNX. `mean`, `scale` and `swap_rb` describe Caffe's
///  preprocessing of pixels. The ONNX net preprocesses every input with four axes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sb_onnx_options {
    /// sizeof(sb_onnx_options) of the caller
    pub struct_size: usize,
    /// [borrowed, nullable when num_outputs is 0] names of the blobs to compute. Layers that these
    ///  blobs do not need are omitted
    pub outputs: *const sb_text,
    /// elements of `outputs`, or 0 for the outputs of the net
    pub num_outputs: i64,
    /// [borrowed] a name for the inputs' first axis, which makes the size of this axis variable.
    ///  If the name is empty, the size is fixed
    pub batch: sb_text,
    /// [borrowed, nullable when num_mean is 0] the mean, in the net's order of channels: one
    ///  number for each channel if mean_height is 0, else an image of channels, rows, columns
    pub mean: *const f32,
    /// number of elements in `mean`: channels, or channels * mean_height * mean_width. 0 without a
    ///  mean
    pub num_mean: i64,
    /// rows of a mean image, or 0 if `mean` has one number for each channel
    pub mean_height: i64,
    /// columns of a mean image, or 0 if mean_height is 0
    pub mean_width: i64,
    /// the factor for pixels, applied after the mean is subtracted, or 0 for no factor
    pub scale: f32,
    /// 1 if images have the channel order RGB, although the net needs BGR
    pub swap_rb: i32,
    /// 1 to store weights and compute results as 16-bit floats. Inputs and outputs stay 32-bit
    pub half: i32,
    /// 1 to write a layer that cannot be converted as a node with the layer's type in the domain
    ///  "caffe". The node's inputs are the layer's bottoms, then the weights. The attributes are
    ///  the layer's parameters
    pub custom: i32,
    /// [borrowed, nullable when num_shapes is 0] shapes of blobs that custom nodes write. A blob of
    ///  unknown shape can be neither an output nor a bottom of a layer that needs the shape
    pub shapes: *const sb_net_blob,
    /// elements of `shapes`
    pub num_shapes: i64,
    /// [borrowed, nullable when num_metadata is 0] entries for the file's metadata
    pub metadata: *const sb_onnx_entry,
    /// elements of `metadata`
    pub num_metadata: i64,
    /// [nullable] called for each layer that cannot be converted, before the conversion returns
    ///  UNSUPPORTED. The error's message describes only the first such layer
    pub report: sb_net_reporter,
    /// passed to `report` and to `warn`
    pub user: *mut c_void,
    /// [nullable] called before the conversion returns OK, for each difference between the file and
    ///  the net: an output that was renamed, or weights that became infinite as 16-bit floats
    pub warn: sb_net_warner,
}

/// Contains the values of SB_NET_OPTIONS_INIT.
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

/// Contains the values of SB_ONNX_OPTIONS_INIT.
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
