//! Makes the names that `convert` gives to a model's layers and blobs in other formats, without
//! converting a file.

use syncblob::Model;

use crate::source::name_of_no_layer;
pub use crate::source::Names;

/// Returns unique names of the layers: the second `conv` is `conv#2`, and layer 7 is `#7` if it has
/// no name. The names consist of the file's bytes and need not be UTF-8.
pub fn layer_names(model: &Model) -> Names {
    Names::new(model.layers().map(|layer| layer.name_bytes()))
}

/// Returns the name of a blob that has no layer, such as `history.0` in a solver state, or `blob`
/// in a mean file.
pub fn blob_name(model: &Model, blob: usize) -> String {
    name_of_no_layer(model, blob)
}
