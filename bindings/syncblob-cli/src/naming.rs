//! What a model's layers and blobs are called outside of Caffe, as `convert` calls them,
//! for programs that take them without a file.

use syncblob::{BlobAny, BlobAt, Model};

use crate::convert::names::{is_batch_norm, role};
use crate::convert::{plan, Scheme};
pub use crate::source::Names;
use crate::source::{layers, name_of_no_layer};

/// The layers' names, each once: the second `conv` is `conv#2`, a layer without a name is
/// `#` and its index. They are the file's bytes, which need not be UTF-8.
pub fn layer_names(model: &Model) -> Names {
    Names::new(model.layers().map(|layer| layer.name_bytes()))
}

/// A blob by the name that PyTorch has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Such as `conv1.weight`, in the bytes of the layer's name; no two blobs of a model have one
    /// name.
    pub name: Vec<u8>,
    /// Where the blob is.
    pub at: BlobAt,
    /// The blob by whose [`inverse`] the values are to be multiplied.
    pub scale: Option<BlobAt>,
}

/// The blobs in the order of the file, as `--names torch` has them; with `apply_scale`, as
/// `--apply-scale` too.
///
/// # Errors
/// As [`Model::blob`].
pub fn state_dict(model: &Model, apply_scale: bool) -> syncblob::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let (layers, names) = (layers(model), layer_names(model));
    for (index, (layer, name)) in layers.iter().zip(names.all()).enumerate() {
        let blobs = model.layer(index)?.num_blobs();
        let has_factor = apply_scale
            && is_batch_norm(layer)
            && blobs > 2
            && model.blob((index, 2))?.info().count() == 1;
        for blob in 0..blobs {
            if has_factor && blob == 2 {
                continue;
            }
            let scale = (has_factor && blob < 2).then_some((index, 2).into());
            let role = role(layer, blob, Scheme::Torch);
            let name = [name.as_slice(), b".", role.as_bytes()].concat();
            entries.push(Entry { name, at: (index, blob).into(), scale });
        }
    }
    for blob in 0..model.blobs().len() {
        let name = name_of_no_layer(model, blob).into_bytes();
        entries.push(Entry { name, at: blob.into(), scale: None });
    }
    Ok(entries)
}

/// What Caffe multiplies a BatchNorm's mean and variance by, given its third blob: 1 over its
/// value, or 0 where that is 0.
///
/// # Errors
/// As [`Blob::data`](syncblob::Blob::data).
pub fn inverse(factor: &BlobAny) -> syncblob::Result<f64> {
    plan::inverse(factor)
}
