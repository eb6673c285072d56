//! Removes layers that are used only in training, or only to compare predictions with labels.

use std::collections::HashSet;

use crate::inputs::Inputs;
use crate::layers::rule;
use crate::net::Layer;

/// Types of losses, each with the type of the layer that computes its predictions.
const PREDICTING: &[(&str, &str)] =
    &[("SoftmaxWithLoss", "Softmax"), ("SigmoidCrossEntropyLoss", "Sigmoid")];

/// Replaces each loss in PREDICTING by the layer that computes its predictions, unless the net
/// already has that layer.
pub(crate) fn predict(layers: &mut [Layer], warnings: &mut Vec<String>) {
    let predicted: HashSet<(&str, String)> = layers
        .iter()
        .filter_map(|layer| {
            let row = PREDICTING.iter().find(|row| row.1 == layer.layer_type)?;
            Some((row.0, layer.bottoms.first()?.clone()))
        })
        .collect();
    for layer in layers {
        let Some(row) = PREDICTING.iter().find(|row| row.0 == layer.layer_type) else { continue };
        let Some(bottom) = layer.bottoms.first() else { continue };
        if predicted.contains(&(row.0, bottom.clone())) {
            continue;
        }
        warnings.push(format!("{layer}: replaced by {}, without the loss", row.1));
        row.1.clone_into(&mut layer.layer_type);
        layer.bottoms.truncate(1);
        layer.tops = layer.tops.last().into_iter().cloned().collect();
    }
}

/// Warns about BatchNorm layers that are set to use the mean and the variance of the batch, as in
/// training. A net that was saved during training may have this setting.
pub(crate) fn report_statistics(layers: &[Layer], warnings: &mut Vec<String>) {
    let mut found = layers.iter().filter(|layer| {
        let parameters = layer.message.message("batch_norm_param");
        parameters.is_some_and(|p| p.has("use_global_stats") && !p.bool("use_global_stats"))
    });
    if let Some(first) = found.next() {
        warnings.push(format!(
            "{first}: use_global_stats is false, so the layer uses the batch's mean and variance, \
             not the stored values; layers of this kind: {}",
            1 + found.count()
        ));
    }
}

/// Returns whether the layer only computes a loss or a metric.
fn measures(layer: &Layer) -> bool {
    let kind = layer.layer_type.as_str();
    let by_name = kind.contains("Loss")
        || kind.ends_with("Accuracy")
        || ["DetectionEvaluate", "HDF5Output"].contains(&kind);
    rule(kind).is_none() && (by_name || layer.message.has("loss_weight"))
}

/// Removes layers that compute a loss or a metric. If the net has no labels, also removes layers
/// that only prepare labels for such layers.
pub(crate) fn leave_out(layers: &mut Vec<Layer>, inputs: &Inputs, warnings: &mut Vec<String>) {
    let lacking = lacking(layers, inputs);
    let (mut wanted, mut measured) = (HashSet::new(), HashSet::new());
    let mut stays = vec![true; layers.len()];
    for (at, layer) in layers.iter().enumerate().rev() {
        let mut bottoms = layer.bottoms.iter();
        let is_wanted = layer.tops.iter().any(|top| wanted.contains(top));
        let is_measured = layer.tops.iter().any(|top| measured.contains(top));
        if measures(layer) {
            wanted.extend(bottoms.next());
            measured.extend(bottoms);
        } else if lacking[at] && !is_wanted && (is_measured || layer.tops.is_empty()) {
            measured.extend(bottoms);
        } else {
            wanted.extend(bottoms);
            continue;
        }
        stays[at] = false;
    }
    for (layer, _) in layers.iter().zip(&stays).filter(|(_, stays)| !**stays) {
        warnings.push(format!("{layer}: left out because it only serves training or testing"));
    }
    let mut stays = stays.into_iter();
    layers.retain(|_| stays.next().unwrap_or(true));
}

/// Returns for each layer whether it depends on a blob that is neither an input nor a layer's top.
fn lacking(layers: &[Layer], inputs: &Inputs) -> Vec<bool> {
    let mut made: HashSet<&String> = inputs.known.iter().map(|input| &input.0).collect();
    let mut lacking = Vec::with_capacity(layers.len());
    for layer in layers {
        let lacks = layer.bottoms.iter().any(|bottom| !made.contains(bottom));
        if !lacks {
            made.extend(&layer.tops);
        }
        lacking.push(lacks);
    }
    lacking
}
