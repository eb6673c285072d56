//! Makes a layer from the text of its parameters, for tests of shapes.

use super::{rule, Setup, Shapes};
use crate::net::{Layer, Shape};
use crate::text::read_text;
use crate::{ErrorKind, Limits, Result};

/// A layer and the shapes of its bottoms.
pub(super) struct Case<'a> {
    pub layer_type: &'a str,
    /// The layer's parameters, as prototxt.
    pub text: &'a str,
    pub bottoms: &'a [&'a [i64]],
    pub tops: usize,
}

impl Case<'_> {
    pub fn shapes(&self) -> Result<Shapes> {
        let rule = rule(self.layer_type).expect("a rule");
        let text = match rule.parameters {
            Some(field) => format!("type: '{}' {field} {{ {} }}", self.layer_type, self.text),
            None => format!("type: '{}' {}", self.layer_type, self.text),
        };
        let message = read_text(text.as_bytes(), "LayerParameter", &Limits::default())?;
        let names = |number: usize| (0..number).map(|index| index.to_string()).collect();
        let layer = Layer {
            name: "layer".into(),
            layer_type: self.layer_type.into(),
            bottoms: names(self.bottoms.len()),
            tops: names(self.tops),
            message,
        };
        let parameters = layer.parameters(rule);
        let bottoms: Vec<Shape> = self.bottoms.iter().map(|shape| shape.to_vec()).collect();
        (rule.shapes)(&Setup { layer: &layer, parameters: &parameters, bottoms: &bottoms })
    }
}

/// The shapes of the tops and of the layer's blobs.
pub(super) type Made<'a> = (&'a [&'a [i64]], &'a [&'a [i64]]);

/// The parameters, the shapes of the bottoms, and the result. A result of `None` means an `Invalid`
/// error.
pub(super) type Row<'a> = (&'a str, &'a [&'a [i64]], Option<Made<'a>>);

pub(super) fn check(layer_type: &str, rows: &[Row<'_>]) {
    for &(text, bottoms, wanted) in rows {
        let tops = wanted.map_or(1, |wanted| wanted.0.len());
        let made = Case { layer_type, text, bottoms, tops }.shapes();
        let place = format!("{layer_type} {{ {text} }} of {bottoms:?}");
        match (wanted, made) {
            (Some((tops, blobs)), Ok(made)) => {
                assert_eq!((made.tops, made.blobs), (owned(tops), owned(blobs)), "{place}");
            }
            (None, Err(error)) => assert_eq!(error.kind(), ErrorKind::Invalid, "{place}: {error}"),
            (wanted, made) => panic!("{place}: {made:?}, not {wanted:?}"),
        }
    }
}

fn owned(shapes: &[&[i64]]) -> Vec<Shape> {
    shapes.iter().map(|shape| shape.to_vec()).collect()
}
