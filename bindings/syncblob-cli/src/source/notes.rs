//! Notes: the data of a Caffe file other than its blobs. A safetensors file stores the notes as
//! JSON, under one key of the file's metadata.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use syncblob::Format;

/// The key of the notes in the metadata of a safetensors file.
pub const KEY: &str = "syncblob";

/// The kind of the Caffe file that the tensors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Caffemodel,
    Solverstate,
    Blob,
    BlobVector,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Caffemodel => "caffemodel",
            Self::Solverstate => "solverstate",
            Self::Blob => "blob",
            Self::BlobVector => "blobvector",
        }
    }

    /// Returns None for a format that only a newer library supports.
    pub fn of(format: Format) -> Option<Self> {
        match format {
            Format::Caffemodel => Some(Self::Caffemodel),
            Format::Solverstate => Some(Self::Solverstate),
            Format::Blob => Some(Self::Blob),
            Format::BlobVector => Some(Self::BlobVector),
            _ => None,
        }
    }
}

/// The place of a tensor: in a layer, or among the blobs without a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// An index of `Notes::layers`.
    pub layer: Option<usize>,
    pub blob: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The kind of Caffe file. None if the file has no notes, for example because another program
    /// wrote it.
    pub kind: Option<Kind>,
    /// The name of the net.
    pub name: String,
    pub layers: Vec<Layer>,
    pub solver: Option<Solver>,
    pub for_torch: ForTorch,
}

/// How tensors with PyTorch's names differ from the net's blobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForTorch {
    /// Maps the name of each tensor that is not a blob of the net to the constant that fills the
    /// tensor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f32>,
    /// The names of matrices that are transposed blobs of the net.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub transposed: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub name: String,
    pub layer_type: String,
    /// Whether a BatchNorm's mean and variance were already divided by its factor.
    pub scale_applied: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solver {
    pub iter: i32,
    pub current_step: i32,
    pub learned_net: String,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    format: Kind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    layers: Vec<WrittenLayer>,
    /// The names of blobs without a layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tensors: Vec<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    solver: Option<Solver>,
    #[serde(flatten)]
    for_torch: ForTorch,
}

#[derive(Serialize, Deserialize)]
struct WrittenLayer {
    name: String,
    #[serde(rename = "type")]
    layer_type: String,
    /// The tensors' names, indexed by blob. Null for a blob that was omitted.
    tensors: Vec<Option<String>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    scale_applied: bool,
}

const VERSION: u32 = 1;

impl Notes {
    /// Returns the notes as JSON, with the tensors' names and places. Returns None for an unknown
    /// kind.
    pub fn to_json<'a>(
        &self,
        tensors: impl IntoIterator<Item = (&'a str, Place)>,
    ) -> Option<String> {
        let layers = self.layers.iter().map(|layer| WrittenLayer {
            name: layer.name.clone(),
            layer_type: layer.layer_type.clone(),
            tensors: Vec::new(),
            scale_applied: layer.scale_applied,
        });
        let mut written = Written {
            version: VERSION,
            format: self.kind?,
            name: self.name.clone(),
            layers: layers.collect(),
            tensors: Vec::new(),
            solver: self.solver.clone(),
            for_torch: self.for_torch.clone(),
        };
        for (name, place) in tensors {
            let list = match place.layer {
                Some(layer) => &mut written.layers[layer].tensors,
                None => &mut written.tensors,
            };
            list.resize(list.len().max(place.blob + 1), None);
            list[place.blob] = Some(name.into());
        }
        serde_json::to_string(&written).ok()
    }

    /// Parses notes. Returns the notes, and the places of tensors by name. Returns None if the text
    /// is not the JSON of notes, or has a later version.
    pub fn from_json(text: &str) -> Option<(Self, HashMap<String, Place>)> {
        let written: Written = serde_json::from_str(text).ok()?;
        if written.version != VERSION {
            return None;
        }
        let mut notes = Self {
            kind: Some(written.format),
            name: written.name,
            layers: Vec::new(),
            solver: written.solver,
            for_torch: written.for_torch,
        };
        let mut places = HashMap::new();
        let mut put = |layer, tensors: Vec<Option<String>>| {
            for (blob, name) in tensors.into_iter().enumerate() {
                places.extend(name.map(|name| (name, Place { layer, blob })));
            }
        };
        put(None, written.tensors);
        for (index, layer) in written.layers.into_iter().enumerate() {
            put(Some(index), layer.tensors);
            let (name, layer_type) = (layer.name, layer.layer_type);
            notes.layers.push(Layer { name, layer_type, scale_applied: layer.scale_applied });
        }
        Some((notes, places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_of_a_newer_library_has_no_kind() {
        for known in [Format::Caffemodel, Format::Solverstate, Format::Blob, Format::BlobVector] {
            assert_eq!(Kind::of(known).map(Kind::name), Some(known.name()));
        }
        assert_eq!(Kind::of(Format::Other(9)), None);
    }
}
