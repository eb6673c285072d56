//! Loads values, converts them, and passes their bytes to a callback.

use std::cell::RefCell;
use std::path::Path;

use bytemuck::{NoUninit, Pod};
use half::{bf16, f16};
use syncblob::{Blob, BlobAny, Dtype, Element, Float};

use super::plan::{Item, Origin};
use super::{about_input, Note};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::source::{Failure, Result, Source, Stored, PART};
use crate::text::{grouped, printable};
use crate::values::{each, Part, Values};

/// The maximum number of bytes to pass to a callback at a time, a multiple of every type's size.
const PIECE: usize = 1 << 20;
/// The maximum number of values to convert at a time.
const CHUNK: usize = 1 << 16;

pub struct Reader<'a> {
    source: &'a Source,
    input: &'a Path,
    interrupt: &'a Interrupt,
    progress: Progress,
    overflows: RefCell<Overflows>,
}

/// Counts the values that are finite in the input but infinite in the output.
#[derive(Default)]
struct Overflows {
    values: usize,
    tensors: usize,
    first: String,
}

/// A callback that receives a tensor's bytes in pieces.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

impl<'a> Reader<'a> {
    pub fn new(
        source: &'a Source,
        input: &'a Path,
        interrupt: &'a Interrupt,
        progress: Progress,
    ) -> Self {
        Self { source, input, interrupt, progress, overflows: RefCell::default() }
    }

    /// Passes a tensor's bytes to `sink` in pieces. The values are in little-endian order.
    pub fn bytes(&self, item: &Item, sink: Sink) -> Result<()> {
        self.pieces(item, &mut |piece| {
            if cfg!(target_endian = "little") {
                return sink(piece);
            }
            let mut swapped = piece.to_vec();
            swapped.chunks_exact_mut(item.dtype.size()).for_each(<[u8]>::reverse);
            sink(&swapped)
        })
    }

    /// Loads a tensor as a blob of the output's element type, f32 or f64.
    pub fn blob(&self, item: &Item) -> Result<BlobAny> {
        if self.is_ready(item) {
            self.interrupt.check()?;
            let blob = self.load(item);
            self.progress.advance(item.bytes() as u64);
            return blob.map_err(|failure| about_input(self.input, failure));
        }
        match item.dtype {
            Dtype::F64 => self.converted::<f64>(item),
            Dtype::F32 => self.converted::<f32>(item),
            other => Err(Failure::Unsupported(format!("Caffe's files hold no {other}"))),
        }
    }

    /// Returns whether the values can be written without conversion.
    fn is_ready(&self, item: &Item) -> bool {
        match &item.origin {
            Origin::Tensor(index) => self.source.tensors[*index].dtype == Stored::As(item.dtype),
            Origin::State(tensor) => tensor.dtype == item.dtype,
        }
    }

    fn load(&self, item: &Item) -> Result<BlobAny> {
        match &item.origin {
            Origin::Tensor(index) => self.source.load(*index),
            Origin::State(tensor) => {
                Ok(tensor.load(self.source.net().expect("the tensor's model"))?)
            }
        }
    }

    /// Passes the values of a tensor to `each` in order. If the input's format can be read in
    /// parts, passes parts.
    fn parts(&self, item: &Item, each: &mut dyn FnMut(BlobAny) -> Result<()>) -> Result<()> {
        match item.origin {
            Origin::Tensor(index) => self.source.parts(index, PART, each),
            Origin::State(_) => each(self.load(item)?),
        }
    }

    fn converted<T: Float + Pod>(&self, item: &Item) -> Result<BlobAny> {
        let mut blob = Blob::<T>::in_context(self.source.context()).zeros(&item.shape[..])?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(blob.data_mut()?);
        let mut at = 0;
        self.pieces(item, &mut |piece| {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
            Ok(())
        })?;
        Ok(blob.into())
    }

    /// Passes a tensor's bytes to `sink` in pieces. The values are in this machine's byte order.
    fn pieces(&self, item: &Item, sink: Sink) -> Result<()> {
        let mut written = Ok(());
        let mut overflows = 0;
        let sink: Sink = &mut |bytes| {
            for piece in bytes.chunks(PIECE) {
                self.interrupt.check()?;
                sink(piece)?;
                self.progress.advance(piece.len() as u64);
            }
            Ok(())
        };
        let read = self.parts(item, &mut |blob| {
            written = self.hand_on(item, &blob, sink).map(|more| overflows += more);
            match written {
                Ok(()) => Ok(()),
                Err(_) => Err(Failure::Interrupted),
            }
        });
        // If a write fails, `written` has the failure, and `read` has only the `Interrupted` that
        // stopped the read. Any other error in `read` is about the input.
        written?;
        read.map_err(|failure| about_input(self.input, failure))?;
        self.count(item, overflows);
        Ok(())
    }

