//! What a model's layers and blobs are called outside of Caffe, as `convert` calls them,
//! for programs that take them without a file.

use syncblob::Model;

use crate::source::name_of_no_layer;
pub use crate::source::Names;

/// The layers' names, each once: the second `conv` is `conv#2`, a layer without a name is
/// `#` and its index. They are the file's bytes, which need not be UTF-8.
pub fn layer_names(model: &Model) -> Names {
    Names::new(model.layers().map(|layer| layer.name_bytes()))
}

/// What a blob of no layer is called: `history.0` of a solver's, `blob` of a mean file's.
pub fn blob_name(model: &Model, blob: usize) -> String {
    name_of_no_layer(model, blob)
}
