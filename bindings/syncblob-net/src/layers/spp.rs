//! Pools a plane into 1, 4, 16 … bins, and joins all bins into one vector.

use super::pooling::{plane, Pool, Windows};
use super::{count, fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

pub(super) static SPP: Rule =
    Rule { layer_type: "SPP", parameters: Some("spp_param"), shapes, emit, ..PLAIN };

/// Returns the poolings, whose numbers of bins are 1, 4, 16 and so on.
fn levels(setup: &Setup<'_>) -> Result<Vec<Pool>> {
    let p = setup.parameters;
    let (sizes, height) = (plane(&setup.bottoms[0])?, p.int("pyramid_height"));
    if !(1..=30).contains(&height) {
        return Err(Error::invalid(format_args!("pyramid_height is {height}, not from 1 to 30")));
    }
    let level = |level: i64| {
        let [h, w] = sizes.map(|size| bins(size, 1 << level));
        Ok(Pool::of(p.enumeration("pool"), vec![h?, w?]))
    };
    (0..height).map(level).collect()
}

/// Returns a window for each bin along an axis. If the windows together are longer than the axis,
/// centres them.
fn bins(size: i64, number: i64) -> Result<Windows> {
    let kernel = size / number + i64::from(size % number != 0);
    Windows::new(size, kernel, kernel, (kernel * number - size + 1) / 2, true)
}

fn shapes(setup: &Setup<'_>) -> Result<Shapes> {
    let (bottom, levels) = (&setup.bottoms[0], levels(setup)?);
    if let [one] = levels.as_slice() {
        return Ok(Shapes::top(one.shape(bottom)));
    }
    let parts = levels.iter().map(|level| count(&level.shape(bottom)[1..]));
    let whole = parts.sum::<Result<i64>>()?;
    Ok(Shapes::top(vec![bottom[0], size(whole.into())?]))
}

fn emit(e: &mut Emit<'_>) -> Result<()> {
    e.ignore(["engine"]);
    fixed(e, 1..4)?;
    let levels = levels(&e.setup())?;
    let pooled = levels.iter().map(|level| pool(e, level)).collect::<Result<Vec<Value>>>()?;
    if let [one] = *pooled {
        e.node("Identity").input(one).top(e, 0);
        return Ok(());
    }
    let flat = pooled.into_iter().map(|x| e.node("Flatten").int("axis", 1).input(x).value(e));
    let flat: Vec<Value> = flat.collect();
    e.node("Concat").int("axis", 1).inputs(flat).top(e, 0);
    Ok(())
}

fn pool(e: &mut Emit<'_>, level: &Pool) -> Result<Value> {
    let x = e.bottom(0);
    match level.method {
        "MAX" => Ok(level.maximum(x).value(e)),
        "AVE" => Ok(level.mean(e, x)?.value(e)),
        other => Err(Error::unsupported(format_args!("pool {other} is not supported"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn bins_are_counted_as_pooling_makes_them() {
        check(
            "SPP",
            &[
                ("pyramid_height: 1", &[&[2, 3, 5, 6]], Some((&[&[2, 3, 1, 1]], &[]))),
                ("pyramid_height: 3", &[&[2, 3, 8, 8]], Some((&[&[2, 63]], &[]))),
                ("pyramid_height: 2", &[&[2, 3, 8]], None),
                ("pyramid_height: 0", &[&[2, 3, 8, 8]], None),
                ("pyramid_height: 31", &[&[2, 3, 8, 8]], None),
                ("pyramid_height: 3", &[&[2, 3, 1, 8]], None),
            ],
        );
    }
}
