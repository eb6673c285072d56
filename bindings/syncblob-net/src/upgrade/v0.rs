//! Upgrades V0 layers. In V0, `layers` contains a message `layer` with the layer's name, type and
//! parameters, and padding is a separate layer.

use std::collections::HashMap;

use super::{is, messages_mut, moved, types, Children};
use crate::message::{Field, Message, Value};
use crate::{Error, Result};

/// Where a parameter moves. `to` lists each layer type that has the parameter, with the type's new
/// message. `name` is the parameter's new name.
struct Move {
    from: &'static str,
    to: &'static [(&'static str, &'static str)],
    name: &'static str,
}

const CONV: &[(&str, &str)] = &[("conv", "convolution_param")];
const POOL: &[(&str, &str)] = &[("pool", "pooling_param")];
const WINDOW: &[(&str, &str)] = &[CONV[0], POOL[0]];
const WEIGHTS: &[(&str, &str)] = &[CONV[0], ("innerproduct", "inner_product_param")];
const LRN: &[(&str, &str)] = &[("lrn", "lrn_param")];
const DROPOUT: &[(&str, &str)] = &[("dropout", "dropout_param")];
const CONCAT: &[(&str, &str)] = &[("concat", "concat_param")];
const ANY_TYPE: &[(&str, &str)] = &[("", "transform_param")];
const IMAGES: &[(&str, &str)] = &[("images", "image_data_param")];
const BOXES: &[(&str, &str)] = &[("window_data", "window_data_param")];
const SKIPPING: &[(&str, &str)] = &[("data", "data_param"), IMAGES[0]];
const DATA: &[(&str, &str)] = &[SKIPPING[0], ("hdf5_data", "hdf5_data_param"), IMAGES[0], BOXES[0]];
const SOURCES: &[(&str, &str)] =
    &[DATA[0], DATA[1], DATA[2], DATA[3], ("infogain_loss", "infogain_loss_param")];

const MOVES: &[Move] = &[
    Move { from: "num_output", to: WEIGHTS, name: "num_output" },
    Move { from: "biasterm", to: WEIGHTS, name: "bias_term" },
    Move { from: "weight_filler", to: WEIGHTS, name: "weight_filler" },
    Move { from: "bias_filler", to: WEIGHTS, name: "bias_filler" },
    Move { from: "pad", to: WINDOW, name: "pad" },
    Move { from: "kernelsize", to: WINDOW, name: "kernel_size" },
    Move { from: "group", to: CONV, name: "group" },
    Move { from: "stride", to: WINDOW, name: "stride" },
    Move { from: "pool", to: POOL, name: "pool" },
    Move { from: "dropout_ratio", to: DROPOUT, name: "dropout_ratio" },
    Move { from: "local_size", to: LRN, name: "local_size" },
    Move { from: "alpha", to: LRN, name: "alpha" },
    Move { from: "beta", to: LRN, name: "beta" },
    Move { from: "k", to: LRN, name: "k" },
    Move { from: "source", to: SOURCES, name: "source" },
    Move { from: "scale", to: ANY_TYPE, name: "scale" },
    Move { from: "meanfile", to: ANY_TYPE, name: "mean_file" },
    Move { from: "cropsize", to: ANY_TYPE, name: "crop_size" },
    Move { from: "mirror", to: ANY_TYPE, name: "mirror" },
    Move { from: "batchsize", to: DATA, name: "batch_size" },
    Move { from: "rand_skip", to: SKIPPING, name: "rand_skip" },
    Move { from: "shuffle_images", to: IMAGES, name: "shuffle" },
    Move { from: "new_height", to: IMAGES, name: "new_height" },
    Move { from: "new_width", to: IMAGES, name: "new_width" },
    Move { from: "concat_dim", to: CONCAT, name: "concat_dim" },
    Move { from: "det_fg_threshold", to: BOXES, name: "fg_threshold" },
    Move { from: "det_bg_threshold", to: BOXES, name: "bg_threshold" },
    Move { from: "det_fg_fraction", to: BOXES, name: "fg_fraction" },
    Move { from: "det_context_pad", to: BOXES, name: "context_pad" },
    Move { from: "det_crop_mode", to: BOXES, name: "crop_mode" },
];

/// Upgrades V0 layers to V1 layers, if the net has such layers.
pub(super) fn upgrade(net: &mut Message, notes: &mut Vec<String>) -> Result<()> {
    let old = net.messages("layers").filter(|layer| layer.has("layer")).count();
    if old == 0 {
        return Ok(());
    }
    if old < net.messages("layers").count() {
        return Err(Error::invalid("layers of Caffe's generations V0 and V1 in one net"));
    }
    keep_own_fields(net, notes);
    join_padding(net)?;
    for layer in messages_mut(net, "layers") {
        *layer = upgrade_layer(layer, notes)?;
    }
    Ok(())
}

/// Removes, as Caffe does, the fields of the net that V0 did not have.
fn keep_own_fields(net: &mut Message, notes: &mut Vec<String>) {
    const KEPT: [&str; 5] = ["name", "layers", "input", "input_dim", "force_backward"];
    net.fields.retain(|field| {
        let kept = !field.is_known() || KEPT.contains(&field.name());
        if !kept {
            let (place, name) = (field.place(), field.name());
            notes.push(format!("{place}: omitted '{name}', which V0 does not have"));
        }
        kept
    });
}

