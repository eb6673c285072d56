//! What tensors are called.

use super::Scheme;
use crate::source::{Layer, Source, Tensor};

/// The names in OUT, in the order of the source's tensors. A scheme is for
/// layers: other tensors keep their names.
pub fn of(source: &Source, scheme: Scheme) -> Vec<String> {
    let name = |tensor: &Tensor| {
        let place = tensor.place?;
        let layer = &source.notes.layers[place.layer?];
        let (base, _) = tensor.name.rsplit_once('.')?;
        Some(format!("{base}.{}", role(layer, place.blob, scheme)))
    };
    source.tensors.iter().map(|tensor| name(tensor).unwrap_or(tensor.name.clone())).collect()
}

/// What a blob is to its layer, as PyTorch calls it. Scale's gamma and beta are
/// weight and bias there.
pub fn role(layer: &Layer, blob: usize, scheme: Scheme) -> String {
    let role = match (scheme, is_batch_norm(layer), blob) {
        (Scheme::Torch, true, 0) => "running_mean",
        (Scheme::Torch, true, 1) => "running_var",
        (Scheme::Torch, true, 2) => "scale_factor",
        (Scheme::Torch, false, 0) => "weight",
        (Scheme::Torch, false, 1) => "bias",
        _ => return blob.to_string(),
    };
    role.into()
}

pub fn is_batch_norm(layer: &Layer) -> bool {
    layer.layer_type == "BatchNorm"
}

/// The layer and the number of the blob that a name tells, and whether it is a
/// BatchNorm's.
pub fn parse(name: &str) -> Option<(&str, usize, bool)> {
    let (layer, role) = name.rsplit_once('.')?;
    let (blob, batch_norm) = match role {
        "weight" => (0, false),
        "bias" => (1, false),
        "running_mean" => (0, true),
        "running_var" => (1, true),
        "scale_factor" => (2, true),
        number => (number.parse().ok()?, false),
    };
    Some((layer, blob, batch_norm))
}
