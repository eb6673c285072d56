//! Measures how much two payloads differ: data or diffs of blobs, of the same length.

use crate::values::Values;

/// The allowed differences, as the help of `diff` defines them.
#[derive(Clone, Copy)]
pub struct Tolerance {
    pub absolute: f64,
    pub relative: f64,
}

#[derive(Debug, Default, PartialEq)]
pub struct Numbers {
    pub count: usize,
    /// How many values differ by more than the tolerance, or are NaN in only one payload.
    pub differing: usize,
    pub nan_only_a: usize,
    pub nan_only_b: usize,
    /// The largest absolute difference between two values that are not NaN. If only one of the
    /// values is infinite, or both with different signs, the difference is infinite.
    pub max_abs: f64,
    pub max_rel: f64,
    /// The index and the values of the first element with the largest difference beyond the
    /// tolerance. If a value is NaN or infinite in only one payload, the difference is infinite.
    pub at: usize,
    pub a: f64,
    pub b: f64,
}

impl Numbers {
    /// Counts two unequal values. For 64-bit integers, `integers` is the exact difference of the
    /// values. Returns the absolute difference, infinity if a value is NaN, or a negative number if
    /// the tolerance allows the difference.
    fn add(&mut self, a: f64, b: f64, integers: Option<f64>, tolerance: Tolerance) -> f64 {
        if a.is_nan() || b.is_nan() {
            self.nan_only_a += usize::from(a.is_nan());
            self.nan_only_b += usize::from(b.is_nan());
            self.differing += 1;
            return f64::INFINITY;
        }
        let scale = a.abs().max(b.abs());
        let absolute = integers.unwrap_or((a - b).abs());
        let relative = match () {
            () if absolute.is_finite() => absolute / scale,
            () if scale.is_finite() => (a / scale - b / scale).abs(),
            () => f64::INFINITY,
        };
        self.max_abs = self.max_abs.max(absolute);
        self.max_rel = self.max_rel.max(relative);
        // An infinite value is never within the tolerance, because a tolerance relative to infinity
        // would allow every difference.
        let allowed =
            scale.is_finite() && absolute <= tolerance.absolute + tolerance.relative * scale;
        self.differing += usize::from(!allowed);
        if allowed {
            -1.0
        } else {
            absolute
        }
    }
}

/// Compares values block by block, and accumulates the results in `numbers`.
pub struct Counting {
    pub numbers: Numbers,
    tolerance: Tolerance,
    worst: f64,
}

impl Counting {
    pub fn new(tolerance: Tolerance) -> Self {
        Self { numbers: Numbers::default(), tolerance, worst: -1.0 }
    }

    /// Compares more values. `a` and `b` must have the same length.
    pub fn add(&mut self, a: Values, b: Values) {
        let (values_a, values_b, begin) = (a, b, self.numbers.count);
        // Different 64-bit integers may be equal as f64.
        let is_wide = a.is_wide() && b.is_wide();
        a.for_each_block_with(b, |block_a, block_b| {
            for (index, (&a, &b)) in block_a.iter().zip(block_b).enumerate() {
                if (a == b && !is_wide) || (a.is_nan() && b.is_nan()) {
                    continue;
                }
                let at = self.numbers.count - begin + index;
                let integers = match is_wide {
                    true => values_a.integer(at).zip(values_b.integer(at)),
                    false => None,
                };
                if integers.is_some_and(|(a, b)| a == b) {
                    continue;
                }
                let integers = integers.map(|(a, b)| a.abs_diff(b) as f64);
                let difference = self.numbers.add(a, b, integers, self.tolerance);
                if difference > self.worst {
                    self.worst = difference;
                    self.numbers.at = self.numbers.count + index;
                    (self.numbers.a, self.numbers.b) = (a, b);
                }
            }
            self.numbers.count += block_a.len();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the values as one block and as two blocks, which must have the same result.
    fn of(a: Values, b: Values, tolerance: Tolerance) -> Numbers {
        let [mut once, mut twice] = [0; 2].map(|_| Counting::new(tolerance));
        once.add(a, b);
        for range in [0..a.len() / 2, a.len() / 2..a.len()] {
            twice.add(a.slice(range.clone()), b.slice(range));
        }
        assert_eq!(format!("{:?}", once.numbers), format!("{:?}", twice.numbers)); // NaN == NaN
        once.numbers
    }

    const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };

    #[test]
    fn values_of_either_type_are_compared_as_doubles() {
        let found =
            of(Values::F32(&[1.0, 2.0, 0.1, -0.0]), Values::F64(&[1.0, 2.5, 0.1, 0.0]), EXACT);
        let tenth = f64::from(0.1_f32) - 0.1;
        assert_eq!((found.count, found.differing, found.max_abs), (4, 2, 0.5));
        assert_eq!((found.at, found.a, found.b), (1, 2.0, 2.5));
        assert_eq!(found.max_rel, 0.2);
        let near = Tolerance { absolute: 2.0 * tenth, relative: 0.0 };
        assert_eq!(of(Values::F32(&[0.1]), Values::F64(&[0.1]), near).differing, 0);
    }

    #[test]
    fn integers_that_round_to_the_same_double_differ() {
        let (a, b) = ([i64::MAX, -5, 1 << 53], [i64::MAX - 1, -5, (1 << 53) + 1]);
        let found = of(Values::I64(&a), Values::I64(&b), EXACT);
        assert_eq!((found.differing, found.max_abs, found.at), (2, 1.0, 0));
        assert_eq!(of(Values::I64(&a), Values::I64(&a), EXACT).differing, 0);
        assert_eq!(of(Values::I64(&a[1..2]), Values::F32(&[-5.0]), EXACT).differing, 0);
    }

    #[test]
    fn nan_equals_only_nan_and_no_tolerance_covers_infinity() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let all = Tolerance { absolute: inf, relative: inf };
        let cases = [
            (nan, nan, 0),
            (inf, inf, 0),
            (-inf, inf, 1),
            (1.0, inf, 1),
            (nan, 1.0, 1),
            (1.0, nan, 1),
            (1.0, -1e300, 0),
        ];
        for (a, b, differing) in cases {
            let found = of(Values::F64(&[a]), Values::F64(&[b]), all);
            assert_eq!(found.differing, differing, "{a} {b}");
            let nans = (a.is_nan() && !b.is_nan(), b.is_nan() && !a.is_nan());
            assert_eq!((found.nan_only_a == 1, found.nan_only_b == 1), nans, "{a} {b}");
        }
    }

    #[test]
    fn the_place_is_that_of_the_largest_difference_beyond_the_tolerance() {
        let relative = Tolerance { absolute: 0.0, relative: 0.1 };
        let found = of(Values::F64(&[100.0, 1.0, 2.0]), Values::F64(&[105.0, 1.5, 2.5]), relative);
        assert_eq!((found.differing, found.at, found.max_abs), (2, 1, 5.0));
        assert_eq!(found.max_rel, 0.5 / 1.5);
    }

    #[test]
    fn a_difference_beyond_f64_has_a_finite_relative_difference() {
        let found = of(Values::F64(&[f64::MAX]), Values::F64(&[-f64::MAX]), EXACT);
        assert_eq!((found.max_abs, found.max_rel), (f64::INFINITY, 2.0));
    }
}
