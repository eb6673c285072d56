//! Reads Caffe's own files. A tensor's name, such as `conv1.0`, consists of the layer and the
//! blob's number.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::path::Path;

use syncblob::{BlobAny, BlobAt, Context, Dtype, Format, Model, OpenOptions, StoredBlob};

use super::{
    Details, Failure, ForTorch, Kind, Layer, Notes, Parts, Place, Reading, Result, Solver, Store,
    Stored, Tensor,
};

struct Caffe {
    model: Model,
    blobs: Vec<(BlobAt, Details)>,
}

impl Store for Caffe {
    fn read(&self, index: usize, tensor: &Tensor, _: &Context, reading: Reading) -> Result<()> {
        let (at, _) = self.blobs[index];
        reading(&mut Whole { model: &self.model, at, dtype: &tensor.dtype, is_read: false });
        Ok(())
    }

    fn details(&self, index: usize) -> Details {
        self.blobs[index].1
    }

    fn model(&self) -> Option<&Model> {
        Some(&self.model)
    }
}

/// The values of a tensor as a single part, because the library loads a blob as a whole.
struct Whole<'a> {
    model: &'a Model,
    at: BlobAt,
    dtype: &'a Stored,
    is_read: bool,
}

impl Parts for Whole<'_> {
    fn next(&mut self, _: usize) -> Result<Option<BlobAny>> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        let Stored::As(dtype) = *self.dtype else {
            return Err(Failure::Unsupported(format!("no blob can hold {}", self.dtype)));
        };
        Ok(Some(self.model.blob(self.at)?.load_as(self.model.context(), dtype)?))
    }
}

pub fn open(
    path: &Path,
    format: Option<Format>,
    context: &Context,
) -> Result<(Notes, Vec<Tensor>, Box<dyn Store>)> {
    let options = OpenOptions::new().context(context);
    let model = match format {
        Some(format) => options.format(format),
        None => options,
    }
    .open(path)?;
    check_number(&model)?;
    let notes = notes(&model)?;
    let (mut tensors, mut blobs) = (Vec::new(), Vec::new());
    let mut put = |name, place, stored: StoredBlob| {
        tensors.push(tensor(name, place, &stored));
        blobs.push((stored.at(), details(&stored)));
    };
    for (layer, name) in model.layers().zip(unique_names(&notes.layers)) {
        for (blob, stored) in layer.blobs().enumerate() {
            let place = Place { layer: Some(layer.index()), blob };
            put(format!("{name}.{blob}"), place, stored?);
        }
    }
    for (blob, stored) in model.blobs().enumerate() {
        put(name_of_no_layer(&model, blob), Place { layer: None, blob }, stored?);
    }
    Ok((notes, tensors, Box::new(Caffe { model, blobs })))
}

pub fn name_of_no_layer(model: &Model, blob: usize) -> String {
    match model.format() {
        Format::Blob => "blob".to_owned(),
        Format::Solverstate => format!("history.{blob}"),
        _ => format!("blobs.{blob}"),
    }
}

fn details(stored: &StoredBlob) -> Details {
    let info = stored.info();
    Details { has_diff: info.diff_count() > 0, is_legacy: info.is_legacy() }
}

/// The maximum number of blobs of a file. A blob of two bytes in the file needs some hundred bytes
/// in memory, so a limit is needed.
const MAX_BLOBS: usize = 1 << 17;

fn check_number(model: &Model) -> Result<()> {
    let in_layers: usize = model.layers().map(|layer| layer.num_blobs()).sum();
    let blobs = in_layers + model.blobs().len();
    if blobs <= MAX_BLOBS {
        return Ok(());
    }
    Err(Failure::Unsupported(format!(
        "it has {blobs} blobs, but the maximum is {MAX_BLOBS}; `syncblob info` and \
         `syncblob verify` have no maximum"
    )))
}

/// Returns the type in which a blob is loaded. The type represents all stored values exactly.
fn loaded_as(stored: Dtype) -> Dtype {
    stored.exact_float().unwrap_or(stored)
}

fn tensor(name: String, place: Place, stored: &StoredBlob) -> Tensor {
    let info = stored.info();
    let (shape, dtype) = (info.shape().to_vec(), Stored::As(loaded_as(info.dtype())));
    Tensor { name, place: Some(place), shape, dtype }
}

fn notes(model: &Model) -> Result<Notes> {
    let format = model.format();
    let kind = Kind::of(format)
        .ok_or_else(|| Failure::Unsupported(format!("the format is not known: {format:?}")))?;
    let solver = match kind {
        Kind::Solverstate => Some(model.solver_info()?),
        _ => None,
    };
    Ok(Notes {
        kind: Some(kind),
        name: model.name().into_owned(),
        layers: layers(model),
        solver: solver.map(|info| Solver {
            iter: info.iteration,
            current_step: info.current_step,
            learned_net: info.learned_net.to_string_lossy().into_owned(),
        }),
        for_torch: ForTorch::default(),
    })
}

