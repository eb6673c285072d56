//! Computes sums, extremes and a digest of the values in a blob's data or diff (a payload).

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use syncblob::Dtype;

/// Sums and extremes of the finite values. A sum beyond the range of f64 becomes null in JSON.
#[derive(Debug, Serialize)]
pub struct Stats {
    pub sum: f64,
    pub asum: f64,
    pub sumsq: f64,
    pub nonfinite: usize,
    pub min: Option<f64>,
    pub max: Option<f64>,
    #[serde(serialize_with = "as_hex")]
    pub sha256: Option<[u8; 32]>,
}

fn as_hex<S: Serializer>(digest: &Option<[u8; 32]>, serializer: S) -> Result<S::Ok, S::Error> {
    digest.as_ref().map(hex).serialize(serializer)
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A loaded value, which represents a stored value exactly.
pub trait Value: Copy {
    fn to_f64(self) -> f64;
    /// Appends the bytes of the stored value to `out`, in little-endian order.
    fn put(self, stored: Dtype, out: &mut Vec<u8>);
}

impl Value for f32 {
    fn to_f64(self) -> f64 {
        self.into()
    }

    fn put(self, stored: Dtype, out: &mut Vec<u8>) {
        match stored {
            Dtype::F16 => out.extend(half_of(self).to_le_bytes()),
            _ => out.extend(self.to_le_bytes()),
        }
    }
}

impl Value for f64 {
    fn to_f64(self) -> f64 {
        self
    }

    fn put(self, stored: Dtype, out: &mut Vec<u8>) {
        match stored {
            Dtype::I32 => out.extend((self as i32).to_le_bytes()),
            Dtype::U32 => out.extend((self as u32).to_le_bytes()),
            _ => out.extend(self.to_le_bytes()),
        }
    }
}

/// Returns the bits of the 16-bit float that was converted to `value`. A NaN keeps its payload.
fn half_of(value: f32) -> u16 {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 23 & 0xff, bits >> 13 & 0x3ff);
    let magnitude = match exponent {
        0xff => 0x7c00 | fraction,
        113.. => (exponent - 112) << 10 | fraction,
        _ => (value.abs() * 16_777_216.0) as u32, // a subnormal, in units of 2^-24
    };
    (bits >> 16 & 0x8000 | magnitude) as u16
}

/// The number of values in a block. The sums of blocks are added with compensation for rounding.
/// The values in a block are added without compensation.
const BLOCK: usize = 256;
/// The number of partial sums of a block. Compilers vectorise these sums.
const LANES: usize = 8;

/// Partial sums and extremes of the finite values of a block.
struct Lanes {
    sum: [f64; LANES],
    asum: [f64; LANES],
    sumsq: [f64; LANES],
    min: [f64; LANES],
    max: [f64; LANES],
    finite: [u64; LANES],
}

impl Lanes {
    fn of<T: Value>(block: &[T]) -> Self {
        let mut lanes = Self {
            sum: [0.0; LANES],
            asum: [0.0; LANES],
            sumsq: [0.0; LANES],
            min: [f64::INFINITY; LANES],
            max: [f64::NEG_INFINITY; LANES],
            finite: [0; LANES],
        };
        let whole = block.chunks_exact(LANES);
        let rest = whole.remainder();
        for values in whole.chain([rest]) {
            for (lane, value) in values.iter().enumerate() {
                lanes.add(lane, value.to_f64());
            }
        }
        lanes
    }

    /// Returns the sum of the lanes. If some lanes overflowed to infinity and others to minus
    /// infinity, adds up the values of `block` one by one instead.
    fn sum<T: Value>(&self, block: &[T]) -> f64 {
        let sum: f64 = self.sum.iter().sum();
        if sum.is_nan() {
            block.iter().map(|value| value.to_f64()).filter(|value| value.is_finite()).sum()
        } else {
            sum
        }
    }

    /// Adds a value if it is finite. Does not use a branch.
    #[inline(always)]
    fn add(&mut self, lane: usize, value: f64) {
        let finite = value.is_finite();
        let or = |other| if finite { value } else { other };
        let (kept, low, high) = (or(0.0), or(f64::INFINITY), or(f64::NEG_INFINITY));
        self.sum[lane] += kept;
        self.asum[lane] += kept.abs();
        self.sumsq[lane] += kept * kept;
        self.min[lane] = if low < self.min[lane] { low } else { self.min[lane] };
        self.max[lane] = if high > self.max[lane] { high } else { self.max[lane] };
        self.finite[lane] += u64::from(finite);
    }
}

impl Stats {
    /// Computes the statistics. The digest is optional, because it takes most of the time.
    pub fn of<T: Value>(values: &[T], stored: Dtype, with_digest: bool) -> Self {
        let mut digest = with_digest.then(Sha256::new);
        let mut bytes = Vec::with_capacity(BLOCK * size_of::<T>());
        let [mut sum, mut asum, mut sumsq] = [Sum::default(); 3];
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut finite = 0;
        for block in values.chunks(BLOCK) {
            if let Some(digest) = &mut digest {
                bytes.clear();
                block.iter().for_each(|value| value.put(stored, &mut bytes));
                digest.update(&bytes);
            }
            let lanes = Lanes::of(block);
            sum.add(lanes.sum(block));
            asum.add(lanes.asum.iter().sum());
            sumsq.add(lanes.sumsq.iter().sum());
            min = lanes.min.iter().copied().fold(min, f64::min);
            max = lanes.max.iter().copied().fold(max, f64::max);
            finite += lanes.finite.iter().sum::<u64>() as usize;
        }
        Self {
            sum: sum.total(),
            asum: asum.total(),
            sumsq: sumsq.total(),
            nonfinite: values.len() - finite,
            min: (finite > 0).then_some(min),
            max: (finite > 0).then_some(max),
            sha256: digest.map(|digest| digest.finalize().into()),
        }
    }
}

