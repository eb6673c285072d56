//! Computes the distribution of the values in a blob's data or diff (a payload).

use crate::source::Result;
use crate::values::{Pass, Values};

/// The distribution of the finite values of a payload.
#[derive(Debug)]
pub struct Summary {
    pub nonfinite: usize,
    /// The smallest and the largest value. None if no value is finite.
    pub range: Option<(f64, f64)>,
    pub mean: f64,
    /// The population standard deviation.
    pub deviation: f64,
    /// The number of values in each of `BINS` equal parts of the range.
    pub bins: [usize; BINS],
    /// The values of largest magnitude with their offsets. The largest is first.
    pub largest: Vec<(f64, usize)>,
}

pub const BINS: usize = 32;

/// The maximum length of `Summary::largest`.
const LARGEST: usize = 5;

impl Summary {
    /// Reads the values twice, because the bins depend on the extremes.
    pub fn of(values: &mut impl Pass) -> Result<Self> {
        let mut sums = Sums::default();
        values.each(&mut |values| sums.add(values))?;
        let mut spread = Spread::around(&sums);
        values.each(&mut |values| spread.add(values))?;
        let finite = sums.finite as f64;
        Ok(Self {
            nonfinite: sums.largest.start - sums.finite,
            range: (sums.finite > 0).then_some(spread.range),
            mean: spread.mean,
            deviation: if sums.finite > 0 { (spread.squares / finite).sqrt() } else { 0.0 },
            bins: spread.bins,
            largest: sums.largest.kept,
        })
    }
}

/// The results of the first pass over the values.
struct Sums {
    range: (f64, f64),
    sum: f64,
    finite: usize,
    largest: Largest,
}

impl Default for Sums {
    fn default() -> Self {
        let range = (f64::INFINITY, f64::NEG_INFINITY);
        Self { range, sum: 0.0, finite: 0, largest: Largest::default() }
    }
}

impl Sums {
    fn add(&mut self, values: Values) {
        values.for_each_block(|block| {
            for (index, &value) in block.iter().enumerate() {
                if value.is_finite() {
                    self.range = (self.range.0.min(value), self.range.1.max(value));
                    self.sum += value;
                    self.finite += 1;
                }
                self.largest.offer(value, index);
            }
            self.largest.start += block.len();
        });
    }
}

#[derive(Default)]
struct Largest {
    kept: Vec<(f64, usize)>,
    /// The offset of the current block in the payload.
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

/// The bins, and the sum of squared distances from the mean.
struct Spread {
    range: (f64, f64),
    mean: f64,
    bins: [usize; BINS],
    squares: f64,
}

impl Spread {
    fn around(sums: &Sums) -> Self {
        let mean = if sums.finite > 0 { sums.sum / sums.finite as f64 } else { 0.0 };
        Self { range: sums.range, mean, bins: [0; BINS], squares: 0.0 }
    }

    fn add(&mut self, values: Values) {
        values.for_each_block(|block| {
            for &value in block.iter().filter(|value| value.is_finite()) {
                self.bins[bin(value, self.range)] += 1;
                self.squares += (value - self.mean) * (value - self.mean);
            }
        });
    }
}

/// Returns the bin of a value, or the middle bin if all values are equal.
fn bin(value: f64, (min, max): (f64, f64)) -> usize {
    if min == max {
        return BINS / 2;
    }
    // Dividing by 2 avoids an overflow, because max - min may exceed the largest double.
    let part = (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0);
    ((part * BINS as f64) as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_the_bins_of_the_range() {
        let values: Vec<f64> = (0..64).map(f64::from).collect();
        let summary = Summary::of(&mut Values::F64(&values)).unwrap();
        assert_eq!(summary.nonfinite, 0);
        assert_eq!(summary.range, Some((0.0, 63.0)));
        assert_eq!(summary.bins, [2; BINS]);
        assert_eq!(summary.mean, 31.5);
        assert!((summary.deviation - ((64.0_f64 * 64.0 - 1.0) / 12.0).sqrt()).abs() < 1e-12);
        let largest = [63, 62, 61, 60, 59].map(|n| (f64::from(n), n as usize));
        assert_eq!(summary.largest, largest);
    }

    #[test]
    fn the_largest_values_have_the_largest_magnitude() {
        let values = [1.0, -9.0, f64::NEG_INFINITY, 3.0, 9.0, f64::NAN];
        let summary = Summary::of(&mut Values::F64(&values)).unwrap();
        assert_eq!(summary.largest, [(-9.0, 1), (9.0, 4), (3.0, 3), (1.0, 0)]);
        assert_eq!((summary.nonfinite, summary.mean), (2, 1.0));
    }

    #[test]
    fn offsets_continue_from_block_to_block() {
        let mut values = vec![0.0_f32; 5000];
        values[4321] = 2.0;
        assert_eq!(Summary::of(&mut Values::F32(&values)).unwrap().largest[0], (2.0, 4321));
    }

    #[test]
    fn bins_cover_the_extreme_values() {
        let summary = Summary::of(&mut Values::F64(&[f64::MIN, 0.0, f64::MAX])).unwrap();
        assert_eq!((summary.bins[0], summary.bins[BINS / 2], summary.bins[BINS - 1]), (1, 1, 1));
        let constant = Summary::of(&mut Values::F32(&[0.5; 7])).unwrap();
        assert_eq!((constant.bins[BINS / 2], constant.deviation), (7, 0.0));
        let nothing = Summary::of(&mut Values::F32(&[f32::NAN])).unwrap();
        assert_eq!((nothing.range, nothing.nonfinite, nothing.bins), (None, 1, [0; BINS]));
        assert_eq!(Summary::of(&mut Values::F32(&[])).unwrap().range, None);
    }
}
