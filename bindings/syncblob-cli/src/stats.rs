//! Sums, extremes and a digest of the values of one payload.

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

/// Sums and extremes are over the finite values. A sum beyond the range of f64
/// becomes null in JSON.
#[derive(Debug, Serialize)]
pub struct Stats {
    pub sum: f64,
    pub asum: f64,
    pub sumsq: f64,
    pub nonfinite: usize,
    pub min: Option<f64>,
    pub max: Option<f64>,
    #[serde(serialize_with = "as_hex")]
    pub sha256: [u8; 32],
}

fn as_hex<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(digest))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A stored value.
pub trait Value: Copy {
    type Bytes: AsRef<[u8]>;
    fn to_f64(self) -> f64;
    fn to_le(self) -> Self::Bytes;
}

macro_rules! value {
    ($type:ty) => {
        impl Value for $type {
            type Bytes = [u8; size_of::<$type>()];

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn to_le(self) -> Self::Bytes {
                self.to_le_bytes()
            }
        }
    };
}

value!(f32);
value!(f64);

/// Values that are summed plainly before the error of the sum is kept.
const BLOCK: usize = 256;

impl Stats {
    pub fn of<T: Value>(values: &[T]) -> Self {
        let mut digest = Sha256::new();
        let mut bytes = Vec::with_capacity(BLOCK * size_of::<T>());
        let [mut sum, mut asum, mut sumsq] = [Sum::default(); 3];
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut finite = 0;
        for block in values.chunks(BLOCK) {
            bytes.clear();
            let (mut s, mut a, mut q) = (0.0, 0.0, 0.0);
            for value in block {
                bytes.extend_from_slice(value.to_le().as_ref());
                let value = value.to_f64();
                if value.is_finite() {
                    s += value;
                    a += value.abs();
                    q += value * value;
                    min = min.min(value);
                    max = max.max(value);
                    finite += 1;
                }
            }
            digest.update(&bytes);
            sum.add(s);
            asum.add(a);
            sumsq.add(q);
        }
        Self {
            sum: sum.total(),
            asum: asum.total(),
            sumsq: sumsq.total(),
            nonfinite: values.len() - finite,
            min: (finite > 0).then_some(min),
            max: (finite > 0).then_some(max),
            sha256: digest.finalize().into(),
        }
    }
}

/// A sum with the error that rounding made (Neumaier's), so that it holds for
/// billions of values.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    error: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.error += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    fn total(self) -> f64 {
        // Of a sum that overflowed the error is not a number.
        if self.sum.is_finite() {
            self.sum + self.error
        } else {
            self.sum
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_over_the_finite_values() {
        let stats = Stats::of(&[1.0_f32, -2.0, f32::NAN, f32::INFINITY, 0.5]);
        assert_eq!((stats.sum, stats.asum, stats.sumsq), (-0.5, 3.5, 5.25));
        assert_eq!((stats.nonfinite, stats.min, stats.max), (2, Some(-2.0), Some(1.0)));
    }

    #[test]
    fn nothing_finite_has_no_extremes() {
        let stats = Stats::of(&[f64::NAN, f64::NEG_INFINITY]);
        assert_eq!((stats.sum, stats.nonfinite, stats.min, stats.max), (0.0, 2, None, None));
    }

    #[test]
    fn the_digest_is_of_the_little_endian_bytes_as_stored() {
        // sha256 of 00 00 80 3f.
        let of_f32 = "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c";
        assert_eq!(hex(&Stats::of(&[1.0_f32]).sha256), of_f32);
        assert_ne!(hex(&Stats::of(&[1.0_f64]).sha256), of_f32);
        assert_eq!(Stats::of::<f32>(&[]).sha256[..], Sha256::digest(b"")[..]);
    }

    #[test]
    fn a_million_tenths_add_up() {
        let stats = Stats::of(&vec![0.1_f64; 1_000_000]);
        assert!((stats.sum - 100_000.0).abs() < 1e-9, "{}", stats.sum);
    }

    #[test]
    fn a_sum_beyond_f64_is_infinite_not_nan() {
        assert_eq!(Stats::of(&vec![f64::MAX; 1000]).sum, f64::INFINITY);
    }
}
