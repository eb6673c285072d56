//! max(x, 0) + slope * min(x, 0), with a learned slope for each channel or for all channels.

use super::{fixed, Rule, Setup, Shapes, IN_PLACE};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static PRELU: Rule =
    Rule { layer_type: "PReLU", parameters: Some("prelu_param"), shapes, emit, ..IN_PLACE };

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let bottom = &setup.bottoms[0];
    if bottom.len() < 2 {
        return Err(Error::invalid("the bottom has no channels"));
    }
    let slopes = match setup.parameters.bool("channel_shared") {
        true => vec![],
        false => vec![bottom[1]],
    };
    Ok(Shapes::top(bottom.clone()).with_blobs(vec![slopes]))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["filler"]);
    fixed(e, 1..2)?;
    let mut dims = vec![1; e.bottom_shapes[0].len() - 1];
    dims[0] = e.blob_shapes[0].first().copied().unwrap_or(1);
    let slopes = e.blob_as(0, dims)?;
    e.node("PRelu").input(e.bottom(0)).input(slopes).top(e, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn slopes_are_for_each_channel_or_for_all() {
        let bottom: &[&[i64]] = &[&[2, 3, 4]];
        check(
            "PReLU",
            &[
                ("", bottom, Some((bottom, &[&[3]]))),
                ("channel_shared: true", bottom, Some((bottom, &[&[]]))),
                ("", &[&[2, 3]], Some((&[&[2, 3]], &[&[3]]))),
                ("", &[&[3]], None),
            ],
        );
    }
}