    /// Passes the values of `blob` to `sink`. Returns how many values became infinite.
    fn hand_on(&self, item: &Item, blob: &BlobAny, sink: Sink) -> Result<usize> {
        let ready = self.is_ready(item);
        each!(Values::of(blob, Part::Data)?, values => hand_on(values, ready, item, sink))
    }

    fn count(&self, item: &Item, overflows: usize) {
        if overflows > 0 {
            let mut counted = self.overflows.borrow_mut();
            if counted.tensors == 0 {
                counted.first.clone_from(&item.name);
            }
            counted.tensors += 1;
            counted.values += overflows;
        }
    }

    pub fn finish(self, note: Note) {
        drop(self.progress);
        let Overflows { values, tensors, first } = self.overflows.into_inner();
        if tensors > 0 {
            note(&format_args!(
                "{} values in {} tensors, the first of them \"{}\", are beyond the range of the \
                 type and became infinite",
                grouped(values),
                grouped(tensors),
                printable(&first)
            ));
        }
    }
}

/// Passes values to `sink`, and first converts them unless `ready` is true. Returns how many values
/// became infinite.
fn hand_on<S: Element + NoUninit>(
    values: &[S],
    ready: bool,
    item: &Item,
    sink: Sink,
) -> Result<usize> {
    if ready {
        sink(bytemuck::cast_slice(values))?;
        return Ok(0);
    }
    match item.dtype {
        Dtype::F16 => convert::<S, f16>(values, sink),
        Dtype::Bf16 => convert::<S, bf16>(values, sink),
        Dtype::F64 => convert::<S, f64>(values, sink),
        Dtype::F32 => convert::<S, f32>(values, sink),
        other => Err(Failure::Unsupported(format!("values are not converted to {other}"))),
    }
}

fn convert<S: Element, T: Target>(values: &[S], sink: Sink) -> Result<usize> {
    let mut overflows = 0;
    let mut chunk = Vec::with_capacity(CHUNK.min(values.len()));
    for some in values.chunks(CHUNK) {
        chunk.clear();
        for value in some {
            let value = value.to_f64();
            let narrow = T::narrow(value);
            overflows += usize::from(value.is_finite() && !narrow.is_finite());
            chunk.push(narrow);
        }
        sink(bytemuck::cast_slice(&chunk))?;
    }
    Ok(overflows)
}

/// An element type that values are rounded to. Ties are rounded to even.
trait Target: NoUninit {
    fn narrow(value: f64) -> Self;
    fn is_finite(self) -> bool;
}

macro_rules! target {
    ($($type:ty = |$value:ident| $narrow:expr;)*) => {$(
        impl Target for $type {
            fn narrow($value: f64) -> Self {
                $narrow
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}

target! {
    f64 = |value| value;
    f32 = |value| value as f32;
    f16 = |value| f16::from_f32(to_odd(value));
    bf16 = |value| bf16::from_f32(to_odd(value));
}

/// Rounds to odd: returns the value if f32 can represent it, or else the neighbouring f32 whose
/// last bit is 1. Rounding this f32 to 16 bits has the same result as rounding `value` to 16 bits.
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || value.is_nan() {
        return near;
    }
    let beyond = f64::from(near).abs() > value.abs();
    f32::from_bits((near.to_bits() - u32::from(beyond)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_through_f32_equals_rounding_once() {
        let half = f64::from(f16::EPSILON) / 2.0;
        let cases = [
            (1.0 + half, 1.0),                      // a tie, which is rounded to even
            (1.0 + half + 1e-12, 1.0 + 2.0 * half), // above a tie, which f32 cannot represent
            (1.0 + 3.0 * half - 1e-12, 1.0 + 2.0 * half),
            (1.0 + 3.0 * half, 1.0 + 4.0 * half),
            (65519.999999, 65504.0),
            (-65520.0, f64::NEG_INFINITY),
            (1e300, f64::INFINITY),
            (2.0_f64.powi(-25), 0.0),
            (2.0_f64.powi(-25) + 1e-20, 2.0_f64.powi(-24)),
            (-0.0, -0.0),
        ];
        for (value, rounded) in cases {
            assert_eq!(f16::narrow(value).to_f64().to_bits(), rounded.to_bits(), "{value}");
        }
        assert!(f16::narrow(f64::NAN).is_nan() && bf16::narrow(f64::NAN).is_nan());
        assert_eq!(bf16::narrow(3.4e38).to_f64(), f64::INFINITY);
        assert_eq!(bf16::narrow(1.0 + 2.0_f64.powi(-8) + 1e-15).to_f64(), 1.0 + 2.0_f64.powi(-7));
    }

    #[test]
    fn only_finite_values_overflow() {
        let values = [1e5_f32, f32::INFINITY, f32::NAN, -7e4, 1.0];
        let mut bytes = Vec::new();
        let sink: Sink = &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        assert_eq!(convert::<f32, f16>(&values, sink).unwrap(), 2);
        assert_eq!(bytes.len(), 10);
    }
}
