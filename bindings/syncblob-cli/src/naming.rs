//! The names that `convert` gives a model's layers and blobs in other formats, for programs that
//! need the names but no file.

use syncblob::Model;

use crate::source::name_of_no_layer;
pub use crate::source::Names;

/// Returns unique names of the layers: the second `conv` is `conv#2`, a layer without a name is `#`
/// and its index. The names are the file's bytes, which need not be UTF-8.
pub fn layer_names(model: &Model) -> Names {
    Names::new(model.layers().map(|layer| layer.name_bytes()))
}

/// Returns the name of a blob without a layer: `history.0` in a solver state, `blob` in a mean
/// file.
pub fn blob_name(model: &Model, blob: usize) -> String {
    name_of_no_layer(model, blob)
}
