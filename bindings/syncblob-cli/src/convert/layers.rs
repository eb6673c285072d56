//! Derives the layers of a net and their blobs from the tensors of a plan.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::names::{self, Parsed, Role};
use super::plan::Plan;
use crate::source::{Failure, Kind, Layer, Result};

/// The source of an output blob's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The tensor at this index of `Plan::items`.
    Item(usize),
    /// The value 1, for the factor of a BatchNorm whose mean and variance were already divided by
    /// the original factor.
    One,
}

pub fn of(plan: &Plan) -> Result<Vec<(Layer, Vec<Content>)>> {
    if matches!(plan.notes.kind, Some(kind) if kind != Kind::Caffemodel) {
        let text = "a caffemodel has layers, and IN has none";
        return Err(Failure::Unsupported(text.into()));
    }
    let mut layers: Vec<_> =
        plan.notes.layers.iter().map(|layer| (layer.clone(), BTreeMap::new())).collect();
    let mut by_name = HashMap::new();
    let norms = norms(plan);
    for (index, item) in plan.items.iter().enumerate() {
        let (layer, blob) = match item.place {
            Some(place) => (place.layer.unwrap_or_default(), place.blob),
            None => place_by_name(&item.name, &norms, &mut by_name, &mut layers)?,
        };
        if let Some(other) = layers[layer].1.insert(blob, Content::Item(index)) {
            return Err(both(plan, other, &item.name, blob));
        }
    }
    if plan.partial {
        layers.retain(|(_, blobs)| !blobs.is_empty());
    }
    layers.into_iter().map(|(layer, blobs)| complete(layer, blobs)).collect()
}

type Found = Vec<(Layer, BTreeMap<usize, Content>)>;

/// Returns the layers that have a tensor called `running_mean` or `running_var`.
fn norms(plan: &Plan) -> HashSet<&str> {
    let unplaced = plan.items.iter().filter(|item| item.place.is_none());
    let parsed = unplaced.filter_map(|item| names::parse(&item.name));
    parsed.filter(|parsed| parsed.role == Role::Statistics).map(|parsed| parsed.layer).collect()
}

/// Returns a tensor's layer and blob number, which its name contains. Adds the layer if it is new.
fn place_by_name(
    name: &str,
    norms: &HashSet<&str>,
    by_name: &mut HashMap<String, usize>,
    layers: &mut Found,
) -> Result<(usize, usize)> {
    let Some(Parsed { layer, blob, role }) = names::parse(name) else {
        let text = format!(
            "\"{name}\" is not the name of a blob, such as layer.0 or layer.weight: \
             --only can leave it out"
        );
        return Err(Failure::Unsupported(text));
    };
    if role == Role::Affine && norms.contains(layer) {
        let text = format!(
            "\"{name}\" belongs to the BatchNorm \"{layer}\" or the Scale after it; its name alone \
             does not show which: use a .safetensors file, or one made with --names caffe"
        );
        return Err(Failure::Unsupported(text));
    }
    let index = *by_name.entry(layer.into()).or_insert_with(|| {
        let (name, layer_type) = (layer.into(), String::new());
        layers.push((Layer { name, layer_type, scale_applied: false }, BTreeMap::new()));
        layers.len() - 1
    });
    if role == Role::Statistics {
        layers[index].0.layer_type = "BatchNorm".into();
        layers[index].0.scale_applied = true;
    }
    Ok((index, blob))
}

fn both(plan: &Plan, other: Content, name: &str, blob: usize) -> Failure {
    let other = match other {
        Content::Item(index) => plan.items[index].name.as_str(),
        Content::One => "1",
    };
    Failure::Unsupported(format!(
        "\"{other}\" and \"{name}\" would both be blob {blob} of one layer: \
         --only can leave one out"
    ))
}

/// Returns the layer's blobs in order. Refuses a missing blob, because a Caffe file identifies
/// blobs only by their order.
fn complete(layer: Layer, mut blobs: BTreeMap<usize, Content>) -> Result<(Layer, Vec<Content>)> {
    if layer.scale_applied && blobs.len() >= 2 {
        blobs.entry(2).or_insert(Content::One);
    }
    if let Some((missing, _)) = blobs.keys().enumerate().find(|(index, blob)| index != *blob) {
        let text = format!(
            "layer \"{}\" would have blob {} and no blob {missing}",
            layer.name,
            blobs.keys().last().unwrap_or(&0)
        );
        return Err(Failure::Unsupported(text));
    }
    Ok((layer, blobs.into_values().collect()))
}
