//! DeconvNet's layer, which moves each value to the position that the value had before a pooling.
//! The second bottom contains these positions. All other values are 0. The rules follow DeconvNet's
//! source.

use super::pooling::pair;
use super::upsample::{scatter, scattered};
use super::{Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static UNPOOLING: Rule = Rule {
    layer_type: "Unpooling",
    parameters: Some("unpooling_param"),
    bottoms: (1, 2),
    shapes,
    emit,
    full_precision: true,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let p = setup.parameters;
    if setup.bottoms.len() == 1 {
        return Err(Error::unsupported("it needs a second bottom with the values' positions"));
    }
    match p.enumeration("unpool") {
        "MAX" => scattered(setup, pair(p, "unpool_size", ("unpool_h", "unpool_w"), None)?),
        other => Err(Error::unsupported(format_args!("method {other} is not supported"))),
    }
}

/// Ignores the window parameters, because the second bottom contains the positions.
fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine", "kernel_size", "kernel_h", "kernel_w"]);
    e.ignore(["stride", "stride_h", "stride_w"]);
    if ["pad", "pad_h", "pad_w"].iter().any(|name| e.parameters.int(name) != 0) {
        return Err(Error::invalid("the layer sets a pad, which DeconvNet does not implement"));
    }
    scatter(e)
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn the_plane_is_given() {
        let bottoms: &[&[i64]] = &[&[2, 3, 4, 5], &[2, 3, 4, 5]];
        check(
            "Unpooling",
            &[
                ("kernel_size: 2 stride: 2 unpool_size: 9", bottoms, Some((&[&[2, 3, 9, 9]], &[]))),
                ("unpool_h: 7 unpool_w: 9", bottoms, Some((&[&[2, 3, 7, 9]], &[]))),
                ("kernel_size: 2 stride: 2", bottoms, None),
                ("unpool_h: 7", bottoms, None),
                ("unpool_size: 9", &[&[2, 3, 4, 5], &[2, 3, 4, 4]], None),
            ],
        );
    }
}
