//! How the values of one payload are distributed.

use crate::values::Values;

/// Over the finite values.
#[derive(Debug)]
pub struct Summary {
    pub nonfinite: usize,
    /// Least and greatest; None where nothing is finite.
    pub range: Option<(f64, f64)>,
    pub mean: f64,
    /// The standard deviation, of the values as the whole population.
    pub deviation: f64,
    /// How many values lie in each part of the range.
    pub bins: [usize; BINS],
    /// Values that are largest without their signs and their offsets, the
    /// largest first.
    pub largest: Vec<(f64, usize)>,
}

pub const BINS: usize = 32;

/// How many of the largest values are kept.
const LARGEST: usize = 5;

impl Summary {
    pub fn of(values: Values) -> Self {
        let (mut min, mut max, mut sum, mut finite) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0);
        let mut largest = Largest::default();
        values.for_each_block(|block| {
            for (index, &value) in block.iter().enumerate() {
                if value.is_finite() {
                    (min, max) = (min.min(value), max.max(value));
                    sum += value;
                    finite += 1;
                }
                largest.offer(value, index);
            }
            largest.start += block.len();
        });
        let range = (finite > 0).then_some((min, max));
        let mean = if finite > 0 { sum / finite as f64 } else { 0.0 };
        let (bins, squares) = bins_and_squares(values, (min, max), mean);
        Self {
            nonfinite: values.len() - finite,
            range,
            mean,
            deviation: if finite > 0 { (squares / finite as f64).sqrt() } else { 0.0 },
            bins,
            largest: largest.kept,
        }
    }
}

#[derive(Default)]
struct Largest {
    kept: Vec<(f64, usize)>,
    /// The offset of the block that is offered.
    start: usize,
}

impl Largest {
    fn offer(&mut self, value: f64, index: usize) {
        let is_full = self.kept.len() == LARGEST;
        let beats = |&(other, _): &(f64, usize)| value.abs() > other.abs();
        if !value.is_finite() || is_full && !self.kept.last().is_some_and(beats) {
            return;
        }
        let at = self.kept.iter().position(beats).unwrap_or(self.kept.len());
        self.kept.insert(at, (value, self.start + index));
        self.kept.truncate(LARGEST);
    }
}

/// The bins, and the sum of the squared distances from the mean.
fn bins_and_squares(values: Values, range: (f64, f64), mean: f64) -> ([usize; BINS], f64) {
    let (mut bins, mut squares) = ([0; BINS], 0.0);
    values.for_each_block(|block| {
        for &value in block.iter().filter(|value| value.is_finite()) {
            bins[bin(value, range)] += 1;
            squares += (value - mean) * (value - mean);
        }
    });
    (bins, squares)
}

/// The middle one where all values are the same.
fn bin(value: f64, (min, max): (f64, f64)) -> usize {
    if min == max {
        return BINS / 2;
    }
    // Halves, since the range of doubles is not a double.
    let part = (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0);
    ((part * BINS as f64) as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_parts_of_the_range() {
        let values: Vec<f64> = (0..64).map(f64::from).collect();
        let summary = Summary::of(Values::F64(&values));
        assert_eq!(summary.nonfinite, 0);
        assert_eq!(summary.range, Some((0.0, 63.0)));
        assert_eq!(summary.bins, [2; BINS]);
        assert_eq!(summary.mean, 31.5);
        assert!((summary.deviation - ((64.0_f64 * 64.0 - 1.0) / 12.0).sqrt()).abs() < 1e-12);
        let largest = [63, 62, 61, 60, 59].map(|n| (f64::from(n), n as usize));
        assert_eq!(summary.largest, largest);
    }

    #[test]
    fn the_largest_are_so_without_their_signs() {
        let values = [1.0, -9.0, f64::NEG_INFINITY, 3.0, 9.0, f64::NAN];
        let summary = Summary::of(Values::F64(&values));
        assert_eq!(summary.largest, [(-9.0, 1), (9.0, 4), (3.0, 3), (1.0, 0)]);
        assert_eq!((summary.nonfinite, summary.mean), (2, 1.0));
    }

    #[test]
    fn the_offset_goes_on_from_block_to_block() {
        let mut values = vec![0.0_f32; 5000];
        values[4321] = 2.0;
        assert_eq!(Summary::of(Values::F32(&values)).largest[0], (2.0, 4321));
    }

    #[test]
    fn extremes_have_a_range() {
        let summary = Summary::of(Values::F64(&[f64::MIN, 0.0, f64::MAX]));
        assert_eq!((summary.bins[0], summary.bins[BINS / 2], summary.bins[BINS - 1]), (1, 1, 1));
        let constant = Summary::of(Values::F32(&[0.5; 7]));
        assert_eq!((constant.bins[BINS / 2], constant.deviation), (7, 0.0));
        let nothing = Summary::of(Values::F32(&[f32::NAN]));
        assert_eq!((nothing.range, nothing.nonfinite, nothing.bins), (None, 1, [0; BINS]));
        assert_eq!(Summary::of(Values::F32(&[])).range, None);
    }
}
