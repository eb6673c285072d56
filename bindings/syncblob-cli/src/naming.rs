//! The names of a model's layers and blobs in other formats, as `convert` writes them, for programs
//! that need them without a file.

use syncblob::Model;

use crate::source::name_of_no_layer;
pub use crate::source::Names;

/// The layers' names, each once: the second `conv` is `conv#2`, a layer without a name is
/// `#` and its index. They are the file's bytes, which need not be UTF-8.
pub fn layer_names(model: &Model) -> Names {
    Names::new(model.layers().map(|layer| layer.name_bytes()))
}

/// The name of a blob without a layer: `history.0` in a solver state, `blob` in a mean file.
pub fn blob_name(model: &Model, blob: usize) -> String {
    name_of_no_layer(model, blob)
}
