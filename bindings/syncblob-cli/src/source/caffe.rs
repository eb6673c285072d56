//! Caffe's own files. A tensor is called by its layer and number: `conv1.0`.

use std::collections::HashSet;
use std::path::Path;

use syncblob::{BlobAt, Context, Format, Model, OpenOptions, StoredBlob};

use super::{Details, Each, Kind, Layer, Notes, Place, Result, Solver, Store, Stored, Tensor};

struct Caffe {
    model: Model,
    places: Vec<BlobAt>,
}

impl Store for Caffe {
    fn parts(&self, index: usize, _: &Tensor, _: &Context, _: usize, each: Each) -> Result<()> {
        each(self.model.blob(self.places[index])?.load_any()?)
    }

    fn details(&self, index: usize) -> Details {
        match self.model.blob(self.places[index]) {
            Ok(stored) => Details {
                has_diff: stored.info().diff_count() > 0,
                is_legacy: stored.info().is_legacy(),
            },
            // Loading it will say why.
            Err(_) => Details::default(),
        }
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
    let notes = notes(&model)?;
    let (mut tensors, mut places) = (Vec::new(), Vec::new());
    for (layer, name) in model.layers().zip(unique_names(&notes.layers)) {
        for (blob, stored) in layer.blobs().enumerate() {
            let place = Place { layer: Some(layer.index()), blob };
            tensors.push(tensor(format!("{name}.{blob}"), place, &stored?));
            places.push(BlobAt::from((layer.index(), blob)));
        }
    }
    for (blob, stored) in model.blobs().enumerate() {
        let name = match model.format() {
            Format::Blob => "blob".to_owned(),
            Format::Solverstate => format!("history.{blob}"),
            _ => format!("blobs.{blob}"),
        };
        tensors.push(tensor(name, Place { layer: None, blob }, &stored?));
        places.push(BlobAt::from(blob));
    }
    Ok((notes, tensors, Box::new(Caffe { model, places })))
}

fn tensor(name: String, place: Place, stored: &StoredBlob) -> Tensor {
    let info = stored.info();
    let (shape, dtype) = (info.shape().to_vec(), Stored::As(info.dtype()));
    Tensor { name, place: Some(place), shape, dtype }
}

fn notes(model: &Model) -> Result<Notes> {
    let solver = match model.format() {
        Format::Solverstate => Some(model.solver_info()?),
        _ => None,
    };
    let layers = model.layers().map(|layer| Layer {
        name: layer.name().into_owned(),
        layer_type: layer.layer_type().into_owned(),
        scale_applied: false,
    });
    Ok(Notes {
        kind: Some(Kind::of(model.format())),
        name: model.name().into_owned(),
        layers: layers.collect(),
        solver: solver.map(|info| Solver {
            iter: info.iteration,
            current_step: info.current_step,
            learned_net: info.learned_net.to_string_lossy().into_owned(),
        }),
    })
}

/// What the layers are called outside of Caffe, which lets several layers have
/// one name, or none: the second `conv` is `conv#2`, a layer without a name is
/// `#` and its index.
pub fn unique_names(layers: &[Layer]) -> Vec<String> {
    let mut taken: HashSet<String> = layers.iter().map(|layer| layer.name.clone()).collect();
    let mut met = HashSet::new();
    let mut unique = |index: usize, layer: &Layer| {
        if !layer.name.is_empty() && met.insert(layer.name.clone()) {
            return layer.name.clone();
        }
        let first = if layer.name.is_empty() { index } else { 2 };
        let mut candidates = (first..).map(|number| format!("{}#{number}", layer.name));
        let name = candidates.find(|name| taken.insert(name.clone()));
        name.expect("there are more numbers than layers")
    };
    layers.iter().enumerate().map(|(index, layer)| unique(index, layer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_layers_become_unique_and_keep_clear_of_the_others() {
        let layer = |name: &&str| Layer {
            name: (*name).into(),
            layer_type: String::new(),
            scale_applied: false,
        };
        let layers: Vec<_> = ["a", "a", "", "a#2", "a", "a#2"].iter().map(layer).collect();
        assert_eq!(unique_names(&layers), ["a", "a#3", "#2", "a#2", "a#4", "a#2#2"]);
    }
}