fn inner(layer: &Message) -> &Message {
    layer.message("layer").expect("every V0 layer has a message `layer`")
}

/// Replaces a padding layer by a parameter of the convolution or pooling that reads its top.
fn join_padding(net: &mut Message) -> Result<()> {
    let mut paddings: HashMap<Vec<u8>, Padding> = HashMap::new();
    for layer in messages_mut(net, "layers") {
        let padding = Padding::of(layer)?;
        if let Some(before) = layer.texts("bottom").iter().find_map(|name| paddings.get(*name)) {
            before.join(layer)?;
        }
        for top in layer.texts("top") {
            match &padding {
                Some(padding) => drop(paddings.insert(top.to_vec(), padding.clone())),
                None => drop(paddings.remove(top)),
            }
        }
    }
    net.fields.retain(|field| match &field.value {
        Value::Message(layer) if is(field, "layers") => inner(layer).text("type") != b"padding",
        _ => true,
    });
    Ok(())
}

#[derive(Clone)]
struct Padding {
    bottom: Value,
    pad: i64,
}

impl Padding {
    fn of(layer: &Message) -> Result<Option<Self>> {
        let this = inner(layer);
        if this.text("type") != b"padding" {
            return Ok(None);
        }
        match (layer.all("bottom").last(), layer.all("bottom").count(), layer.all("top").count()) {
            (Some(bottom), 1, 1) => {
                Ok(Some(Self { bottom: bottom.value.clone(), pad: this.int("pad") }))
            }
            _ => Err(failed(this, "a padding layer has one bottom and one top")),
        }
    }

    fn join(&self, layer: &mut Message) -> Result<()> {
        let this = inner(layer);
        if !matches!(this.text("type"), b"conv" | b"pool") {
            return Err(failed(this, "only a convolution or a pooling can follow a padding"));
        }
        if layer.all("bottom").count() != 1 {
            return Err(failed(this, "a layer after a padding must have one bottom"));
        }
        for field in layer.fields.iter_mut().filter(|field| is(field, "bottom")) {
            field.value = self.bottom.clone();
        }
        for inner in messages_mut(layer, "layer") {
            inner.push("pad", Value::Int(self.pad));
        }
        Ok(())
    }
}

fn failed(layer: &Message, why: &str) -> Error {
    let (name, kind) = (layer.text("name").escape_ascii(), layer.text("type").escape_ascii());
    Error::invalid(format_args!("layer '{name}' ({kind}) of Caffe's generation V0: {why}"))
}

fn upgrade_layer(old: &Message, notes: &mut Vec<String>) -> Result<Message> {
    let this = inner(old);
    let old_type = this.text("type");
    let mut layer = Message::new("V1LayerParameter", old.place);
    let ends = old.fields.iter().filter(|field| is(field, "bottom") || is(field, "top"));
    layer.fields.extend(ends.cloned());
    if !old_type.is_empty() {
        let new_type = types::v0_type(old_type)
            .ok_or_else(|| failed(this, "the generation did not have this type"))?;
        layer.push("type", Value::Int(new_type));
    }
    let mut children = Children::default();
    for field in given(this) {
        add_field(&mut layer, &mut children, field, old_type, notes);
    }
    children.finish(&mut layer);
    Ok(layer)
}

/// Returns the message's fields. If a singular field occurs several times, returns only the last.
fn given(message: &Message) -> impl Iterator<Item = &Field> {
    let mut last = HashMap::new();
    for (at, field) in message.fields.iter().enumerate() {
        last.insert(field.name(), at);
    }
    let repeated = |field: &Field| field.is_known() && field.is_repeated();
    let fields = message.fields.iter().enumerate();
    fields.filter(move |(at, field)| repeated(field) || last[field.name()] == *at).map(|it| it.1)
}

fn add_field(
    layer: &mut Message,
    children: &mut Children,
    field: &Field,
    old_type: &[u8],
    notes: &mut Vec<String>,
) {
    let name = field.name();
    let same = match name {
        "type" | "new_num" | "new_channels" => return,
        "hdf5_output_param" => old_type == b"hdf5_output",
        _ => ["name", "blobs", "blobs_lr", "weight_decay"].contains(&name),
    };
    if !field.is_known() {
        layer.fields.push(field.clone());
    } else if same {
        layer.fields.extend(moved(field.clone(), name, layer, ""));
    } else if let Some((parameters, name)) = target(name, old_type) {
        let message = children.of(parameters, layer);
        message.fields.extend(moved(field.clone(), name, message, ""));
    } else {
        let (place, old_type) = (field.place(), old_type.escape_ascii());
        notes.push(format!("{place}: omitted '{name}', which type '{old_type}' does not have"));
    }
}

/// Returns the new message and the new name of a parameter for a layer of type `old_type`.
fn target(name: &str, old_type: &[u8]) -> Option<(&'static str, &'static str)> {
    let row = MOVES.iter().find(|row| row.from == name)?;
    let mut to = row.to.iter();
    let found = to.find(|to| to.0.is_empty() || to.0.as_bytes() == old_type)?;
    Some((found.1, row.name))
}