/// A sum with Neumaier's compensation for rounding, which is accurate for billions of values.
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
        // If the sum has overflowed, the error term is NaN and is not added.
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

    fn of<T: Value>(values: &[T]) -> Stats {
        Stats::of(values, if size_of::<T>() == 4 { Dtype::F32 } else { Dtype::F64 }, true)
    }

    #[test]
    fn sums_are_over_the_finite_values() {
        let stats = of(&[1.0_f32, -2.0, f32::NAN, f32::INFINITY, 0.5]);
        assert_eq!((stats.sum, stats.asum, stats.sumsq), (-0.5, 3.5, 5.25));
        assert_eq!((stats.nonfinite, stats.min, stats.max), (2, Some(-2.0), Some(1.0)));
    }

    #[test]
    fn values_that_are_not_finite_have_no_extremes() {
        let stats = of(&[f64::NAN, f64::NEG_INFINITY]);
        assert_eq!((stats.sum, stats.nonfinite, stats.min, stats.max), (0.0, 2, None, None));
    }

    #[test]
    fn the_digest_is_of_the_little_endian_bytes_as_stored() {
        // The text is the SHA-256 digest of the bytes 00 00 80 3f.
        let of_f32 = "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c";
        assert_eq!(of(&[1.0_f32]).sha256.map(|digest| hex(&digest)).as_deref(), Some(of_f32));
        assert_ne!(of(&[1.0_f64]).sha256.map(|digest| hex(&digest)).as_deref(), Some(of_f32));
        assert_eq!(of::<f32>(&[]).sha256, Some(Sha256::digest(b"").into()));
        let blocks = Sha256::digest(1.0_f32.to_le_bytes().repeat(BLOCK + 1));
        assert_eq!(of(&[1.0_f32; BLOCK + 1]).sha256, Some(blocks.into()));
        assert_eq!(Stats::of(&[1.0_f32], Dtype::F32, false).sha256, None);
    }

    #[test]
    fn every_half_survives_a_round_trip() {
        for half in 0..=u16::MAX {
            let (exponent, fraction) = (u32::from(half >> 10 & 0x1f), u32::from(half & 0x3ff));
            let magnitude = match exponent {
                0 => (fraction as f32 / 16_777_216.0).to_bits(),
                0x1f => 0x7f80_0000 | fraction << 13,
                _ => (exponent + 112) << 23 | fraction << 13,
            };
            let value = f32::from_bits(u32::from(half & 0x8000) << 16 | magnitude);
            assert_eq!(half_of(value), half, "{value}");
        }
    }

    #[test]
    fn the_digest_of_integers_and_halves_is_of_their_stored_bytes() {
        let sha256 = |bytes: &[u8]| Some(<[u8; 32]>::from(Sha256::digest(bytes)));
        let ints = Stats::of(&[-2_147_483_648.0_f64, 7.0], Dtype::I32, true);
        assert_eq!(ints.sha256, sha256(&[0, 0, 0, 0x80, 7, 0, 0, 0]));
        let unsigned = Stats::of(&[4_294_967_295.0_f64], Dtype::U32, true);
        assert_eq!(unsigned.sha256, sha256(&[0xff; 4]));
        let halves = Stats::of(&[1.0_f32, f32::NEG_INFINITY], Dtype::F16, true);
        assert_eq!((halves.sha256, halves.sum), (sha256(&[0, 0x3c, 0, 0xfc]), 1.0));
    }

    #[test]
    fn a_sum_of_a_million_tenths_is_accurate() {
        let stats = of(&vec![0.1_f64; 1_000_000]);
        assert!((stats.sum - 100_000.0).abs() < 1e-9, "{}", stats.sum);
    }

    #[test]
    fn a_sum_beyond_f64_is_infinite_not_nan() {
        assert_eq!(of(&vec![f64::MAX; 1000]).sum, f64::INFINITY);
        assert_eq!(of(&[f64::MAX, -f64::MAX].repeat(500)).sum, 0.0);
    }

    #[test]
    fn every_position_of_a_block_is_counted() {
        for length in 1..=2 * BLOCK + LANES {
            let mut values = vec![0.25_f32; length];
            values[length - 1] = -3.0;
            let stats = of(&values);
            let others = 0.25 * (length - 1) as f64;
            assert_eq!((stats.sum, stats.asum), (others - 3.0, others + 3.0), "{length}");
            assert_eq!(stats.sumsq, others / 4.0 + 9.0, "{length}");
            let max = if length == 1 { -3.0 } else { 0.25 };
            assert_eq!((stats.nonfinite, stats.min, stats.max), (0, Some(-3.0), Some(max)));
        }
    }
}
