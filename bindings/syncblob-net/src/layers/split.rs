//! Split copies a blob. Silence reads blobs, so that they are not outputs of the net.

use super::{Rule, Setup, Shapes, ANY, PLAIN};
use crate::onnx::Emit;
use crate::Result;

pub(super) static SPLIT: Rule =
    Rule { layer_type: "Split", tops: (1, ANY), shapes: copies, emit, ..PLAIN };

pub(super) static SILENCE: Rule = Rule {
    layer_type: "Silence",
    bottoms: (1, ANY),
    tops: (0, 0),
    shapes: |_| Ok(Shapes::default()),
    ..PLAIN
};

#[allow(clippy::unnecessary_wraps)] // a rule's `shapes` returns a result
fn copies(setup: &Setup<'_>) -> Result<Shapes> {
    let tops = vec![setup.bottoms[0].clone(); setup.layer.tops.len()];
    Ok(Shapes { tops, blobs: Vec::new() })
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    (0..e.top_shapes.len()).for_each(|top| e.pass(0, top));
    Ok(())
}
