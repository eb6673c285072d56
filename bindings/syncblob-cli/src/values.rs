//! Converts the values in a blob's data or diff (a payload), of any stored type, to doubles.

use std::ops::Range;

use syncblob::{BlobAny, Element};

use crate::source::{Failure, Result, Source, PART};

macro_rules! values {
    ([] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        #[derive(Clone, Copy)]
        pub enum Values<'a> {
            $($name(&'a [$type]),)*
        }

        impl<'a> Values<'a> {
            pub fn of(blob: &'a BlobAny, part: Part) -> Result<Self> {
                match (blob, part) {
                    $(
                        (BlobAny::$name(blob), Part::Data) => Ok(Self::$name(blob.data()?)),
                        (BlobAny::$name(blob), Part::Diff) => Ok(Self::$name(blob.diff()?)),
                    )*
                    (other, _) => {
                        let text = format!("values of {} cannot be read", other.dtype());
                        Err(Failure::Unsupported(text))
                    }
                }
            }

            /// Returns the values in a range, which must be within bounds.
            pub fn slice(self, range: Range<usize>) -> Self {
                match self {
                    $(Self::$name(values) => Self::$name(&values[range]),)*
                }
            }
        }
    };
}

syncblob::for_each_dtype!(values);

macro_rules! match_values {
    ([$values:tt $slice:ident $body:tt] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        match $values {
            $(Values::$name($slice) => $body,)*
        }
    };
}
pub(crate) use match_values;

/// Evaluates `$body`, in which `$slice` is the slice of values in their element type.
macro_rules! each {
    ($values:expr, $slice:ident => $body:expr) => {
        syncblob::for_each_dtype!($crate::values::match_values, ($values) $slice ($body))
    };
}
pub(crate) use each;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Data,
    Diff,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Diff => "diff",
        }
    }
}

/// The maximum number of values to convert at a time.
const BLOCK: usize = 1024;

impl Values<'_> {
    pub fn len(self) -> usize {
        each!(self, values => values.len())
    }

    /// Returns whether the type is an integer type with values that f64 cannot represent exactly.
    pub fn is_wide(self) -> bool {
        each!(self, values => is_wide_of(values))
    }

    /// Returns the exact value at `index` if the type is an integer type, or else None.
    pub fn integer(self, index: usize) -> Option<i128> {
        each!(self, values => values[index].to_integer())
    }

    /// Passes all values to `take` in order, one block at a time.
    pub fn for_each_block(self, mut take: impl FnMut(&[f64])) {
        let mut block = Block::default();
        for start in (0..self.len()).step_by(BLOCK) {
            take(block.fill(self, start));
        }
    }

    /// Passes the values of two payloads of equal length to `take`, one block of each at a time.
    pub fn for_each_block_with(self, other: Self, mut take: impl FnMut(&[f64], &[f64])) {
        let [mut block, mut other_block] = [Block::default(), Block::default()];
        for start in (0..self.len().min(other.len())).step_by(BLOCK) {
            take(block.fill(self, start), other_block.fill(other, start));
        }
    }
}

/// Values that can be read repeatedly.
pub trait Pass {
    /// Passes all values once to `each`, in several parts.
    fn each(&mut self, each: &mut dyn FnMut(Values)) -> Result<()>;
}

#[cfg(test)]
impl Pass for Values<'_> {
    fn each(&mut self, each: &mut dyn FnMut(Values)) -> Result<()> {
        each(*self);
        Ok(())
    }
}

/// The data of a tensor, which can be read repeatedly. If the data has only one part, the part
/// stays in memory. Otherwise each pass reads the file again.
pub struct Passes<'a> {
    source: &'a Source,
    index: usize,
    /// How many values each pass reads at most.
    count: usize,
    only: Option<BlobAny>,
}

impl<'a> Passes<'a> {
    pub fn new(source: &'a Source, index: usize) -> Self {
        Self::of_first(source, index, usize::MAX)
    }

    pub fn of_first(source: &'a Source, index: usize, count: usize) -> Self {
        Self { source, index, count, only: None }
    }
}

impl Pass for Passes<'_> {
    fn each(&mut self, each: &mut dyn FnMut(Values)) -> Result<()> {
        let mut left = self.count;
        let mut take = |blob: &BlobAny| {
            let values = Values::of(blob, Part::Data)?;
            let count = values.len().min(left);
            each(values.slice(0..count));
            left -= count;
            Ok(left)
        };
        if let Some(only) = &self.only {
            return take(only).map(|_| ());
        }
        self.only = self.source.read(self.index, |parts| {
            let (mut only, mut number, mut left) = (None, 0, self.count);
            while left > 0 {
                let Some(blob) = parts.next(PART.min(left))? else { break };
                left = take(&blob)?;
                number += 1;
                only = (number == 1).then_some(blob);
            }
            Ok::<_, Failure>(only)
        })??;
        Ok(())
    }
}

struct Block([f64; BLOCK]);

impl Default for Block {
    fn default() -> Self {
        Self([0.0; BLOCK])
    }
}

impl Block {
    /// Converts at most `BLOCK` values, beginning at `start`.
    fn fill(&mut self, values: Values, start: usize) -> &[f64] {
        let count = BLOCK.min(values.len() - start);
        let block = &mut self.0[..count];
        each!(values, values => convert(&values[start..], block));
        block
    }
}

fn is_wide_of<T: Element>(_: &[T]) -> bool {
    T::DTYPE.exact_float().is_none()
}

fn convert<T: Element>(from: &[T], to: &mut [f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.to_f64();
    }
}

/// Returns the indices of the element at an offset. For offset 5 and shape 2x3, returns [1, 2].
pub fn indices(shape: &[usize], mut offset: usize) -> Vec<usize> {
    let mut indices = vec![0; shape.len()];
    for (index, &dim) in indices.iter_mut().zip(shape).rev() {
        if dim > 0 {
            *index = offset % dim;
            offset /= dim;
        }
    }
    indices
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn indices_vary_fastest_in_the_last_axis() {
        let cases: [(&[usize], usize, &[usize]); 4] =
            [(&[2, 3], 5, &[1, 2]), (&[2, 3, 4], 13, &[1, 0, 1]), (&[7], 6, &[6]), (&[], 0, &[])];
        for (shape, offset, wanted) in cases {
            assert_eq!(indices(shape, offset), wanted);
        }
    }

    #[test]
    fn blocks_contain_all_values_in_order() {
        let values: Vec<u32> = (0..3000).collect();
        let mut seen = Vec::new();
        Values::U32(&values).for_each_block(|block| seen.extend_from_slice(block));
        assert!(seen.iter().zip(&values).all(|(&seen, &value)| seen == f64::from(value)));
        assert_eq!(seen.len(), values.len());
        let half = [f16::from_f32(0.5); 2];
        Values::F16(&half).for_each_block_with(Values::Bf16(&[bf16::ONE; 2]), |a, b| {
            assert_eq!((a, b), (&[0.5; 2][..], &[1.0; 2][..]));
        });
    }
}
