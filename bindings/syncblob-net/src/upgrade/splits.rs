//! Removes the Split layers that Caffe inserts for blobs with several readers. Saved models contain
//! these layers.

use std::collections::HashMap;

use crate::message::{Message, Value};

type Text = Box<[u8]>;

/// Removes each Split, unless a later layer overwrites the blob that the Split copies. The Split's
/// readers then read the blob.
pub(super) fn join(net: &mut Message) {
    let writers = last_writers(net);
    let mut names: HashMap<Text, Text> = HashMap::new();
    let mut at = 0;
    net.fields.retain_mut(|field| {
        let Value::Message(layer) = &mut field.value else { return true };
        if layer.type_name() != "LayerParameter" {
            return true;
        }
        at += 1;
        for bottom in layer.fields.iter_mut().filter(|field| field.name() == "bottom") {
            if let Value::Text(name) = &mut bottom.value {
                if let Some(blob) = names.get(name) {
                    *name = blob.clone();
                }
            }
        }
        let Some(blob) = split_blob(layer) else { return true };
        if writers.get(&blob).is_none_or(|last| *last >= at) {
            return true;
        }
        names.extend(layer.texts("top").into_iter().map(|top| (top.into(), blob.clone())));
        false
    });
}

/// Returns for each blob the last layer that writes it. Layers are counted from 1.
fn last_writers(net: &Message) -> HashMap<Text, usize> {
    let layers = net.messages("layer").zip(1..);
    let tops = layers
        .flat_map(|(layer, at)| layer.texts("top").into_iter().map(move |top| (top.into(), at)));
    tops.collect()
}

/// Returns the blob that a Split layer copies, if the layer's names show that Caffe inserted the
/// layer.
fn split_blob(layer: &Message) -> Option<Text> {
    let bottoms = layer.texts("bottom");
    let ([blob], b"Split") = (bottoms.as_slice(), layer.text("type")) else { return None };
    let name = layer.text("name");
    let rest = name.strip_prefix(*blob)?.strip_prefix(b"_")?;
    rest.strip_suffix(b"_split")?;
    let mut tops = layer.texts("top").into_iter().enumerate();
    let as_inserted = tops.all(|(index, top)| {
        top.strip_prefix(name).is_some_and(|rest| rest == format!("_{index}").as_bytes())
    });
    as_inserted.then(|| (*blob).into())
}

#[cfg(test)]
mod tests {
    use crate::testing::message;

    #[test]
    fn inserted_layers_are_removed() {
        let mut net = message(
            "NetParameter",
            "layer { type: 'Input' top: 'd' }
             layer { name: 'd_in_0_split' type: 'Split' bottom: 'd'
                     top: 'd_in_0_split_0' top: 'd_in_0_split_1' }
             layer { type: 'ReLU' bottom: 'd_in_0_split_0' top: 'a' }
             layer { type: 'Eltwise' bottom: 'd_in_0_split_1' bottom: 'a' top: 'b' }
             layer { name: 'mine' type: 'Split' bottom: 'b' top: 'c' top: 'e' }",
        );
        super::join(&mut net);
        let expected = message(
            "NetParameter",
            "layer { type: 'Input' top: 'd' }
             layer { type: 'ReLU' bottom: 'd' top: 'a' }
             layer { type: 'Eltwise' bottom: 'd' bottom: 'a' top: 'b' }
             layer { name: 'mine' type: 'Split' bottom: 'b' top: 'c' top: 'e' }",
        );
        assert_eq!(net, expected);
    }

    /// The ReLU overwrites `d`, so the Split must keep the old values.
    #[test]
    fn a_split_of_an_overwritten_blob_stays() {
        let text = "layer { type: 'Input' top: 'd' }
             layer { name: 'd_in_0_split' type: 'Split' bottom: 'd' top: 'd_in_0_split_0' }
             layer { type: 'ReLU' bottom: 'd' top: 'd' }
             layer { type: 'ReLU' bottom: 'd_in_0_split_0' top: 'a' }";
        let mut net = message("NetParameter", text);
        super::join(&mut net);
        assert_eq!(net, message("NetParameter", text));
    }
}