fn layers(model: &Model) -> Vec<Layer> {
    let layers = model.layers().map(|layer| Layer {
        name: layer.name().into_owned(),
        layer_type: layer.layer_type().into_owned(),
        scale_applied: false,
    });
    layers.collect()
}

/// Returns unique names of the layers, because Caffe allows equal and empty names. The second
/// `conv` is `conv#2`, and a layer without a name is `#` and its index.
pub fn unique_names(layers: &[Layer]) -> Vec<String> {
    let names = Names::new(layers.iter().map(|layer| layer.name.as_bytes()));
    let text = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    names.all().iter().map(text).collect()
}

/// The unique names of layers, which may contain arbitrary bytes.
#[derive(Default)]
pub struct Names {
    unique: Vec<Vec<u8>>,
    indices: HashMap<Vec<u8>, usize>,
    /// Maps each name to the number to try next, because trying all numbers from 2 on would be
    /// slow.
    next: HashMap<Vec<u8>, usize>,
}

impl Names {
    /// Makes unique names for all layers. Of layers with the same name, the first keeps the name.
    pub fn new<'a>(layers: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut names = Self::default();
        for (index, name) in layers.clone().enumerate().filter(|(_, name)| !name.is_empty()) {
            names.indices.entry(name.to_vec()).or_insert(index);
        }
        layers.for_each(|name| names.add(name));
        names
    }

    /// Returns the unique names, indexed by layer.
    pub fn all(&self) -> &[Vec<u8>] {
        &self.unique
    }

    pub fn index(&self, unique: &[u8]) -> Option<usize> {
        self.indices.get(unique).copied()
    }

    /// Adds the name of the next layer. Returns false and changes nothing if `name`, such as
    /// `conv#2`, is already the generated name of an earlier layer. The caller must then make the
    /// names of all layers again.
    #[must_use]
    pub fn push(&mut self, name: &[u8]) -> bool {
        let fits = !self.indices.contains_key(name) || self.next.contains_key(name);
        if fits {
            self.add(name);
        }
        fits
    }

    fn add(&mut self, name: &[u8]) {
        let unique = self.free(name);
        self.indices.insert(unique.clone(), self.unique.len());
        self.unique.push(unique);
    }

    fn free(&mut self, name: &[u8]) -> Vec<u8> {
        let number = match self.next.entry(name.to_vec()) {
            Entry::Vacant(entry) if !name.is_empty() => {
                entry.insert(2);
                return name.to_vec();
            }
            entry => entry.or_default(),
        };
        if name.is_empty() {
            *number = self.unique.len().max(*number);
        }
        loop {
            let candidate = [name, format!("#{number}").as_bytes()].concat();
            *number += 1;
            if !self.indices.contains_key(&candidate) {
                return candidate;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_names_of_layers_differ_from_all_other_names() {
        let layer = |name: &&str| Layer {
            name: (*name).into(),
            layer_type: String::new(),
            scale_applied: false,
        };
        let layers: Vec<_> = ["a", "a", "", "a#2", "a", "a#2"].iter().map(layer).collect();
        assert_eq!(unique_names(&layers), ["a", "a#3", "#2", "a#2", "a#4", "a#2#2"]);
        let layers: Vec<_> = ["#1", "", "", "#3", "a", ""].iter().map(layer).collect();
        assert_eq!(unique_names(&layers), ["#1", "#2", "#4", "#3", "a", "#5"]);
    }

    #[test]
    fn a_hundred_thousand_layers_of_one_name_are_named_quickly() {
        for name in ["a", ""] {
            let layer =
                Layer { name: name.into(), layer_type: String::new(), scale_applied: false };
            let names = unique_names(&vec![layer; 100_000]);
            assert_eq!(
                names[99_999],
                format!("{name}#{}", if name.is_empty() { 99_999 } else { 100_000 })
            );
        }
    }

    #[test]
    fn naming_layers_one_by_one_equals_naming_all_at_once() {
        let layers = ["a", "b", "a", "", "a#2", "c", "", "#3", "a#3", "b", "a#2"];
        let mut names = Names::default();
        for (index, name) in layers.iter().enumerate() {
            let all = layers[..=index].iter().map(|name| name.as_bytes());
            let before = names.all().to_vec();
            if !names.push(name.as_bytes()) {
                assert_eq!(names.all(), before);
                names = Names::new(all.clone());
            }
            assert_eq!(names.all(), Names::new(all).all());
            assert_eq!(names.index(&names.all()[index]), Some(index));
        }
        assert_eq!(names.index(b""), None);
    }
}
