//! ShuffleNet's layer, which sorts channels by their index within the group. Channels with the same
//! index stay in the order of their groups.

use super::{count, fixed, Rule, Setup, Shapes, PLAIN};
use crate::onnx::Emit;
use crate::{Error, Result};

pub(super) static SHUFFLE_CHANNEL: Rule = Rule {
    layer_type: "ShuffleChannel",
    parameters: Some("shuffle_channel_param"),
    shapes,
    emit,
    ..PLAIN
};

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let (bottom, group) = (&setup.bottoms[0], setup.parameters.int("group"));
    match **bottom {
        [_, channels, ..] if group > 0 && channels % group == 0 => Ok(Shapes::top(bottom.clone())),
        _ => Err(Error::invalid(format_args!("channels of {bottom:?} cannot form {group} groups"))),
    }
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    fixed(e, 1..usize::MAX)?;
    let (bottom, group) = (&e.bottom_shapes[0], e.parameters.int("group"));
    let groups = e.reshape(e.bottom(0), &[-1, group, bottom[1] / group, count(&bottom[2..])?]);
    let mixed = e.node("Transpose").ints("perm", [0, 2, 1, 3]).input(groups).value(e);
    e.reshape_to_top(mixed, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn groups_divide_the_channels() {
        let bottom: &[&[i64]] = &[&[2, 6, 4, 5]];
        check(
            "ShuffleChannel",
            &[
                ("group: 3", bottom, Some((bottom, &[]))),
                ("", bottom, Some((bottom, &[]))),
                ("group: 4", bottom, None),
                ("group: 0", bottom, None),
                ("group: 1", &[&[6]], None),
            ],
        );
    }
}
